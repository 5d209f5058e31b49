"""Finding, reaching, loading and unloading the coordinator; writes and failover (C-01 to C-26)."""

from __future__ import annotations

import pytest

from groupsim.coordinator import partition_for
from groupsim.coordinator.classic.states import GroupState
from groupsim.coordinator.effects import Append
from groupsim.coordinator.failures import append_error, operation_error
from groupsim.coordinator.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    LogBatch,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    Record,
)
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    APIS,
    ApiKey,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MetadataRequest,
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetFetchResponse,
)
from groupsim.runtime.simulation import Simulation
from groupsim.runtime.specs import BrokersSpec
from groupsim.testing.coordinator import Bench, subscription
from tests.conformance.test_admin import deleted, described, listed
from tests.conformance.test_offsets import codes, end, transactional

NONE, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID
LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def member_record(**options: object) -> MemberMetadata:
    """A stored member."""
    values: dict[str, object] = {
        "member_id": "m",
        "client_id": "c",
        "client_host": "/h",
        "rebalance_timeout": 60_000,
        "session_timeout": 10_000,
        "subscription": subscription("orders"),
        "assignment": b"A",
        **options,
    }
    return MemberMetadata(**values)  # type: ignore[arg-type]


def group_value(*members: MemberMetadata, **options: object) -> Record:
    """A stored group ``g``."""
    values: dict[str, object] = {
        "protocol_type": "consumer",
        "generation": 3,
        "protocol": "range",
        "leader": members[0].member_id if members else None,
        "current_state_timestamp": 77,
        "members": members,
        **options,
    }
    return Record(key=GroupMetadataKey(group="g"), value=GroupMetadataValue(**values))  # type: ignore[arg-type]


# -- finding ---------------------------------------------------------------------------------


def test_find_coordinator() -> None:
    """C-01: the leader of the group's partition; an unknown key type, a dead leader."""
    cluster = Simulation(seed=1, topics={}, brokers=BrokersSpec(count=3)).cluster

    def find(key: str, key_type: int = 0) -> tuple[int, ErrorCode]:
        request = FindCoordinatorRequest(coordinator_keys=(key,), key_type=key_type)
        answer = cluster.answer(request, 4)
        assert isinstance(answer, FindCoordinatorResponse)
        (found,) = answer.coordinators
        return found.node_id, found.error_code

    for key in ("g", "", "another group"):
        leader = cluster.leaders[partition_for(key, 50)]
        assert find(key) == (leader, NONE)
    assert find("g", key_type=7) == (-1, ErrorCode.INVALID_REQUEST)
    leader = cluster.leaders[partition_for("g", 50)]
    cluster.fenced[leader] = None
    assert find("g") == (-1, ErrorCode.COORDINATOR_NOT_AVAILABLE)


def test_find_coordinator_versions() -> None:
    """C-02: 0 to 6; many keys, one answer for each, in order."""
    api = APIS[ApiKey.FIND_COORDINATOR]
    assert (api.min_version, api.max_version) == (0, 6)
    cluster = Simulation(seed=1, topics={}, brokers=BrokersSpec(count=1)).cluster
    answer = cluster.answer(FindCoordinatorRequest(coordinator_keys=("b", "a")), 4)
    assert isinstance(answer, FindCoordinatorResponse)
    assert [found.key for found in answer.coordinators] == ["b", "a"]


def test_partition_of_a_group() -> None:
    """C-01: Java's string hash, its absolute value modulo the partitions; the least integer is 0."""
    assert partition_for("g", 50) == 103 % 50
    assert partition_for("", 50) == 0
    assert partition_for("polygenelubricants", 50) == 0  # hashes to the least integer
    assert {partition_for(f"group-{number}", 1) for number in range(9)} == {0}


# -- states of a partition -------------------------------------------------------------------


def test_stopped_component() -> None:
    """C-03: everything is COORDINATOR_NOT_AVAILABLE until it starts again."""
    bench = Bench()
    bench.stable(1)
    bench.carry_out(bench.coordinator.stop(0))
    assert bench.heartbeat("m", generation=1) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bench.commit() == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert bench.coordinator.snapshot().partitions == ()
    bench.carry_out(bench.coordinator.start(0))
    bench.load()
    assert bench.seen().state == "Stable"


