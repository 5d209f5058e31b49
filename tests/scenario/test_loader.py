"""Reading YAML: scalars, places, aliases, the schema, the template."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from groupsim.scenario import Scenario, ScenarioError, catalogue, load_scenario, parse_scenario
from groupsim.scenario._base import DURATION_SCHEMA
from groupsim.scenario.catalogue import catalogue_names, catalogue_text
from groupsim.scenario.document import read_document
from groupsim.scenario.durations import DURATION_PATTERN
from groupsim.scenario.schema import json_schema
from groupsim.scenario.template import template
from tests.scenario.broken import GOOD, broken

ISSUE_EXAMPLE = """\
groupsim: 1
name: rolling-restart
topics: {orders: {partitions: 12}}
brokers: {count: 1, config: {group.initial.rebalance.delay.ms: 3000}}
groups:
  checkout:
    members:
      - {name: c, count: 4, client: java, subscribe: [orders], start: {at: 0s, every: 500ms},
         config: {session.timeout.ms: 45000, partition.assignment.strategy: [range]}}
timeline:
  - {at: 60s, restart: {members: "c-*", one_every: 20s, down: 5s}}
until: 5m
expect:
  - {group: checkout, stable_by: 30s}
  - {group: checkout, rebalances: {at_most: 9}}
