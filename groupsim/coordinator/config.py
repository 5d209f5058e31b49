"""The broker's group settings under Kafka's names, checked as Kafka checks them at start-up.

Names, types, ranges and defaults are those of Apache Kafka 4.4's ``GroupCoordinatorConfig``
(rule book, chapter 4). Options that say nothing about classic groups in memory (buffer sizes,
threads, topic layout) are accepted, checked and kept, so that a broker's file can be pasted.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

__all__ = ["OPTIONS", "ConfigError", "CoordinatorConfig", "Option", "Switches"]

_INT_MAX = 2**31 - 1
_LONG_MAX = 2**63 - 1
_SHORT_MAX = 2**15 - 1
_GROUP_TYPES = ("consumer", "classic", "share", "streams", "unknown")
_POLICIES = ("disabled", "upgrade", "downgrade", "bidirectional")


class ConfigError(ValueError):
    """A setting Kafka would refuse to start with.

    Attributes:
        name: Kafka's name of the option.
        value: what was given.
        allowed: what would be allowed, as text.

    """

    def __init__(self, name: str, value: object, allowed: str) -> None:
        super().__init__(f"invalid value {value!r} for {name}: {allowed}")
        self.name = name
        self.value = value
        self.allowed = allowed


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option: Kafka's name, how it is read, and its default as Kafka writes it."""

    name: str
    parse: Callable[[str, object], Any]
    default: Any


def _whole(low: int, high: int) -> Callable[[str, object], int]:
    def parse(name: str, value: object) -> int:
        allowed = f"a whole number from {low} to {high}"
        if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]+", value.strip()):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ConfigError(name, value, allowed)
        return value

    return parse


def _integer(at_least: int = -_INT_MAX - 1) -> Callable[[str, object], int]:
    return _whole(at_least, _INT_MAX)


def _protocols(name: str, value: object) -> tuple[str, ...]:
    allowed = f"a list of {', '.join(_GROUP_TYPES)} with classic in it, without duplicates"
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple):
        raise ConfigError(name, value, allowed)
    names = tuple(str(part).strip() for part in parts)
    unknown = [part for part in names if part not in _GROUP_TYPES]
    if unknown or "classic" not in names or len(set(names)) != len(names):
        raise ConfigError(name, value, allowed)
    return names


def _policy(name: str, value: object) -> str:
    if str(value).lower() not in _POLICIES:
        raise ConfigError(name, value, f"one of {', '.join(_POLICIES)}")
    return str(value).lower()


OPTIONS: Final[Mapping[str, Option]] = {
    option.name: option
    for option in (
        Option(name="group.min.session.timeout.ms", parse=_integer(), default=6000),
        Option(name="group.max.session.timeout.ms", parse=_integer(), default=1_800_000),
        Option(name="group.initial.rebalance.delay.ms", parse=_integer(), default=3000),
        Option(name="group.max.size", parse=_integer(1), default=_INT_MAX),
        Option(name="offsets.retention.minutes", parse=_integer(1), default=10_080),
        Option(
            name="offsets.retention.check.interval.ms", parse=_whole(1, _LONG_MAX), default=600_000
        ),
        Option(name="offset.metadata.max.bytes", parse=_integer(), default=4096),
        Option(name="offsets.commit.timeout.ms", parse=_integer(1), default=5000),
        Option(name="offsets.topic.num.partitions", parse=_integer(1), default=50),
        Option(name="offsets.topic.replication.factor", parse=_whole(1, _SHORT_MAX), default=3),
        Option(name="offsets.topic.segment.bytes", parse=_integer(1), default=104_857_600),
        Option(name="offsets.topic.compression.codec", parse=_whole(0, 4), default=0),
        Option(name="offsets.load.buffer.size", parse=_integer(1), default=5_242_880),
        Option(name="group.coordinator.append.linger.ms", parse=_integer(-1), default=-1),
        Option(name="group.coordinator.threads", parse=_integer(1), default=4),
        Option(name="group.coordinator.background.threads", parse=_integer(1), default=2),
        Option(
            name="group.coordinator.cached.buffer.max.bytes",
            parse=_integer(512 * 1024),
            default=1_048_588,
        ),
        Option(
            name="group.coordinator.rebalance.protocols",
            parse=_protocols,
            default=("classic", "consumer", "streams"),
        ),
        Option(name="group.consumer.migration.policy", parse=_policy, default="bidirectional"),
    )
}
"""Every option, by Kafka's name."""