def test_life_of_a_partition() -> None:
    """C-04, C-19: initial, loading, active or failed, closed; a failed one may be loaded again."""
    bench = Bench(load=False)
    coordinator = bench.coordinator
    states = []

    def note() -> None:
        states.extend(entry.state for entry in coordinator.snapshot().partitions)

    note()
    coordinator.begin_load(0, 1, 0)
    note()
    coordinator.fail_load(0, 0)
    note()
    assert bench.heartbeat("m", generation=1) is ErrorCode.NOT_COORDINATOR
    coordinator.begin_load(0, 2, 0)
    coordinator.finish_load(0, [], 0, 0)
    note()
    coordinator.unload(0, 3, 0)
    note()
    assert states == ["loading", "failed", "active"]
    coordinator.fail_load(0, 0)  # nothing to fail, nothing to finish
    coordinator.finish_load(0, [], 0, 0)
    coordinator.unload(0, 9, 0)
    assert coordinator.snapshot().partitions == ()


def test_partition_not_served() -> None:
    """C-05: never loaded, failed, closed."""
    bench = Bench(load=False)
    for _ in range(3):
        assert bench.commit() == [ErrorCode.NOT_COORDINATOR]
        assert bench.joined(bench.join()).error_code is ErrorCode.NOT_COORDINATOR
        bench.coordinator.begin_load(0, 1, 0)
        bench.coordinator.fail_load(0, 0)
    bench.load()
    bench.load()
    bench.unload()
    assert bench.commit() == [ErrorCode.NOT_COORDINATOR]


def test_while_loading() -> None:
    """C-06, H-03, O-10: what each request gets."""
    bench = Bench(load=False)
    bench.coordinator.begin_load(0, 1, 0)
    assert bench.heartbeat("m", generation=1) is NONE
    assert bench.joined(bench.join()).error_code is LOADING
    assert bench.synced(bench.sync("m", generation=1)).error_code is LOADING
    assert bench.leave("m").error_code is LOADING
    assert bench.commit() == [LOADING]
    assert codes(transactional(bench)) == [LOADING]
    assert codes(transactional(bench, version=0)) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert described(bench, "g")[0].error_code is LOADING
    assert listed(bench).error_code is LOADING
    assert deleted(bench, "g") == {"g": LOADING}


def test_where_availability_errors_stand() -> None:
    """C-07: top level, partitions or groups; JoinGroup without the member id."""
    bench = Bench(load=False)
    answer = bench.joined(bench.join("m"))
    assert (answer.error_code, answer.member_id) == (ErrorCode.NOT_COORDINATOR, "")
    assert bench.leave("m").members == ()
    assert bench.commit({("a", 0): 1, ("b", 0): 1}) == [ErrorCode.NOT_COORDINATOR] * 2


def test_epochs() -> None:
    """C-08: only a newer one loads, only a newer one (or none) unloads."""
    bench = Bench()
    (member,) = bench.stable(1)
    bench.carry_out(bench.coordinator.load(0, [], 1, 0))  # the same epoch again
    bench.carry_out(bench.coordinator.load(0, [], 0, 0))
    assert bench.seen().state == "Stable"
    bench.carry_out(bench.coordinator.load(0, [], 5, 0))  # newer, but active already
    assert bench.seen().state == "Stable"
    assert bench.coordinator.snapshot().partitions[0].epoch == 5
    for epoch in (4, 5):
        bench.carry_out(bench.coordinator.unload(0, epoch, 0))
        assert bench.heartbeat(member) is NONE
    bench.carry_out(bench.coordinator.unload(0, None, 0))  # the topic was deleted
    assert bench.heartbeat(member, generation=1) is ErrorCode.NOT_COORDINATOR
    bench.coordinator.begin_load(0, 1, 0)
    bench.coordinator.begin_load(0, 2, 0)  # loading already: only the epoch is new
    bench.carry_out(bench.coordinator.load(0, [], 1, 0))
    assert bench.heartbeat(member, generation=1) is NONE


# -- writing ---------------------------------------------------------------------------------


def test_when_group_records_are_written() -> None:
    """C-09: first join, empty, assignment, static restart, tombstone; nothing else writes."""
    bench = Bench()

    def written() -> list[str]:
        return [
            "gone" if value is None else f"{value.generation}:{len(value.members)}"
            for value in bench.group_records()
        ]

    bench.leave(bench.new_id())
    assert written() == ["0:0"]
    bench.stable_static("a", "b")
    assert written() == ["0:0", "1:2"]
    leader = bench.group().leader_id or ""
    bench.heartbeat(leader)
    bench.join(bench.group().static_members["b"], instance="b")
    bench.sync(leader)
    assert written() == ["0:0", "1:2"]
    bench.join(instance="b")
    assert written() == ["0:0", "1:2", "1:2"]
    bench.leave(*bench.group().members)
    assert written() == ["0:0", "1:2", "1:2", "2:0"]
    deleted(bench, "g")
    assert written()[-1] == "gone"


