"""The parts of the differential run that need no coordinator: files, references, shrinking."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.compare import Difference, first_difference
from tests.oracle.coverage import ACTIONS, STATES, impossible
from tests.oracle.decisions import Decision, explained, read_decisions
from tests.oracle.golden import read_golden, write_golden
from tests.oracle.memory import Memory
from tests.oracle.script import Script, ScriptError, read_script, write_script
from tests.oracle.shrink import shrink

JOIN = {
    "op": "join",
    "client": "c1",
    "version": 9,
    "group": "g0",
    "member": "@c1",
    "type": "consumer",
    "protocols": [["range", ""]],
    "session": 10000,
}


def _answer(member_id: str, generation: int = 1) -> dict[str, Any]:
    return {
        "memberId": member_id,
        "generationId": generation,
        "leader": member_id,
        "protocolName": "range",
        "members": [],
    }


def test_a_script_survives_its_file(tmp_path: Path) -> None:
    """What is written is what is read."""
    script = Script(seed="s/1", config={"group.max.size": 2}, partitions=(0,), operations=(JOIN,))
    write_script(tmp_path / "s.json", script)
    assert read_script(tmp_path / "s.json") == script


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "Expecting"),
        ("{}", "expected format"),
        ('{"format": "groupsim-oracle-script", "version": 1, "seed": "", "config": {}, '
         '"operations": [{"op": "dance"}]}', "unknown kind 'dance'"),
        ('{"format": "groupsim-oracle-script", "version": 1, "seed": "", "config": {}, '
         '"operations": [{"op": "advance", "s": 1}]}', "unknown fields ['s']"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_script_is_refused(tmp_path: Path, text: str, why: str) -> None:
    """One clear error that names the file and what is wrong."""
    path = tmp_path / "s.json"
    path.write_text(text, "utf-8")
    with pytest.raises(ScriptError) as caught:
        read_script(path)
    assert str(path) in str(caught.value)
    assert why in str(caught.value)


def test_references_mean_what_the_client_was_told() -> None:
    """``@c1``, ``@c1~1`` and generations follow the answers of that client."""
    memory = Memory()
    assert memory.resolve(JOIN)["member"] == ""
    for token, member_id in enumerate(("a", "b")):
        memory.sent(token, JOIN)
        memory.answered(token, _answer(member_id, token + 4), "NONE")
    assert memory.resolve(JOIN)["member"] == "b"
    assert memory.resolve({**JOIN, "member": "@c1~1"})["member"] == "a"
    assert memory.resolve({**JOIN, "member": "@c1~2"})["member"] == ""
    beat = {"op": "heartbeat", "client": "c1", "member": "x", "generation": "@c1-1"}
    assert memory.resolve(beat) == {**beat, "generation": 4}


def test_a_difference_names_the_first_field() -> None:
    """Absent fields, other lengths and 0 instead of false are differences."""
    kafka = {"completed": [{"token": 1, "response": {"errorCode": 0}}], "appends": []}
    assert first_difference(kafka, json.loads(json.dumps(kafka)), 7) is None
    ours = {"completed": [{"token": 1, "response": {"errorCode": 25}}], "appends": []}
    found = first_difference(kafka, ours, 7)
    assert found is not None
    assert found.path == "completed/0/response/errorCode"
    assert found.kind == "completed/response/errorCode"
    assert (found.operation, found.kafka, found.ours) == (7, 0, 25)
    for other in ({**kafka, "more": 1}, {**kafka, "completed": []}):
        assert first_difference(kafka, other, 0) is not None


def test_shrinking_keeps_what_matters_only() -> None:
    """The shortest script for which the question still holds, plain in everything else."""
    operations = [{"op": "advance", "ms": number} for number in range(30)]
    operations[11] = {**JOIN, "session": 6000, "client_id": "x"}
    script = Script(seed="", config={"group.max.size": 2}, operations=tuple(operations))

    def diverges(candidate: Script) -> bool:
        kinds = [operation["op"] for operation in candidate.operations]
        return "join" in kinds and "advance" in kinds[kinds.index("join") :]

    small = shrink(script, diverges)
    assert [operation["op"] for operation in small.operations] == ["join", "advance"]
    assert small.operations[0]["session"] == 10000
    assert small.operations[0]["client_id"] == "app"
    assert small.operations[1] == {"op": "advance", "ms": 0}
    assert small.config == {}


def test_golden_transcripts_are_packed_without_loss(tmp_path: Path) -> None:
    """Snapshots are written as changes and come back whole."""
    snapshots: list[Any] = [
        {"partitions": [{"a": 1, "groups": []}], "timers": [1, 2, 3]},
        {"partitions": [{"a": 1, "groups": [{"x": None}]}], "timers": [2, 3]},
        {"partitions": [{"a": 2, "groups": [{"x": 0}]}], "timers": [2, 9]},
        {"partitions": [], "timers": [5, 2, 9, 7]},
        {"partitions": [], "timers": [5, 2, 9, 7]},
    ]
    results: list[dict[str, Any]] = [
        {"completed": [{"token": n}], "appends": [], "now": n, "snapshot": snapshot}
        for n, snapshot in enumerate(snapshots)
    ]
    results.insert(2, {"skipped": True})
    script = Script(seed="s", operations=tuple([JOIN] * len(results)))
    (path,) = write_golden([(script, results)], tmp_path)
    assert list(read_golden(path)) == [(script, results)]


def test_a_decision_explains_its_own_differences_only(tmp_path: Path) -> None:
    """Decisions match by the kind of difference; one without a pattern explains nothing."""
    found = Difference(operation=1, path="completed/0/response/leader", kafka="a", ours="b")
    silent = Decision(rules=("J-24",), reason="r")
    speaking = Decision(rules=("J-24",), reason="r", shows_as="completed/response/leader")
    assert explained(found, (silent,)) is None
    assert explained(found, (silent, speaking)) is speaking
    path = tmp_path / "decisions.toml"
    path.write_text('[[decision]]\nrules = ["J-24"]\nreason = "r"\n', "utf-8")
    assert read_decisions(path) == (silent,)


def test_most_cells_are_possible() -> None:
    """What is called impossible stays the smaller part, and every state and action is possible."""
    possible = {(s, a) for s in STATES for a in ACTIONS if not impossible(s, a)}
    assert {state for state, _ in possible} == set(STATES)
    assert {action for _, action in possible} == set(ACTIONS)
    assert len(possible) > len(STATES) * len(ACTIONS) * 2 // 3
