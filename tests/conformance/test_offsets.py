"""OffsetCommit and TxnOffsetCommit (O-01 to O-14), simple groups (O-24)."""

from __future__ import annotations

import pytest

from groupsim.coordinator import Switches
from groupsim.coordinator.classic.states import GroupState
from groupsim.coordinator.records import OffsetCommitValue, TransactionMarker
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    APIS,
    ApiKey,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from groupsim.testing.coordinator import Bench
from tests.conformance.world import Refusing, Topics

NONE, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID
ILLEGAL, FENCED = ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID


def topic(
    name: str = "orders", *partitions: int, topic_id: str = "", metadata: str = ""
) -> OffsetCommitRequestTopic:
    """Offset 7 for these partitions (0 unless given)."""
    return OffsetCommitRequestTopic(
        name=name,
        topic_id=topic_id,
        partitions=tuple(
            OffsetCommitRequestPartition(
                partition_index=index, committed_offset=7, committed_metadata=metadata
            )
            for index in partitions or (0,)
        ),
    )


def transactional(
    bench: Bench,
    *topics: OffsetCommitRequestTopic,
    producer: int = 5,
    member_id: str = "",
    instance: str | None = None,
    generation: int = -1,
    group: str = "g",
    version: int = 5,
) -> TxnOffsetCommitResponse:
    """Commit in a transaction and return the answer."""
    request = TxnOffsetCommitRequest(
        transactional_id="t",
        group_id=group,
        producer_id=producer,
        producer_epoch=0,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=instance,
        topics=topics or (topic(),),
    )
    return bench.answer(bench.send(request, version), TxnOffsetCommitResponse)


def codes(response: OffsetCommitResponse | TxnOffsetCommitResponse) -> list[ErrorCode]:
    """The errors of all partitions."""
    return [entry.error_code for found in response.topics for entry in found.partitions]


def end(bench: Bench, *, committed: bool, producer: int = 5) -> None:
    """End the transaction."""
    marker = TransactionMarker(producer_id=producer, producer_epoch=0, committed=committed)
    bench.carry_out(bench.coordinator.complete_transaction(0, marker, bench.now_ms, 99))


# -- OffsetCommit ----------------------------------------------------------------------------


def test_commit_gate() -> None:
    """O-01, in order: group, metadata version, topics, partitions; then the coordinator."""
    refusing = Refusing(("READ", "GROUP", "h"), ("READ", "TOPIC", "secret"))
    bench = Bench(topics=Topics(orders=2, secret=1), authorizer=refusing)
    assert bench.commit(group="h") == [ErrorCode.GROUP_AUTHORIZATION_FAILED]
    offsets = {("secret", 0): 1, ("nowhere", 0): 1, ("orders", 2): 1, ("orders", 1): 1}
    assert bench.commit(offsets) == [
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        NONE,
    ]
    old = Bench(switches=Switches(static_membership_gate=True))
    assert old.commit(instance="i") == [ErrorCode.UNSUPPORTED_VERSION]


def test_a_commit_without_valid_partitions_reaches_nobody() -> None:
    """O-01: no membership check, no session refresh, no group."""
    bench = Bench(topics=Topics(orders=1))
    (member,) = bench.stable(1)
    bench.sleep(100)
    timers = bench.timers()
    found = bench.commit({("orders", 5): 1}, member_id="nobody", generation=99)
    assert found == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    bench.commit({("orders", 5): 1}, member_id=member, generation=1)
    assert bench.timers() == timers
    bench.commit({("nowhere", 0): 1}, group="new")
    assert not bench.has_group("new")


def test_results_are_merged_by_topic() -> None:
    """O-01: refused partitions first, then those of the coordinator."""
    bench = Bench(topics=Topics(orders=2))
    request = OffsetCommitRequest(group_id="g", topics=(topic("orders", 0, 7, 1),))
    answer = bench.answer(bench.send(request, 9), OffsetCommitResponse)
    assert answer.topics == (
        OffsetCommitResponseTopic(
            name="orders",
            partitions=(
                OffsetCommitResponsePartition(
                    partition_index=7, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                ),
                OffsetCommitResponsePartition(partition_index=0),
                OffsetCommitResponsePartition(partition_index=1),
            ),
        ),
    )


