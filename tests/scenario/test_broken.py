"""Broken scenarios give clear messages: file, line, what was found, what is allowed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from groupsim.scenario import Fault, ScenarioError, load_scenario, parse_scenario
from groupsim.scenario.verbs import Entry
from tests.scenario.broken import GOOD, Broken, broken

CASES = tuple(broken())


def test_there_are_many_kinds() -> None:
    """At least twenty-five kinds, each with a name of its own."""
    assert len(CASES) >= 25
    assert len({case.name for case in CASES}) == len(CASES)


def test_the_good_one_is_good() -> None:
    """The scenario that the cases break is itself without fault."""
    assert parse_scenario(GOOD).name == "good"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_one_clear_message(case: Broken, tmp_path: Path) -> None:
    """Each has a fault with the file, the line, and the words that help, in one line of text."""
    path = tmp_path / "broken.yaml"
    path.write_bytes(case.raw)
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path)
    messages = [str(fault) for fault in caught.value.faults]
    text = next((m for m in messages if m.startswith(f"{path}:{case.line}:")), None)
    assert text is not None, messages
    for words in case.says:
        assert words in text
    assert "\n" not in text
    if case.alone:
        assert len(messages) == 1, messages


@pytest.mark.parametrize("value", ["", "3", "true", "[[]]", "{nonsense: 1}"])
@pytest.mark.parametrize("verb", Entry.verbs())
def test_each_verb_says_what_would_be_right(verb: str, value: str) -> None:
    """Whatever stands wrongly after a verb: line, field, and what is allowed there."""
    entry = 'restart: {members: "c-*", one_every: 20s, down: 5s}'
    for fault in _faults(GOOD.replace(entry, f"{verb}: {value}").encode()):
        assert fault.line == 13
        assert fault.path[:2] == ("timeline", 0)
        assert fault.allowed, str(fault)


def test_hostile_files_are_refused_early() -> None:
    """Depth and unfolding are bounded while reading: the fault stands where the bound was passed."""
    at = {case.name: _faults(case.raw)[0] for case in CASES if len(case.raw) < 1_000_000}
    assert at["nesting"].column == 27
    assert at["nested blocks"].column == 49
    assert at["billion laughs"].line == 5


def _faults(raw: bytes) -> tuple[Fault, ...]:
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(raw, "x.yaml")
    return caught.value.faults


def test_all_faults_at_once() -> None:
    """Faults of form and of meaning, in all parts of a file, come together and in its order."""
    text = (
        GOOD.replace("partitions: 12", "partitions: 0")
        .replace("count: 1", "count: one")
        .replace("[orders]", "[ordres]")
        .replace('"c-*"', "d")
        .replace("group: checkout", "group: checkuot")
    )
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(text, "many.yaml")
    lines = [fault.line for fault in caught.value.faults]
    assert lines == [4, 6, 11, 13, 16]
    assert [fault.near for fault in caught.value.faults] == ["", "", "orders", "", "checkout"]


def test_a_fault_hides_no_other_and_makes_none_up() -> None:
    """Where a member's declaration is spoiled, references to it are not called unknown."""
    text = GOOD.replace("count: 4", "count: four").replace('"c-*"', "c-2")
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(text)
    assert [fault.path[-1] for fault in caught.value.faults] == ["count"]


def test_a_spoiled_line_does_not_move_the_next_ones() -> None:
    """Faults after a list item that cannot be used still have their own line."""
    entry = '  - {at: 60s, restart: {members: "c-*", one_every: 20s, down: 5s}}\n'
    text = GOOD.replace(
        entry, "  - nonsense\n  - {at: 1s, crash: c-9}\n  - 3\n  - {at: 9m, crash: c-1}\n"
    )
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(text)
    assert [fault.line for fault in caught.value.faults] == [13, 14, 15, 16]


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    """A path that cannot be read is a fault like others, without a line."""
    with pytest.raises(ScenarioError, match="cannot be read: No such file"):
        load_scenario(tmp_path / "none.yaml")
    with pytest.raises(ScenarioError, match="cannot be read: Is a directory"):
        load_scenario(tmp_path)


def test_an_unknown_name_has_a_near_match() -> None:
    """A name that the catalogue does not have suggests one that it has."""
    with pytest.raises(ScenarioError, match="did you mean rolling-restart"):
        load_scenario("rolling-restrat")


def test_the_command_line_says_the_same(tmp_path: Path) -> None:
    """`groupsim validate` tells of every broken file, with status 2 and no traceback."""
    for number, case in enumerate(CASES):
        (tmp_path / f"{number:02}.yaml").write_bytes(case.raw)
    files = sorted(path.name for path in tmp_path.iterdir())
    done = groupsim("validate", *files, cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    for number, case in enumerate(CASES):
        place = f"{number:02}.yaml:{case.line}:"
        said = [line for line in done.stderr.splitlines() if line.startswith(place)]
        assert said, case.name
        assert all(words in " ".join(said) for words in case.says), case.name


@pytest.mark.parametrize("name", ["empty", "binary", "10 MB of nesting", "unknown member"])
def test_a_broken_scenario_does_not_run(name: str, tmp_path: Path) -> None:
    """`groupsim run` refuses it with status 2 and leaves no trace behind."""
    raw = next(case.raw for case in CASES if case.name == name)
    (tmp_path / "broken.yaml").write_bytes(raw)
    done = groupsim("run", "broken.yaml", "--trace", "out.trace", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("broken.yaml:")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out.trace").exists()


def groupsim(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    command = [sys.executable, "-m", "groupsim", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
