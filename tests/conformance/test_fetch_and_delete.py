"""OffsetFetch, OffsetDelete, expiry and deletion of offsets (O-15 to O-23, 2.2)."""

from __future__ import annotations

import pytest

from groupsim.coordinator import Switches
from groupsim.coordinator.classic.states import GroupState
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from groupsim.testing.coordinator import Bench
from tests.conformance.test_offsets import end, topic, transactional
from tests.conformance.world import HOUR_MS, Refusing, Topics

NONE = ErrorCode.NONE
DAY_MS = 24 * HOUR_MS


def asked(*topics: str, group: str = "g", by_id: bool = False) -> OffsetFetchRequestGroup:
    """Partition 0 of these topics; all offsets without any."""
    wanted = tuple(
        OffsetFetchRequestTopic(
            name="" if by_id else name, topic_id=name if by_id else "", partition_indexes=(0,)
        )
        for name in topics
    )
    return OffsetFetchRequestGroup(group_id=group, topics=wanted or None)


def fetched(
    bench: Bench, *groups: OffsetFetchRequestGroup, version: int = 9, stable: bool = False
) -> tuple[OffsetFetchResponseGroup, ...]:
    """The groups of an OffsetFetch's answer."""
    request = OffsetFetchRequest(groups=groups, require_stable=stable)
    return bench.answer(bench.send(request, version), OffsetFetchResponse).groups


def deleted(
    bench: Bench, *topics: tuple[str, tuple[int, ...]], group: str = "g"
) -> OffsetDeleteResponse:
    """The answer to an OffsetDelete."""
    request = OffsetDeleteRequest(
        group_id=group,
        topics=tuple(
            OffsetDeleteRequestTopic(name=name, partitions=partitions)
            for name, partitions in topics
        ),
    )
    return bench.answer(bench.send(request, 0), OffsetDeleteResponse)


def delete_codes(response: OffsetDeleteResponse) -> dict[tuple[str, int], ErrorCode]:
    """The errors of all partitions."""
    return {
        (found.name, entry.partition_index): entry.error_code
        for found in response.topics
        for entry in found.partitions
    }


# -- OffsetFetch -----------------------------------------------------------------------------


