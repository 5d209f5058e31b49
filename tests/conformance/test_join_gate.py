"""JoinGroup before a group is changed: gate, size, protocols, member ids (J-01 to J-22)."""

from __future__ import annotations

import pytest

from groupsim.coordinator import Switches
from groupsim.coordinator.classic.states import GroupState
from groupsim.coordinator.effects import Append, Reply
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import APIS, ApiKey, JoinGroupRequest, JoinGroupResponse
from groupsim.testing.coordinator import Bench, offers
from tests.conformance.world import Refusing


def test_static_membership_gate_of_old_metadata_versions() -> None:
    """J-01, T-2: an instance id is refused while the switch says so; 4.x has no such gate."""
    old = Bench(switches=Switches(static_membership_gate=True))
    answer = old.joined(old.join("m", instance="i"))
    assert answer.error_code is ErrorCode.UNSUPPORTED_VERSION
    assert (answer.member_id, answer.generation_id, answer.leader) == ("", -1, "")
    new = Bench()
    assert new.is_parked(new.join(instance="i"))
    assert new.timers()[f"heartbeat-g-{next(iter(new.group().members))}"] == ("new-member", 300_000)


def test_join_needs_read_on_the_group() -> None:
    """J-02."""
    bench = Bench(authorizer=Refusing(("READ", "GROUP", "g")))
    answer = bench.joined(bench.join("m"))
    assert (answer.error_code, answer.member_id) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, "")
    assert bench.is_parked(bench.join(group="other", version=3))


def test_version_0_has_no_rebalance_timeout() -> None:
    """J-03: it becomes the session timeout; version 1 keeps what was sent, negative counts as 0."""
    bench = Bench()
    bench.join(session_ms=7000, rebalance_ms=-1, version=0)
    (member,) = bench.seen().members
    assert member.rebalance_timeout_ms == 7000
    bench.join(group="h", rebalance_ms=-1, version=1)
    assert bench.seen("h").members[0].rebalance_timeout_ms == -1
    assert bench.group("h").rebalance_timeout_ms == 0


def test_join_when_the_component_is_stopped() -> None:
    """J-04, C-03: the member id is echoed."""
    bench = Bench()
    bench.carry_out(bench.coordinator.stop(0))
    answer = bench.joined(bench.join("m"))
    assert (answer.error_code, answer.member_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, "m")


def test_join_with_an_empty_group_id() -> None:
    """J-05: "" is refused with the member id echoed, white space is a name."""
    bench = Bench()
    answer = bench.joined(bench.join("m", group=""))
    assert (answer.error_code, answer.member_id) == (ErrorCode.INVALID_GROUP_ID, "m")
    assert bench.is_parked(bench.join(group=" ", version=3))


@pytest.mark.parametrize(
    ("session_ms", "accepted"), [(5999, 0), (6000, 1), (1_800_000, 1), (1_800_001, 0)]
)
def test_session_timeout_bounds(session_ms: int, accepted: int) -> None:
    """J-06: both bounds are valid; the check comes before everything about the group."""
    bench = Bench()
    token = bench.join("m", session_ms=session_ms)
    answer = bench.joined(token)
    expected = ErrorCode.UNKNOWN_MEMBER_ID if accepted else ErrorCode.INVALID_SESSION_TIMEOUT
    assert (answer.error_code, answer.member_id) == (expected, "m")


def test_join_where_the_partition_is_not_served() -> None:
    """J-07, C-07: the answer has no member id."""
    bench = Bench(load=False)
    answer = bench.joined(bench.join("m"))
    assert (answer.error_code, answer.member_id) == (ErrorCode.NOT_COORDINATOR, "")


def test_a_group_is_always_a_classic_group_here() -> None:
    """J-08: no other kind of group exists, so a join is judged by classic rules alone, also when
    the group's log is empty of members but holds offsets.
    """
    bench = Bench()
    bench.commit()
    assert bench.seen().is_simple
    assert bench.is_parked(bench.join(version=3, protocol_type="connect", protocols=["default"]))


def test_unknown_group_with_a_member_id() -> None:
    """J-09: dynamic or static, no group is created and nothing is written."""
    bench = Bench()
    for instance in (None, "i"):
        answer = bench.joined(bench.join("m", instance=instance))
        assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "m")
        assert answer.protocol_type is None
    assert not bench.has_group()
    assert bench.appends == []


