"""Where groupsim differs from Kafka on purpose: ``decisions.toml`` beside this file."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.oracle.compare import Difference

__all__ = ["Decision", "explained", "read_decisions"]

FILE = Path(__file__).with_name("decisions.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One decision: the rules it touches, why, and the differences it explains (a pattern of
    ``Difference.kind``; empty: none that a script can meet).
    """

    rules: tuple[str, ...]
    reason: str
    shows_as: str = ""


def read_decisions(path: Path = FILE) -> tuple[Decision, ...]:
    """All decisions."""
    entries = tomllib.loads(path.read_text("utf-8")).get("decision", [])
    return tuple(
        Decision(
            rules=tuple(entry["rules"]),
            reason=entry["reason"],
            shows_as=entry.get("shows_as", ""),
        )
        for entry in entries
    )


def explained(difference: Difference, decisions: tuple[Decision, ...]) -> Decision | None:
    """The decision that explains a difference."""
    for decision in decisions:
        if decision.shows_as and re.fullmatch(decision.shows_as, difference.kind):
            return decision
    return None
