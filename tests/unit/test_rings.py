"""Imports point inwards only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# ring → the rings it may import besides itself (design: "the rings, from the inside out")
ALLOWED = {
    "groupsim.protocol": (),
    "groupsim.coordinator": ("groupsim.protocol",),
    "groupsim_clients": ("groupsim.protocol",),
    "groupsim.trace": (
        "groupsim.protocol",
        "groupsim.coordinator.effects",
        "groupsim_clients.machine",
    ),
    "groupsim.metrics": ("groupsim.protocol", "groupsim.trace"),
    "groupsim.report": ("groupsim.protocol", "groupsim.trace", "groupsim.metrics"),
    "groupsim.runtime": (
        "groupsim.protocol",
        "groupsim.coordinator",
        "groupsim.trace",
        "groupsim_clients",
    ),
}


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def _inside(name: str, ring: str) -> bool:
    return name == ring or name.startswith(ring + ".")


def _strays(ring: str) -> Iterator[str]:
    base = ROOT / ("clients" if ring == "groupsim_clients" else "") / ring.replace(".", "/")
    files = sorted(base.rglob("*.py"))
    assert files, f"no sources in {base}"
    for path in files:
        for name in _imports(path):
            ours = name.split(".")[0] in ("groupsim", "groupsim_clients") and name != "groupsim"
            if ours and not any(_inside(name, allowed) for allowed in (ring, *ALLOWED[ring])):
                yield f"{path.relative_to(ROOT)} imports {name}"


@pytest.mark.parametrize("ring", ALLOWED)
def test_imports_point_inwards(ring: str) -> None:
    """A module imports its own ring and the rings it is allowed, nothing further out."""
    assert list(_strays(ring)) == []
