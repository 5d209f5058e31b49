"""The differential run itself, wherever Java and Maven are: Apache Kafka beside ours."""

from __future__ import annotations

import pytest

from tests.oracle import driver
from tests.oracle.run import run_scripts

SCRIPTS = 200


@pytest.mark.oracle
@pytest.mark.skipif(not driver.available(), reason="needs java and mvn")
def test_kafka_and_ours_agree_on_fresh_scripts() -> None:
    """Random scripts of 40 operations: no difference that no decision explains."""
    outcome = run_scripts(seed="test_live", scripts=SCRIPTS, length=40, jobs=1)
    assert outcome.scripts == SCRIPTS
    assert not outcome.unexplained, "\n".join(
        f"script {finding.script.seed}: {finding.difference}" for finding in outcome.unexplained
    )
