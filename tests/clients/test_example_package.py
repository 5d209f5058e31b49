"""The example of a client of one's own takes part in a scenario, as docs/clients.md says it does.

Nothing is installed: a directory with the metadata that an installation would leave (entry points)
stands on the path of a fresh interpreter, beside the example's folder.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "clients" / "example"
DOCUMENT = ROOT / "docs" / "clients.md"

RUN = """
import json, sys
from groupsim.scenario import parse_scenario, run_scenario
from groupsim.scenario.clients import client_kinds
result = run_scenario(parse_scenario(sys.stdin.read(), "docs/clients.md"), seed=0)
print(json.dumps({
    "kinds": client_kinds(),
    "verdict": result.verdict,
    "expectations": [[each.expectation, each.verdict] for each in result.expectations],
    "joined": result.metrics.group("checkout").member_changes["joined"],
    "left": result.metrics.group("checkout").member_changes["left"],
    "sha256": result.trace_sha256,
}))
"""


def documented(language: str) -> str:
    """The document's block in a language; there is one."""
    (block,) = re.findall(rf"```{language}\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    return str(block)


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder that looks as if the example had been installed into it."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text("utf-8"))["project"]
    info = tmp_path / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n", "utf-8"
    )
    lines = [f"[{group}]\n" for group in project["entry-points"]]
    lines += [
        f"{name} = {value}\n"
        for points in project["entry-points"].values()
        for name, value in points.items()
    ]
    (info / "entry_points.txt").write_text("".join(lines), "utf-8")
    return tmp_path


def run(installed: Path) -> dict[str, Any]:
    """Run the document's scenario in a fresh interpreter that finds the example."""
    path = os.pathsep.join(map(str, (installed, EXAMPLE, ROOT, ROOT / "clients")))
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=documented("yaml"),
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_documents_scenario_runs(installed: Path) -> None:
    """The scenario of docs/clients.md is met with the example client, the same each time."""
    first, second = run(installed), run(installed)
    assert "minimal" in first["kinds"]
    assert [each for each in first["expectations"] if each[1] != "met"] == []
    assert first["verdict"] == "met"
    assert (first["joined"], first["left"]) == (3, 1)
    assert first["sha256"] == second["sha256"]


def test_the_document_says_what_the_package_says() -> None:
    """The entry point in the document is the one in the example's pyproject.toml."""
    written = tomllib.loads(documented("toml"))["project"]["entry-points"]
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text("utf-8"))["project"]
    assert written == project["entry-points"]