def test_an_unknown_group_is_made_before_any_further_check() -> None:
    """J-10, J-15, J-21: a refused join leaves an empty group behind, and its record."""
    bench = Bench()
    bench.now_ms = 5
    answer = bench.joined(bench.join(protocol_type=""))
    assert (answer.error_code, answer.member_id) == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")
    assert (bench.seen().state, bench.seen().generation_id) == ("Empty", 0)
    (record,) = bench.group_records()
    assert record is not None
    assert (record.generation, record.protocol_type, record.protocol) == (0, "", None)
    assert (record.leader, record.current_state_timestamp, record.members) == (None, 5, ())


def test_size_limit_by_state() -> None:
    """J-11: PREPARING counts parked joins, COMPLETING and STABLE count members, EMPTY nothing."""
    bench = Bench({"group.max.size": 2})
    ids = [bench.new_id() for _ in range(3)]  # EMPTY: without limit
    tokens = [bench.join(member_id) for member_id in ids]
    assert bench.joined(tokens[2]).error_code is ErrorCode.GROUP_MAX_SIZE_REACHED
    again = bench.join(ids[0])  # parked already: always accepted
    bench.sleep(6000)
    assert bench.joined(again).error_code is ErrorCode.NONE
    assert bench.joined(bench.join()).error_code is ErrorCode.GROUP_MAX_SIZE_REACHED
    for member_id in ids[:2]:
        assert bench.joined(bench.join(member_id)).error_code is ErrorCode.NONE
    bench.assign()
    unknown = bench.joined(bench.join("never-heard-of"))  # before the id is validated
    assert unknown.error_code is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_pending_members_do_not_count_for_the_size() -> None:
    """J-11, J-17: ids are handed out below the limit whatever is pending, and checked again."""
    bench = Bench({"group.max.size": 10})
    ids = [bench.new_id() for _ in range(11)]
    assert len(bench.group().pending_joins) == 11
    tokens = [bench.join(member_id) for member_id in ids]
    bench.sleep(6000)
    codes = [bench.joined(token).error_code for token in tokens]
    assert codes.count(ErrorCode.NONE) == 10
    assert codes[-1] is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert bench.group().pending_joins == {}


