"""docs/own-client.md: the client in it runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).parents[2] / "docs" / "own-client.md"


def test_the_documented_client_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Two members join, get their share and stay until the end; the client is some 30 lines."""
    (code,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert len(code.split("async def member")[1].split("simulation =")[0].splitlines()) <= 40
    names: dict[str, object] = {}
    exec(compile(code, str(DOCUMENT), "exec"), names)
    assert capsys.readouterr().out == "Stable\n"
    simulation = names["simulation"]
    group = simulation._group("workers")  # type: ignore[attr-defined]
    assert sorted(member.assignment for member in group.members) == [b"share 0", b"share 1"]
    assert group.generation_id >= 1
