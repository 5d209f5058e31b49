"""The old client: the differences of the rule book's section 7, one by one."""

from __future__ import annotations

from typing import Any

import pytest

from groupsim.protocol.consumer_protocol import read_version
from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from groupsim.testing.client import ClientBench
from groupsim_clients.machine import AppRaised, Disconnect
from groupsim_clients.profiles import java, java_2_4

QUIET = {"enable.auto.commit": False}
CONTINUE = {"on_error": "continue"}


def old(config: dict[str, Any] | None = None, **options: Any) -> ClientBench:
    """A client of about 2.4."""
    return ClientBench(
        {**QUIET, **(config or {})}, factory=java_2_4, **{"work": CONTINUE, **options}
    )


def raised(bench: ClientBench) -> list[str]:
    """The exceptions that the application saw."""
    return [note.exception for note in bench.notes(AppRaised)]


def test_three_states() -> None:
    """1.1, CR-01: UNJOINED, REBALANCING, STABLE."""
    bench = old()
    bench.stable()
    assert set(bench.states()) == {"REBALANCING", "STABLE"}


def test_versions_and_fields() -> None:
    """CJ-22, CS-01, W-01: JoinGroup 6 without a reason, SyncGroup 4 without protocol type and name,
    subscriptions of version 1, range alone.
    """
    bench = old()
    bench.start()
    send = bench.take(JoinGroupRequest)
    assert (send.api_version, send.request.reason) == (6, None)
    assert [protocol.name for protocol in send.request.protocols] == ["range"]
    assert read_version(send.request.protocols[0].metadata) == 1
    assert send.request.session_timeout_ms == 10_000
    bench.answer(send, bench.joined())
    sync = bench.take(SyncGroupRequest)
    assert (sync.api_version, sync.request.protocol_type, sync.request.protocol_name) == (
        4,
        None,
        None,
    )
    bench.order("close")
    leave = bench.take(LeaveGroupRequest) if bench.opened(LeaveGroupRequest) else None
    assert leave is None
    assert bench.sent(LeaveGroupRequest)[0][1].members[0].reason is None


def test_no_heartbeats_until_stable() -> None:
    """CH-01 (1.4): off from the JoinGroup until STABLE, then from zero."""
    bench = old()
    bench.start()
    bench.answer(bench.take(JoinGroupRequest), bench.joined())
    bench.advance(8_000)
    assert bench.sent(HeartbeatRequest) == []
    bench.sync(("t", 0))
    bench.advance(3_000)
    assert [at for at, _ in bench.sent(HeartbeatRequest)] == [11_000]


def test_every_failed_join_unjoins() -> None:
    """CR-02 (1.2): the state falls back to UNJOINED; today it stays."""
    bench = old()
    bench.start()
    answer = JoinGroupResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    bench.answer(bench.take(JoinGroupRequest), answer)
    assert bench.states()[-1] == "UNJOINED"


def test_generation_wiped_while_syncing_lets_the_future_succeed() -> None:
    """CS-20: the SyncGroup answer is taken for a success; the join loop notices and starts again."""
    bench = old()
    bench.start()
    bench.answer(bench.take(JoinGroupRequest), bench.joined())
    bench.coordinator._reset_and_rejoin("test")
    bench.answer(bench.take(SyncGroupRequest), bench.synced(("t", 0)))
    assert any("was modified by heartbeat thread" in s for s in bench.sentences())
    assert bench.changes() == []
    assert len(bench.sent(JoinGroupRequest)) == 2


@pytest.mark.parametrize(("factory", "at_ms"), [(java_2_4, 15_001), (java, 30_001)])
def test_join_timeout_has_no_lower_bound(factory: Any, at_ms: int) -> None:
    """CJ-23: rebalance timeout + 5 s even when the request timeout is longer."""
    bench = ClientBench({**QUIET, "max.poll.interval.ms": 10_000}, factory=factory)
    bench.start()
    bench.advance(60_000)
    disconnects = [h.at_ms for h in bench.log if isinstance(h.effect, Disconnect)]
    assert disconnects[0] == at_ms