def test_refusal_by_size_kicks_and_completes_nothing() -> None:
    """J-12, T-4: the refused member is out at once, and the join phase waits for its timeout."""
    bench = Bench({"group.max.size": 2})
    bench.stable(2)
    group = bench.group()
    bench.coordinator._core.shards[0].context.config = bench.config.replace(group_max_size=1)
    first, second = sorted(group.members, key=lambda name: name != group.leader_id)
    first_token = bench.join(first, rebalance_ms=20_000)
    assert bench.timers()["join-g"] == ("join", bench.now_ms + 60_000)
    refused = bench.joined(bench.join(second))
    assert (refused.error_code, refused.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert list(group.members) == [first]
    assert group.all_joined
    assert group.state is GroupState.PREPARING
    assert f"heartbeat-g-{second}" in bench.timers()  # left running; it finds nobody
    bench.sleep(60_000)
    assert bench.joined(first_token).error_code is ErrorCode.NONE


def test_leader_kicked_by_size_is_replaced() -> None:
    """J-12, PR-20: the first of the others leads."""
    bench = Bench()
    leader, follower = bench.stable(2)
    bench.coordinator._core.shards[0].context.config = bench.config.replace(group_max_size=1)
    bench.join(follower, protocols=["range", "sticky"])
    assert bench.joined(bench.join(leader)).error_code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert bench.group().leader_id == follower


def test_static_restart_in_a_full_group_is_refused() -> None:
    """J-13: although the replacement would not let the group grow."""
    bench = Bench({"group.max.size": 1})
    (member,) = bench.stable_static("i")
    assert bench.joined(bench.join(instance="i")).error_code is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert list(bench.group().members) == [member]


def test_join_of_a_dead_group() -> None:
    """J-14, J-31: COORDINATOR_NOT_AVAILABLE, with the member id if one was given."""
    bench = Bench()
    (member,) = bench.stable(1)
    bench.group().transition_to(GroupState.DEAD, "forced")
    for member_id in ("", member):
        answer = bench.joined(bench.join(member_id))
        assert answer.error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert answer.member_id == member_id


def test_protocols_must_meet() -> None:
    """J-15, J-32: type equal, one name that all support, the member's own old list included."""
    bench = Bench()
    empty = bench.joined(bench.join(protocols=[]))
    assert empty.error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    (member,) = bench.completing(1, protocols=["range"])
    for options in ({"protocol_type": "connect"}, {"protocols": ["roundrobin"]}):
        refused = bench.joined(bench.join(**options))
        assert (refused.error_code, refused.member_id) == (
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            "",
        )
        refused = bench.joined(bench.join(member, **options))  # a sole member cannot swap
        assert (refused.error_code, refused.member_id) == (
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            member,
        )
    assert bench.group().pending_joins == {}
    token = bench.join(member, protocols=["roundrobin", "range"])  # an overlap for one round
    assert bench.joined(token).generation_id == 2


def test_protocols_do_not_matter_to_an_empty_group() -> None:
    """J-15: any type may join a group that became EMPTY, and sets the new type."""
    bench = Bench()
    (member,) = bench.stable(1)
    bench.leave(member)
    assert bench.seen().protocol_type == "consumer"
    bench.join(version=3, protocol_type="connect", protocols=["default"])
    assert bench.seen().protocol_type == "connect"


def test_every_name_passes_when_all_members_are_gone() -> None:
    """J-15: PREPARING without members keeps the protocol type alone."""
    bench = Bench()
    token = bench.join(version=3)
    bench.leave(next(iter(bench.group().members)))
    assert bench.joined(token).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.is_parked(bench.join(version=3, protocols=["roundrobin"]))
    other = bench.joined(bench.join(version=3, protocol_type="connect"))
    assert other.error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_pending_id_that_fails_the_protocols_may_retry() -> None:
    """J-32, J-33: it stays pending."""
    bench = Bench()
    member_id = bench.new_id()
    refused = bench.joined(bench.join(member_id, protocols=[]))
    assert (refused.error_code, refused.member_id) == (
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        member_id,
    )
    assert bench.is_parked(bench.join(member_id))


def test_duplicate_names_in_one_request_break_the_vote() -> None:
    """J-15, J-48, PR-16: counted twice, the name is no candidate, and the timer's operation throws
    after the generation was raised; the join ends after five minutes (T-2).
    """
    bench = Bench()
    token = bench.join(version=3, protocols=["range", "range"])
    bench.sleep(3000)
    assert (bench.seen().state, bench.seen().generation_id) == ("PreparingRebalance", 1)
    assert "join-g" not in bench.timers()
    assert any("Ignoring it" in sentence for sentence in bench.sentences())
    other = bench.joined(bench.join(version=3))
    assert other.error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    bench.sleep(300_000)
    assert bench.joined(token).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert (bench.seen().state, bench.seen().generation_id) == ("Empty", 2)


def test_member_ids() -> None:
    """J-16: prefix and UUID; a fresh id for every unknown join, also of one static instance."""
    bench = Bench()
    dynamic = bench.new_id(client_id="app")
    assert dynamic == "app-00000000-0000-4000-8000-000000000001"
    ids = []
    for _ in range(3):
        bench.join(instance="i-1", client_id="app", group="s")
        ids.append(bench.group("s").static_members["i-1"])
    assert len(set(ids)) == 3
    assert all(member_id.startswith("i-1-00000000-") for member_id in ids)


def test_member_id_required() -> None:
    """J-17, T-3: the id is pending for the session timeout of that request; nothing else changes."""
    bench = Bench()
    bench.stable(1)
    before = bench.seen()
    answer = bench.joined(bench.join(session_ms=8000))
    assert answer == JoinGroupResponse(
        error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=answer.member_id
    )
    after = bench.seen()
    assert after.pending_joins == (answer.member_id,)
    assert (after.state, after.generation_id, after.members) == (
        before.state,
        before.generation_id,
        before.members,
    )
    key = f"heartbeat-g-{answer.member_id}"
    assert bench.timers()[key] == ("pending-member", bench.now_ms + 8000)


def test_versions_0_to_3_are_added_at_once() -> None:
    """J-18."""
    bench = Bench()
    token = bench.join(version=3)
    assert bench.is_parked(token)
    bench.sleep(3000)
    answer = bench.joined(token)
    assert (answer.error_code, answer.protocol_type) == (ErrorCode.NONE, "consumer")


def test_new_static_members_are_added_at_once() -> None:
    """J-19: without MEMBER_ID_REQUIRED, in any version that has the field."""
    bench = Bench()
    tokens = [bench.join(instance=f"i{version}", version=version) for version in (5, 9)]
    bench.sleep(6000)
    assert all(bench.joined(token).error_code is ErrorCode.NONE for token in tokens)
    assert set(bench.group().static_members) == {"i5", "i9"}


def test_adding_a_member() -> None:
    """J-20, T-2: client id and host as given, new, parked, first one leads, five minutes."""
    bench = Bench()
    member_id = bench.new_id(client_id="app")
    token = bench.join(member_id, client_id="app", client_host="/10.0.0.7")
    assert bench.is_parked(token)
    seen = bench.seen()
    (member,) = seen.members
    assert (member.client_id, member.client_host) == ("app", "/10.0.0.7")
    assert member.is_new
    assert member.awaiting_join
    assert (seen.leader_id, seen.protocol_type) == (member_id, "consumer")
    assert (seen.pending_joins, seen.supporters, seen.parked_joins) == ((), (("range", 1),), 1)
    assert not seen.new_member_added
    assert bench.timers()[f"heartbeat-g-{member_id}"] == ("new-member", 300_000)
    bench.join(version=3)
    assert bench.seen().new_member_added  # set by each later addition of an initial rebalance


def test_the_answer_does_not_wait_for_the_first_record() -> None:
    """J-21: MEMBER_ID_REQUIRED goes out although the record is not committed."""
    bench = Bench()
    effects = bench.coordinator.handle(
        1,
        JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            member_id="",
            protocol_type="consumer",
            protocols=offers("range"),
        ),
        api_version=9,
        client_id="c",
        client_host="/h",
        now_ms=0,
    )
    kinds = [type(effect) for effect in effects if isinstance(effect, Reply | Append)]
    assert kinds == [Reply, Append]


