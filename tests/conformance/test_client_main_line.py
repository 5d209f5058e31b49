"""The client's main line: lookup, join, sync, heartbeats, leave."""

from __future__ import annotations

from groupsim.protocol.errors import ErrorCode
from groupsim.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from groupsim.testing.client import ClientBench


def test_from_start_to_close() -> None:
    """CR-12, CS-02, CH-02, CL-06: the whole life of a follower, request by request."""
    bench = ClientBench()
    bench.start()
    refused = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m-1")
    bench.answer(bench.take(JoinGroupRequest), refused)
    bench.join(("t", 0), ("t", 1))
    bench.advance(10_000)
    bench.order("close")
    joins = [request for _, request in bench.sent(JoinGroupRequest)]
    assert [join.member_id for join in joins] == ["", "m-1"]
    assert [sync.assignments for _, sync in bench.sent(SyncGroupRequest)] == [()]
    assert [at for at, _ in bench.sent(HeartbeatRequest)] == [3_000, 6_000, 9_000]
    assert [at for at, _ in bench.sent(LeaveGroupRequest)] == [10_000]
    assert bench.changes() == [
        ("assigned", (("t", 0), ("t", 1))),
        ("revoked", (("t", 0), ("t", 1))),
    ]
    assert bench.exited == "closed"
