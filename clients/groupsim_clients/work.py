"""What an application does, as data (``ClientSpec.work``), read and checked.

All times are milliseconds: an integer, ``{"uniform": [lo_ms, hi_ms]}`` or
``{"lognormal": {"median_ms": m, "p99_ms": p}}``. Keys that are not given keep Kafka's or an ordinary
application's habit: always inside ``poll()``, everything read at once, committing as configured.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any, Final

from groupsim.protocol.messages import message
from groupsim_clients.errors import ConfigError

__all__ = ["CALLBACKS", "Poison", "Raise", "Spread", "Work"]

CALLBACKS: Final = ("on_assigned", "on_revoked", "on_lost")
_P99_HALVES: Final = 233  # the 99th percentile lies 2.33 standard deviations above the median

Draw = Callable[[str, int], int]


@message
class Spread:
    """A duration that may differ each time: ``kind`` is fixed (``low_ms``), uniform (from ``low_ms``
    to ``high_ms``) or lognormal (median ``low_ms``, 99th percentile ``high_ms``).
    """

    kind: str = "fixed"
    low_ms: int = 0
    high_ms: int = 0

    @property
    def is_zero(self) -> bool:
        """Whether it never takes time."""
        return self.low_ms == 0 and self.high_ms == 0

    def draw(self, draw: Draw, stream: str) -> int:
        """One duration in ms, from the client's random stream."""
        if self.kind == "fixed":
            return self.low_ms
        if self.kind == "uniform":
            return self.low_ms + draw(stream, self.high_ms - self.low_ms + 1)
        return _lognormal_ms(self.low_ms, self.high_ms, draw, stream)


