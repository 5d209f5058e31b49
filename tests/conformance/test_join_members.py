"""JoinGroup with a member id (J-31 to J-48)."""

from __future__ import annotations

import pytest

from groupsim.coordinator.classic.states import GroupState
from groupsim.coordinator.effects import GroupTransition, MemberChange
from groupsim.protocol.errors import ErrorCode
from groupsim.testing.coordinator import Bench, subscription


def test_pending_member_joins() -> None:
    """J-33, T-2, T-3: any version; the pending timer gives way to the five minutes."""
    bench = Bench()
    for version in (3, 9):
        member_id = bench.new_id(group=f"g{version}")
        token = bench.join(member_id, group=f"g{version}", version=version)
        assert bench.is_parked(token)
        assert bench.timers()[f"heartbeat-g{version}-{member_id}"] == ("new-member", 300_000)
        assert bench.group(f"g{version}").pending_joins == {}


def test_pending_member_with_an_instance_id() -> None:
    """J-34, J-48: an internal error; the id stays pending."""
    bench = Bench()
    member_id = bench.new_id()
    answer = bench.joined(bench.join(member_id, instance="i"))
    assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_SERVER_ERROR, "")
    assert list(bench.group().pending_joins) == [member_id]


def test_member_validation() -> None:
    """J-35: unknown instance, fenced instance, unknown member, in this order; the id is echoed."""
    bench = Bench()
    a, b = bench.stable_static("a", "b")
    cases = [
        (a, "other", ErrorCode.UNKNOWN_MEMBER_ID),
        (b, "a", ErrorCode.FENCED_INSTANCE_ID),
        ("nobody", "a", ErrorCode.FENCED_INSTANCE_ID),
        ("nobody", None, ErrorCode.UNKNOWN_MEMBER_ID),
    ]
    for member_id, instance, code in cases:
        answer = bench.joined(bench.join(member_id, instance=instance))
        assert (answer.error_code, answer.member_id) == (code, member_id)
        assert (answer.protocol_type, answer.protocol_name) == (None, None)
    follower = next(name for name in (a, b) if name != bench.group().leader_id)
    assert bench.joined(bench.join(follower)).error_code is ErrorCode.NONE  # instance left out


def test_known_member_in_preparing() -> None:
    """J-36: parked, everything replaced by the request, no timer touched, "new" unchanged."""
    bench = Bench()
    leader, follower = bench.stable(2)
    bench.join(version=3)
    timers = bench.timers()
    token = bench.join(follower, session_ms=9000, rebalance_ms=70_000, protocols=["range", "x"])
    assert bench.is_parked(token)
    assert bench.timers() == timers
    member = bench.group().members[follower]
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (9000, 70_000)
    assert [protocol.name for protocol in member.protocols] == ["range", "x"]
    assert not member.is_new
    answer_token = bench.join(leader)
    assert bench.joined(answer_token).generation_id == 2
    assert bench.joined(token).generation_id == 2


def test_the_older_of_two_parked_joins_is_never_answered() -> None:
    """J-37, T-2: only the latest request is; the five minutes are not started again."""
    bench = Bench()
    member_id = bench.new_id()
    first = bench.join(member_id)
    bench.sleep(1000)
    second = bench.join(member_id)
    assert bench.group().parked_joins == 1
    assert bench.timers()[f"heartbeat-g-{member_id}"] == ("new-member", 300_000)
    bench.sleep(60_000)
    assert bench.joined(second).error_code is ErrorCode.NONE
    assert bench.is_parked(first)


def test_unchanged_member_in_completing() -> None:
    """J-38: answered at once, the leader with the members; timeouts ignored, a sync stays parked."""
    bench = Bench()
    leader, follower = bench.completing(2)
    sync = bench.sync(follower)
    for member_id, count in ((leader, 2), (follower, 0)):
        answer = bench.joined(bench.join(member_id, session_ms=6000, rebalance_ms=1))
        assert (answer.error_code, answer.generation_id) == (ErrorCode.NONE, 1)
        assert (answer.leader, answer.member_id) == (leader, member_id)
        assert (len(answer.members), answer.skip_assignment) == (count, False)
        assert bench.group().members[member_id].session_timeout_ms == 10_000
    assert bench.is_parked(sync)
    assert bench.seen().state == "CompletingRebalance"