def test_fetch_gate() -> None:
    """O-15: per group, then per topic; a fetch of all leaves out what may not be seen."""
    refusing = Refusing(("DESCRIBE", "GROUP", "h"), ("DESCRIBE", "TOPIC", "secret"))
    bench = Bench(authorizer=refusing)
    bench.commit({("orders", 0): 1, ("secret", 0): 2})
    first, second = fetched(bench, asked("secret", "orders"), asked(group="h"))
    assert [(found.name, found.partitions[0].error_code) for found in first.topics] == [
        ("orders", NONE),
        ("secret", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ]
    assert second == OffsetFetchResponseGroup(
        group_id="h", error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED
    )
    assert bench.fetch() == {("orders", 0): 1}
    assert bench.fetch(("nowhere", 5)) == {("nowhere", 5): -1}  # existence is not checked


def test_fetch_component() -> None:
    """O-16, C-03, C-06, C-07: null group, stopped, not here, loading; membership plays no role."""
    bench = Bench(load=False)
    assert fetched(bench, asked())[0].error_code is ErrorCode.NOT_COORDINATOR
    bench.carry_out(bench.coordinator.begin_load(0, 1, 0))
    assert fetched(bench, asked())[0].error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    loading = fetched(bench, asked(), stable=True)[0]
    assert loading.error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    nobody = OffsetFetchRequestGroup(group_id=None, topics=None)  # type: ignore[arg-type]
    assert fetched(bench, nobody)[0].error_code is ErrorCode.INVALID_GROUP_ID
    bench.carry_out(bench.coordinator.stop(0))
    assert fetched(bench, asked())[0].error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert fetched(Bench(), asked(group=""))[0].error_code is NONE
    assert fetched(bench) == ()


def test_fetch_of_missing_and_dead_groups() -> None:
    """O-17: no error: -1 for what is named, nothing for all."""
    bench = Bench()
    nothing = OffsetFetchResponsePartition(partition_index=0, committed_offset=-1, metadata="")
    for _ in range(2):
        (group,) = fetched(bench, asked("orders"))
        assert group.topics == (OffsetFetchResponseTopic(name="orders", partitions=(nothing,)),)
        assert fetched(bench, asked())[0].topics == ()
        bench.commit()
        bench.group().transition_to(GroupState.DEAD, "forced")
    alive = Bench()
    alive.new_id()
    assert alive.fetch(("orders", 0)) == {("orders", 0): -1}
    assert alive.fetch() == {}


def test_reads_see_what_is_committed() -> None:
    """O-18, C-11: below the high watermark; require-stable waits for what is being written."""
    bench = Bench()
    bench.commit({("orders", 0): 1})
    bench.hold = True
    bench.send_commit({("orders", 0): 2, ("other", 0): 3})
    bench.send_commit(group="new")
    assert bench.fetch(("orders", 0), ("other", 0)) == {("orders", 0): 1, ("other", 0): -1}
    assert bench.fetch() == {("orders", 0): 1}
    assert bench.fetch(group="new") == {}
    waiting = bench.send_fetch(("orders", 0), stable=True)
    old = bench.send_fetch(("orders", 0), stable=True, version=6)  # no such field yet
    assert bench.is_parked(waiting)
    assert not bench.is_parked(old)
    bench.commit_appends()
    answer = bench.answer(waiting, OffsetFetchResponse)
    assert answer.groups[0].topics[0].partitions[0].committed_offset == 2
    assert bench.fetch() == {("orders", 0): 2, ("other", 0): 3}


def test_require_stable_and_transactions() -> None:
    """O-18: UNSTABLE_OFFSET_COMMIT for a pending partition; one with only a pending offset is not
    listed.
    """
    bench = Bench()
    bench.commit({("orders", 0): 1, ("orders", 1): 2})
    transactional(bench, topic("orders", 0), topic("fresh", 0))
    unstable = {("orders", 0): ErrorCode.UNSTABLE_OFFSET_COMMIT}
    assert bench.fetch(("orders", 0), ("orders", 1), ("fresh", 0), stable=True) == {
        **unstable,
        ("orders", 1): 2,
        ("fresh", 0): ErrorCode.UNSTABLE_OFFSET_COMMIT,
    }
    assert bench.fetch(stable=True) == {**unstable, ("orders", 1): 2}
    assert bench.fetch(("orders", 0)) == {("orders", 0): 1}
    end(bench, committed=True)
    assert bench.fetch(("orders", 0), stable=True) == {("orders", 0): 7}


def test_require_stable_that_times_out() -> None:
    """O-18, C-10, T-8: NOT_COORDINATOR; other errors as C-10 says."""
    bench = Bench()
    bench.hold = True
    bench.send_commit()
    token = bench.send_fetch(("orders", 0), stable=True)
    bench.sleep(5000)
    (group,) = bench.answer(token, OffsetFetchResponse).groups
    assert group.error_code is ErrorCode.NOT_COORDINATOR
    bench.commit_appends(ErrorCode.MESSAGE_TOO_LARGE)
    bench.send_commit()
    token = bench.send_fetch(("orders", 0), stable=True)
    bench.commit_appends(ErrorCode.MESSAGE_TOO_LARGE)
    (group,) = bench.answer(token, OffsetFetchResponse).groups
    assert group.error_code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_place_of_errors_by_version() -> None:
    """O-19: on every partition asked for in version 1, on the group later; older releases lost it."""
    bench = Bench(load=False)
    (group,) = fetched(bench, asked("orders", "other"), version=1)
    assert group.error_code is NONE
    assert [found.partitions[0].error_code for found in group.topics] == [
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_COORDINATOR,
    ]
    (group,) = fetched(bench, asked("orders"), version=2)
    assert group == OffsetFetchResponseGroup(group_id="g", error_code=ErrorCode.NOT_COORDINATOR)
    old = Bench(load=False, switches=Switches(offset_fetch_v1_errors_lost=True))
    assert fetched(old, asked("orders"), version=1) == (OffsetFetchResponseGroup(group_id="g"),)


def test_several_groups() -> None:
    """O-19: version 8 and later; each with its own result, in the order of the request."""
    bench = Bench()
    bench.commit({("orders", 0): 1}, group="a")
    bench.commit({("orders", 0): 2}, group="b")
    found = fetched(bench, asked("orders", group="b"), asked(group="a"))
    assert [group.group_id for group in found] == ["b", "a"]
    assert [group.topics[0].partitions[0].committed_offset for group in found] == [2, 1]


def test_version_10_names_topics_by_id() -> None:
    """O-19, O-15: unknown ids last, another topic's offset is missing, all topics by id."""
    topics = Topics(orders=1)
    bench = Bench(topics=topics)
    bench.commit()
    (group,) = fetched(bench, asked("id-nowhere", "id-orders", by_id=True), version=10)
    assert [(found.name, found.topic_id) for found in group.topics] == [
        ("", "id-orders"),
        ("", "id-nowhere"),
    ]
    assert group.topics[0].partitions[0].committed_offset == 7
    assert group.topics[1].partitions[0].error_code is ErrorCode.UNKNOWN_TOPIC_ID
    (group,) = fetched(bench, asked(), version=10)
    assert [(found.name, found.topic_id) for found in group.topics] == [("", "id-orders")]
    topics.topic_id = lambda topic: f"new-{topic}"  # type: ignore[method-assign]
    topics.topic_name = lambda topic_id: topic_id.removeprefix("new-")  # type: ignore[method-assign]
    (group,) = fetched(bench, asked("new-orders", by_id=True), version=10)
    assert group.topics[0].partitions[0].committed_offset == -1
    refusing = Bench(topics=Topics(orders=1), authorizer=Refusing(("DESCRIBE", "TOPIC", "orders")))
    (group,) = fetched(refusing, asked("id-orders", by_id=True), version=10)
    assert (group.topics[0].name, group.topics[0].partitions[0].error_code) == (
        "",
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    )
    nameless = Bench()
    nameless.commit()
    assert fetched(nameless, asked(), version=10)[0].topics == ()


# -- OffsetDelete ----------------------------------------------------------------------------


def test_offset_delete_gate() -> None:
    """O-20: the coordinator is asked even if no partition is left."""
    refusing = Refusing(("DELETE", "GROUP", "h"), ("READ", "TOPIC", "secret"))
    bench = Bench(topics=Topics(orders=1, secret=1), authorizer=refusing)
    assert deleted(bench, group="h").error_code is ErrorCode.GROUP_AUTHORIZATION_FAILED
    missing = deleted(bench, ("secret", (0,)))
    assert missing.error_code is ErrorCode.GROUP_ID_NOT_FOUND
    bench.commit()
    found = deleted(bench, ("secret", (0,)), ("nowhere", (0,)), ("orders", (3, 0)))
    assert delete_codes(found) == {
        ("secret", 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("orders", 3): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("orders", 0): NONE,
    }
    assert bench.fetch() == {}


def test_offset_delete_top_level_errors() -> None:
    """O-21, C-03, C-05: component, group id, missing, DEAD, live without subscriptions."""
    bench = Bench(load=False)
    assert deleted(bench).error_code is ErrorCode.NOT_COORDINATOR
    assert deleted(bench, group="").error_code is ErrorCode.INVALID_GROUP_ID
    bench = Bench()
    assert deleted(bench).error_code is ErrorCode.GROUP_ID_NOT_FOUND
    bench.completing(1, protocol_type="connect", protocols=["default"])
    assert deleted(bench).error_code is ErrorCode.NON_EMPTY_GROUP
    bench.group().transition_to(GroupState.DEAD, "forced")
    assert deleted(bench).error_code is ErrorCode.GROUP_ID_NOT_FOUND
    bench.carry_out(bench.coordinator.stop(0))
    assert deleted(bench).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_offset_delete_by_topic() -> None:
    """O-21: subscribed topics keep theirs; others go, committed or pending."""
    bench = Bench()
    bench.commit({("orders", 0): 1, ("other", 0): 2})
    transactional(bench, topic("fresh", 0))
    token = bench.join(version=3)
    first = deleted(bench, ("other", (0,)))  # topics are unknown in the very first rebalance
    assert delete_codes(first) == {("other", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC}
    bench.sleep(3000)
    assert bench.joined(token).error_code is NONE
    found = deleted(bench, ("orders", (0,)), ("other", (0, 9)), ("fresh", (0,)))
    assert delete_codes(found) == {
        ("orders", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ("other", 0): NONE,
        ("other", 9): NONE,
        ("fresh", 0): NONE,
    }
    assert len(bench.appends[-1].records) == 2
    end(bench, committed=True)
    assert bench.fetch() == {("orders", 0): 1}


# -- expiry ----------------------------------------------------------------------------------


def days(bench: Bench, count: int) -> None:
    """Let days pass."""
    bench.sleep(count * DAY_MS)


def test_simple_groups_expire_by_commit_time() -> None:
    """O-22, O-24, T-7: retention after the commit; then the group goes as well."""
    bench = Bench({"offsets.retention.minutes": 1440})
    bench.commit({("orders", 0): 1})
    bench.sleep(DAY_MS // 2)
    bench.commit({("orders", 1): 2})
    bench.sleep(DAY_MS // 2)
    assert bench.fetch() == {("orders", 1): 2}
    assert bench.has_group()
    bench.sleep(DAY_MS // 2)
    assert not bench.has_group()
    assert bench.group_records() == [None]
    assert any("tombstone records while cleaning up" in line for line in bench.sentences())


def test_empty_groups_expire_by_the_time_they_emptied() -> None:
    """O-22: whenever the offsets were committed."""
    bench = Bench({"offsets.retention.minutes": 1440})
    (member,) = bench.stable(1, session_ms=1_800_000)
    bench.commit({("orders", 0): 1}, member_id=member, generation=1)
    bench.keep_alive([member], 2 * DAY_MS, every_ms=HOUR_MS // 4)
    assert bench.fetch() == {("orders", 0): 1}  # STABLE and subscribed
    bench.leave(member)
    bench.sleep(DAY_MS - HOUR_MS)
    assert bench.fetch() == {("orders", 0): 1}
    bench.sleep(2 * HOUR_MS)
    assert not bench.has_group()


def test_unsubscribed_topics_of_a_stable_group_expire() -> None:
    """O-22: only those, by commit time; the group stays."""
    bench = Bench({"offsets.retention.minutes": 1440})
    (member,) = bench.stable(1, session_ms=1_800_000)
    bench.commit({("orders", 0): 1, ("other", 0): 2}, member_id=member, generation=1)
    bench.keep_alive([member], 2 * DAY_MS, every_ms=HOUR_MS // 4)
    assert bench.fetch() == {("orders", 0): 1}
    assert bench.seen().state == "Stable"


@pytest.mark.parametrize(
    ("data", "topics"),
    [
        (b"", None),
        (b"\x00\x01", None),
        (b"\x00\x01\xff\xff\xff\xff", None),  # null topics
        (b"\x00\x01\x00\x00\x01\x00", None),  # more topics than bytes
        (b"\x00\x01\x00\x00\x00\x01\xff\xff", None),  # a null name
        (b"\x00\x01\x00\x00\x00\x01\x00\x01t", None),  # no user data
        (b"\x00\x01\x00\x00\x00\x00\x00\x00\x00\x05", None),  # user data cut off
        (b"\x00\x63\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xfe", ("t",)),  # version 99
        (b"\xff\xff\x00\x00\x00\x00\xff\xff\xff\xff more", ()),
    ],
)
def test_reading_subscriptions(data: bytes, topics: tuple[str, ...] | None) -> None:
    """O-21, O-22: as version 0, whatever the header says; any fault makes the topics unknown."""
    bench = Bench()
    bench.completing(1, protocols=[("range", data)])
    assert bench.seen().subscribed_topics == topics


@pytest.mark.parametrize("kind", ["connect", "unreadable"])
def test_groups_whose_topics_are_unknown_keep_everything(kind: str) -> None:
    """O-22: not `consumer`, or subscriptions that cannot be read."""
    bench = Bench({"offsets.retention.minutes": 1})
    options = {"session_ms": 1_800_000}
    if kind == "connect":
        (member,) = bench.stable(1, protocol_type="connect", protocols=["default"], **options)
    else:
        (member,) = bench.stable(1, protocols=[("range", b"\x00")], **options)
        assert any("Failed to parse Consumer Protocol" in line for line in bench.sentences())
    bench.commit({("other", 0): 2}, member_id=member, generation=1)
    bench.keep_alive([member], HOUR_MS, every_ms=HOUR_MS // 4)
    assert bench.fetch() == {("other", 0): 2}
    assert bench.seen().subscribed_topics is None


def test_explicit_expire_timestamps() -> None:
    """O-22, O-08: they win over the retention, in both directions."""
    bench = Bench({"offsets.retention.minutes": 60})
    bench.commit({("orders", 0): 1}, retention_ms=1000, version=4)
    bench.commit({("orders", 1): 2}, retention_ms=2 * HOUR_MS, version=4)
    bench.sleep(HOUR_MS // 6)
    assert bench.fetch() == {("orders", 1): 2}
    bench.sleep(HOUR_MS)
    assert bench.fetch() == {("orders", 1): 2}
    bench.sleep(HOUR_MS)
    assert not bench.has_group()


def test_open_transactions_keep_offsets_and_groups() -> None:
    """O-22: neither offset nor group goes while one is open."""
    bench = Bench({"offsets.retention.minutes": 1})
    bench.commit({("orders", 0): 1})
    transactional(bench, topic("orders", 0))
    transactional(bench, topic("orders", 0), group="only-pending")
    bench.sleep(HOUR_MS)
    assert bench.fetch() == {("orders", 0): 1}
    assert bench.has_group("only-pending")
    end(bench, committed=False)
    bench.sleep(HOUR_MS)
    assert not bench.has_group()
    assert not bench.has_group("only-pending")


def test_empty_group_without_offsets_vanishes() -> None:
    """O-22: at the next run, however young, with its pending members."""
    bench = Bench()
    bench.sleep(599_999)
    pending = bench.new_id(session_ms=60_000)
    bench.sleep(1)
    assert not bench.has_group()
    assert bench.joined(bench.join(pending)).error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_live_groups_are_never_removed() -> None:
    """O-22: PREPARING and others."""
    bench = Bench({"group.initial.rebalance.delay.ms": 700_000})
    bench.sleep(599_999)
    bench.join(version=3)
    bench.sleep(1)
    assert bench.seen().state == "PreparingRebalance"


def test_a_loaded_empty_group_without_a_state_time() -> None:
    """O-22, C-17: the commit timestamp counts."""
    bench = Bench({"offsets.retention.minutes": 60})
    (member,) = bench.stable(1)
    bench.commit({("orders", 0): 1}, member_id=member, generation=1)
    bench.leave(member)
    bench.group().state_timestamp_ms = None
    bench.sleep(HOUR_MS + HOUR_MS // 6)
    assert not bench.has_group()


def test_deleted_topics() -> None:
    """O-23: all groups, committed and pending, by name and id; older releases by name alone."""
    for switches, left in ((Switches(), {("orders", 0): 1}), (None, {("orders", 0): 1})):
        bench = Bench(topics=Topics(orders=1, other=1), switches=switches)
        bench.commit({("orders", 0): 1, ("other", 0): 2})
        bench.commit({("other", 0): 3}, group="h")
        transactional(bench, topic("other", 0), group="t")
        bench.carry_out(bench.coordinator.topics_deleted([("other", "id-other")], 0))
        assert bench.fetch() == left
        assert bench.fetch(group="h") == {}
        end(bench, committed=True)
        assert bench.fetch(group="t") == {}
        bench.carry_out(bench.coordinator.topics_deleted([("orders", "another id")], 0))
        assert bench.fetch() == left
    old = Bench(topics=Topics(orders=1), switches=Switches(offsets_deleted_by_partition_name=True))
    old.commit()
    old.carry_out(old.coordinator.topics_deleted([("orders", "another id")], 0))
    assert old.fetch() == {}
