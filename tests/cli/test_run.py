"""groupsim run: reports, verdicts, exit statuses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from groupsim.trace.reader import TraceReader
from tests.cli.conftest import SMALL, Command, finish, start


def test_a_run_reports_what_happened(groupsim: Command, small: str) -> None:
    """Heading, timeline, rebalances, verdict, hash and the command that reproduces the run."""
    ran = groupsim("run", small, "--seed", "7")
    assert (ran.status, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0].startswith("small   seed 7")
    assert any(line.endswith("c-2  takes orders 2-3") for line in lines)
    assert "g: 2 rebalances" in lines
    assert "✓ met" in lines
    assert lines[-1] == "reproduce  groupsim run small.yaml --seed 7"
    assert "\x1b" not in ran.out
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("expect", "until", "status", "word"),
    [
        ("stable_by: 10s", None, 0, "met"),
        ("rebalances: {at_most: 1}", None, 1, "not met"),
        ("rebalances: {at_most: 2}", "15s", 3, "undecided"),
        ("stable_by: 1s", "15s", 1, "not met"),
    ],
)
def test_statuses_of_verdicts(
    groupsim: Command, expect: str, until: str | None, status: int, word: str
) -> None:
    """0 met, 1 not met, 3 undecided, in words as well."""
    head, _, _ = SMALL.partition("expect:")
    Path("x.yaml").write_text(f"{head}expect:\n  - {{group: g, {expect}}}\n")
    ran = groupsim("run", "x.yaml", "--json", *(("--until", until) if until else ()))
    report = json.loads(ran.out)
    assert (ran.status, report["verdict"]) == (status, word)
    wanted = "groupsim run x.yaml --seed 0" + (f" --until {until}" if until else "")
    assert report["reproduce"] == wanted


def test_json_is_the_same_under_any_hash_seed(groupsim: Command, small: str) -> None:
    """Two processes with different PYTHONHASHSEED print the same bytes; another seed others."""
    first, second = (
        start("run", small, "--seed", "7", "--json", PYTHONHASHSEED=hash_seed)
        for hash_seed in ("1", "2")
    )
    one, two = finish(first), finish(second)
    assert one.status == two.status == 0
    assert one.out == two.out == groupsim("run", small, "--seed", "7", "--json").out
    other = groupsim("run", small, "--seed", "8", "--json")
    hashes = {json.loads(ran.out)["trace_sha256"] for ran in (one, other)}
    assert len(hashes) == 2


def test_the_reproduce_command_reproduces(groupsim: Command, small: str) -> None:
    """The command at the end of a report gives the same report."""
    first = groupsim("run", small, "--until", "25s", "--json")
    command = json.loads(first.out)["reproduce"].split()
    assert groupsim(*command[1:], "--json").out == first.out


def test_a_trace_changes_nothing_in_the_report(groupsim: Command, small: str) -> None:
    """The hash is the same with and without a file, wherever it is."""
    bare = json.loads(groupsim("run", small, "--json").out)
    Path("deep").mkdir()
    traced = groupsim("run", small, "--json", "--trace", "deep/t")
    assert json.loads(traced.out) == bare
    assert Path("deep/t").stat().st_size > 10_000
    assert [path.name for path in Path("deep").iterdir()] == ["t"]


def test_every_key_of_the_json_is_described(groupsim: Command, small: str) -> None:
    """docs/json.md names every key that a report has."""
    report = json.loads(groupsim("run", small, "--json").out)
    group = report["groups"]["g"]
    keys = {*report, *group, *group["rebalances"][0], *report["timeline"][0]}
    keys |= set(report["expectations"][0]) - {"found"}
    text = (Path(__file__).parents[2] / "docs" / "json.md").read_text(encoding="utf-8")
    assert sorted(key for key in keys if not re.search(rf"[`{{ ]{key}[`}},]", text)) == []


def test_times_of_a_trace_never_go_back(recorded: Path) -> None:
    """Virtual time never decreases, and ids count on: the format promises it."""
    times = [event.time_us for event in TraceReader(recorded)]
    assert times == sorted(times)


def test_a_catalogue_scenario_runs_by_name(groupsim: Command) -> None:
    """Scenarios of the catalogue need no file."""
    ran = groupsim("run", "first-join", "--seed", "3")
    assert ran.status == 0
    assert "reproduce  groupsim run first-join --seed 3" in ran.out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("run",), "Missing argument"),
        (("run", "small.yaml", "--sed", "7"), "No such option: --sed"),
        (("run", "small.yaml", "--seed", "-1"), "--seed"),
        (("run", "small.yaml", "--seed", "x"), "--seed"),
        (("run", "small.yaml", "--seed", str(1 << 64)), "--seed"),
        (("run", "small.yaml", "--until", "5"), "--until '5': wanted a time with its unit"),
        (("run", "small.yaml", "--until", "-5s"), "cannot be negative"),
        (("run", "small.yaml", "--trace", "no/t"), "no/t: No such file or directory"),
        (("run", "small.yaml", "--trace", "."), "Is a directory"),
        (("run", "nothing.yaml"), "nothing.yaml: cannot be read"),
        (("run", "firstjoin"), "first-join"),
        (("runn",), "Did you mean 'run'"),
        (("show", "missing"), "missing: No such file or directory"),
        (("replay", "small.yaml"), "small.yaml: byte 0: this is not a groupsim trace"),
        (("init", "small.yaml"), "small.yaml: there is such a file already"),
        (("init", "no/x.yaml"), "no/x.yaml: No such file or directory"),
    ],
)
def test_bad_input_is_one_clear_line(
    groupsim: Command, small: str, arguments: tuple[str, ...], problem: str
) -> None:
    """Status 2, one line on standard error, nothing on standard output, nothing left behind."""
    before = sorted(Path().iterdir())
    ran = groupsim(*arguments)
    assert (ran.status, ran.out) == (2, "")
    assert problem in ran.err
    assert len(ran.err.splitlines()) == 1
    assert "Traceback" not in ran.err
    assert sorted(Path().iterdir()) == before
    assert Path(small).read_text() == SMALL


def test_faults_of_a_scenario_are_all_told(groupsim: Command) -> None:
    """Each fault is a line with file and line number; no report, status 2."""
    Path("bad.yaml").write_text(SMALL.replace("until: 30s", "untill: 30s").replace("4}", "-4}"))
    ran = groupsim("run", "bad.yaml", "--trace", "t")
    assert (ran.status, ran.out) == (2, "")
    assert len(ran.err.splitlines()) >= 2
    assert all(line.startswith("bad.yaml:") for line in ran.err.splitlines())
    assert not Path("t").exists()


def test_our_own_fault_says_how_to_report_it(
    groupsim: Command, small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status 70 with seed and command; a traceback only with GROUPSIM_DEBUG=1."""

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("this cannot be")

    monkeypatch.setattr("groupsim.cli.running.run_scenario", broken)
    ran = groupsim("run", small)
    assert (ran.status, ran.out) == (70, "")
    assert "a fault of groupsim itself: RuntimeError: this cannot be" in ran.err
    assert "groupsim run small.yaml; seed 0 " in ran.err
    assert "Traceback" not in ran.err
    monkeypatch.setenv("GROUPSIM_DEBUG", "1")
    assert "Traceback" in groupsim("run", small).err


def test_version_and_help(groupsim: Command) -> None:
    """--version and --help are answered; no command at all is told so by the help and status 2."""
    assert groupsim("--version").out.startswith("groupsim 0.")
    for arguments in (("--help",), ("-h",)):
        ran = groupsim(*arguments)
        assert (ran.status, ran.err) == (0, "")
        assert "70 a" in ran.out
    assert groupsim().status == 2
    for command in ("run", "replay", "show", "list", "validate", "schema", "init"):
        assert groupsim(command, "--help").status == 0
