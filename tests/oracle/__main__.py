"""Hold our coordinator against Apache Kafka's: ``python -m tests.oracle --help``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.oracle import driver
from tests.oracle.coverage import report
from tests.oracle.driver import Oracle
from tests.oracle.golden import choose, write_golden
from tests.oracle.run import (
    Finding,
    Outcome,
    check,
    describe,
    run_kafka,
    run_scripts,
    same_difference,
)
from tests.oracle.script import Script, ScriptError, read_script, write_script
from tests.oracle.shrink import shrink

_PROGRESS_EVERY = 20


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    parser.add_argument("--scripts", type=int, default=1000, help="how many scripts (1000)")
    parser.add_argument("--seed", default="1", help="seed of the scripts (1)")
    parser.add_argument("--first", type=int, default=0, help="number of the first script (0)")
    parser.add_argument("--length", type=int, default=40, help="operations in a script (40)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    parser.add_argument("--keep-going", type=int, default=1, metavar="N",
                        help="stop after N unexplained differences (1)")  # fmt: skip
    parser.add_argument("--save", type=Path, default=Path("divergence.json"), metavar="FILE",
                        help="where the shrunk script is written (divergence.json)")  # fmt: skip
    parser.add_argument("--no-shrink", action="store_true", help="leave the script as it is")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="run one script again")
    parser.add_argument("--write-golden", type=int, metavar="N",
                        help="make N golden transcripts with --seed and --length")  # fmt: skip
    return parser.parse_args()


def main() -> int:
    """Exit status: 0 no unexplained difference, 1 a difference, 2 bad input, 3 no Java here."""
    arguments = _arguments()
    if not driver.available():
        print("java and mvn are needed to run Apache Kafka's coordinator", file=sys.stderr)
        return 3
    if arguments.replay:
        return _replay(arguments.replay)
    if arguments.write_golden:
        return _write_golden(arguments)
    outcome = run_scripts(
        seed=arguments.seed,
        scripts=arguments.scripts,
        length=arguments.length,
        jobs=arguments.jobs,
        first=arguments.first,
        stop_after=arguments.keep_going,
        on_progress=_Progress(),
    )
    print(
        f"{outcome.scripts} scripts, {outcome.operations} operations in {outcome.seconds:.0f} s, "
        f"seed {arguments.seed}: {len(outcome.unexplained)} unexplained differences"
        f" ({len(outcome.findings) - len(outcome.unexplained)} explained by decisions)"
    )
    print(report(outcome.cells))
    for finding in outcome.unexplained[1:]:
        print(f"also: {finding.difference}")
    if outcome.unexplained:
        _show(outcome.unexplained[0], arguments)
        return 1
    return 0


class _Progress:
    def __init__(self) -> None:
        self._calls = 0

    def __call__(self, outcome: Outcome) -> None:
        self._calls += 1
        if self._calls % _PROGRESS_EVERY == 0:
            print(f"  {outcome.scripts} scripts, {outcome.seconds:.0f} s", file=sys.stderr)


def _show(finding: Finding, arguments: argparse.Namespace) -> None:
    script = finding.script
    with Oracle() as oracle:
        if not arguments.no_shrink:
            script = shrink(
                script, lambda shorter: same_difference(shorter, finding.difference, oracle)
            )
        _transcript(script, oracle)
    write_script(arguments.save, script)
    print(f"\nrun it again: python -m tests.oracle --replay {arguments.save}")


def _transcript(script: Script, oracle: Oracle) -> bool:
    results = run_kafka(script, oracle)
    if results is None:
        print("Kafka fires timers at one instant for ever in this script")
        return False
    difference = check(script, results)
    print(f"\nconfig {json.dumps(dict(script.config))} partitions {script.partitions}")
    last = difference.operation if difference else len(script.operations) - 1
    shown = zip(script.operations[: last + 1], describe(results), strict=False)
    for number, (operation, result) in enumerate(shown):
        print(f"{number:3} {json.dumps(operation)}")
        print(f"      Kafka: {json.dumps(result)}")
    print(difference or "no difference")
    return difference is not None


def _replay(path: Path) -> int:
    try:
        script = read_script(path)
    except (ScriptError, OSError) as exc:
        print(exc, file=sys.stderr)
        return 2
    with Oracle() as oracle:
        return int(_transcript(script, oracle))


def _write_golden(arguments: argparse.Namespace) -> int:
    with Oracle() as oracle:
        chosen = choose(arguments.seed, arguments.write_golden, arguments.length, oracle)
    paths = write_golden(chosen)
    size = sum(path.stat().st_size for path in paths)
    print(f"{len(chosen)} transcripts in {len(paths)} files, {size / 1e6:.2f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
