"""docs/trace.md describes what this groupsim writes."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from groupsim.trace.document import renewed

from .trace_samples import small_trace

DOCUMENT = Path(__file__).parents[2] / "docs" / "trace.md"


def test_the_table_of_kinds_is_not_stale() -> None:
    """The kinds in the document are those of the registry."""
    text = DOCUMENT.read_text(encoding="utf-8")
    assert renewed(text) == text, "run: python -m groupsim.trace.document docs/trace.md"


def test_a_document_without_marks_is_refused() -> None:
    """Nothing is overwritten where the marks are missing."""
    with pytest.raises(ValueError, match="marks"):
        renewed("# something else")


def test_the_ten_lines_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example reader of the document reads a trace."""
    (code,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    small_trace(tmp_path / "run.trace")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, str(DOCUMENT), "exec"), names)
    lines = printed.getvalue().splitlines()
    assert len(lines) == 10
    assert lines[0] == "0 topic {'topic': 'orders', 'partitions': 3}"