"""


def data(text: str) -> object:
    """What a YAML text says."""
    return read_document(text.encode(), "x.yaml").data


def test_the_example_of_the_plan() -> None:
    """The scenario that the format was sketched with is one, as written."""
    scenario = parse_scenario(ISSUE_EXAMPLE)
    assert scenario.until == 300_000_000
    assert scenario.timeline[0].verb == "restart"


def test_scalars_are_those_of_yaml_1_2() -> None:
    """Words like ``on`` and ``no`` are text, so are times; quotes make text of anything."""
    text = "[on, no, yes, 1:30, 0s, 012, 0x1f, 1.5, 1e3, true, ~, null, '7', -3, .5, 1_000]"
    expected = [
        "on",
        "no",
        "yes",
        "1:30",
        "0s",
        12,
        31,
        1.5,
        1000.0,
        True,
        None,
        None,
        "7",
        -3,
    ]
    assert data(text) == [*expected, 0.5, "1_000"]


def test_aliases_unfold() -> None:
    """An anchor can be used again; its parts are found where they stand."""
    document = read_document(b"a: &x {k: 1}\nb: [*x, *x]\n", "x.yaml")
    assert document.data == {"a": {"k": 1}, "b": [{"k": 1}, {"k": 1}]}
    assert document.place(("b", 1, "k")) == (1, 8)


def test_places() -> None:
    """A mapping's entry stands where its key does, a list's item where it begins."""
    document = read_document(b"a:\n  b: 1\n  c:\n    - x\n    - {d: 2}\n", "x.yaml")
    assert document.place(("a", "b")) == (2, 3)
    assert document.place(("a", "c", 1)) == (5, 7)
    assert document.place(("a", "c", 1, "d")) == (5, 8)
    assert document.place(("a", "c", 1, "e", 7)) == (5, 7)


def test_a_byte_order_mark_and_dos_lines_do_no_harm() -> None:
    """Editors on Windows write both."""
    raw = b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode()
    assert parse_scenario(raw) == parse_scenario(GOOD)


def test_text_that_no_file_can_hold_is_refused_politely() -> None:
    """A lone surrogate in a Python text is a fault, not a traceback."""
    with pytest.raises(ScenarioError, match="not UTF-8"):
        parse_scenario("name: \ud800")


def test_the_template_is_a_scenario() -> None:
    """What ``init`` writes is valid, has the name, and satisfies the schema."""
    text = template("my-first")
    assert parse_scenario(text).name == "my-first"
    jsonschema.validate(data(text), json_schema())
    with pytest.raises(ScenarioError):
        template("My First")


def test_the_schema_is_one_and_accepts_the_catalogue() -> None:
    """The published schema is a JSON Schema, and every scenario of ours satisfies it."""
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    texts = [GOOD, ISSUE_EXAMPLE, *(catalogue_text(name) for name in catalogue_names())]
    for text in texts:
        assert list(validator.iter_errors(data(text))) == []


def test_the_schema_describes_everything() -> None:
    """Editors show what a key does: every definition and every property has a text of its own."""
    schema = json_schema()
    assert [name for name, made in schema["$defs"].items() if not made.get("description")] == []
    for path, key, key_schema, required in properties(schema):
        text = key_schema.get("description", "")
        assert len(text) > 15, f"{path}.{key} has no description"
        assert text != DURATION_SCHEMA["description"], f"{path}.{key} only says what a time is"
        assert "\n" not in text
        assert bool(re.search("Required[.:]", text)) == required, f"{path}.{key}: is it required?"
        if json.dumps(DURATION_PATTERN) in json.dumps(key_schema):
            assert re.search(r"\btimes?\b|[0-9](ms|s|m)\b", text), f"{path}.{key}: the unit"


def properties(schema: Any, path: str = "") -> Iterator[tuple[str, str, dict[str, Any], bool]]:
    """Yield path, name, schema and whether it is required, of each property anywhere in a schema."""
    if isinstance(schema, dict):
        for key, inner in schema.get("properties", {}).items():
            yield path, key, inner, key in schema.get("required", ())
        for name, value in schema.items():
            yield from properties(value, f"{path}.{name}")
    elif isinstance(schema, list):
        for index, value in enumerate(schema):
            yield from properties(value, f"{path}[{index}]")


def test_the_schema_refuses_wrong_forms() -> None:
    """What is wrong in form alone is wrong by the schema, too: editors show it while one types."""
    validator = jsonschema.Draft202012Validator(json_schema())
    names = {
        "no version",
        "unknown key",
        "unknown verb",
        "wrong type",
        "no unit",
        "unknown unit",
        "negative time",
        "no partitions",
        "two verbs",
        "nothing expected",
    }
    cases = [case for case in broken() if case.name in names]
    assert len(cases) == len(names)
    for case in cases:
        assert list(validator.iter_errors(data(case.raw.decode()))), case.name


def test_the_schema_knows_every_short_form() -> None:
    """A short form that the model takes, the schema takes."""
    text = GOOD.replace("{partitions: 12}", "12").replace("[orders]", "orders")
    text = text.replace('{members: "c-*", one_every: 20s, down: 5s}', "c")
    parse_scenario(text)
    jsonschema.validate(data(text), json_schema())


def test_the_catalogue_is_found_by_name() -> None:
    """Names, titles and texts belong together."""
    names = [name for name, _ in catalogue()]
    assert names == sorted(names)
    for name, title in catalogue():
        scenario = load_scenario(name)
        assert (scenario.name, scenario.title) == (name, title)
        assert title
        assert scenario.lesson
        assert scenario.expect


def test_recorded_scenarios_are_the_same_scenarios() -> None:
    """What a trace's header holds is plain, and reads back as an equal scenario."""
    validator = jsonschema.Draft202012Validator(json_schema())
    for name in catalogue_names():
        scenario = load_scenario(name)
        plain = json.loads(json.dumps(scenario.to_plain()))
        assert Scenario.from_plain(plain) == scenario
        if "never" not in catalogue_text(name):  # plain data writes that as a null
            assert list(validator.iter_errors(plain)) == []


def test_partitions_that_are_added_later_may_be_named() -> None:
    """What is poisoned or committed in them happens after they are there."""
    text = """
groupsim: 1
name: grown
topics: {orders: {partitions: 2}}
groups:
  g:
    subscribe: orders
    work: {poison: [{topic: orders, partition: 3, offset: 0, takes: 1s}]}
    members: [{name: c}]
timeline:
  - {at: 10s, add_partitions: {orders: 4}}
until: 1m
expect:
  - {committed: {topic: orders, partition: 3, at_least: 0}}
"""
    assert parse_scenario(text, "grown.yaml").name == "grown"
    with pytest.raises(ScenarioError, match="no such partition; found 4; allowed: 0 to 3"):
        parse_scenario(text.replace("partition: 3", "partition: 4"), "grown.yaml")