def _field(name: str) -> Any:
    return OPTIONS[name].default


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """Behaviour of older releases, off unless asked for. The target is Apache Kafka 4.4.

    Attributes:
        static_membership_gate: the cluster's metadata version is below 2.3-IV0, so that a broker
            before 4.0 answers requests with an instance id with UNSUPPORTED_VERSION (J-01, S-01,
            H-01, O-01). 4.0 removed the gate.
        offset_fetch_v1_errors_lost: OffsetFetch version 1 loses coordinator errors, since they
            carry no partitions to put them on (O-19). Fixed in 4.x.
        describe_unknown_as_dead: DescribeGroups version 6 says `Dead` without an error for an
            unknown group, as versions up to 5 do (D-02). 4.0 answers GROUP_ID_NOT_FOUND.
        offsets_deleted_by_partition_name: deleting a topic takes offsets with it by name alone,
            whatever topic id they were committed for (O-23). 4.4 compares the id.

    """

    static_membership_gate: bool = False
    offset_fetch_v1_errors_lost: bool = False
    describe_unknown_as_dead: bool = False
    offsets_deleted_by_partition_name: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorConfig:
    """Settings of one broker. Fields are Kafka's names with underscores; times milliseconds.

    ``from_kafka`` reads and checks a mapping of Kafka's names; the constructor takes values as
    they are, for tests that know what they do.
    """

    group_min_session_timeout_ms: int = _field("group.min.session.timeout.ms")
    group_max_session_timeout_ms: int = _field("group.max.session.timeout.ms")
    group_initial_rebalance_delay_ms: int = _field("group.initial.rebalance.delay.ms")
    group_max_size: int = _field("group.max.size")
    offsets_retention_minutes: int = _field("offsets.retention.minutes")
    offsets_retention_check_interval_ms: int = _field("offsets.retention.check.interval.ms")
    offset_metadata_max_bytes: int = _field("offset.metadata.max.bytes")
    offsets_commit_timeout_ms: int = _field("offsets.commit.timeout.ms")
    offsets_topic_num_partitions: int = _field("offsets.topic.num.partitions")
    offsets_topic_replication_factor: int = _field("offsets.topic.replication.factor")
    offsets_topic_segment_bytes: int = _field("offsets.topic.segment.bytes")
    offsets_topic_compression_codec: int = _field("offsets.topic.compression.codec")
    offsets_load_buffer_size: int = _field("offsets.load.buffer.size")
    group_coordinator_append_linger_ms: int = _field("group.coordinator.append.linger.ms")
    group_coordinator_threads: int = _field("group.coordinator.threads")
    group_coordinator_background_threads: int = _field("group.coordinator.background.threads")
    group_coordinator_cached_buffer_max_bytes: int = _field(
        "group.coordinator.cached.buffer.max.bytes"
    )
    group_coordinator_rebalance_protocols: tuple[str, ...] = _field(
        "group.coordinator.rebalance.protocols"
    )
    group_consumer_migration_policy: str = _field("group.consumer.migration.policy")
    switches: Switches = field(default_factory=Switches)

    @property
    def offsets_retention_ms(self) -> int:
        """How long an offset is kept (2.2)."""
        return self.offsets_retention_minutes * 60_000

    @classmethod
    def from_kafka(cls, options: Mapping[str, object], *, switches: Switches | None = None) -> Self:
        """Read Kafka's own names; whole numbers may be given as text, as in a properties file.

        Raises:
            ConfigError: an unknown name, a wrong type, or a value out of range.

        """
        values: dict[str, Any] = {}
        for name, value in options.items():
            option = OPTIONS.get(name)
            if option is None:
                near = difflib.get_close_matches(name, OPTIONS, n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise ConfigError(name, value, f"no such option{hint}")
            values[name.replace(".", "_")] = option.parse(name, value)
        return cls(switches=switches or Switches(), **values)

    def to_kafka(self) -> dict[str, object]:
        """All options under Kafka's names."""
        return {name: getattr(self, name.replace(".", "_")) for name in OPTIONS}

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)