@pytest.mark.parametrize("error", ErrorCode)
def test_mapping_of_append_errors(error: ErrorCode) -> None:
    """C-10: for callbacks and for the rest."""
    expected = {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
        ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
        ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
    }
    assert append_error(error) is expected.get(error, error)
    if error is ErrorCode.NETWORK_EXCEPTION:
        assert operation_error(error) is LOADING
    else:
        assert operation_error(error) is append_error(error)


def test_what_a_failed_batch_reverts() -> None:
    """C-11: offsets and the presence of groups go back, a group's own fields do not."""
    bench = Bench()
    bench.commit({("orders", 0): 1, ("other", 0): 1})
    (member,) = bench.stable(1, group="h")
    bench.fail_with = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert bench.commit({("orders", 0): 2, ("new", 0): 2}) == [ErrorCode.NOT_COORDINATOR] * 2
    assert bench.fetch(stable=True) == {("orders", 0): 1, ("other", 0): 1}
    assert deleted(bench, "g") == {"g": ErrorCode.NOT_COORDINATOR}
    assert bench.has_group()
    bench.commit(group="new")
    assert not bench.has_group("new")
    codes(transactional(bench))
    assert bench.fetch(("orders", 0), stable=True) == {("orders", 0): 1}
    bench.leave(member, group="h")
    assert (bench.seen("h").state, bench.seen("h").generation_id) == ("Empty", 2)


def test_a_failure_takes_later_appends_along() -> None:
    """C-11, C-12: what was built on a lost batch is lost with it; late reports change nothing."""
    bench = Bench()
    bench.hold = True
    first = bench.send_commit({("orders", 0): 1})
    second = bench.send_commit({("orders", 1): 2})
    bench.complete(bench.waiting[0], ErrorCode.KAFKA_STORAGE_ERROR)
    assert bench.commit_codes(first) == bench.commit_codes(second) == [ErrorCode.NOT_COORDINATOR]
    assert not bench.has_group()
    bench.complete(bench.waiting[1])
    bench.complete(bench.waiting[1], ErrorCode.KAFKA_STORAGE_ERROR)
    assert not bench.has_group()


def test_a_failure_reverts_over_several_appends() -> None:
    """C-11: to what was there before the first of them, overwritten and removed offsets included."""
    bench = Bench()
    before = {("orders", 0): 1, ("other", 0): 1, ("third", 0): 1}
    bench.commit(before)
    bench.hold = True
    bench.send_commit({("orders", 0): 2, ("fresh", 0): 2})
    bench.send_commit({("orders", 0): 3, ("other", 0): 3, ("fresh", 0): 3, ("newer", 0): 3})
    transactional_token = bench.send_commit({("third", 0): 4}, group="later")
    request = OffsetDeleteRequest(
        group_id="g", topics=(OffsetDeleteRequestTopic(name="third", partitions=(0,)),)
    )
    bench.send(request, 0)
    bench.send_commit({("other", 0): 5})
    bench.complete(bench.waiting[0], ErrorCode.KAFKA_STORAGE_ERROR)
    assert bench.commit_codes(transactional_token) == [ErrorCode.NOT_COORDINATOR]
    bench.waiting.clear()
    assert bench.fetch(stable=True) == bench.fetch() == before
    assert not bench.has_group("later")


def test_the_log_refuses_inside_the_event() -> None:
    """C-11, C-12: as a broker's own log does: who waits fails there and then, and nothing of the
    event that comes behind it is stored.
    """
    verdict = ErrorCode.NOT_LEADER_OR_FOLLOWER
    bench = Bench({"group.coordinator.append.linger.ms": 10}, log_gate=lambda _append: verdict)
    lingering = bench.send_commit({("a", 0): 1})
    assert codes(transactional(bench)) == [ErrorCode.NOT_COORDINATOR]
    assert bench.commit_codes(lingering) == [ErrorCode.NOT_COORDINATOR]
    lingering = bench.send_commit({("a", 0): 1})
    bench.sleep(10)
    assert bench.commit_codes(lingering) == [ErrorCode.NOT_COORDINATOR]
    end(bench, committed=True)
    assert bench.ended == {99: ErrorCode.NOT_LEADER_OR_FOLLOWER}
    assert not bench.has_group()
    assert bench.appends == []
    adaptive = Bench(log_gate=lambda _append: verdict)
    assert adaptive.commit() == [ErrorCode.NOT_COORDINATOR]
    verdict = NONE
    assert adaptive.commit() == [NONE]


