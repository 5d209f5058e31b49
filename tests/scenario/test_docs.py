"""docs/scenarios.md: what it shows works, and nothing of the format is left out."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

from groupsim.scenario import parse_scenario
from groupsim.scenario._base import Part, written
from groupsim.scenario.expect import Expectation
from groupsim.scenario.members import Group, Member, Poison, Work
from groupsim.scenario.model import Scenario
from groupsim.scenario.schema import json_schema
from groupsim.scenario.verbs import Cut, DropNext, Entry, FailAppends, Restart, Stop
from groupsim.scenario.world import Brokers, LogNormal, Network, Topic
from tests.scenario.broken import GOOD

DOCS = Path(__file__).parents[2] / "docs" / "scenarios.md"
TEXT = DOCS.read_text(encoding="utf-8")


def test_the_first_example_is_a_scenario() -> None:
    """The indented block at the top can be pasted into a file."""
    block = re.search(r"(?:^    .*\n|^\n)+", TEXT[TEXT.index("    groupsim: 1") :], re.MULTILINE)
    assert block is not None
    text = "\n".join(line[4:] for line in block.group().splitlines())
    assert parse_scenario(text).name == "rolling-restart"


def test_the_python_example_runs() -> None:
    """The Python block runs as it stands and prints a verdict."""
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, str(DOCS), "exec"), {"__name__": "example"})
    assert re.fullmatch(r"met 3 [0-9a-f]{8}\n", out.getvalue())


def test_every_word_of_the_format_is_there() -> None:
    """No key of a scenario, verb or expectation is undocumented."""
    parts: tuple[type[Part], ...] = (
        *(Scenario, Topic, Brokers, Network, LogNormal, Group, Member, Work, Poison),
        *(Entry, Stop, Restart, Cut, DropNext, FailAppends, Expectation),
    )
    missing = [
        f"{part.__name__}.{name}"
        for part in parts
        for name in part.model_fields
        if name not in Scenario.HIDDEN and not re.search(rf"\b{written(part, name)}\b", TEXT)
    ]
    assert missing == []


def test_every_key_of_the_schema_is_there() -> None:
    """What an editor offers stands in the page, in code."""
    schema = json_schema()
    code = " ".join(re.findall(r"`[^`]*`|^    .*$", TEXT, re.MULTILINE))
    forms = [form for made in schema["$defs"].values() for form in (made, *made.get("anyOf", ()))]
    keys = {key for form in (schema, *forms) for key in form.get("properties", ())}
    assert [key for key in sorted(keys) if not re.search(rf"\b{key}\b", code)] == []


def test_the_timeline_example_is_one() -> None:
    """The entries shown for the timeline can be pasted into a scenario."""
    at = TEXT.index("    timeline:\n", TEXT.index("### Timeline"))
    block = re.match(r"(?:    .*\n)+", TEXT[at:])
    assert block is not None
    entries = "\n".join(line[4:] for line in block.group().splitlines())
    entry = '  - {at: 60s, restart: {members: "c-*", one_every: 20s, down: 5s}}'
    assert len(parse_scenario(GOOD.replace(f"timeline:\n{entry}", entries)).timeline) == 4
