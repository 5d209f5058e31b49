"""One Java process for all tests of this directory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.oracle.driver import Oracle, available


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    """Kafka's coordinator; a test that needs it is skipped where Java or Maven is missing."""
    if not available():
        pytest.skip("needs java and mvn")
    with Oracle() as running:
        yield running
