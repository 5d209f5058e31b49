"""Hold our assignors against Java's results: from a file, or asked live.

``python -m tests.vectors FILE`` reads a vector file.
``python -m tests.vectors --live N [--seed S]`` makes N random groups and asks Kafka's own classes.
``python -m tests.vectors --live N [--seed S] --record FILE`` also writes those groups and Java's
results to FILE.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.oracle.driver import OracleError
from tests.vectors.cases import VectorError, read_cases, write_cases
from tests.vectors.generate import random_case
from tests.vectors.live import JavaAssignors
from tests.vectors.report import Comparison

_PROGRESS = 5_000  # cases between two signs of life


def main(arguments: list[str]) -> int:
    """Exit status 0 when all agree, 1 when a case differs, 2 for bad input."""
    parser = argparse.ArgumentParser(prog="python -m tests.vectors", description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, help="a .jsonl or .jsonl.gz vector file")
    parser.add_argument("--live", type=int, metavar="N", help="compare N random groups with Java")
    parser.add_argument("--seed", default="0", help="of the random groups (default: 0)")
    parser.add_argument("--record", type=Path, metavar="FILE", help="write them as a vector file")
    options = parser.parse_args(arguments)
    if (options.file is None) == (options.live is None):
        parser.error("either a FILE or --live N")
    if options.record is not None and options.live is None:
        parser.error("--record needs --live")
    try:
        if options.file is not None:
            return _from_file(options.file)
        return _live(options.live, options.seed, options.record)
    except (VectorError, OracleError) as fault:
        print(fault, file=sys.stderr)
        return 2


def _from_file(path: Path) -> int:
    comparison = Comparison()
    for case in read_cases(path):
        comparison.add(case)
    if comparison.cases == 0:
        raise VectorError(f"{path}: no cases")
    return _verdict(comparison)


def _live(count: int, seed: str, record: Path | None) -> int:
    comparison = Comparison()
    started = time.monotonic()
    with JavaAssignors() as java:
        cases = java.completed(random_case(seed, number) for number in range(count))
        if record is None:
            _compare(cases, comparison)
        else:
            write_cases(record, _compared(cases, comparison))
    seconds = time.monotonic() - started
    print(f"seed {seed}: {comparison.cases} random groups in {seconds:.0f} s")
    status = _verdict(comparison)
    if status:
        print(f"again: python -m tests.vectors --live {count} --seed {seed}")
    return status


def _compared(cases: Iterable[dict[str, Any]], comparison: Comparison) -> Iterator[dict[str, Any]]:
    for case in cases:
        comparison.add(case)
        if comparison.cases % _PROGRESS == 0:
            print(f"{comparison.cases} compared, {comparison.differing} differ", file=sys.stderr)
        yield case


def _compare(cases: Iterable[dict[str, Any]], comparison: Comparison) -> None:
    for _ in _compared(cases, comparison):
        pass


def _verdict(comparison: Comparison) -> int:
    print(comparison.text())
    return 1 if comparison.differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