def test_no_first_record_when_the_join_writes_another() -> None:
    """J-21, C-09: a group that exists gets no second one."""
    bench = Bench()
    bench.new_id()
    bench.new_id()
    assert len(bench.group_records()) == 1


@pytest.mark.parametrize("failed_at_once", [True, False])
def test_the_first_record_fails(failed_at_once: bool) -> None:
    """J-22, C-10, C-11: the group vanishes, a parked join gets the mapped error, timers stay."""
    bench = Bench()
    if failed_at_once:
        bench.fail_with = ErrorCode.NOT_LEADER_OR_FOLLOWER
    else:
        bench.hold = True
    token = bench.join(version=3)
    if not failed_at_once:
        assert bench.is_parked(token)
        bench.commit_appends(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    answer = bench.joined(token)
    assert (answer.error_code, answer.member_id) == (ErrorCode.NOT_COORDINATOR, "")
    assert not bench.has_group()
    assert set(bench.timers()) >= {"join-g"}
    bench.fail_with = None
    bench.sleep(300_000)  # the timers find nothing
    assert not bench.has_group()


def test_a_stale_join_timer_meets_a_new_group() -> None:
    """J-22, 1.2: the illegal move from EMPTY to EMPTY is refused after the generation was raised."""
    bench = Bench()
    bench.fail_with = ErrorCode.KAFKA_STORAGE_ERROR
    bench.join(version=3)
    bench.fail_with = None
    bench.new_id()
    bench.sleep(3000)
    assert (bench.seen().state, bench.seen().generation_id) == ("Empty", 1)


def test_versions_of_join_group() -> None:
    """J-47: 0 to 9; the absent protocol is "" below 7 and null from 7 on."""
    api = APIS[ApiKey.JOIN_GROUP]
    assert (api.min_version, api.max_version) == (0, 9)
    bench = Bench()
    names = {
        version: bench.joined(bench.join("m", version=version)).protocol_name
        for version in range(10)
    }
    assert names == {version: "" if version < 7 else None for version in range(10)}
