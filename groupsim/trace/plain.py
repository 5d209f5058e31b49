"""Messages and notes as plain data: maps of the fields that differ from their default."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["plain", "plain_default"]

_PLAIN = frozenset((str, bytes, bool, int, float, type(None)))


_Reader = Callable[[Any], dict[str, Any]]
_READERS: dict[type[Any], _Reader] = {}


def _reader_of(cls: type[Any]) -> _Reader:
    """Return a function that makes the map of a dataclass's non-default fields.

    It is written out field by field, as ``dataclasses`` itself does it: every message and record of a
    run passes here, and a loop with getattr costs twice as much.
    """
    lines = ["def read(value):", "    made = {}"]
    scope: dict[str, Any] = {}
    for number, field in enumerate(dataclasses.fields(cls)):
        take = f"made[{field.name!r}] = found"
        lines.append(f"    found = value.{field.name}")
        if field.default is dataclasses.MISSING:
            lines.append(f"    {take}")
        else:
            scope[f"default_{number}"] = field.default
            lines.append(f"    if found is not default_{number} and found != default_{number}:")
            lines.append(f"        {take}")
    lines.append("    return made")
    exec("\n".join(lines), scope)  # noqa: S102 - the names come from a class, not from input
    reader: _Reader = scope["read"]
    return reader


def plain(value: Any) -> Any:
    """Return ``value`` as it will be read back from a trace.

    Dataclasses become maps of their non-default fields, lists become tuples, enums their numbers
    or strings.

    Raises:
        TypeError: something in it has no plain form.

    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is tuple or kind is list:
        return tuple([item if type(item) in _PLAIN else plain(item) for item in value])
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return tuple(plain(item) for item in value)
    if isinstance(value, int):  # IntEnum
        return int(value)
    if isinstance(value, str):  # StrEnum
        return str(value)
    return plain(plain_default(value))


def plain_default(value: Any) -> Any:
    """Return a packer's next try for ``value``: one level less of our own types.

    Raises:
        TypeError: the type has no plain form (sets have no order and are refused, too).

    """
    kind = type(value)
    reader = _READERS.get(kind)
    if reader is None and dataclasses.is_dataclass(kind):
        reader = _READERS[kind] = _reader_of(kind)
    if reader is not None:
        return reader(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a trace cannot hold {type(value).__qualname__}: {value!r}")
