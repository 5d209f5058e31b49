"""The conformance table is complete and current."""

from __future__ import annotations

import pytest

from tests.conformance import table


def test_every_rule_has_a_test() -> None:
    """Each rule of both rule books is cited by at least one test."""
    assert table.missing() == []


def test_document_is_current() -> None:
    """docs/conformance.md says what the sources and tests say now."""
    assert table.DOCUMENT.read_text("utf-8") == table.document(), (
        "stale: run python -m tests.conformance"
    )


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("shows J-24 and PR-02.", {"J-24", "PR-02"}),
        ("V1–V3, X1..X2", {"V1", "V2", "V3", "X1", "X2"}),
        ("A-10 to A-12", {"A-10", "A-11", "A-12"}),
        ("T-1..T-3", {"T-1", "T-2", "T-3"}),
        ("UTF-16 and KIP-394 and SHA-256", set()),
    ],
)
def test_rule_ids_in_a_text(text: str, ids: set[str]) -> None:
    """Ids and ranges of ids are found, look-alikes are not."""
    assert table.rule_ids(text) == ids
