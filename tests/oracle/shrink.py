"""Makes a diverging script as short and as plain as it can be and still diverge the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from tests.oracle.script import Operation, Script

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
        for changed in _plainer_operations(script.operations[number]):
            operations = list(script.operations)
            operations[number] = changed(operations[number])
            if operations[number] == script.operations[number]:
                continue
            candidate = script.with_operations(operations)
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


def _plainer_operations(operation: Operation) -> Iterator[Callable[[Operation], Operation]]:
    for name, values in _PLAIN.items():
        if name in operation:
            for value in values:
                yield lambda op, name=name, value=value: op | {name: value}  # type: ignore[misc]
    for name in ("protocols", "assignments", "topics", "members", "groups", "partitions"):
        for index in range(len(operation.get(name) or [])):
            yield (
                lambda op, name=name, index=index: (  # type: ignore[misc]
                    op | {name: op[name][:index] + op[name][index + 1 :]}
                )
            )
