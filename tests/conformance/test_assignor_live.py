"""Kafka's own assignors, asked live. Needs Java and Maven."""

from __future__ import annotations

import pytest

from tests.conformance.assignors import group
from tests.conformance.test_assignor_general import X1, X2, X3, X3_FAILS, X4, X5, Example
from tests.conformance.test_assignor_vectors import VECTORS
from tests.oracle.driver import available
from tests.vectors.__main__ import main
from tests.vectors.live import JavaAssignors
from tests.vectors.report import Comparison

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]
LIMIT_SECONDS = 3  # how long Java may take over X5 before it counts as stuck


def test_random_groups(capsys: pytest.CaptureFixture[str]) -> None:
    """A-01 to A-71: a few random groups; ``python -m tests.vectors --live N`` compares more."""
    assert main(["--live", "150", "--seed", "test"]) == 0
    assert "0 of 150 cases differ" in capsys.readouterr().out


def test_vectors_and_anomalies() -> None:
    """V1–V22, X1–X5: what the tests expect is what Java returns, or that it never does."""
    examples: dict[str, Example] = {name: vector[:3] for name, vector in VECTORS.items()}
    examples |= {"X1": X1, "X2": X2, "X3": X3, "X3 fails": X3_FAILS, "X4": X4, "X5": X5}
    comparison = Comparison()
    with JavaAssignors() as java:
        cases = (
            {"case": name, "kind": kind, "limit": LIMIT_SECONDS, "rounds": [group(topics, members)]}
            for name, (kind, topics, members) in examples.items()
        )
        for case in java.completed(cases):
            assert comparison.add(case), comparison.text()
    assert comparison.failures == {
        "IllegalStateException": 1,
        "NullPointerException": 1,
        "(never returns)": 1,
    }
