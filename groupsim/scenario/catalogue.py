"""The scenarios that come with groupsim, and finding one by name or by path."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from groupsim.scenario.faults import Fault, ScenarioError, near_match
from groupsim.scenario.loader import parse_scenario, read_scenario
from groupsim.scenario.model import Scenario

__all__ = ["catalogue", "catalogue_names", "catalogue_text", "load_scenario"]

_SUFFIX: Final = ".yaml"


def _folder() -> Traversable:
    """Return where the catalogue is: inside an installed package, or beside it in a checkout."""
    package = files("groupsim")
    installed = package / "_scenarios"
    if installed.is_dir():
        return installed
    return Path(str(package)).parent / "scenarios"


@cache
def catalogue_names() -> tuple[str, ...]:
    """Return the names of all scenarios in the catalogue, sorted."""
    folder = _folder()
    if not folder.is_dir():
        return ()
    names = (entry.name for entry in folder.iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)))


def catalogue_text(name: str) -> str:
    """Return the text of a scenario of the catalogue.

    Raises:
        KeyError: there is none of that name.

    """
    if name not in catalogue_names():
        raise KeyError(name)
    return (_folder() / f"{name}{_SUFFIX}").read_text(encoding="utf-8")


def catalogue() -> tuple[tuple[str, str], ...]:
    """Return name and title of every scenario in the catalogue, by name."""
    return tuple((name, load_scenario(name).title) for name in catalogue_names())


def load_scenario(name_or_path: str | Path) -> Scenario:
    """Return a scenario of the catalogue by its name, or the one in a file.

    What has a ``/`` or ends in ``.yaml`` or ``.yml`` is a path; a name that is not in the catalogue may be
    a file as well.

    Raises:
        ScenarioError: there is no such scenario, or it has faults.

    """
    text = str(name_or_path)
    is_path = isinstance(name_or_path, Path) or "/" in text or text.endswith((_SUFFIX, ".yml"))
    if not is_path and text in catalogue_names():
        return parse_scenario(catalogue_text(text), f"{text}{_SUFFIX}")
    path = Path(name_or_path)
    if is_path or path.is_file():
        return read_scenario(path)
    known = catalogue_names()
    fault = Fault(
        source=text,
        line=0,
        column=0,
        path=(),
        problem="no scenario of this name, and no such file",
        near=near_match(text, known),
        allowed=", ".join(known),
    )
    raise ScenarioError((fault,))
