"""What only a process of its own can show: signals, pipes, terminals, start-up."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from groupsim.trace.reader import TraceReader
from tests.cli.conftest import SAME_PATH, SMALL, Command, finish, start

LONG = SMALL.replace("until: 30s", "until: 100h").replace("count: 2", "count: 30")


def _start_long(at_least: int) -> subprocess.Popen[str]:
    """Start a run that would take very long; return when its trace has some size."""
    Path("long.yaml").write_text(LONG)
    process = start("run", "long.yaml", "--trace", "t")
    deadline = time.monotonic() + 60
    while not (Path("t").exists() and Path("t").stat().st_size > at_least):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return process


@pytest.mark.parametrize("at_least", [0, 1_000_000])
def test_ctrl_c_closes_the_trace_and_reports(groupsim: Command, at_least: int) -> None:
    """SIGINT: status 130, a report of what there was, a trace that says "interrupted"."""
    process = _start_long(at_least)
    process.send_signal(signal.SIGINT)
    ran = finish(process)
    assert ran.status == 130
    assert "Traceback" not in ran.err
    reader = TraceReader(Path("t"))
    assert sum(1 for _ in reader.raw()) == reader.events
    if at_least:
        assert reader.status == "interrupted"
        assert "the run was interrupted" in ran.out
    shown = groupsim("show", "t")
    assert shown.status == 0
    assert [path.name for path in Path().iterdir() if path.name.startswith(".")] == []


def test_a_killed_run_leaves_a_readable_prefix(groupsim: Command) -> None:
    """SIGKILL: the trace is an unfinished prefix that show and replay can deal with."""
    process = _start_long(300_000)
    process.kill()
    assert finish(process).status == -signal.SIGKILL
    shown = groupsim("show", "t")
    assert (shown.status, shown.err) == (0, "")
    assert "the trace is unfinished after" in shown.out
    again = groupsim("replay", "t")
    assert (again.status, again.err) == (0, "")
    assert "the recording is unfinished" in again.out


def test_a_closed_pipe_is_no_error(recorded: Path) -> None:
    """``groupsim show | head -1``: silent, status 0; a run keeps the status of its verdict."""
    Path("bad.yaml").write_text(SMALL.replace("at_most: 2", "at_most: 1"))
    for arguments, status in (
        (("show", str(recorded), "--kind", "all"), 0),
        (("show", str(recorded)), 0),
        (("run", "bad.yaml", "--json"), 1),
    ):
        process = start(*arguments)
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
        assert process.wait(60) == status
        process.stderr.close()


@pytest.mark.parametrize(("columns", "no_color"), [(80, False), (40, True)])
def test_on_a_terminal(small: str, columns: int, no_color: bool) -> None:
    """Colours on a terminal unless NO_COLOR is set; narrow terminals get narrow lines."""
    extra = {"NO_COLOR": "1"} if no_color else {}
    environment = {
        **os.environ,
        "TERM": "xterm",
        "COLUMNS": str(columns),
        "PYTHONPATH": SAME_PATH,
        **extra,
    }
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "groupsim", "run", small],
        stdout=terminal,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        env=environment,
    )
    os.close(terminal)
    printed = b""
    try:
        while block := os.read(controller, 65_536):
            printed += block
    except OSError:  # Linux says so when the other side of a terminal is closed
        pass
    os.close(controller)
    assert process.communicate(timeout=60)[1] == b""
    assert process.returncode == 0
    text = printed.decode().replace("\r\n", "\n")
    assert ("\x1b[" in text) is not no_color
    for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines():
        assert len(line) <= columns or line.startswith(("sha256", "reproduce"))


def test_help_loads_nothing_that_it_does_not_need() -> None:
    """``groupsim --help`` is quick because the simulator is not imported for it."""
    code = (
        "import sys\nfrom groupsim.cli.statuses import run_guarded\n"
        "assert run_guarded(['--help']) == 0\n"
        "heavy = ('trio', 'pydantic', 'msgpack', 'ruamel', 'kio', 'groupsim.runtime',"
        " 'groupsim.scenario', 'groupsim.coordinator', 'rich.console')\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": SAME_PATH},
    )
    assert ran.stdout.splitlines()[-1] == "[]"
