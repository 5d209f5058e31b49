"""Kafka's recorded answers (tests/oracle/golden): our coordinator gives the same, field by field."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.decisions import explained, read_decisions
from tests.oracle.golden import FOLDER, read_golden
from tests.oracle.run import check

FILES = sorted(FOLDER.glob("*.gz"))
LEAST_TRANSCRIPTS = 400


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_our_coordinator_answers_as_kafka_did(path: Path) -> None:
    """Every response, append, timer and group field after every operation of a recorded script."""
    decisions = read_decisions()
    for number, (script, results) in enumerate(read_golden(path)):
        difference = check(script, results)
        if difference is not None and explained(difference, decisions) is None:
            pytest.fail(f"{path.name}, transcript {number} (script {script.seed}):\n{difference}")


def test_there_are_as_many_transcripts_as_promised() -> None:
    """At least 400 scripts, so that the recorded answers are worth their name."""
    assert sum(1 for path in FILES for _ in read_golden(path)) >= LEAST_TRANSCRIPTS