def test_a_commit_covers_what_came_before() -> None:
    """C-12: the high watermark never skips an append."""
    bench = Bench()
    bench.hold = True
    tokens = [bench.send_commit({("orders", 0): offset}) for offset in (1, 2, 3)]
    bench.complete(bench.waiting[1])
    assert [bench.is_parked(token) for token in tokens] == [False, False, True]
    assert bench.fetch() == {("orders", 0): 2}
    bench.carry_out(bench.coordinator.high_watermark({0: 3}, 0))
    assert not bench.is_parked(tokens[2])
    bench.carry_out(bench.coordinator.high_watermark({0: 1}, 0))  # it never falls
    bench.carry_out(bench.coordinator.high_watermark({7: 9}, 0))  # of a partition that is not here
    assert bench.fetch() == {("orders", 0): 3}


def test_operations_without_records_wait() -> None:
    """C-12, H-09, L-12: and fail with what they wait for, although their effects stand."""
    bench = Bench()
    leader, follower = bench.stable(2)
    bench.hold = True
    bench.send_commit(group="other")
    request = LeaveGroupRequest(group_id="g", member_id=follower)
    leave = bench.send(request, 2)
    beat = bench.send(HeartbeatRequest(group_id="g", generation_id=1, member_id=leader), 4)
    bench.commit_appends(ErrorCode.NOT_ENOUGH_REPLICAS)
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bench.answer(leave, LeaveGroupResponse) == LeaveGroupResponse(error_code=code)
    assert bench.answer(beat, HeartbeatResponse) == HeartbeatResponse(error_code=code)
    assert follower not in bench.group().members


@pytest.mark.parametrize("what", ["join", "sync"])
def test_a_parked_request_is_lost_to_a_failed_write(what: str) -> None:
    """C-12, T-8: answered with the mapped error while the group still believes it is parked; the
    regular answer goes nowhere.
    """
    bench = Bench()
    leader, follower = bench.completing(2)
    if what == "join":
        bench.assign()
    bench.hold = True
    bench.send_commit(group="other")
    if what == "join":
        token = bench.join(follower, protocols=["range", "x"])
    else:
        token = bench.sync(follower)
    bench.keep_alive([], 5000)
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    if what == "join":
        assert (bench.joined(token).error_code, bench.joined(token).member_id) == (code, "")
    else:
        assert bench.synced(token).error_code is code
    member = next(entry for entry in bench.seen().members if entry.member_id == follower)
    assert member.awaiting_join if what == "join" else member.awaiting_sync
    bench.hold = False
    bench.commit_appends()
    (bench.join if what == "join" else bench.sync)(leader)  # would be answered twice otherwise


@pytest.mark.parametrize("linger_ms", [-1, 0, 10])
def test_lingering(linger_ms: int) -> None:
    """C-12, T-8: records gather in a batch; what comes meanwhile waits for it, with or without
    records, and is in one append.
    """
    bench = Bench({"group.coordinator.append.linger.ms": linger_ms})
    first, second = bench.send_commit({("a", 0): 1}), bench.send_commit({("b", 0): 2})
    beat = bench.send(LeaveGroupRequest(group_id="g", member_id="x"), 2)
    if linger_ms > 0:
        assert bench.is_parked(first)
        assert bench.is_parked(beat)
        assert bench.appends == []
        bench.sleep(9)
        assert bench.appends == []
        bench.sleep(1)
    assert not any(bench.is_parked(token) for token in (first, second, beat))
    assert [len(append.records) for append in bench.appends] == ([2] if linger_ms > 0 else [1, 1])
    assert bench.fetch() == {("a", 0): 1, ("b", 0): 2}


def test_a_late_linger_timer() -> None:
    """C-12: an append that finds its batch old enough flushes it at once."""
    bench = Bench({"group.coordinator.append.linger.ms": 10})
    bench.send_commit({("a", 0): 1})
    bench.now_ms = 10
    bench.send_commit({("b", 0): 2})
    assert [len(append.records) for append in bench.appends] == [2]


