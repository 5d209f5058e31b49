"""What a simulation is made of, as values: topics, brokers, network, clocks.

All of them can be written down in a scenario and stand in its trace. Times are integers, units stand
at the end of names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from groupsim.runtime.latency import Fixed, Latency

__all__ = ["OFFSETS_PARTITIONS", "BrokersSpec", "NetworkSpec", "ProcessClock", "TopicSpec"]

OFFSETS_PARTITIONS = 50
"""Kafka's default of ``offsets.topic.num.partitions``."""

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSpec:
    """A topic: its number of partitions and how fast each of them grows.

    Raises:
        ValueError: there is no partition, or the rate is negative.

    """

    partitions: int = 1
    rate_per_s: int = 0

    def __post_init__(self) -> None:
        if self.partitions < 1:
            raise ValueError(f"a topic needs at least one partition; got {self.partitions}")
        if self.rate_per_s < 0:
            raise ValueError(f"a topic's rate must not be negative; got {self.rate_per_s}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokersSpec:
    """The cluster. Brokers have the node ids 1 to ``count`` and are called ``b-<id>``.

    ``config`` holds Kafka's broker configuration by its names. ``replication_delay`` is the time
    from an append to the high watermark reaching it. ``load_us`` is how long a coordinator reads
    its partition after it became leader. ``failover_us`` is how long the partitions of a crashed
    broker stay without a leader (Kafka: up to ``broker.session.timeout.ms``, 9 s); a cluster of
    one broker has nobody to fail over to. ``racks`` are dealt out to the brokers in turn.

    Raises:
        ValueError: there is no broker, or a time is negative.

    """

    count: int = 1
    config: Mapping[str, Any] = field(default_factory=dict)
    replication_delay: Latency = field(default_factory=lambda: Fixed(us=0))
    load_us: int = 0
    failover_us: int = 9_000_000
    racks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"a cluster needs at least one broker; got {self.count}")
        if self.load_us < 0 or self.failover_us < 0:
            raise ValueError("load_us and failover_us must not be negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSpec:
    """Latencies of all links to begin with, one for each direction.

    ``connect_timeout_us`` is Java's ``socket.connection.setup.timeout.ms``.
    """

    to_broker: Latency = field(default_factory=lambda: Fixed(us=500))
    to_client: Latency = field(default_factory=lambda: Fixed(us=500))
    connect_timeout_us: int = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessClock:
    """A process's own clock: it reads ``offset_ms`` at time 0 and runs ``rate_ppm`` too fast.

    Raises:
        ValueError: the clock would stand still or run backwards, or start before zero.

    """

    offset_ms: int = 0
    rate_ppm: int = 0

    def __post_init__(self) -> None:
        if self.rate_ppm <= -_MILLION:
            raise ValueError(f"a clock must run forwards; got {self.rate_ppm} ppm")
        if self.offset_ms < 0:
            raise ValueError(f"a clock's offset must not be negative; got {self.offset_ms} ms")

    def read_ms(self, now_us: int) -> int:
        """What the clock reads at the kernel's ``now_us``, in whole milliseconds."""
        return self.offset_ms + now_us * (_MILLION + self.rate_ppm) // (_MILLION * 1000)

    def reaches_us(self, local_ms: int) -> int:
        """The first kernel time at which the clock reads ``local_ms`` or more."""
        elapsed = (local_ms - self.offset_ms) * _MILLION * 1000
        return max(0, -(-elapsed // (_MILLION + self.rate_ppm)))
