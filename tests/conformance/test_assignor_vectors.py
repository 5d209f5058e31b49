"""The vectors of the rule book, and the recorded answers of Kafka's own assignors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from groupsim_clients.assignors import ASSIGNORS, make_assignor
from tests.conformance.assignors import assigned, member, racks, sticky_claim
from tests.vectors.__main__ import main
from tests.vectors.cases import evaluate, read_cases, write_cases

RECORDED = Path(__file__).parents[1] / "vectors" / "data" / "assignors.jsonl.gz"
COOP = "cooperative-sticky"
ABC = racks("a", "b", "c")
IN_RACKS = [member(m, "t1 t2", rack=r) for m, r in (("m1", "c"), ("m2", "a"), ("m3", "b"))]
UNEQUAL = [member("C0", "t0"), member("C1", "t0 t1"), member("C2", "t0 t1 t2")]

VECTORS: dict[str, tuple[str, dict[str, Any], list[dict[str, Any]], dict[str, str]]] = {
    "V1": (
        "range",
        {"t0": 3, "t1": 3},
        [member("C0", "t0 t1"), member("C1", "t0 t1")],
        {"C0": "t0-0 t0-1 t1-0 t1-1", "C1": "t0-2 t1-2"},
    ),
    "V2": (
        "range",
        {"t0": 5},
        [member("a", "t0"), member("b", "t0", inst="i2"), member("z", "t0", inst="i1")],
        {"z": "t0-0 t0-1", "b": "t0-2 t0-3", "a": "t0-4"},
    ),
    "V3": (
        "roundrobin",
        {"t0": 1, "t1": 2, "t2": 3},
        UNEQUAL,
        {"C0": "t0-0", "C1": "t1-0", "C2": "t1-1 t2-0 t2-1 t2-2"},
    ),
    "V4": (
        "roundrobin",
        {"t0": 3, "t1": 3},
        [member("a", "t0 t1"), member("b", "t0 t1", inst="i9")],
        {"b": "t0-0 t0-2 t1-1", "a": "t0-1 t1-0 t1-2"},
    ),
    "V5": (
        "sticky",
        {"t0": 4, "t1": 3},
        [member(m, "t0 t1") for m in ("c1", "c2", "c3")],
        {"c1": "t0-0 t0-3 t1-2", "c2": "t0-1 t1-0", "c3": "t0-2 t1-1"},
    ),
    "V6": (
        COOP,
        {"t0": 2, "t1": 2},
        [member("A", "t0 t1", owned="t0-0 t0-1 t1-0 t1-1", gen=1), member("B", "t0 t1")],
        {"A": "t0-0 t1-0", "B": ""},
    ),
    "V6, round 2": (
        COOP,
        {"t0": 2, "t1": 2},
        [member("A", "t0 t1", owned="t0-0 t1-0", gen=2), member("B", "t0 t1", gen=2)],
        {"A": "t0-0 t1-0", "B": "t0-1 t1-1"},
    ),
    "V7": (
        "sticky",
        {"t": 7},
        [
            member("consumer-1-aaaa", "t", ud=sticky_claim(1, "t-0 t-1 t-2")),
            member("consumer-2-bbbb", "t", ud=sticky_claim(1, "t-3 t-4 t-5")),
            member("consumer-3-cccc", "t", ud=sticky_claim(1, "t-6")),
        ],
        {
            "consumer-1-aaaa": "t-0 t-1",
            "consumer-2-bbbb": "t-3 t-4 t-5",
            "consumer-3-cccc": "t-6 t-2",
        },
    ),
    "V8": (
        COOP,
        {"t": 3},
        [
            member("c1", "t", owned="t-0 t-1", gen=7),
            member("c2", "t", owned="t-0 t-2", gen=7),
            member("c3", "t", gen=7),
        ],
        {"c1": "t-1", "c2": "t-2", "c3": ""},
    ),
    "V9": (
        COOP,
        {"t": 3},
        [
            member("c1", "t", owned="t-0 t-1", gen=7),
            member("c2", "t", owned="t-0 t-2", gen=6),
            member("c3", "t", gen=7),
        ],
        {"c1": "t-0", "c2": "t-2", "c3": ""},
    ),
    "V10": (
        COOP,
        {"t": 2},
        [
            member("c1", "t", owned="t-0 t-1", ud={"gen": 3}),
            member("c2", "t", owned="t-1", gen=2),
        ],
        {"c1": "t-0", "c2": "t-1"},
    ),
    "V11": (
        "sticky",
        {"t0": 1, "t1": 2, "t2": 3},
        UNEQUAL,
        {"C0": "t0-0", "C1": "t1-0 t1-1", "C2": "t2-0 t2-1 t2-2"},
    ),
    "V12": (
        "range",
        {"t": racks("a", "b", "c", "a", "b", "c")},
        [member(m, "t", rack=r) for m, r in (("m1", "c"), ("m2", "a"), ("m3", "b"))],
        {"m1": "t-2 t-5", "m2": "t-0 t-3", "m3": "t-1 t-4"},
    ),
    "V13": (
        "range",
        {"t1": ABC, "t2": ABC},
        IN_RACKS,
        {"m1": "t1-2 t2-2", "m2": "t1-0 t2-0", "m3": "t1-1 t2-1"},
    ),
    "V14": (
        "range",
        {"t1": ABC, "t2": racks("b", "c", "a")},
        IN_RACKS,
        {"m1": "t1-0 t2-0", "m2": "t1-1 t2-1", "m3": "t1-2 t2-2"},
    ),
    "V15": (
        COOP,
        {"t": racks("a", "b", "a", "b")},
        [
            member("m1", "t", owned="t-0 t-1", gen=1, rack="a"),
            member("m2", "t", owned="t-2 t-3", gen=1, rack="b"),
        ],
        {"m1": "t-0", "m2": "t-3"},
    ),
    "V16": (
        "sticky",
        {"t0": 2, "t1": 2, "t2": 2},
        [
            member("m1", "t0 t1 t2", ud=sticky_claim(4, "t0-0 t1-0")),
            member("m2", "t0 t1", ud=sticky_claim(4, "t0-1")),
        ],
        {"m1": "t1-0 t2-0 t2-1", "m2": "t0-1 t1-1 t0-0"},
    ),
    "V17": (
        "sticky",
        {"t0": 4, "t1": 1},
        [
            member("m1", "t0 t1", ud=sticky_claim(5, "t0-0 t0-1 t0-2 t0-3 t1-0")),
            member("m2", "t0", ud=sticky_claim(4, "t0-3 t0-2")),
        ],
        {"m1": "t0-0 t0-1 t1-0", "m2": "t0-3 t0-2"},
    ),
    "V18": (
        "sticky",
        {"t": 2},
        [member("a", "t", ud=sticky_claim(1, "t-1")), member("b", "t"), member("c", "t")],
        {"a": "t-1", "b": "t-0", "c": ""},
    ),
    "V19": (
        COOP,
        {"t": 2},
        [member("a", "t", owned="t-0", gen=3, ver=0), member("b", "t", owned="t-0", gen=3)],
        {"a": "t-1", "b": "t-0"},
    ),
    "V20": (
        COOP,
        {"t0": 4, "t1": 1},
        [
            member("m1", "t0 t1", owned="t0-0 t0-1 t0-2 t0-3 t1-0", gen=5),
            member("m2", "t0", gen=5),
        ],
        {"m1": "t0-2 t0-3 t1-0", "m2": ""},
    ),
    "V21": (
        "sticky",
        {"t": 5},
        [member("a", "t"), member("z", "t", ud=sticky_claim(1, "t-0 t-1"))],
        {"a": "t-2 t-3", "z": "t-0 t-1 t-4"},
    ),
    "V22": (
        "sticky",
        {"t": racks("a", "a", "b", "b", "ab")},
        [member("m1", "t", rack="b"), member("m2", "t", rack="a")],
        {"m1": "t-2 t-3", "m2": "t-0 t-1 t-4"},
    ),
}


@pytest.mark.parametrize("vector", VECTORS)
def test_vectors_of_the_rule_book(vector: str) -> None:
    """V1..V22: the output of the real Java code, list order included."""
    assignor, topics, members, expected = VECTORS[vector]
    assert assigned(assignor, topics, members) == expected


def test_recorded_answers_of_java() -> None:
    """A-01 to A-71, W-01: every recorded random group comes out as from Kafka 4.4.0's classes."""
    kinds = set()
    for case in read_cases(RECORDED):
        kinds.add(case["kind"])
        theirs = [{k: one[k] for k in ("result", "sent", "wire")} for one in case["rounds"]]
        assert evaluate(case) == theirs, case["case"]
    assert kinds == set(ASSIGNORS)


