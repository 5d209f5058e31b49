"""Text to scenario, with all faults at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

from groupsim.scenario.checks import semantic_faults
from groupsim.scenario.document import MAX_BYTES, Document, read_document
from groupsim.scenario.faults import Fault, Path, ScenarioError
from groupsim.scenario.model import Scenario
from groupsim.scenario.validation import MAX_FAULTS, validated

__all__ = ["parse_scenario", "read_scenario", "scenario_from_data"]


def parse_scenario(text: str | bytes, source: str = "scenario") -> Scenario:
    """Return the scenario that a YAML text describes. ``source`` is how messages call it.

    Raises:
        ScenarioError: it is not one; all its faults, in the order of the text.

    """
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return _checked(read_document(raw, source))


def read_scenario(path: FilePath) -> Scenario:
    """Return the scenario in a file.

    Raises:
        ScenarioError: the file cannot be read, or is no scenario.

    """
    source = str(path)
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        fault = Fault(source=source, line=0, column=0, path=(), problem=problem)
        raise ScenarioError((fault,)) from None
    return parse_scenario(raw, source)


def scenario_from_data(data: Mapping[str, Any], source: str) -> Scenario:
    """Return the scenario that plain data describes: what a file would hold, already read.

    Raises:
        ScenarioError: it is not one. The faults have a path and no line.

    """
    return _checked(Document(source, _lists(data), {(): (0, 0)}, ()))


def _lists(value: Any) -> Any:
    """Return plain data with lists where a trace reader may have made tuples."""
    if isinstance(value, Mapping):
        return {key: _lists(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_lists(item) for item in value]
    return value


def _checked(document: Document) -> Scenario:
    form = validated(document)
    faults = [*form.faults, *semantic_faults(document, form)]
    if faults or form.scenario is None:
        raise ScenarioError(sorted(faults, key=_order)[:MAX_FAULTS])
    return form.scenario


def _order(fault: Fault) -> tuple[int, int, tuple[str, ...]]:
    path: Path = fault.path
    return fault.line, fault.column, tuple(str(part) for part in path)