def test_a_lingering_batch_is_lost() -> None:
    """C-11, C-13: with an earlier append that fails, or with the partition."""
    bench = Bench({"group.coordinator.append.linger.ms": 10})
    bench.hold = True
    first = bench.send_commit({("a", 0): 1})
    bench.sleep(10)
    second = bench.send_commit({("b", 0): 2})
    bench.commit_appends(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert bench.commit_codes(first) == bench.commit_codes(second) == [ErrorCode.NOT_COORDINATOR]
    third = bench.send_commit({("b", 0): 2})
    bench.unload()
    assert bench.commit_codes(third) == [ErrorCode.NOT_COORDINATOR]
    bench.sleep(100)
    assert [len(append.records) for append in bench.appends] == [1]


def test_transactional_writes_do_not_linger() -> None:
    """C-12, C-18: what lingers is flushed first, a transaction's records at once, and its marker is
    a batch of its own.
    """
    bench = Bench({"group.coordinator.append.linger.ms": 10})
    bench.send_commit({("a", 0): 1})
    transactional(bench)
    assert [len(append.records) for append in bench.appends] == [1, 1]
    bench.send_commit({("a", 0): 2})
    end(bench, committed=True)
    assert [len(append.records) for append in bench.appends] == [1, 1, 1, 1]
    assert bench.appends[-1].records[0].marker is not None


def test_timers_of_one_instant_share_a_batch() -> None:
    """C-12, T-1: and the call ends there, so that its outcome comes before later timers."""
    bench = Bench()
    for group in ("a", "b"):
        bench.stable(1, group=group)
    for group in ("a", "b"):
        bench.heartbeat(next(iter(bench.group(group).members)), group=group)
    count = len(bench.appends)
    bench.sleep(10_000)
    assert [len(append.records) for append in bench.appends[count:]] == [2]
    many = Bench({"group.coordinator.append.linger.ms": 0})
    many.stable(1, group="a")
    many.heartbeat(next(iter(many.group("a").members)), group="a")
    many.stable(1, group="b", session_ms=7000)
    effects = many.coordinator.advance(many.now_ms + 7000)
    assert len([effect for effect in effects if isinstance(effect, Append)]) == 1
    assert many.coordinator.next_deadline_ms() is not None


# -- unload ----------------------------------------------------------------------------------


def test_order_of_unload() -> None:
    """C-13, J-26, S-12: timers go, waiting operations fail first, then the groups die."""
    bench = Bench()
    (old,) = bench.stable_static("a")
    leader, follower = bench.completing(2, group="h")
    bench.hold = True
    commit = bench.send_commit(group="x")
    restart = bench.join(instance="a")
    parked = bench.sync(follower, group="h")
    sync = bench.sync(leader, group="h")
    order_before = list(bench.replies)
    bench.unload()
    new = [token for token in bench.replies if token not in order_before]
    assert new == [commit, restart, *sorted((parked, sync), key=new.index)]
    assert bench.joined(restart).error_code is ErrorCode.NOT_COORDINATOR
    assert bench.synced(sync).error_code is ErrorCode.NOT_COORDINATOR
    assert bench.synced(parked).error_code is ErrorCode.NOT_COORDINATOR
    bench.sleep(100_000)  # what the callbacks armed finds no partition
    assert old


def test_late_timers_meet_the_next_incarnation() -> None:
    """C-13: they run there, and find their group dead."""
    bench = Bench()
    bench.stable_static("a")
    bench.hold = True
    bench.join(instance="a")
    bench.unload()
    bench.hold = False
    bench.load()
    assert bench.seen().state == "Stable"
    bench.sleep(9999)
    bench.heartbeat(next(iter(bench.group().members)))
    bench.sleep(5000)
    assert bench.seen().state == "Stable"
    assert any("already been unloaded" in line for line in bench.sentences())


def test_shard_timers_end_with_the_partition() -> None:
    """C-14, T-7, T-9."""
    bench = Bench()
    bench.unload()
    assert bench.coordinator.next_deadline_ms() is None


def test_unloading_groups() -> None:
    """C-15: every group is DEAD; parked joins and syncs hear NOT_COORDINATOR, joins with their id."""
    bench = Bench()
    bench.new_id(group="empty")
    bench.new_id(group="dead")
    leader, follower = bench.completing(2, group="completing")
    bench.stable(1, group="stable")
    sync = bench.sync(follower, group="completing")
    joins = [bench.join(version=3, group="preparing") for _ in range(2)]
    groups = [bench.group(name) for name in ("empty", "preparing", "completing", "stable", "dead")]
    members = set(groups[1].members)
    groups[4].transition_to(GroupState.DEAD, "forced")  # a DEAD one dies once more
    bench.unload()
    assert {group.state for group in groups} == {GroupState.DEAD}
    answers = [bench.joined(token) for token in joins]
    assert {entry.error_code for entry in answers} == {ErrorCode.NOT_COORDINATOR}
    assert {entry.member_id for entry in answers} == members
    assert bench.synced(sync).error_code is ErrorCode.NOT_COORDINATOR
    assert leader not in bench.replies


def test_a_crash_says_nothing() -> None:
    """C-15: no answers, only silence."""
    bench = Bench()
    token = bench.join(version=3)
    bench.fail_over()
    bench.sleep(100_000)
    assert bench.is_parked(token)


# -- load ------------------------------------------------------------------------------------


def test_the_last_record_wins() -> None:
    """C-16: each replaces the group as a whole; a tombstone removes it."""
    bench = Bench(load=False)
    gone = Record(key=GroupMetadataKey(group="h"))
    first = Record(
        key=GroupMetadataKey(group="h"),
        value=GroupMetadataValue(protocol_type="", generation=1, members=()),
    )
    bench.log[0] = [
        group_value(member_record(member_id="old"), generation=2),
        first,
        gone,
        group_value(member_record(), generation=3),
    ]
    bench.load()
    assert bench.seen().generation_id == 3
    assert [member.member_id for member in bench.seen().members] == ["m"]
    assert not bench.has_group("h")


def test_fields_that_are_restored() -> None:
    """C-17, C-23: -1 as rebalance timeout is the session timeout, "" as type is none, no state time
    is unknown; only the selected protocol; nobody is new, previous state Dead.
    """
    bench = Bench(load=False)
    members = (
        member_record(group_instance_id="i", rebalance_timeout=-1),
        member_record(member_id="n"),
    )
    bench.log[0] = [group_value(*members, leader="n")]
    bench.load()
    seen = bench.seen()
    assert (seen.state, seen.previous_state, seen.generation_id) == ("Stable", "Dead", 3)
    assert (seen.protocol_type, seen.protocol_name, seen.leader_id) == ("consumer", "range", "n")
    assert (seen.state_timestamp_ms, seen.subscribed_topics) == (77, ("orders",))
    assert seen.static_members == (("i", "m"),)
    assert not seen.new_member_added
    first = next(entry for entry in seen.members if entry.member_id == "m")
    assert (first.rebalance_timeout_ms, first.session_timeout_ms) == (10_000, 10_000)
    assert (first.client_id, first.client_host, first.assignment) == ("c", "/h", b"A")
    assert [protocol.name for protocol in first.protocols] == ["range"]
    assert not first.is_new
    empty = Bench(load=False)
    empty.log[0] = [group_value(protocol_type="", protocol=None, current_state_timestamp=-1)]
    empty.load()
    assert (empty.seen().state, empty.seen().protocol_type) == ("Empty", None)
    assert empty.seen().state_timestamp_ms is None


def test_a_group_without_leader_or_protocol_in_its_record() -> None:
    """C-17, PR-20, O-21: the first loaded member leads; topics of a nameless protocol are unknown."""
    bench = Bench(load=False)
    bench.log[0] = [group_value(member_record(), member_record(member_id="n"), leader=None)]
    bench.load()
    assert bench.seen().leader_id == "m"
    odd = Bench(load=False)
    odd.log[0] = [group_value(member_record(), protocol=None)]
    odd.load()
    assert odd.seen().subscribed_topics is None


def test_a_stable_group_without_protocol_cannot_be_described() -> None:
    """D-03, J-48: Kafka throws, which is an error for every group of the partition."""
    bench = Bench(load=False)
    bench.log[0] = [group_value(member_record(), protocol=None)]
    bench.load()
    found = described(bench, "g", "other")
    assert {entry.error_code for entry in found} == {ErrorCode.UNKNOWN_SERVER_ERROR}


def test_a_log_whose_committed_part_was_compacted_away() -> None:
    """C-18, J-48: there is no state of that time to look back to, until something is committed."""
    bench = Bench(load=False)
    commit = Record(
        key=OffsetCommitKey(group="g", topic="orders", partition=0),
        value=OffsetCommitValue(offset=5, metadata="", commit_timestamp=0),
    )
    bench.coordinator.begin_load(0, 1, 0)
    batches = [LogBatch(records=((12, commit),), next_offset=13)]
    bench.carry_out(bench.coordinator.finish_load(0, batches, 10, 0))
    assert bench.fetch(("orders", 0)) == {("orders", 0): 5}  # nothing older is asked for
    token = bench.send_fetch(("orders", 0), group="other")
    answer = bench.answer(token, OffsetFetchResponse)
    assert answer.groups[0].error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert listed(bench).error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    bench.carry_out(bench.coordinator.high_watermark({0: 13}, 0))
    assert bench.fetch() == {("orders", 0): 5}


def test_a_log_that_ends_beyond_its_last_record() -> None:
    """C-16, a decision of ours: writing goes on at the end of the log, not of its last record."""
    bench = Bench(load=False)
    bench.coordinator.begin_load(0, 1, 0)
    bench.carry_out(bench.coordinator.finish_load(0, [], 10, 0))
    assert bench.commit() == [ErrorCode.NONE]
    (partition,) = bench.coordinator.snapshot().partitions
    assert (partition.last_written, partition.last_committed) == (11, 11)


def test_offsets_are_restored() -> None:
    """C-18, C-23, O-24: a simple group where there is none; pending ones until the marker."""
    bench = Bench()
    bench.commit({("orders", 0): 1})
    transactional(bench)
    bench.fail_over()
    assert bench.seen().is_simple
    assert bench.fetch(("orders", 0)) == {("orders", 0): 1}
    assert bench.fetch(("orders", 0), stable=True) == {
        ("orders", 0): ErrorCode.UNSTABLE_OFFSET_COMMIT
    }
    end(bench, committed=True)
    bench.fail_over()
    assert bench.fetch(("orders", 0), stable=True) == {("orders", 0): 7}


def test_records_nobody_knows_are_passed_over() -> None:
    """C-16: as left-overs of other kinds of groups are."""
    bench = Bench(load=False)
    bench.log[0] = [Record(), group_value(member_record())]
    bench.load()
    assert bench.seen().state == "Stable"


def test_a_log_with_gaps_and_an_uncommitted_end() -> None:
    """C-18, O-18: what lies above the high watermark is taken in, but not shown to readers; what is
    written next waits for it.
    """
    bench = Bench(load=False)

    def stored(offset: int) -> Record:
        return Record(
            key=OffsetCommitKey(group="g", topic="orders", partition=0),
            value=OffsetCommitValue(offset=offset, metadata="", commit_timestamp=0),
        )

    batches = [
        LogBatch(records=((3, stored(1)),), next_offset=10),
        LogBatch(records=((10, stored(2)),), next_offset=11),
        LogBatch(records=(), next_offset=11),
    ]
    bench.coordinator.begin_load(0, 1, 0)
    bench.carry_out(bench.coordinator.finish_load(0, batches, 10, 0))
    assert bench.fetch() == {("orders", 0): 1}
    waiting = bench.send_fetch(("orders", 0), stable=True)
    assert bench.is_parked(waiting)
    bench.carry_out(bench.coordinator.high_watermark({0: 11}, 0))
    assert not bench.is_parked(waiting)
    assert bench.fetch() == {("orders", 0): 2}


def test_load_failure() -> None:
    """C-19: NOT_COORDINATOR until the next election."""
    bench = Bench(load=False)
    bench.coordinator.begin_load(0, 1, 0)
    bench.coordinator.fail_load(0, 0)
    assert bench.commit() == [ErrorCode.NOT_COORDINATOR]
    bench.carry_out(bench.coordinator.load(0, [], 2, 0))
    assert bench.commit() == [NONE]


def test_activation() -> None:
    """C-20, T-7, T-9: groups first, then the periodic timers."""
    bench = Bench(load=False)
    bench.log[0] = [group_value(member_record())]
    bench.now_ms = 50
    bench.load()
    kinds = [timer.kind for timer in bench.coordinator.snapshot().partitions[0].timers]
    assert kinds == ["session", "gauge", "expiration"]
    assert "Loaded classic group g with 1 members." in bench.sentences()


def test_sessions_start_in_full() -> None:
    """C-21, T-1."""
    bench = Bench()
    (member,) = bench.stable(1)
    bench.sleep(9000)
    bench.fail_over()
    assert bench.timers() == {f"heartbeat-g-{member}": ("session", bench.now_ms + 10_000)}


def test_oversized_group() -> None:
    """C-22, J-12, T-4: a rebalance at once; the surplus is shed as members rejoin."""
    bench = Bench()
    members = bench.stable(3)
    bench.config = bench.config.replace(group_max_size=2)
    bench.fail_over()
    seen = bench.seen()
    assert (seen.state, len(seen.members)) == ("PreparingRebalance", 3)
    assert bench.timers()["join-g"] == ("join", bench.now_ms + 60_000)
    tokens = [bench.join(member) for member in members]
    assert bench.joined(tokens[2]).error_code is ErrorCode.GROUP_MAX_SIZE_REACHED
    bench.keep_alive(members[:2], 60_000)
    assert [bench.joined(token).generation_id for token in tokens[:2]] == [2, 2]


def test_what_survives() -> None:
    """C-23, J-44, J-15: departed members come back as ghosts, pending ids and unsynced members are
    lost, a multi-protocol follower counts as changed, a newcomer needs the selected protocol.
    """
    bench = Bench()
    leader, first, second = bench.stable(3, protocols=["range", "sticky"])
    selected = bench.seen().protocol_name or ""
    other = "range" if selected == "sticky" else "sticky"
    pending = bench.new_id()
    bench.leave(second)
    newcomer = bench.join(version=3, protocols=["range", "sticky"])
    bench.fail_over()
    assert set(bench.group().members) == {leader, first, second}
    assert bench.seen().state == "Stable"
    assert bench.is_parked(newcomer)
    assert bench.joined(bench.join(pending, protocols=[selected])).error_code is UNKNOWN
    refused = bench.joined(bench.join(protocols=[other]))
    assert refused.error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert bench.is_parked(bench.join(first, protocols=["range", "sticky"]))
    assert bench.seen().state == "PreparingRebalance"


def test_generation_after_losing_an_unsynced_rebalance() -> None:
    """C-24, PR-26: served at N again; N+1 is illegal, then handed out once more."""
    bench = Bench()
    leader, follower = bench.stable(2)
    bench.join(leader)
    bench.join(follower)
    newcomer = bench.join(version=3)
    bench.join(leader)
    bench.join(follower)
    assert bench.joined(newcomer).generation_id == 3
    unsynced = bench.joined(newcomer).member_id
    bench.fail_over()
    assert (bench.seen().state, bench.seen().generation_id) == ("Stable", 1)
    assert bench.heartbeat(leader, generation=3) is ErrorCode.ILLEGAL_GENERATION
    assert (
        bench.synced(bench.sync(follower, generation=3)).error_code is ErrorCode.ILLEGAL_GENERATION
    )
    assert bench.heartbeat(unsynced, generation=3) is UNKNOWN
    assert bench.heartbeat(follower, generation=1) is NONE
    bench.join(leader)
    assert bench.joined(bench.join(follower)).generation_id == 2


def test_lost_answer_to_a_persisted_sync() -> None:
    """C-25, S-13: a repeated SyncGroup returns the assignment."""
    bench = Bench()
    leader, follower = bench.completing(2)
    bench.hold = True
    bench.sync(leader, assignments={follower: b"F"})
    bench.log[0].extend(bench.waiting[0].records)  # written, but the broker is gone
    bench.hold = False
    bench.fail_over()
    assert bench.seen().state == "Stable"
    assert bench.synced(bench.sync(follower, generation=1)).assignment == b"F"


def test_first_rebalance_lost() -> None:
    """C-26, J-21: EMPTY at generation 0; all old ids are unknown."""
    bench = Bench()
    pending = bench.new_id()
    bench.join(pending)
    bench.sleep(3000)
    assert bench.seen().generation_id == 1
    bench.fail_over()
    assert (bench.seen().state, bench.seen().generation_id) == ("Empty", 0)
    assert bench.heartbeat(pending, generation=1) is UNKNOWN


def test_many_group_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """C-01: partitions are remembered for so many ids only."""
    monkeypatch.setattr("groupsim.coordinator.core._KNOWN_GROUPS", 2)
    bench = Bench({"offsets.topic.num.partitions": 50})
    for number in range(9):
        bench.commit(group=f"g{number}")
    assert all(bench.fetch(group=f"g{number}") == {("orders", 0): 7} for number in range(9))
    assert len(bench.coordinator._core.known_partitions) <= 2


def test_other_requests_are_not_for_the_coordinator() -> None:
    """C-01: finding it, for one."""
    bench = Bench()
    with pytest.raises(TypeError, match="MetadataRequest"):
        bench.send(MetadataRequest())
