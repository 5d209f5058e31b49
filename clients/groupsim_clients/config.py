"""The Java consumer's options, as far as they touch the group (rule book, section 5).

``ConsumerConfig.from_kafka`` takes Kafka's own names, converts and checks them as Java does and
refuses names that it does not know, with a near match. Options of Kafka's consumer that have no
effect here (buffers, security, deserialisation) are accepted and ignored.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any, Final

from groupsim.protocol.messages import message
from groupsim_clients.errors import ConfigError

__all__ = ["KNOWN_OPTIONS", "ConsumerConfig"]

_INT_MAX: Final = 2**31 - 1
_LONG_MAX: Final = 2**63 - 1
_INSTANCE_ID: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}\Z")
_ASSIGNOR_CLASSES: Final = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "sticky",
    "CooperativeStickyAssignor": "cooperative-sticky",
}
DEFAULT_ASSIGNORS: Final = ("range", "cooperative-sticky")

_NUMBERS: Final[Mapping[str, tuple[int, int | None, int]]] = {
    # name: default, least, greatest (Java's int or long)
    "session.timeout.ms": (45_000, None, _INT_MAX),
    "heartbeat.interval.ms": (3_000, None, _INT_MAX),
    "max.poll.interval.ms": (300_000, 1, _INT_MAX),
    "auto.commit.interval.ms": (5_000, 0, _INT_MAX),
    "retry.backoff.ms": (100, 0, _LONG_MAX),
    "retry.backoff.max.ms": (1_000, 0, _LONG_MAX),
    "reconnect.backoff.ms": (50, 0, _LONG_MAX),
    "reconnect.backoff.max.ms": (1_000, 0, _LONG_MAX),
    "request.timeout.ms": (30_000, 0, _INT_MAX),
    "default.api.timeout.ms": (60_000, 0, _INT_MAX),
    "metadata.max.age.ms": (300_000, 0, _LONG_MAX),
    "max.poll.records": (500, 1, _INT_MAX),
    "fetch.max.wait.ms": (500, 0, _INT_MAX),
}
_FLAGS: Final[Mapping[str, bool]] = {
    "enable.auto.commit": True,
    "exclude.internal.topics": True,
    "allow.auto.create.topics": True,
    "internal.leave.group.on.close": True,
    "internal.throw.on.fetch.stable.offset.unsupported": False,
}
_TEXTS: Final[Mapping[str, str | None]] = {
    "group.id": None,
    "group.instance.id": None,
    "client.id": "",
    "client.rack": "",
    "group.protocol": "classic",
    "group.remote.assignor": None,
    "auto.offset.reset": "latest",
}
_NO_EFFECT: Final = frozenset(
    [
        "bootstrap.servers",
        "client.dns.lookup",
        "key.deserializer",
        "value.deserializer",
        "fetch.min.bytes",
        "fetch.max.bytes",
        "max.partition.fetch.bytes",
        "isolation.level",
        "check.crcs",
        "interceptor.classes",
        "connections.max.idle.ms",
        "socket.connection.setup.timeout.ms",
        "receive.buffer.bytes",
        "socket.connection.setup.timeout.max.ms",
        "send.buffer.bytes",
        "enable.metrics.push",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.sample.window.ms",
        "metrics.recording.level",
        "security.protocol",
        "metadata.recovery.strategy",
        "metadata.recovery.rebootstrap.trigger.ms",
        "security.providers",
    ]
)
KNOWN_OPTIONS: Final = frozenset(
    (*_NUMBERS, *_FLAGS, *_TEXTS, "partition.assignment.strategy", *_NO_EFFECT)
)
"""Every option name that is understood; those without an effect here included."""


@message
class ConsumerConfig:
    """Checked options. Times are milliseconds; ``assignors`` are names in order of preference.

    ``warnings`` are sentences that Java would log when it reads the options (K-06).
    """

    group_id: str | None
    group_instance_id: str | None
    client_id: str
    client_rack: str | None
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    assignors: tuple[str, ...]
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    reconnect_backoff_ms: int
    reconnect_backoff_max_ms: int
    request_timeout_ms: int
    default_api_timeout_ms: int
    metadata_max_age_ms: int
    max_poll_records: int
    fetch_max_wait_ms: int
    exclude_internal_topics: bool
    allow_auto_create_topics: bool
    leave_group_on_close: bool
    auto_offset_reset: str
    warnings: tuple[str, ...]

    @classmethod
    def from_kafka(
        cls,
        options: Mapping[str, Any],
        *,
        group_id: str | None = None,
        defaults: Mapping[str, Any] | None = None,
    ) -> ConsumerConfig:
        """Options from Kafka's names; ``defaults`` replace Kafka's own, ``group_id`` is used when
        the options do not name one.

        Raises:
            ConfigError: an unknown option, a value of the wrong kind or out of range, or a
                combination that Java refuses (K-01, K-03, K-05).

        """
        _refuse_unknown(options)
        given = {**(defaults or {}), **options}
        given.setdefault("group.id", group_id)
        numbers = {name: _number(name, given) for name in _NUMBERS}
        flags = {name: _flag(name, given) for name in _FLAGS}
        texts = {name: _text(name, given) for name in _TEXTS}
        _check_texts(texts)
        group = texts["group.id"]
        auto_commit = flags["enable.auto.commit"]
        if group is None:  # K-03
            if auto_commit and "enable.auto.commit" in options:
                raise ConfigError(
                    "enable.auto.commit", True, "cannot be true without a group id (K-03)"
                )
            auto_commit = False
        elif numbers["heartbeat.interval.ms"] >= numbers["session.timeout.ms"]:  # K-01, CH-01
            raise ConfigError(
                "heartbeat.interval.ms",
                numbers["heartbeat.interval.ms"],
                f"must be lower than session.timeout.ms ({numbers['session.timeout.ms']}) (K-01)",
            )
        reconnect = numbers["reconnect.backoff.ms"]
        if "reconnect.backoff.ms" in options and "reconnect.backoff.max.ms" not in options:
            numbers["reconnect.backoff.max.ms"] = reconnect
        instance = texts["group.instance.id"]
        return cls(
            group_id=group,
            group_instance_id=instance,
            client_id=texts["client.id"] or f"consumer-{group}-{instance or 1}",
            client_rack=texts["client.rack"] or None,
            session_timeout_ms=numbers["session.timeout.ms"],
            heartbeat_interval_ms=numbers["heartbeat.interval.ms"],
            max_poll_interval_ms=numbers["max.poll.interval.ms"],
            assignors=_assignors(given.get("partition.assignment.strategy", DEFAULT_ASSIGNORS)),
            enable_auto_commit=auto_commit,
            auto_commit_interval_ms=numbers["auto.commit.interval.ms"],
            retry_backoff_ms=numbers["retry.backoff.ms"],
            retry_backoff_max_ms=numbers["retry.backoff.max.ms"],
            reconnect_backoff_ms=reconnect,
            reconnect_backoff_max_ms=numbers["reconnect.backoff.max.ms"],
            request_timeout_ms=numbers["request.timeout.ms"],
            default_api_timeout_ms=numbers["default.api.timeout.ms"],
            metadata_max_age_ms=numbers["metadata.max.age.ms"],
            max_poll_records=numbers["max.poll.records"],
            fetch_max_wait_ms=numbers["fetch.max.wait.ms"],
            exclude_internal_topics=flags["exclude.internal.topics"],
            allow_auto_create_topics=flags["allow.auto.create.topics"],
            leave_group_on_close=flags["internal.leave.group.on.close"],
            auto_offset_reset=texts["auto.offset.reset"] or "latest",
            warnings=_warnings(numbers),
        )


def _refuse_unknown(options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        if name not in KNOWN_OPTIONS:
            near = difflib.get_close_matches(str(name), sorted(KNOWN_OPTIONS), n=2, cutoff=0.7)
            raise ConfigError(str(name), value, "no option of the consumer has this name", near)


def _number(name: str, given: Mapping[str, Any]) -> int:
    default, least, greatest = _NUMBERS[name]
    value = given.get(name, default)
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,19}", value.strip()):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigError(name, value, "a whole number")
    if name in {"session.timeout.ms", "heartbeat.interval.ms"} and value < 0:
        raise ConfigError(name, value, "a timer cannot run for a negative time")
    if (least is not None and value < least) or value > greatest:
        raise ConfigError(name, value, f"a whole number from {least or 0} to {greatest}")
    return value


def _flag(name: str, given: Mapping[str, Any]) -> bool:
    value = given.get(name, _FLAGS[name])
    if isinstance(value, str) and value.strip().lower() in {"true", "false"}:
        value = value.strip().lower() == "true"
    if not isinstance(value, bool):
        raise ConfigError(name, value, "true or false")
    return value


def _text(name: str, given: Mapping[str, Any]) -> str | None:
    value = given.get(name, _TEXTS[name])
    if value is not None and not isinstance(value, str):
        raise ConfigError(name, value, "text")
    return value


def _check_texts(texts: Mapping[str, str | None]) -> None:
    if texts["group.id"] is not None and not texts["group.id"].strip():
        raise ConfigError("group.id", texts["group.id"], "null or a text that is not empty")
    instance = texts["group.instance.id"]
    if instance is not None and (instance in {".", ".."} or not _INSTANCE_ID.match(instance)):
        raise ConfigError(
            "group.instance.id", instance, "1 to 249 of a-z A-Z 0-9 . _ - and not . or .."
        )
    protocol = (texts["group.protocol"] or "").lower()
    if protocol not in {"classic", "consumer"}:
        raise ConfigError("group.protocol", texts["group.protocol"], "classic or consumer")
    if protocol == "consumer":
        raise ConfigError("group.protocol", "consumer", "this client speaks the classic protocol")
    if (texts["group.remote.assignor"] or "").strip():  # K-05
        raise ConfigError(
            "group.remote.assignor",
            texts["group.remote.assignor"],
            "must stay unset with group.protocol=classic (K-05)",
        )
    reset = texts["auto.offset.reset"]
    if reset not in {"latest", "earliest", "none"}:
        raise ConfigError("auto.offset.reset", reset, "latest, earliest or none")


def _assignors(value: Any) -> tuple[str, ...]:
    name = "partition.assignment.strategy"
    items = [part for part in value.split(",") if part.strip()] if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
        raise ConfigError(name, value, "a list of assignor names")
    names = tuple(
        _ASSIGNOR_CLASSES.get(item.strip().rsplit(".", 1)[-1], item.strip()) for item in items
    )
    if len(set(names)) != len(names):
        raise ConfigError(name, value, "assignors with distinct names")
    return names


def _warnings(numbers: Mapping[str, int]) -> tuple[str, ...]:
    initial, most = numbers["retry.backoff.ms"], numbers["retry.backoff.max.ms"]
    if initial > most:  # K-06
        return (
            f"Configuration 'retry.backoff.ms' with value '{initial}' is greater than configuration "
            f"'retry.backoff.max.ms' with value '{most}'. A static backoff with value '{most}' will "
            "be applied.",
        )
    return ()
