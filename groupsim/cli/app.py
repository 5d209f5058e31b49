"""The commands and their options. What they do is in the modules beside this one.

A command returns what is to be done instead of doing it: typer would turn a closed pipe or Ctrl-C
into its own exits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["app"]

Todo = Callable[[], int]
"""The rest of a command; its result is the exit status."""

app = typer.Typer(
    name="groupsim",
    help="A deterministic flight simulator for Kafka consumer groups.",
    epilog=(
        "Exit statuses: 0 expectations met, 1 not met, 2 bad input, 3 undecided, "
        "70 a fault of groupsim, 130 interrupted."
    ),
    add_completion=False,
    rich_markup_mode=None,  # plain help: it need not load what draws boxes
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Scenario = Annotated[
    str, typer.Argument(metavar="NAME|FILE", help="A scenario of the catalogue, or a YAML file.")
]
Seed = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=0,
        max=(1 << 64) - 1,
        help="Seed of all randomness [default: scenario's].",
    ),
]
TraceFile = Annotated[Path, typer.Argument(metavar="TRACE", help="A trace, from run --trace.")]


def _version(wanted: bool) -> None:
    if wanted:
        from groupsim import __version__

        typer.echo(f"groupsim {__version__}")
        raise typer.Exit


@app.callback()
def _groupsim(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command()
def run(
    scenario: Scenario,
    *,
    seed: Seed = None,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write everything that happens to FILE.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="End the run at this virtual time.")
    ] = None,
) -> Todo:
    """Run a scenario: what happened, the rebalances, the verdict."""
    from groupsim.cli.running import run_and_report

    return partial(run_and_report, scenario, seed=seed, trace=trace, as_json=json, until=until)


@app.command()
def replay(trace: TraceFile) -> Todo:
    """Run a trace again and compare event by event."""
    from groupsim.cli.replaying import replay_and_report

    return partial(replay_and_report, trace)


@app.command()
def show(
    trace: TraceFile,
    *,
    group: Annotated[str | None, typer.Option(metavar="NAME", help="Only this group.")] = None,
    member: Annotated[
        str | None,
        typer.Option(metavar="NAME", help='Only this client or broker; patterns ("c-*") work.'),
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="From this virtual time on, such as 1m30s."),
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="Up to this virtual time.")
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND",
            help="Show events of this kind as they are (repeatable; all: every kind).",
        ),
    ] = None,
) -> Todo:
    """Tell what happened in a trace."""
    from groupsim.cli.showing import show_trace

    return partial(
        show_trace, trace, group=group, member=member, start=from_, end=to, kinds=tuple(kind or ())
    )


@app.command("list")
def list_() -> Todo:
    """List the scenarios of the catalogue."""
    from groupsim.cli.files import list_scenarios

    return list_scenarios


@app.command()
def validate(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Scenario files.")],
) -> Todo:
    """Check scenarios without running them; all faults of all files at once."""
    from groupsim.cli.files import validate_scenarios

    return partial(validate_scenarios, files)


@app.command()
def schema() -> Todo:
    """Print the JSON Schema of scenario files, for editors."""
    from groupsim.cli.files import print_schema

    return print_schema


@app.command()
def init(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Where to write it; - for the terminal.")
    ] = "scenario.yaml",
) -> Todo:
    """Write a commented scenario to start from."""
    from groupsim.cli.files import write_template

    return partial(write_template, file)