@pytest.mark.parametrize("hash_seed", ["1", "77"])
def test_results_do_not_depend_on_pythons_hashes(hash_seed: str) -> None:
    """A-06: the order is Java's, whatever PYTHONHASHSEED makes of sets."""
    command = [sys.executable, "-m", "tests.vectors", str(RECORDED)]
    path = ":".join(sys.path)
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=RECORDED.parents[3],
        env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stdout + done.stderr


class TestCommand:
    """``python -m tests.vectors FILE``."""

    def test_says_how_many_differ(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """V1, V3: exit status 1 and the first difference when a file is not what ours gives."""
        good = {
            "case": "good",
            "kind": "range",
            "topics": {"t": [[None]]},
            "members": [member("a", "t")],
            "result": {"a": [["t", 0]]},
        }
        path = tmp_path / "cases.jsonl"
        path.write_text(json.dumps(good) + "\n")
        assert main([str(path)]) == 0
        assert "0 of 1 cases differ" in capsys.readouterr().out
        wrong = {**good, "case": "wrong", "result": {"a": []}}
        write_cases(tmp_path / "cases.jsonl.gz", [good, wrong])
        assert main([str(tmp_path / "cases.jsonl.gz")]) == 1
        text = capsys.readouterr().out
        assert "range: 1 of 2 differ" in text
        assert '"case": "wrong"' in text
        assert 'ours: {"a": [["t", 0]]}' in text

    @pytest.mark.parametrize(
        ("name", "content", "complaint"),
        [
            ("missing.jsonl", None, "missing.jsonl"),
            ("broken.jsonl", "{\n", "broken.jsonl, line 1"),
            ("other.jsonl", '\n{"kind":"rang","topics":{},"members":[],"result":{}}\n', "line 2"),
            ("empty.jsonl", "", "no cases"),
            ("short.jsonl.gz", "not gzip", "short.jsonl.gz"),
        ],
    )
    def test_bad_files(
        self,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
        name: str,
        content: str | None,
        complaint: str,
    ) -> None:
        """Bad input is exit status 2 and one line that names file and place."""
        if content is not None:
            (tmp_path / name).write_text(content)
        assert main([str(tmp_path / name)]) == 2
        assert complaint in capsys.readouterr().err


def test_names_of_assignors() -> None:
    """A name nobody has is refused with the names there are."""
    assert {name: make_assignor(name).name for name in ASSIGNORS} == {n: n for n in ASSIGNORS}
    with pytest.raises(ValueError, match="range, roundrobin, sticky, cooperative-sticky"):
        make_assignor("rang")
