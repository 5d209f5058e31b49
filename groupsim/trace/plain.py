"""Messages and notes as plain data: maps of the fields that differ from their default."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import Any

__all__ = ["plain", "plain_default"]

_PLAIN = (str, bytes, bool, int, float, type(None))
_MISSING: Any = dataclasses.MISSING


@cache
def _fields(cls: type[Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((field.name, field.default) for field in dataclasses.fields(cls))


def plain(value: Any) -> Any:
    """Return ``value`` as it will be read back from a trace.

    Dataclasses become maps of their non-default fields, lists become tuples, enums their numbers
    or strings.

    Raises:
        TypeError: something in it has no plain form.

    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, tuple | list):
        return tuple(plain(item) for item in value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
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
    if isinstance(value, Mapping):
        return dict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            name: item
            for name, default in _fields(type(value))
            if (item := getattr(value, name)) is not default and item != default
        }
    raise TypeError(f"a trace cannot hold {type(value).__qualname__}: {value!r}")