def test_version_10_names_topics_by_id() -> None:
    """O-01, O-09: an unknown id is an error of its own, names are not returned."""
    bench = Bench(topics=Topics(orders=1))
    request = OffsetCommitRequest(
        group_id="g", topics=(topic("", topic_id="id-orders"), topic("", topic_id="id-nowhere"))
    )
    answer = bench.answer(bench.send(request, 10), OffsetCommitResponse)
    assert [(found.name, found.topic_id) for found in answer.topics] == [
        ("", "id-nowhere"),
        ("", "id-orders"),
    ]
    assert codes(answer) == [ErrorCode.UNKNOWN_TOPIC_ID, NONE]
    value = bench.log[0][0].value
    assert isinstance(value, OffsetCommitValue)
    assert value.topic_id == "id-orders"


def test_commit_component() -> None:
    """O-02, C-03, C-07: on every partition; the empty group id is accepted, null is not."""
    bench = Bench()
    assert bench.commit(group="") == [NONE]
    assert bench.commit(group=None) == [ErrorCode.INVALID_GROUP_ID]  # type: ignore[arg-type]
    bench.carry_out(bench.coordinator.stop(0))
    assert bench.commit() == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert Bench(load=False).commit() == [ErrorCode.NOT_COORDINATOR]


def test_commit_to_a_missing_group() -> None:
    """O-03, O-09, O-24, J-08: below generation 0 a simple group is made, by its offset alone;
    from 0 on the code depends on the version.
    """
    bench = Bench()
    assert bench.commit(generation=0, version=9) == [ErrorCode.GROUP_ID_NOT_FOUND]
    assert bench.commit(generation=0, version=8) == [ILLEGAL]
    assert not bench.has_group()
    assert bench.commit(member_id="any", instance="i") == [NONE]
    assert bench.seen().is_simple
    assert bench.group_records() == []
    assert any("Creating a simple consumer group" in line for line in bench.sentences())


def test_simple_group_becomes_an_ordinary_one() -> None:
    """O-24: when somebody joins; its offsets stay."""
    bench = Bench()
    bench.commit()
    bench.new_id()
    assert not bench.seen().is_simple
    bench.stable(1)
    assert bench.fetch(("orders", 0)) == {("orders", 0): 7}


def test_commit_validation_in_order() -> None:
    """O-04: DEAD, EMPTY, member, generation, nobody, COMPLETING."""
    bench = Bench()
    a, b = bench.completing_static("a", "b")
    assert bench.commit(member_id="nobody", generation=99) == [UNKNOWN]
    assert bench.commit(member_id=a, instance="b", generation=99) == [FENCED]
    assert bench.commit(instance="c") == [UNKNOWN]
    assert bench.commit(member_id=a, generation=99) == [ILLEGAL]
    assert bench.commit(member_id=a, generation=-1) == [ILLEGAL]
    assert bench.commit() == [UNKNOWN]
    assert bench.commit(member_id=a, generation=1) == [ErrorCode.REBALANCE_IN_PROGRESS]
    bench.assign()
    assert bench.commit(member_id=b, instance="b", generation=1) == [NONE]
    bench.group().transition_to(GroupState.DEAD, "forced")
    assert bench.commit(member_id="nobody") == [ErrorCode.COORDINATOR_NOT_AVAILABLE]


def test_outcome_by_sender_and_state() -> None:
    """O-05: the table, row by row."""

    def outcomes(bench: Bench, member: str, absent: str, replaced: str) -> dict[str, ErrorCode]:
        pending = bench.new_id(session_ms=1_000_000)
        return {
            "member": bench.commit(member_id=member, generation=bench.seen().generation_id)[0],
            "absent": bench.commit(member_id=absent, generation=1)[0],
            "dropped": bench.commit(member_id="dropped", generation=1)[0],
            "replaced": bench.commit(member_id=replaced, instance="r", generation=1)[0],
            "pending": bench.commit(member_id=pending)[0],
            "simple": bench.commit()[0],
        }

    bench = Bench()
    bench.stable_static("a", "m", "r", session_ms=900_000, rebalance_ms=8000)
    replaced = bench.group().static_members["r"]
    member, absent = (bench.group().static_members[name] for name in "ma")
    bench.joined(bench.join(instance="r", session_ms=900_000, rebalance_ms=8000))
    stable = outcomes(bench, member, absent, replaced)
    assert stable == {
        "member": NONE,
        "absent": NONE,
        "dropped": UNKNOWN,
        "replaced": FENCED,
        "pending": UNKNOWN,
        "simple": UNKNOWN,
    }
    bench.join(
        member, instance="m", session_ms=900_000, rebalance_ms=8000, protocols=["range", "x"]
    )
    if bench.seen().state == "Stable":  # it leads
        raise AssertionError
    assert outcomes(bench, member, absent, replaced) == stable  # PREPARING: the old generation
    bench.sleep(8000)
    assert outcomes(bench, member, absent, replaced) == {
        "member": ErrorCode.REBALANCE_IN_PROGRESS,
        "absent": ILLEGAL,
        "dropped": UNKNOWN,
        "replaced": FENCED,
        "pending": UNKNOWN,
        "simple": UNKNOWN,
    }
    empty = Bench()
    empty.new_id()
    pending = next(iter(empty.group().pending_joins))
    assert empty.commit(member_id=pending) == [NONE]
    assert empty.commit(member_id=pending, generation=0) == [UNKNOWN]
    assert empty.commit(member_id="x", instance="r", generation=0) == [UNKNOWN]
    assert empty.commit() == [NONE]


