"""The verbs about brokers, and about the log that they keep groups in.

What all verbs have in common is told in ``simulation``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groupsim.protocol.errors import ErrorCode
from groupsim.runtime.cluster import AppendFault, Cluster
from groupsim.runtime.latency import Fixed, Latency
from groupsim.runtime.world import World

__all__ = ["BrokerVerbs"]


class BrokerVerbs:
    """The part of ``Simulation`` that acts on brokers and on ``__consumer_offsets``.

    Verbs about the log touch the partition of a group, the partition given, or all of them. They
    raise ValueError for a partition that is not there.
    """

    world: World
    cluster: Cluster

    def crash_broker(self, node_id: int, *, cause: int = 0) -> int | None:
        """Kill a broker; its partitions fail over when the cluster gives it up."""
        self.world.cause = cause
        return self.cluster.crash(node_id, "killed")

    def stop_broker(self, node_id: int, *, cause: int = 0) -> int | None:
        """Shut a broker down in order: its partitions move first."""
        self.world.cause = cause
        return self.cluster.stop(node_id)

    def start_broker(self, node_id: int, *, cause: int = 0) -> int | None:
        """Start a broker that is down."""
        self.world.cause = cause
        return self.cluster.restart(node_id)

    def move_coordinator(
        self, to: int, *, group: str | None = None, partition: int | None = None, cause: int = 0
    ) -> None:
        """Make a broker the leader of a group's (or a given) partition of ``__consumer_offsets``.

        Raises:
            UnknownBrokerError: there is no such broker.
            ValueError: neither a group nor a partition, or both, or the broker is down.

        """
        if not self.cluster.broker(to).up:
            raise ValueError(f"broker {to} is down")
        if (group is None) == (partition is None):
            raise ValueError("name a group or a partition")
        self.world.cause = cause
        for number in self._partitions(group, partition):
            self.cluster.elect(number, to)

    def fail_appends(
        self,
        error: ErrorCode,
        *,
        count: int | None = None,
        for_us: int | None = None,
        group: str | None = None,
        partition: int | None = None,
        cause: int = 0,
    ) -> int:
        """Let the log refuse appends: so many, for so long (neither: always)."""
        self.world.cause = cause
        partitions = self._partitions(group, partition)
        until_us = None if for_us is None else self.world.kernel.now_us + for_us
        detail = {"error": error.name, "count": count, "until_us": until_us}
        event = self._log_fault("fail-appends", group, partition, detail)
        only = partitions[0] if len(partitions) == 1 else None
        self.cluster.add_fault(AppendFault(error, only, count, until_us))
        return event

    def stall_appends(
        self, *, group: str | None = None, partition: int | None = None, cause: int = 0
    ) -> int:
        """Let replication stand still: appends are neither committed nor refused."""
        self.world.cause = cause
        event = self._log_fault("stall-appends", group, partition, {})
        self.cluster.stall(self._partitions(group, partition))
        return event

    def resume_appends(
        self, *, group: str | None = None, partition: int | None = None, cause: int = 0
    ) -> int:
        """Let replication go on."""
        self.world.cause = cause
        event = self._log_fault("resume-appends", group, partition, {})
        self.cluster.unstall(self._partitions(group, partition))
        return event

    def set_replication_delay(self, delay: Latency | int, *, cause: int = 0) -> int:
        """Change how long an append takes to be committed (an integer: fixed, in µs)."""
        self.world.cause = cause
        latency = Fixed(us=delay) if isinstance(delay, int) else delay
        self.cluster.replication_delay = latency
        return self.world.event(
            "fault", fault="replication-delay", target="*", detail={"delay": str(latency)}
        )

    def _partitions(self, group: str | None, partition: int | None) -> tuple[int, ...]:
        if group is not None:
            return (self.cluster.partition_of(group),)
        count = len(self.cluster.logs)
        if partition is None:
            return tuple(range(count))
        if not 0 <= partition < count:
            raise ValueError(
                f"partitions of __consumer_offsets are 0 to {count - 1}; got {partition}"
            )
        return (partition,)

    def _log_fault(
        self, fault: str, group: str | None, partition: int | None, detail: Mapping[str, Any]
    ) -> int:
        target = group if group is not None else "*" if partition is None else str(partition)
        return self.world.event("fault", fault=fault, target=target, detail=dict(detail))