def test_no_protocol_checks() -> None:
    """CR-01, CS-20: a foreign protocol type or name is not looked at."""
    bench = old()
    bench.start()
    answer = JoinGroupResponse(
        generation_id=1, protocol_type="connect", protocol_name="range", member_id="m-1"
    )
    bench.answer(bench.take(JoinGroupRequest), answer)
    synced = SyncGroupResponse(
        protocol_type="x", protocol_name="y", assignment=bench.synced(("t", 0)).assignment
    )
    bench.answer(bench.take(SyncGroupRequest), synced)
    assert bench.states()[-1] == "STABLE"
    assert raised(bench) == []


def test_unknown_member_always_resets() -> None:
    """CR-03: even when the generation has changed since sending."""
    bench = old()
    bench.start()
    bench.coordinator.generation = bench.coordinator.generation._replace(member_id="m-2")
    answer = JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    bench.answer(bench.take(JoinGroupRequest), answer)
    assert bench.sent(JoinGroupRequest)[-1][1].member_id == ""


def test_member_id_required_resets_the_state() -> None:
    """CR-12: UNJOINED on the way; today only the generation changes."""
    bench = old()
    bench.start()
    answer = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m-1")
    bench.answer(bench.take(JoinGroupRequest), answer)
    assert bench.states() == ["REBALANCING", "UNJOINED", "REBALANCING"]
    assert bench.sent(JoinGroupRequest)[-1][1].member_id == "m-1"


def test_rebalance_in_progress_on_join_is_fatal() -> None:
    """CR-13: an unexpected error to it."""
    bench = old()
    bench.start()
    answer = JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    bench.answer(bench.take(JoinGroupRequest), answer)
    assert raised(bench) == ["KafkaException"]


def test_skip_assignment_is_not_known() -> None:
    """CS-07: the leader always assigns."""
    from tests.conformance.test_client_sync import member

    bench = old()
    bench.start()
    answer = bench.joined(leader="m-1", members=[member("m-1", "t")], skip_assignment=True)
    bench.answer(bench.take(JoinGroupRequest), answer)
    assert len(bench.take(SyncGroupRequest).request.assignments) == 1


def test_every_cooperative_plan_is_validated() -> None:
    """CS-09: cooperative-sticky as well. Without generations in its subscriptions both claimants lose a
    partition that two claim, so the plan is made to collide by hand.
    """
    from groupsim.protocol.consumer_protocol import TopicPartition
    from tests.conformance.test_client_sync import member

    bench = old({"partition.assignment.strategy": "cooperative-sticky"})
    bench.start()
    bench.coordinator.assignors[0].assign = lambda _cluster, _members: {
        "m-1": (),
        "m-2": (TopicPartition("t", 0),),
    }
    members = [member("m-1", "t", owned=[("t", 0)]), member("m-2", "t")]
    answer = bench.joined(leader="m-1", protocol="cooperative-sticky", members=members)
    bench.answer(bench.take(JoinGroupRequest), answer)
    assert raised(bench) == ["IllegalStateException"]


def test_every_assignor_is_checked_for_topics() -> None:
    """CS-10: range's plan leaves a topic without metadata out, and the old client warns."""
    from tests.conformance.test_client_sync import member

    bench = old()
    bench.start()
    answer = bench.joined(leader="m-1", members=[member("m-1", "t", "missing")])
    bench.answer(bench.take(JoinGroupRequest), answer)
    assert any("not assigned to any members: [missing]" in s for s in bench.sentences())


def test_illegal_generation_costs_the_member_id() -> None:
    """CH-14 (1.5): the old reset is always a full one."""
    bench = old()
    bench.auto[HeartbeatRequest] = lambda _r: HeartbeatResponse(
        error_code=ErrorCode.ILLEGAL_GENERATION
    )
    bench.stable()
    bench.advance(4_000)
    assert bench.sent(JoinGroupRequest)[-1][1].member_id == ""


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.INVALID_SESSION_TIMEOUT,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_unchanged_fatal_codes(code: ErrorCode) -> None:
    """CR-05 to CR-11, CR-14 were the same then."""
    bench = old()
    bench.start()
    bench.answer(bench.take(JoinGroupRequest), JoinGroupResponse(error_code=code))
    assert len(raised(bench)) == 1