@pytest.mark.parametrize("metadata", ["", "x" * 5000])
def test_commit_refreshes_the_session(metadata: str) -> None:
    """O-06, T-1: in STABLE and PREPARING, whatever becomes of the partitions."""
    bench = Bench()
    leader, follower = bench.stable(2)
    bench.sleep(100)
    bench.commit(member_id=follower, generation=1, metadata=metadata)
    assert bench.timers()[f"heartbeat-g-{follower}"] == ("session", bench.now_ms + 10_000)
    bench.join(follower, protocols=["range", "x"])
    bench.sleep(100)
    bench.commit(member_id=leader, generation=1, metadata=metadata)
    assert bench.timers()[f"heartbeat-g-{leader}"] == ("session", bench.now_ms + 10_000)


def test_partitions_of_a_commit() -> None:
    """O-07: metadata counted in UTF-16 units; null is ""; any offset is stored; the answer comes
    with the commit.
    """
    bench = Bench({"offset.metadata.max.bytes": 4})
    request = OffsetCommitRequest(
        group_id="g",
        topics=(
            topic("a", metadata="1234"),
            topic("b", metadata="12345"),
            topic("c", metadata="\U0001f600\U0001f600"),
            topic("d", metadata="\U0001f600\U0001f600x"),
        ),
    )
    bench.hold = True
    token = bench.send(request, 9)
    assert bench.is_parked(token)
    bench.commit_appends()
    assert bench.commit_codes(token) == [
        NONE,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        NONE,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
    ]
    bench.hold = False
    assert len(bench.log[0]) == 2
    bench.commit({("orders", 0): 9})
    bench.commit({("orders", 0): -4}, metadata=None)
    value = bench.log[0][-1].value
    assert isinstance(value, OffsetCommitValue)
    assert (value.offset, value.metadata) == (-4, "")


def test_timestamps_of_a_commit() -> None:
    """O-08: now; with a retention time an expire timestamp, in a record that has neither leader
    epoch nor topic id.
    """
    bench = Bench(topics=Topics(orders=1))
    bench.sleep(50)
    bench.commit()
    bench.commit(retention_ms=1000, version=4)
    values = [record.value for record in bench.log[0]]
    assert all(isinstance(value, OffsetCommitValue) for value in values)
    plain, expiring = values
    assert isinstance(plain, OffsetCommitValue)
    assert isinstance(expiring, OffsetCommitValue)
    assert (plain.commit_timestamp, plain.expire_timestamp, plain.topic_id) == (50, -1, "id-orders")
    assert (expiring.expire_timestamp, expiring.topic_id) == (1050, "")


def test_versions_of_offset_commit() -> None:
    """O-09, O-14, O-19: of Apache Kafka 4.4."""
    found = {
        key: (APIS[key].min_version, APIS[key].max_version)
        for key in (
            ApiKey.OFFSET_COMMIT,
            ApiKey.TXN_OFFSET_COMMIT,
            ApiKey.OFFSET_FETCH,
            ApiKey.OFFSET_DELETE,
        )
    }
    assert list(found.values()) == [(2, 10), (0, 6), (1, 10), (0, 0)]


# -- TxnOffsetCommit -------------------------------------------------------------------------


