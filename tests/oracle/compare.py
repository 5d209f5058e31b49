"""Compares what the two coordinators did after each operation; nothing is left out.

Both sides give the same JSON shape, the driver's (README.md), with a snapshot in every result. Also
what Kafka takes from hash tables is compared in order: our coordinator keeps the order of Java's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["Difference", "first_difference"]

Result = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Where the two sides first part: the number of the operation, the field, both values."""

    operation: int
    path: str
    kafka: Any
    ours: Any

    @property
    def kind(self) -> str:
        """The path without numbers: what kind of difference it is, for shrinking."""
        return "/".join(part for part in self.path.split("/") if not part.isdigit())

    def __str__(self) -> str:
        return (
            f"operation {self.operation}: {self.path}\n"
            f"  Kafka: {json.dumps(self.kafka)}\n"
            f"  ours:  {json.dumps(self.ours)}"
        )


def first_difference(kafka: Result, ours: Result, operation: int) -> Difference | None:
    """The first difference between the results of one operation, None when they agree."""
    if kafka == ours:
        return None
    for path, left, right in differences(kafka, ours):
        return Difference(operation=operation, path=path, kafka=left, ours=right)
    return None


_MISSING = "(absent)"


def differences(kafka: Any, ours: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every leaf where two JSON values differ: path, Kafka's value, ours."""
    if isinstance(kafka, dict) and isinstance(ours, dict):
        for key in [*kafka, *(key for key in ours if key not in kafka)]:
            left, right = kafka.get(key, _MISSING), ours.get(key, _MISSING)
            yield from differences(left, right, f"{path}/{key}" if path else key)
    elif isinstance(kafka, list) and isinstance(ours, list) and len(kafka) == len(ours):
        for number, (left, right) in enumerate(zip(kafka, ours, strict=True)):
            yield from differences(left, right, f"{path}/{number}")
    elif kafka != ours or type(kafka) is not type(ours):
        yield path, kafka, ours
