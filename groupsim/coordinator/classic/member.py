"""One member of a classic group: Kafka's ``ClassicGroupMember``."""

from __future__ import annotations

from collections.abc import Iterable

from groupsim.coordinator.failures import IllegalStateError
from groupsim.coordinator.outbox import Answer
from groupsim.coordinator.timers import Timer
from groupsim.protocol.messages import JoinGroupRequestProtocol

__all__ = ["ClassicMember", "Protocols"]

Protocols = tuple[JoinGroupRequestProtocol, ...]


class ClassicMember:
    """A member, dynamic or static. Times are milliseconds.

    Attributes:
        protocols: what it offers, most wanted first (J-44 compares this list).
        assignment: the bytes its leader gave it; empty until then.
        awaiting_join: the parked JoinGroup, if any; at most one.
        awaiting_sync: the parked SyncGroup, if any; at most one.
        is_new: it has not been through a join phase yet (T-2, PR-23).
        session: its heartbeat timer as last armed.

    """

    __slots__ = (
        "assignment",
        "awaiting_join",
        "awaiting_sync",
        "client_host",
        "client_id",
        "group_instance_id",
        "is_new",
        "member_id",
        "protocol_type",
        "protocols",
        "rebalance_timeout_ms",
        "session",
        "session_timeout_ms",
    )

    def __init__(
        self,
        *,
        member_id: str,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocol_type: str,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocol_type = protocol_type
        self.protocols = protocols
        self.assignment = assignment
        self.awaiting_join: Answer | None = None
        self.awaiting_sync: Answer | None = None
        self.is_new = False
        self.session: Timer | None = None

    def successor(self, member_id: str) -> ClassicMember:
        """The same member under another id, with nothing parked (J-23)."""
        return ClassicMember(
            member_id=member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            session_timeout_ms=self.session_timeout_ms,
            protocol_type=self.protocol_type,
            protocols=self.protocols,
            assignment=self.assignment,
        )

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """Whether a session expiry is to be ignored: something is parked (T-1, PR-23)."""
        if self.is_new:
            return False
        return self.awaiting_join is not None or self.awaiting_sync is not None

    def metadata(self, protocol_name: str | None) -> bytes:
        """Metadata for a protocol; the first entry of that name counts."""
        for protocol in self.protocols:
            if protocol.name == protocol_name:
                return protocol.metadata
        raise IllegalStateError(f"Member does not support protocol {protocol_name}")

    def vote(self, candidates: Iterable[str]) -> str:
        """The candidate this member likes best (PR-16)."""
        for protocol in self.protocols:
            if protocol.name in candidates:
                return protocol.name
        raise IllegalStateError("Member does not support any of the candidate protocols")

    def __str__(self) -> str:
        names = ", ".join(protocol.name for protocol in self.protocols)
        return (
            f"ClassicGroupMember(memberId='{self.member_id}', "
            f"groupInstanceId='{self.group_instance_id or ''}', clientId='{self.client_id}', "
            f"clientHost='{self.client_host}', rebalanceTimeoutMs={self.rebalance_timeout_ms}, "
            f"sessionTimeoutMs={self.session_timeout_ms}, protocolType='{self.protocol_type}', "
            f"supportedProtocols=[{names}])"
        )
