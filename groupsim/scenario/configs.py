"""Kafka's configuration in scenarios: durations to milliseconds, placeholders, and what is refused.

Names, types and ranges are judged by those who use them (the coordinator, the client kind); here
their refusals become faults, all of one mapping's at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from groupsim.scenario._base import ConfigValue
from groupsim.scenario.durations import duration

__all__ = ["Refusal", "filled", "kafka_values", "refusals"]

_MS: Final = ".ms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An option that was refused. The name is empty if it is not one option's fault."""

    name: str
    value: Any
    allowed: str
    near: tuple[str, ...] = ()


def kafka_values(config: Mapping[str, ConfigValue]) -> dict[str, ConfigValue]:
    """Return the configuration as Kafka takes it: durations of ``*.ms`` names as milliseconds."""
    return {name: _milliseconds(name, value) for name, value in config.items()}


def _milliseconds(name: str, value: ConfigValue) -> ConfigValue:
    if not (name.endswith(_MS) and isinstance(value, str)):
        return value
    try:
        us = duration(value)
    except ValueError:
        return value  # refused, or taken as a number, by whom the option belongs to
    return value if us % 1000 else us // 1000


def filled(config: Mapping[str, ConfigValue], name: str, number: int) -> dict[str, ConfigValue]:
    """Return the configuration of one copy: ``{n}`` is its number, ``{name}`` its name."""
    return {key: _filled(value, name, number) for key, value in config.items()}


def _filled(value: Any, name: str, number: int) -> Any:
    if isinstance(value, str):
        return value.replace("{n}", str(number)).replace("{name}", name)
    if isinstance(value, tuple):
        return tuple(_filled(item, name, number) for item in value)
    return value


def refusals(
    config: Mapping[str, ConfigValue], check: Callable[[Mapping[str, ConfigValue]], object]
) -> list[Refusal]:
    """Return everything that ``check`` refuses in ``config``.

    ``check`` raises one error at a time, a ``ValueError`` with ``name``, ``value`` and ``allowed``; what it
    refused is taken out and the rest is tried again.
    """
    left = dict(config)
    found: list[Refusal] = []
    for _ in range(len(config) + 1):
        try:
            check(left)
        except ValueError as error:
            refused = _refusal(error)
            found.append(refused)
            if left.pop(refused.name, None) is None:
                break
        else:
            break
    return found


def _refusal(error: ValueError) -> Refusal:
    given: Any = error
    if not hasattr(error, "name"):
        return Refusal(name="", value=None, allowed=str(error))
    return Refusal(
        name=given.name,
        value=given.value,
        allowed=given.allowed,
        near=tuple(getattr(error, "near", ())),
    )
