"""groupsim show and replay: whole traces, and all the ways in which they can be broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupsim.trace.reader import TraceReader
from groupsim.trace.writer import TraceWriter
from tests.cli.conftest import Command


def test_show_tells_what_run_told(groupsim: Command, small: str, recorded: Path) -> None:
    """A recorded run is reported like a fresh one, hash included."""
    fresh = groupsim("run", small, "--seed", "7").out
    shown = groupsim("show", str(recorded))
    assert shown.status == 0
    assert shown.out.splitlines()[:-1] == fresh.splitlines()[:-1]
    assert shown.out.endswith("reproduce  groupsim replay t\n")


def test_show_filters(groupsim: Command, recorded: Path) -> None:
    """By member, group, time and kind."""

    def lines(*arguments: str) -> list[str]:
        ran = groupsim("show", str(recorded), *arguments)
        assert (ran.status, ran.err) == (0, "")
        return ran.out.splitlines()

    told = "\n".join(lines("--member", "c-2"))
    assert "c-2  takes orders 2-3" in told
    assert "c-1  takes" not in told
    assert "Created a new member id c-2-" in told, "the broker's sentences about it belong to it"
    late = "\n".join(lines("--from", "19s", "--to", "20s"))
    assert "c-2  is asked to stop" in late
    assert "takes orders" not in late
    assert "rebalances" not in late
    events = lines("--kind", "ownership", "--kind", "timeline")
    assert {line.split(" ")[-1].partition("=")[0] for line in events} >= {"generation_id"}
    assert all(" ownership " in line or " timeline " in line for line in events)
    delivered = lines("--kind", "deliver", "--member", "c-1", "--to", "1s")
    assert delivered
    assert all("c-1" in line for line in delivered)
    assert len(lines("--kind", "all", "--group", "g")) < len(lines("--kind", "all"))


@pytest.mark.parametrize(
    "filters",
    [
        ("--kind", "drop"),
        ("--kind", "ownership", "--kind", "drop", "--to", "1us"),
        ("--member", "c-*", "--from", "29s"),
        ("--group", "g", "--from", "40s"),
    ],
)
def test_nothing_to_show_is_said(
    groupsim: Command, recorded: Path, filters: tuple[str, ...]
) -> None:
    """Filters that leave nothing: one line on standard error repeats them, and status 0."""
    ran = groupsim("show", str(recorded), *filters)
    assert ran.status == 0
    (line,) = ran.err.splitlines()
    assert line.startswith("groupsim: t: nothing to show for --")
    assert all(word in line for word in filters)
    if "--kind" in filters:
        assert ran.out == ""


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--member", "c-9"), "nothing in this trace is called 'c-9'; did you mean 'c-"),
        (("--group", "h"), "nothing in this trace is called 'h'"),
        (("--kind", "sendd"), "no event kind 'sendd'; did you mean 'send'?"),
        (("--from", "soon"), "--from 'soon': wanted a time"),
    ],
)
def test_names_that_are_not_there(
    groupsim: Command, recorded: Path, arguments: tuple[str, str], problem: str
) -> None:
    """A filter that can match nothing is a typing error: status 2, with a near match."""
    ran = groupsim("show", str(recorded), *arguments)
    assert ran.status == 2
    assert problem in ran.err
    assert len(ran.err.splitlines()) == 1


def test_cut_traces_are_shown_and_said_to_be_cut(groupsim: Command, recorded: Path) -> None:
    """A prefix, cut at many places: what is whole is told, status 0, and the rest is named."""
    raw = recorded.read_bytes()
    first_event = next(iter(TraceReader(recorded).raw()))
    assert first_event[0] == 1
    for length in (len(raw) - 1, len(raw) - 200, len(raw) // 2, len(raw) // 2 + 1, 12_000):
        Path("cut").write_bytes(raw[:length])
        ran = groupsim("show", "cut")
        assert (ran.status, ran.err) == (0, "")
        assert "the trace is unfinished after" in ran.out
        assert "? undecided" in ran.out.splitlines()
        ran = groupsim("show", "cut", "--kind", "process")
        assert ran.status == 0
        assert ran.out.splitlines()[-1].startswith("the trace is unfinished after")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "byte 0: the file is empty"),
        (b"groupsim: 1\n", "byte 0: this is not a groupsim trace"),
        (b"\x86\xa6format\xaegroup", "byte 0: the header is cut off"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "byte 0: "),
        (bytes(100), "byte 0: this is not a groupsim trace"),
    ],
)
def test_foreign_files(groupsim: Command, content: bytes, problem: str) -> None:
    """Status 2 and one line with file and byte, for show and replay alike."""
    Path("t").write_bytes(content)
    for command in ("show", "replay"):
        ran = groupsim(command, "t")
        assert (ran.status, ran.out) == (2, "")
        assert ran.err.startswith(f"groupsim: t: {problem}")
        assert len(ran.err.splitlines()) == 1


def test_damaged_traces(groupsim: Command, recorded: Path) -> None:
    """Damage in the middle: status 2 with the byte, whatever could be told before it."""
    raw = bytearray(recorded.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    Path("damaged").write_bytes(raw)
    for command in ("show", "replay"):
        ran = groupsim(command, "damaged")
        assert ran.status == 2
        assert "groupsim: damaged: byte " in ran.err
        assert len(ran.err.splitlines()) == 1
    Path("folder").mkdir()
    assert "not a regular file" in groupsim("show", "folder").err


def test_replay_is_equal(groupsim: Command, recorded: Path) -> None:
    """A trace and its second run have the same events; also as far as a cut one goes."""
    ran = groupsim("replay", str(recorded))
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.startswith("t: all ")
    raw = recorded.read_bytes()
    Path("cut").write_bytes(raw[: len(raw) // 2])
    ran = groupsim("replay", "cut")
    assert ran.status == 0
    assert "the recording is unfinished: it was compared as far as it goes" in ran.out


def test_replay_prints_the_first_difference(groupsim: Command, recorded: Path) -> None:
    """An event that differs is printed from both sides, after those before it; status 1."""
    reader = TraceReader(recorded)
    with TraceWriter(
        Path("other"), scenario=reader.header.scenario, seed=reader.header.seed
    ) as writer:
        for event in reader:
            fields = dict(event.fields)
            if event.kind == "ownership" and event.time_us > 10_000_000:
                fields["generation_id"] = 99
            writer.event(event.time_us, event.cause, event.kind, **fields)
    ran = groupsim("replay", "other")
    assert ran.status == 1
    lines = ran.out.splitlines()
    assert lines[0].startswith("other: different after ")
    recorded_line = next(line for line in lines if line.startswith("  recorded  "))
    replayed_line = next(line for line in lines if line.startswith("  replayed  "))
    assert "generation_id=99" in recorded_line
    assert "generation_id=99" not in replayed_line
    assert lines[-1] == "different: generation_id"


def test_traces_that_cannot_be_run_again(groupsim: Command) -> None:
    """Without a scenario, or with one that this groupsim does not know: status 2."""
    TraceWriter(Path("bare")).close()
    ran = groupsim("replay", "bare")
    assert ran.status == 2
    assert "holds no scenario" in ran.err
    TraceWriter(Path("odd"), scenario={"groupsim": 1, "name": "x", "moons": 2}).close()
    ran = groupsim("replay", "odd")
    assert ran.status == 2
    assert "cannot run the recorded scenario" in ran.err


def test_what_a_trace_says_cannot_take_the_terminal_over(groupsim: Command) -> None:
    """Control characters in a trace are shown, not obeyed."""
    with TraceWriter(Path("t"), scenario={"name": "\x1b[2J"}) as writer:
        writer.event(1, 0, "script", who="\x1b]0;x\x07", sentence="\x1b[31mred\nnext")
    for arguments in ((), ("--kind", "all")):
        ran = groupsim("show", "t", *arguments)
        assert ran.status == 0
        assert "\x1b" not in ran.out
        assert "\\x1b[31mred\\nnext" in ran.out
