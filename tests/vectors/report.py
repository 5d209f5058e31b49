"""Counts cases that differ, by kind, and shows the first of them."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from tests.vectors.cases import evaluate, expected, inputs_of, kind_of

__all__ = ["Comparison"]


class Comparison:
    """Cases compared so far. ``first`` is the first that differs: the case and what we made of it."""

    def __init__(self) -> None:
        self.compared: Counter[str] = Counter()
        self.different: Counter[str] = Counter()
        self.rounds = 0
        self.failures: Counter[str] = Counter()
        self.first: tuple[dict[str, Any], list[dict[str, Any]]] | None = None

    @property
    def cases(self) -> int:
        """Number of cases compared."""
        return self.compared.total()

    @property
    def differing(self) -> int:
        """Number of cases in which anything differs from Java."""
        return self.different.total()

    def add(self, case: dict[str, Any]) -> bool:
        """Compare one case; returns whether it agrees."""
        kind = kind_of(case)
        java = expected(case)
        self.compared[kind] += 1
        self.rounds += len(java)
        self.failures.update(one["result"]["!"] for one in java if "!" in one["result"])
        ours = evaluate(case)
        if ours == java:
            return True
        self.different[kind] += 1
        if self.first is None:
            self.first = case, ours
        return False

    def text(self) -> str:
        """A line for each kind, a total, and the first difference."""
        lines = [
            f"{kind}: {self.different[kind]} of {self.compared[kind]} differ"
            for kind in sorted(self.compared)
        ]
        lines.append(
            f"{self.differing} of {self.cases} cases differ"
            f" ({self.rounds} rounds; in {self.failures.total()} of them Java fails)"
        )
        lines += [f"  {failure}: {times}" for failure, times in sorted(self.failures.items())]
        if self.first is not None:
            case, ours = self.first
            lines.append(f"first difference: {json.dumps(inputs_of(case))}")
            for number, (theirs, mine) in enumerate(zip(expected(case), ours, strict=True), 1):
                for name in theirs:
                    if theirs[name] != mine[name]:
                        lines.append(f"  round {number} {name}, Java: {json.dumps(theirs[name])}")
                        lines.append(f"  round {number} {name}, ours: {json.dumps(mine[name])}")
        return "\n".join(lines)