def test_changed_member_in_completing() -> None:
    """J-39, PR-02: every parked sync ends, its own too."""
    bench = Bench()
    leader, follower = bench.completing(2)
    sync = bench.sync(follower)
    token = bench.join(follower, protocols=["range", "sticky"])
    assert bench.synced(sync).error_code is ErrorCode.REBALANCE_IN_PROGRESS
    assert bench.is_parked(token)
    bench.join(leader)
    assert bench.joined(token).generation_id == 2


def test_leader_in_stable_always_rebalances() -> None:
    """J-40, PR-07, PR-15: with identical metadata too; a sole leader is answered at once."""
    bench = Bench()
    (leader,) = bench.stable(1)
    answer = bench.joined(bench.join(leader, reason="because"))
    assert (answer.generation_id, answer.leader) == (2, leader)
    reasons = [note.reason for note in bench.notes if isinstance(note, GroupTransition)]
    expected = f"Leader {leader} re-joining group during Stable; client reason: because"
    assert expected in reasons


def test_changed_follower_in_stable() -> None:
    """J-41, J-44: one byte of metadata is enough; answered when the leader has joined, too."""
    bench = Bench()
    leader, follower = bench.stable(2)
    token = bench.join(follower, protocols=[("range", subscription("others"))])
    assert bench.is_parked(token)
    assert bench.seen().state == "PreparingRebalance"
    bench.join(leader)
    assert bench.joined(token).generation_id == 2


def test_unchanged_follower_in_stable() -> None:
    """J-42, J-44: the current generation at once, no members, no effects; timeouts do not count."""
    bench = Bench()
    leader, follower = bench.stable(2)
    timers = bench.timers()
    answer = bench.joined(bench.join(follower, session_ms=6000))
    assert (answer.error_code, answer.generation_id) == (ErrorCode.NONE, 1)
    assert (answer.leader, answer.members) == (leader, ())
    assert bench.seen().state == "Stable"
    assert bench.timers() == timers
    assert bench.group().members[follower].session_timeout_ms == 10_000


def test_known_member_of_a_group_forced_empty() -> None:
    """J-43: UNKNOWN_MEMBER_ID, generation -1."""
    bench = Bench()
    (member,) = bench.stable(1)
    bench.group().state = GroupState.EMPTY
    answer = bench.joined(bench.join(member))
    assert (answer.error_code, answer.generation_id) == (ErrorCode.UNKNOWN_MEMBER_ID, -1)
    assert answer.member_id == member


@pytest.mark.parametrize(
    ("protocols", "changed"),
    [
        (["range", "sticky"], False),
        (["sticky", "range"], True),
        (["range", "sticky", "x"], True),
        (["range"], True),
        (["range", ("sticky", subscription("others"))], True),
    ],
)
def test_what_counts_as_unchanged(protocols: list[str], changed: bool) -> None:
    """J-44: equal element by element, in order, names and bytes."""
    bench = Bench()
    _, follower = bench.stable(2, protocols=["range", "sticky"])
    token = bench.join(follower, protocols=protocols)
    assert bench.is_parked(token) is changed


@pytest.mark.parametrize(
    ("reason", "shown"), [(None, "not provided"), ("", "not provided"), ("x" * 300, "x" * 300)]
)
def test_reason(reason: str | None, shown: str) -> None:
    """J-45: only in log text, neither stored nor cut."""
    bench = Bench()
    bench.join(version=3, reason=reason)
    changes = [note for note in bench.notes if isinstance(note, MemberChange)]
    assert changes[-1].reason.endswith(f"; client reason: {shown}")
    assert any(shown in sentence for sentence in bench.sentences())