def test_transactional_gate() -> None:
    """O-10: transactional id, group, topics; below version 2 nobody hears of loading."""
    refusing = Refusing(("WRITE", "TRANSACTIONAL_ID", "t"))
    assert codes(transactional(Bench(authorizer=refusing))) == [
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    ]
    refusing = Refusing(("READ", "GROUP", "g"), ("READ", "TOPIC", "secret"))
    bench = Bench(authorizer=refusing, topics=Topics(orders=1, secret=1))
    assert codes(transactional(bench)) == [ErrorCode.GROUP_AUTHORIZATION_FAILED]
    answer = transactional(bench, topic("secret"), topic("orders", 3), group="h")
    assert codes(answer) == [
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    loading = Bench(load=False)
    loading.carry_out(loading.coordinator.begin_load(0, 1, 0))
    assert codes(transactional(loading, version=1)) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert codes(transactional(loading, version=2)) == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    ok = Bench()
    assert codes(transactional(ok, version=1)) == [NONE]


def test_transactional_component() -> None:
    """O-11: stopped, group id, then the verification's word."""
    verdicts = {5: NONE, 6: ErrorCode.INVALID_TXN_STATE, 7: ErrorCode.NETWORK_EXCEPTION}
    bench = Bench(transactions=lambda _id, producer, _epoch, _version: verdicts[producer])
    assert codes(transactional(bench, group="")) == [ErrorCode.INVALID_GROUP_ID]
    assert codes(transactional(bench, producer=5)) == [NONE]
    assert codes(transactional(bench, producer=6)) == [ErrorCode.INVALID_TXN_STATE]
    assert codes(transactional(bench, producer=7)) == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    bench.carry_out(bench.coordinator.stop(0))
    assert codes(transactional(bench)) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]


def test_transactional_commit_to_a_missing_group() -> None:
    """O-12, O-14: from version 6 on the group is named as missing."""
    bench = Bench()
    assert codes(transactional(bench, generation=0, version=5)) == [ILLEGAL]
    by_id = topic("", topic_id="x")
    assert codes(transactional(bench, by_id, generation=0, version=6)) == [
        ErrorCode.UNKNOWN_TOPIC_ID
    ]
    named = Bench(topics=Topics(orders=1))
    by_id = topic("", topic_id="id-orders")
    answer = transactional(named, by_id, generation=0, version=6)
    assert codes(answer) == [ErrorCode.GROUP_ID_NOT_FOUND]
    assert not bench.has_group()
    assert codes(transactional(bench)) == [NONE]
    assert bench.has_group()


def test_transactional_validation() -> None:
    """O-13: only steps 1 to 3 of O-04; accepted in COMPLETING; no session refresh."""
    bench = Bench()
    (member,) = bench.completing_static("a")
    timers = bench.timers()
    bench.sleep(100)
    assert codes(transactional(bench)) == [NONE]
    assert codes(transactional(bench, member_id=member, generation=1)) == [NONE]
    assert codes(transactional(bench, member_id="x", generation=1)) == [UNKNOWN]
    assert codes(transactional(bench, member_id="x", instance="a", generation=1)) == [FENCED]
    assert codes(transactional(bench, member_id=member, generation=9)) == [ILLEGAL]
    assert bench.timers() == timers
    bench.group().transition_to(GroupState.DEAD, "forced")
    assert codes(transactional(bench)) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]


def test_pending_until_the_marker() -> None:
    """O-13, C-18: visible after a commit, gone after an abort; a newer plain commit wins."""
    bench = Bench()
    transactional(bench, topic("orders", 0, 1))
    assert bench.fetch(("orders", 0)) == {("orders", 0): -1}
    end(bench, committed=True)
    assert bench.ended == {99: NONE}
    assert bench.fetch(("orders", 0), ("orders", 1)) == {("orders", 0): 7, ("orders", 1): 7}
    transactional(bench, topic("orders", 0))
    bench.commit({("orders", 0): 50})
    end(bench, committed=True)
    assert bench.fetch(("orders", 0)) == {("orders", 0): 50}
    transactional(bench, topic("other"))
    end(bench, committed=False)
    assert bench.fetch(("other", 0)) == {("other", 0): -1}
    end(bench, committed=True)  # a producer without pending offsets


def test_two_producers_on_one_partition() -> None:
    """O-13, C-18: each transaction ends on its own."""
    bench = Bench()
    transactional(bench, producer=5)
    transactional(bench, producer=5)
    transactional(bench, producer=6)
    end(bench, committed=False, producer=5)
    assert bench.fetch(("orders", 0), stable=True) == {
        ("orders", 0): ErrorCode.UNSTABLE_OFFSET_COMMIT
    }
    end(bench, committed=True, producer=6)
    assert bench.fetch(("orders", 0), stable=True) == {("orders", 0): 7}


def test_marker_where_the_partition_is_not_served() -> None:
    """C-18, C-03, C-05."""
    bench = Bench(load=False)
    end(bench, committed=True)
    assert bench.ended == {99: ErrorCode.NOT_COORDINATOR}
    bench.carry_out(bench.coordinator.stop(0))
    end(bench, committed=True)
    assert bench.ended == {99: ErrorCode.COORDINATOR_NOT_AVAILABLE}
    marker = TransactionMarker(producer_id=5, producer_epoch=0, committed=True)
    silent = Bench()
    silent.carry_out(silent.coordinator.complete_transaction(0, marker, 0))
    assert silent.ended == {}
