"""The README says what is true."""

from __future__ import annotations

import re

from groupsim.scenario import load_scenario, parse_scenario
from tests.readme import README, printed, shown


def test_output_is_current() -> None:
    """The output that the README shows is what the command prints."""
    arguments, text = shown()
    assert text == printed(arguments), "stale: run python -m tests.readme"


def test_scenario_is_valid() -> None:
    """The scenario in the README can be loaded as it stands."""
    found = re.search(
        r"<!-- example: scenario -->\n```yaml\n(.*?)```", README.read_text("utf-8"), re.DOTALL
    )
    assert found is not None
    assert parse_scenario(found[1], "README.md").name == "rolling-restart"


def test_named_scenarios_exist() -> None:
    """Every ``groupsim run NAME`` in README and walk-through names a catalogue scenario."""
    for path in (README, README.parent / "docs" / "walkthrough.md"):
        names = re.findall(r"groupsim run ([a-z0-9-]+)(?![\w.-])", path.read_text("utf-8"))
        assert names
        for name in names:
            load_scenario(name)


def test_links_lead_somewhere() -> None:
    """Relative links of all documents lead to files that exist."""
    for path in (README, *sorted((README.parent / "docs").glob("*.md"))):
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", path.read_text("utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_the_walkthrough_names_what_there_is() -> None:
    """Each method of its table is defined in the module that stands beside it."""
    text = (README.parent / "docs" / "walkthrough.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `[^|]*\| ([^|]*) \| `(\w+\.py)` \|$", text, re.MULTILINE)
    assert len(rows) > 8
    for methods, module in rows:
        path = README.parent / "clients" / "groupsim_clients" / module
        source = path.read_text(encoding="utf-8")
        for name in re.findall(r"`([\w.]+)", methods):
            assert f"def {name.split('.')[-1]}(" in source, (name, module)
