"""groupsim list, validate, schema, init."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Command


def test_list_names_the_catalogue(groupsim: Command) -> None:
    """Each scenario with its title, by name."""
    ran = groupsim("list")
    names = [line.split()[0] for line in ran.out.splitlines()]
    assert ran.status == 0
    assert names == sorted(names)
    assert {"first-join", "rolling-restart", "gc-pause"} <= set(names)


def test_validate_tells_of_all_files(groupsim: Command, small: str) -> None:
    """Good files are ok, bad ones have their faults told; one bad one makes status 2."""
    assert groupsim("validate", small, "rolling-restart").out.splitlines() == [
        "small.yaml: ok",
        "rolling-restart: ok",
    ]
    Path("bad.yaml").write_text("groupsim: 1\nnamme: x\n")
    Path("tab.yaml").write_text("groupsim: 1\n\tname: x\n")
    ran = groupsim("validate", "bad.yaml", small, "tab.yaml", "missing.yaml")
    assert ran.status == 2
    assert ran.out == "small.yaml: ok\n"
    for file in ("bad.yaml:", "tab.yaml:", "missing.yaml:"):
        assert any(line.startswith(file) for line in ran.err.splitlines())


def test_schema_is_json(groupsim: Command) -> None:
    """The schema is a JSON object that names the format's fields."""
    schema = json.loads(groupsim("schema").out)
    assert {"topics", "groups", "until"} <= set(schema["properties"])


def test_init_writes_a_scenario_that_runs(groupsim: Command) -> None:
    """The template is valid, is named after its file, and is not written over another file."""
    ran = groupsim("init", "My Group.yaml")
    assert ran.status == 0
    assert "groupsim run 'My Group.yaml'" in ran.out
    assert groupsim("validate", "My Group.yaml").status == 0
    assert "name: my-group" in Path("My Group.yaml").read_text()
    assert groupsim("init").status == 0
    assert Path("scenario.yaml").exists()
    assert groupsim("init").status == 2
    assert "groups:" in groupsim("init", "-").out
