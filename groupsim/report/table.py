"""The table of a group's rebalances: one row each, as wide as its contents."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from groupsim.metrics import Rebalance
from groupsim.report.words import clock, duration, partition_seconds, printable

__all__ = ["rebalance_rows"]

WHY_WIDTH: Final = 12
"""What the last column needs at least; other columns give way to it on a narrow terminal."""

FIRST_ROWS: Final = 30
LAST_ROWS: Final = 10
"""Of more rebalances than these together, a table shows the first and the last ones."""

_GAP: Final = "  "
_COLUMNS: Final = ("at", "gen", "took", "joins", "assign", "sync", "mem", "moved", "unowned", "why")
_LEAST_NEEDED: Final = ("sync", "assign", "joins", "mem", "moved", "gen", "unowned")
_ENDINGS: Final = {"superseded": ", cut short", "empty": ", left empty", "open": ", not over"}


def rebalance_rows(rebalances: Sequence[Rebalance], width: int) -> Iterator[tuple[str, str]]:
    """Yield the table's lines with their style (rich's words), the heading first."""
    last = max(FIRST_ROWS, len(rebalances) - LAST_ROWS)
    first_rows = [(_cells(row), _style(row)) for row in rebalances[:FIRST_ROWS]]
    last_rows = [(_cells(row), _style(row)) for row in rebalances[last:]]
    first_rows.insert(0, ({name: name for name in _COLUMNS}, "bold"))
    widths = {
        name: max(len(cells[name]) for cells, _ in (*first_rows, *last_rows)) for name in _COLUMNS
    }
    widths["at"] = max(widths["at"], 10)  # in line with the timeline above it
    del widths["why"]
    for dropped in _LEAST_NEEDED:
        if _width(widths) + WHY_WIDTH <= width:
            break
        del widths[dropped]
    for cells, style in first_rows:
        yield from _lines(cells, style, widths, width)
    if last > FIRST_ROWS:
        yield f"{'...':>10}{_GAP}{last - FIRST_ROWS} more rebalances", "dim"
    for cells, style in last_rows:
        yield from _lines(cells, style, widths, width)


def _lines(
    cells: Mapping[str, str], style: str, widths: Mapping[str, int], width: int
) -> Iterator[tuple[str, str]]:
    start = "".join(cells[name].rjust(wide) + _GAP for name, wide in widths.items())
    why = textwrap.wrap(cells["why"], max(1, width - len(start)), break_on_hyphens=False)
    yield (start + "".join(why[:1])).rstrip(), style
    for more in why[1:]:
        yield " " * len(start) + more, style


def _width(widths: Mapping[str, int]) -> int:
    return sum(wide + len(_GAP) for wide in widths.values())


def _cells(row: Rebalance) -> dict[str, str]:
    why = f"{row.who} {row.trigger}".strip() or row.reason
    return {
        "at": clock(row.started_us),
        "gen": str(row.generation),
        "took": duration(row.joins_us + (row.assigning_us or 0) + (row.syncing_us or 0)),
        "joins": duration(row.joins_us),
        "assign": duration(row.assigning_us),
        "sync": duration(row.syncing_us),
        "mem": str(row.members),
        "moved": str(row.moved),
        "unowned": partition_seconds(row.unowned_partition_us),
        "why": printable(why + _ENDINGS.get(row.outcome, "")),
    }


def _style(row: Rebalance) -> str:
    return "" if row.outcome in ("completed", "empty") else "yellow"
