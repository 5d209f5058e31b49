"""Kafka's own assignors, asked live through the Java driver in tests/oracle."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator
from typing import Any, Self

from tests.oracle.driver import OracleError, available, build

__all__ = ["JavaAssignors"]

_MAIN_CLASS = "groupsim.oracle.AssignorDriver"


class JavaAssignors:
    """One Java process that answers cases in order. Use it as a context manager."""

    def __enter__(self) -> Self:
        """Build the driver if necessary and start it. Raises ``OracleError`` if that fails."""
        if not available():
            raise OracleError("Java and Maven are needed to ask Kafka's own assignors")
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self._end()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            ["java", "-XX:+UseSerialGC", "-cp", ":".join(build()), _MAIN_CLASS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def _end(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def ask(self, case: dict[str, Any]) -> dict[str, Any]:
        """Java's answer to one case: ``rounds`` with the output fields, and ``nanoseconds``.

        When a call does not return in time, ``stuck`` is true, its result says so, and there are no
        rounds after it. Raises ``OracleError`` when the process is gone.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(case, separators=(",", ":")) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise OracleError(f"the assignor driver died (exit {self._process.wait()})")
        answer: dict[str, Any] = json.loads(line)
        if answer["stuck"]:  # the process ends with that
            self._end()
            self._start()
        return answer

    def completed(self, inputs: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """``inputs`` with Java's results filled in."""
        for case in inputs:
            outcomes = self.ask(case)["rounds"]
            case["rounds"] = case["rounds"][: len(outcomes)]
            for one, outcome in zip(case["rounds"], outcomes, strict=True):
                one.update(outcome)
            yield case
