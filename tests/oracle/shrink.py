"""Makes a diverging script as short and as plain as it can be and still diverge the same way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.oracle.script import Script

__all__ = ["shrink"]


def shrink(script: Script, diverges: Callable[[Script], bool], budget: int = 600) -> Script:
    """The shortest script found for which ``diverges`` holds, in at most ``budget`` runs.

    First operations are taken out in ever smaller pieces (delta debugging), then configuration and
    fields are replaced by plainer values, until nothing more can be done.
    """
    tries = _Tries(diverges, budget)
    while True:
        before = script
        script = _fewer_operations(script, tries)
        script = _plainer(script, tries)
        if script == before or not tries.left:
            return script


class _Tries:
    def __init__(self, diverges: Callable[[Script], bool], budget: int) -> None:
        self._diverges = diverges
        self.left = budget

    def __call__(self, script: Script) -> bool:
        if not self.left:
            return False
        self.left -= 1
        return self._diverges(script)


def _fewer_operations(script: Script, diverges: _Tries) -> Script:
    piece = max(1, len(script.operations) // 2)
    while True:
        start = 0
        while start < len(script.operations):
            fewer = script.operations[:start] + script.operations[start + piece :]
            candidate = script.with_operations(fewer)
            if diverges(candidate):
                script = candidate
            else:
                start += piece
        if piece == 1:
            return script
        piece //= 2


def _plainer(script: Script, diverges: _Tries) -> Script:
    for name in list(script.config):
        config = {key: value for key, value in script.config.items() if key != name}
        candidate = replace(script, config=config)
        if diverges(candidate):
            script = candidate
    for number in range(len(script.operations)):
        script = _plainer_fields(script, number, diverges)
        script = _shorter_lists(script, number, diverges)
    return script


def _changed(script: Script, number: int, name: str, value: Any) -> Script:
    operations = list(script.operations)
    operations[number] = {**operations[number], name: value}
    return script.with_operations(operations)


def _plainer_fields(script: Script, number: int, diverges: _Tries) -> Script:
    for name, values in _PLAIN.items():
        for value in values:
            if script.operations[number].get(name, value) == value:
                break  # absent, or as plain as it can be
            candidate = _changed(script, number, name, value)
            if diverges(candidate):
                script = candidate
                break
    return script


def _shorter_lists(script: Script, number: int, diverges: _Tries) -> Script:
    for name in ("protocols", "assignments", "topics", "members", "groups"):
        items = script.operations[number].get(name)
        for index in reversed(range(len(items) if isinstance(items, list) else 0)):
            rest = script.operations[number][name]
            candidate = _changed(script, number, name, rest[:index] + rest[index + 1 :])
            if diverges(candidate):
                script = candidate
    return script


_PLAIN: dict[str, tuple[Any, ...]] = {
    "reason": (None,),
    "instance": (None,),
    "session": (10000,),
    "rebalance": (10000,),
    "type": ("consumer",),
    "client_id": ("app",),
    "group": ("g0",),
    "retention": (-1,),
    "stable": (False,),
    "ms": (0, 1, 3000),
    "states": ([],),
    "types": ([],),
}
"""Field → plain values, the plainest first."""
