"""``groupsim list``, ``validate``, ``schema``, ``init``: about scenario files."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from groupsim.cli.statuses import BAD_INPUT, MET, InputError, complain

__all__ = ["list_scenarios", "print_schema", "validate_scenarios", "write_template"]


def list_scenarios() -> int:
    """Print name and title of every scenario in the catalogue."""
    from groupsim.scenario import catalogue

    entries = catalogue()
    width = max((len(name) for name, _ in entries), default=0)
    for name, title in entries:
        sys.stdout.write(f"{name:<{width}}  {title}".rstrip() + "\n")
    return MET


def validate_scenarios(files: Sequence[str]) -> int:
    """Check every file; print one line for each fault, or that there is none."""
    from groupsim.scenario import ScenarioError, load_scenario

    status = MET
    for file in files:
        try:
            load_scenario(file)
        except ScenarioError as error:
            complain(str(error))
            status = BAD_INPUT
        except OSError as error:
            complain(f"{file}: {error.strerror}")
            status = BAD_INPUT
        else:
            sys.stdout.write(f"{file}: ok\n")
    return status


def print_schema() -> int:
    """Print the JSON Schema of scenario files."""
    from groupsim.scenario.schema import json_schema

    sys.stdout.write(json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n")
    return MET


def write_template(file: str) -> int:
    """Write a commented scenario to ``file``; an existing file is left alone.

    Raises:
        InputError: there is a file already.
        OSError: it cannot be written.

    """
    from groupsim.scenario.template import template

    if file == "-":
        sys.stdout.write(template())
        return MET
    path = Path(file)
    name = re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).strip("-")[:60].strip("-")
    text = template(name or "my-scenario")
    try:
        with path.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        raise InputError(f"{file}: there is such a file already; it was left alone") from None
    sys.stdout.write(f"{file}: written. Run it: groupsim run {shlex.quote(file)}\n")
    return MET
