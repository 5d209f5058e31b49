"""What can be wrong with a scenario: values that say where, what was found and what is allowed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Fault", "Path", "ScenarioError", "near_match", "path_text", "shown"]

Path = tuple[str | int, ...]
"""A place in a scenario: keys and list indices, outermost first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault of a scenario.

    ``source`` is the file's name, ``line`` and ``column`` count from 1 (0: not from a file),
    ``path`` is the field, ``found`` and ``allowed`` are for people and may be empty, ``near`` is what
    was probably meant.
    """

    source: str
    line: int
    column: int
    path: Path
    problem: str
    found: str = ""
    allowed: str = ""
    near: str = ""

    def __str__(self) -> str:
        place = f"{self.source}:{self.line}:{self.column}" if self.line else self.source
        field = f" {path_text(self.path)}:" if self.path else ""
        text = f"{place}:{field} {self.problem}"
        if self.found:
            text += f"; found {self.found}"
        if self.near:
            text += f"; did you mean {self.near}?"
        if self.allowed:
            text += f"; allowed: {self.allowed}"
        return text


class ScenarioError(ValueError):
    """A scenario that cannot be used. ``faults`` are all that were found, in the file's order."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))


def path_text(path: Path) -> str:
    """Return a path as people write it: ``groups.checkout.members[0].config[session.timeout.ms]``."""
    text = ""
    for part in path:
        if isinstance(part, int) or "." in part:
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def near_match(name: str, known: Iterable[str]) -> str:
    """Return the one of ``known`` that ``name`` probably stands for, or an empty string."""
    folded = {_folded(candidate): candidate for candidate in known}
    exact = folded.get(_folded(name))
    if exact is not None:
        return exact
    close = difflib.get_close_matches(_folded(name), list(folded), n=1, cutoff=0.6)
    return folded[close[0]] if close else ""


def _folded(name: str) -> str:
    return name.lower().replace("_", ".").replace("-", ".")


def shown(value: object) -> str:
    """Return a found value for a message: short, and with its type where that is the point."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
