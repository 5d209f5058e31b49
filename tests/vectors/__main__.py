"""``python -m tests.vectors FILE``: hold our assignors against a vector file."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.vectors.cases import VectorError, read_cases
from tests.vectors.report import Comparison

USAGE = "usage: python -m tests.vectors FILE"


def main(arguments: list[str]) -> int:
    """Exit status 0 when all agree, 1 when a case differs, 2 for bad input."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(USAGE, file=sys.stderr)
        return 2
    comparison = Comparison()
    try:
        for case in read_cases(Path(arguments[0])):
            comparison.add(case)
    except VectorError as fault:
        print(fault, file=sys.stderr)
        return 2
    if comparison.cases == 0:
        print(f"{arguments[0]}: no cases", file=sys.stderr)
        return 2
    print(comparison.text())
    return 1 if comparison.differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