def _lognormal_ms(median_ms: int, p99_ms: int, draw: Draw, stream: str) -> int:
    """A log-normal duration in integer arithmetic.

    A standard normal is made from twelve uniform draws (in thousandths); exp(sigma · z) is
    ratio^(z / 2.33), with the power taken by halving: no floating point, the same everywhere.
    """
    z_thousandths = sum(draw(stream, 1_001) for _ in range(12)) - 6_000
    scale = 1 << 20
    ratio = max(scale, p99_ms * scale // max(1, median_ms))
    exponent = (z_thousandths * scale * 100) // (_P99_HALVES * 1_000)  # z / 2.33, scaled
    factor = _power(ratio, abs(exponent), scale)
    if exponent >= 0:
        return median_ms * factor // scale
    return median_ms * scale // factor


def _power(base: int, exponent: int, scale: int) -> int:
    """``base ** exponent``, both and the result in units of ``1 / scale``."""
    whole, fraction = divmod(exponent, scale)
    result = scale
    for _ in range(whole):
        result = result * base // scale
    root = base
    bit = scale >> 1
    while bit and fraction:
        root = _square_root(root * scale)
        if fraction & bit:
            result = result * root // scale
            fraction ^= bit
        bit >>= 1
    return result


def _square_root(value: int) -> int:
    """The whole part of the square root."""
    root = 1 << ((value.bit_length() + 1) // 2)
    while True:
        better = (root + value // root) // 2
        if better >= root:
            return root
        root = better


@message
class Poison:
    """Records of one partition that take long: every batch that contains ``offset`` (every batch of
    the partition when None) costs ``processing`` on top.
    """

    topic: str
    partition: int
    offset: int | None = None
    processing: Spread


@message
class Raise:
    """An exception out of the application's code: ``exception`` on the ``nth`` time (from 1), on
    every time when 0.
    """

    exception: str
    nth: int = 0


@message
class Work:
    """The application of one client.

    Attributes:
        poll_timeout_ms: argument of ``poll``.
        poll_interval: pause after a poll that returned nothing.
        processing: time spent on what one poll returned.
        max_records: at most so many records for each poll (None: ``max.poll.records``).
        poison: partitions or records that take longer.
        on_assigned, on_revoked, on_lost: time spent in the callbacks. An application that says
            nothing of on_lost has no such callback; Java then calls its on_revoked (CC-23).
        raises: exceptions by place: a callback's name or "processing".
        commit: auto (as ``enable.auto.commit`` says), sync or async (after each batch), none.
        on_error: what follows an exception out of a call: close (the ordinary ``finally``),
            continue (poll again after ``error_pause_ms``) or crash (the process ends at once).
        close_timeout_ms: argument of ``close``.

    """

    poll_timeout_ms: int = 1_000
    poll_interval: Spread = Spread()
    processing: Spread = Spread()
    max_records: int | None = None
    poison: tuple[Poison, ...] = ()
    on_assigned: Spread = Spread()
    on_revoked: Spread = Spread()
    on_lost: Spread | None = None
    raises: tuple[tuple[str, Raise], ...] = ()
    commit: str = "auto"
    on_error: str = "close"
    error_pause_ms: int = 1_000
    close_timeout_ms: int = 30_000

    @property
    def consumes_at_once(self) -> bool:
        """Whether records need no attention at all: no time, no commits of the application's own."""
        return (
            self.processing.is_zero
            and not self.poison
            and self.commit in {"auto", "none"}
            and all(place != "processing" for place, _ in self.raises)
        )

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Work:
        """Read the mapping of a scenario.

        Keys: poll_timeout_ms, poll_interval_ms, processing_ms, max_records, poison (a list of
        mappings with topic, partition, offset, processing_ms), on_assigned_ms, on_revoked_ms,
        on_lost_ms, raises (place → exception name, or a mapping with exception and nth), commit,
        on_error, error_pause_ms, close_timeout_ms.

        Raises:
            ConfigError: an unknown key or a wrong value; ``name`` is the key's path from ``work``.

        """
        for key, value in plain.items():
            if key not in _KEYS:
                near = difflib.get_close_matches(str(key), _KEYS, n=2, cutoff=0.6)
                raise ConfigError(f"work.{key}", value, f"one of {', '.join(_KEYS)}", near)
        values: dict[str, Any] = {}
        for key, (field, read) in _KEYS.items():
            if plain.get(key) is not None:
                values[field] = read(f"work.{key}", plain[key])
        return cls(**values)


def _duration(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ConfigError(name, value, "milliseconds, a whole number not below 0")
    return value


def _count(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigError(name, value, "a whole number from 1")
    return value


def _spread(name: str, value: Any) -> Spread:
    if isinstance(value, Mapping) and len(value) == 1:
        kind, what = next(iter(value.items()))
        if kind == "uniform" and isinstance(what, list | tuple) and len(what) == 2:
            low, high = (_duration(f"{name}.uniform", part) for part in what)
            if low <= high:
                return Spread(kind="uniform", low_ms=low, high_ms=high)
        if (
            kind == "lognormal"
            and isinstance(what, Mapping)
            and set(what) == {"median_ms", "p99_ms"}
        ):
            median = _count(f"{name}.lognormal.median_ms", what["median_ms"])
            p99 = _count(f"{name}.lognormal.p99_ms", what["p99_ms"])
            if median <= p99:
                return Spread(kind="lognormal", low_ms=median, high_ms=p99)
    if isinstance(value, Mapping):
        raise ConfigError(
            name,
            value,
            'milliseconds, {"uniform": [low_ms, high_ms]} or '
            '{"lognormal": {"median_ms": m, "p99_ms": p}} in ascending order',
        )
    return Spread(low_ms=_duration(name, value))


def _poison(name: str, value: Any) -> tuple[Poison, ...]:
    items = [value] if isinstance(value, Mapping) else value
    if not isinstance(items, list | tuple):
        raise ConfigError(name, value, "a list of mappings")
    return tuple(_one_poison(f"{name}[{index}]", item) for index, item in enumerate(items))


def _one_poison(name: str, item: Any) -> Poison:
    if not isinstance(item, Mapping) or not {"topic", "partition", "processing_ms"} <= set(
        item
    ) <= {
        "topic",
        "partition",
        "offset",
        "processing_ms",
    }:
        raise ConfigError(
            name, item, "a mapping with topic, partition, processing_ms and offset or not"
        )
    if not isinstance(item["topic"], str):
        raise ConfigError(f"{name}.topic", item["topic"], "the name of a topic")
    offset = item.get("offset")
    return Poison(
        topic=item["topic"],
        partition=_duration(f"{name}.partition", item["partition"]),
        offset=None if offset is None else _duration(f"{name}.offset", offset),
        processing=_spread(f"{name}.processing_ms", item["processing_ms"]),
    )


def _raises(name: str, value: Any) -> tuple[tuple[str, Raise], ...]:
    places = (*CALLBACKS, "processing")
    if not isinstance(value, Mapping):
        raise ConfigError(name, value, f"a mapping from {', '.join(places)} to an exception")
    found = []
    for place, what in value.items():
        if place not in places:
            raise ConfigError(f"{name}.{place}", what, f"one of {', '.join(places)}")
        if isinstance(what, str) and what:
            found.append((place, Raise(exception=what)))
        elif isinstance(what, Mapping) and isinstance(what.get("exception"), str):
            nth = _duration(f"{name}.{place}.nth", what.get("nth", 0))
            found.append((place, Raise(exception=what["exception"], nth=nth)))
        else:
            raise ConfigError(
                f"{name}.{place}", what, "an exception's name, or a mapping with exception and nth"
            )
    return tuple(found)


def _one_of(*allowed: str) -> Callable[[str, Any], str]:
    def read(name: str, value: Any) -> str:
        if value not in allowed:
            raise ConfigError(name, value, f"one of {', '.join(allowed)}")
        return str(value)

    return read


_KEYS: Final[Mapping[str, tuple[str, Callable[[str, Any], Any]]]] = {
    "poll_timeout_ms": ("poll_timeout_ms", _duration),
    "poll_interval_ms": ("poll_interval", _spread),
    "processing_ms": ("processing", _spread),
    "max_records": ("max_records", _count),
    "poison": ("poison", _poison),
    "on_assigned_ms": ("on_assigned", _spread),
    "on_revoked_ms": ("on_revoked", _spread),
    "on_lost_ms": ("on_lost", _spread),
    "raises": ("raises", _raises),
    "commit": ("commit", _one_of("auto", "sync", "async", "none")),
    "on_error": ("on_error", _one_of("close", "continue", "crash")),
    "error_pause_ms": ("error_pause_ms", _duration),
    "close_timeout_ms": ("close_timeout_ms", _duration),
}
