"""Exit statuses, and the one place where exceptions become a line for the user.

0 expectations met, 1 not met (or a replay that differs), 2 bad input, 3 undecided, 70 a fault of
groupsim, 130 interrupted by Ctrl-C.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Sequence
from typing import Final

__all__ = [
    "BAD_INPUT",
    "DIFFERENT",
    "FAULT",
    "INTERRUPTED",
    "MET",
    "NOT_MET",
    "UNDECIDED",
    "InputError",
    "complain",
    "is_interruption",
    "run_guarded",
    "silence",
]

MET: Final = 0
NOT_MET: Final = 1
DIFFERENT: Final = 1
BAD_INPUT: Final = 2
UNDECIDED: Final = 3
FAULT: Final = 70  # EX_SOFTWARE of sysexits.h
INTERRUPTED: Final = 130  # what shells report for SIGINT


class InputError(Exception):
    """Something the user gave cannot be used; the message says what, in one or more lines."""


def complain(text: str) -> None:
    """Print a message on standard error, free of control characters."""
    from groupsim.report.words import printable

    for line in text.splitlines() or [""]:
        sys.stderr.write(printable(line) + "\n")


def run_guarded(arguments: Sequence[str]) -> int:
    """Run the command line and return the exit status. Nothing but SystemExit comes out."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        status = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError as error:
        if error.filename is not None:  # the trace's pipe, not ours
            return _report(error, arguments)
        silence()
        return MET
    except BaseException as error:  # noqa: BLE001 - this is where they all end
        return _report(error, arguments)
    return status


def _run(arguments: Sequence[str]) -> int:
    from groupsim.cli.app import app

    if not arguments:
        app(args=["--help"], prog_name="groupsim", standalone_mode=False)
        return BAD_INPUT
    todo = app(args=list(arguments), prog_name="groupsim", standalone_mode=False)
    return todo() if callable(todo) else MET  # --help and --version leave nothing to do


def silence() -> None:
    """Nobody reads on (``groupsim show | head``): be silent, also while Python shuts down."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)


def _report(error: BaseException, arguments: Sequence[str]) -> int:
    if isinstance(error, SystemExit):
        raise error
    if is_interruption(error):
        complain("groupsim: interrupted")
        return INTERRUPTED
    known = _known_problem(error)
    if known is not None:
        complain(known)
        return BAD_INPUT
    if os.environ.get("GROUPSIM_DEBUG"):
        import traceback

        traceback.print_exception(error)
    notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
    command = shlex.join(["groupsim", *arguments])
    complain(
        f"groupsim: a fault of groupsim itself: {type(error).__name__}: {error}\n"
        f"Please report it with this command: {command}{notes} "
        "(GROUPSIM_DEBUG=1 shows where it happened)"
    )
    return FAULT


def _known_problem(error: BaseException) -> str | None:
    """Return the message for an exception that is about the user's input."""
    import typer

    from groupsim.trace.errors import TraceError, UnknownKindError

    if isinstance(error, InputError | TraceError | UnknownKindError):
        return f"groupsim: {error}"
    if isinstance(error, OSError) and error.filename is not None:
        return f"groupsim: {error.filename}: {error.strerror}"
    # BadParameter is a UsageError is a ClickException; typer does not export the last, and where it
    # comes from depends on typer's version.
    if isinstance(error, typer.BadParameter.__mro__[2]):
        message = " ".join(error.format_message().split())  # type: ignore[attr-defined]
        where = getattr(getattr(error, "ctx", None), "command_path", "groupsim")
        return f"groupsim: {message.rstrip('.')} (see {where} --help)"
    scenario = sys.modules.get("groupsim.scenario.faults")  # only loaded if one was read
    if scenario is not None and isinstance(error, scenario.ScenarioError):
        return str(error)
    return None


def is_interruption(error: BaseException) -> bool:
    """Whether this is Ctrl-C, alone or in the groups that trio's nurseries make of it."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_interruption(inner) for inner in error.exceptions)
    return isinstance(error, KeyboardInterrupt)
