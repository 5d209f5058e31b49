"""Golden transcripts: scripts with Kafka's answers, checked in, so that no Java is needed.

A file is gzipped text, one JSON object a line: a script and its results. A result's snapshot is
written as its change from the one before (``_change``), since most of it stays as it was.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.oracle.coverage import Cell
from tests.oracle.driver import Oracle
from tests.oracle.generate import generate
from tests.oracle.script import Script
from tests.oracle.world import Result

__all__ = ["FOLDER", "choose", "read_golden", "write_golden"]

FOLDER = Path(__file__).with_name("golden")
PER_FILE = 100

Transcript = tuple[Script, list[Result]]


def choose(seed: str, count: int, length: int, oracle: Oracle) -> list[Transcript]:
    """``count`` scripts out of five times as many that between them reach the most cells.

    Greedy: always the script that adds most, where the n-th time in a cell is worth 1/n².
    """
    made: list[tuple[Transcript, Counter[Cell]]] = []
    for index in range(5 * count):
        script, world = generate(seed, index, length, oracle)
        made.append(((script, world.results), world.cells))
    seen: Counter[Cell] = Counter()
    chosen: list[Transcript] = []
    for _ in range(count):
        best = max(range(len(made)), key=lambda number: (_worth(made[number][1], seen), -number))
        transcript, cells = made.pop(best)
        seen.update(cells.keys())
        chosen.append(transcript)
    return chosen


def _worth(cells: Counter[Cell], seen: Counter[Cell]) -> int:
    return sum(1_000_000 // (seen[cell] + 1) ** 2 for cell in cells)


def write_golden(transcripts: Iterable[Transcript], folder: Path = FOLDER) -> list[Path]:
    """Write the transcripts in place of what the folder held; answers the files."""
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.gz"):
        old.unlink()
    lines = [json.dumps(_packed(*one), separators=(",", ":")) for one in transcripts]
    paths = []
    for start in range(0, len(lines), PER_FILE):
        path = folder / f"{start // PER_FILE:02d}.gz"
        text = "\n".join(lines[start : start + PER_FILE]) + "\n"
        path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
        paths.append(path)
    return paths


def read_golden(path: Path) -> Iterator[Transcript]:
    """The transcripts of one file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield _unpacked(json.loads(line))


def _packed(script: Script, results: list[Result]) -> dict[str, Any]:
    packed = []
    before: Any = None
    for result in results:
        short = dict(result)
        if "snapshot" in short:
            after = short.pop("snapshot")
            short["change"] = _change(before, after)
            before = after
        packed.append({key: value for key, value in short.items() if value not in ([], None)})
    return {"script": script.to_plain(), "results": packed}


def _unpacked(line: dict[str, Any]) -> Transcript:
    results: list[Result] = []
    before: Any = None
    for short in line["results"]:
        result = dict(short)
        if not result.get("skipped"):
            before = _changed(before, result.pop("change", None))
            result = {"completed": [], "appends": [], **result, "snapshot": before}
        results.append(result)
    return Script.from_plain(line["script"]), results


def _change(before: Any, after: Any) -> Any:
    """What turns ``before`` into ``after``: None (nothing), ["=", value], {key: change} for an
    object or [number, change] pairs for a list of the same shape, ["~", first, count, new items]
    for a list in which ``count`` items from ``first`` on were replaced.
    """
    if before == after and type(before) is type(after):
        return None
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() == after.keys():
        changes = {key: _change(before[key], after[key]) for key in after}
        return {key: change for key, change in changes.items() if change is not None}
    if isinstance(before, list) and isinstance(after, list):
        return _list_change(before, after)
    return ["=", after]


def _list_change(before: list[Any], after: list[Any]) -> list[Any]:
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    if len(before) == len(after):
        middle = range(start, len(after) - end)
        return ["@", [[index, _change(before[index], after[index])] for index in middle]]
    return ["~", start, len(before) - start - end, after[start : len(after) - end]]


def _changed(before: Any, change: Any) -> Any:
    if change is None:
        return before
    if isinstance(change, dict):
        return before | {key: _changed(before[key], part) for key, part in change.items()}
    kind, *rest = change
    if kind == "=":
        return rest[0]
    after = list(before)
    if kind == "@":
        for index, part in rest[0]:
            after[index] = _changed(after[index], part)
    else:
        start, count, items = rest
        after[start : start + count] = items
    return after
