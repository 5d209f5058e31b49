"""Data to model: pydantic's verdicts turned into faults with a place, a reason and a near match."""

from __future__ import annotations

import copy
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from groupsim.scenario.document import Document
from groupsim.scenario.faults import Fault, Path, near_match, shown
from groupsim.scenario.model import Scenario
from groupsim.scenario.wanted import annotation_of, bare, keys, wanted_text, written

__all__ = ["MAX_FAULTS", "Form", "validated"]

_ROUNDS: Final = 50
"""Each round of pruning removes at least one value, so this only bounds absurd files."""

MAX_FAULTS: Final = 50
"""More would hide the first ones."""

_WANTED: Final[Mapping[str, str]] = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "bool_type": "true or false",
    "float_type": "a number",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "tuple_type": "a list",
    "list_type": "a list",
}


_PLACEHOLDERS: Final[Mapping[str, Any]] = {
    "groupsim": 1,
    "name": "unnamed",
    "topics": {"unnamed": {"partitions": 1}},
    "groups": {"unnamed": {"members": [{"name": "unnamed", "subscribe": {"pattern": "unnamed"}}]}},
    "until": "366d",
}
"""Stand in for required fields that are missing or spoiled, so that the rest can be checked."""


@dataclass(slots=True)
class Form:
    """What validation found: the usable rest of a scenario, the faults, and what they spoil."""

    scenario: Scenario | None
    faults: list[Fault]
    spoiled: list[Path]
    alive: dict[Path, list[int]] = field(default_factory=dict)

    def original(self, path: Path) -> Path:
        """Return where ``path`` of the usable rest stands in the file."""
        for depth, part in enumerate(path):
            indices = self.alive.get(path[:depth])
            if indices is not None and isinstance(part, int) and part < len(indices):
                return (*path[:depth], indices[part], *path[depth + 1 :])
        return path

    def is_spoiled(self, *start: str | int) -> bool:
        """Whether a fault lies in the part of the scenario that begins with ``start``."""
        return any(path[: len(start)] == start for path in self.spoiled)


def validated(document: Document) -> Form:
    """Check the form of a document. The usable rest is None if nothing usable remains."""
    form = Form(None, list(document.faults), [fault.path for fault in document.faults])
    data = copy.deepcopy(document.data)
    if not isinstance(data, dict):
        wanted = "a mapping that begins with groupsim: 1"
        form.faults.append(document.fault((), "not a scenario", found=shown(data), allowed=wanted))
        return form
    if "groupsim" not in data:
        form.faults.append(document.fault(("groupsim",), "is missing", allowed="groupsim: 1"))
    for round_number in range(_ROUNDS):
        try:
            form.scenario = Scenario.model_validate(data)
        except ValidationError as error:
            details = error.errors(include_url=False)
        else:
            return form
        earlier = tuple(form.spoiled) if round_number else ()
        for detail in details:
            _note(form, document, data, detail, earlier)
        if len(form.faults) >= MAX_FAULTS or not _prune(form, data, details):
            break
    return form


def _note(
    form: Form, document: Document, data: dict[str, Any], detail: Any, earlier: tuple[Path, ...]
) -> None:
    loc: Path = tuple(part for part in detail["loc"] if part != "[key]")
    path = form.original(_written_path(data, loc))
    problem, more = _described(loc, detail)
    if detail["type"] == "missing":
        path = (*path, loc[-1])
    if any(spoiled[: len(path)] == path for spoiled in earlier):
        return  # only because of what was taken out
    fault = document.fault(path, problem, **more)
    form.spoiled.append(path)
    if not any(_same(fault, other) for other in form.faults):
        form.faults.append(fault)


def _same(fault: Fault, other: Fault) -> bool:
    """Whether two say the same of one place: a short form may stand for two fields."""
    return (fault.path, fault.problem, fault.found) == (other.path, other.problem, other.found)


def _described(loc: Path, detail: Any) -> tuple[str, dict[str, str]]:
    kind, context = detail["type"], detail.get("ctx", {})
    value = detail["input"]
    if kind == "groupsim":
        more = {name: text for name, text in context.items() if name != "problem"}
        if "found" not in more and not isinstance(value, BaseModel | dict):
            more["found"] = shown(value)
        return context["problem"], more
    if kind == "extra_forbidden":
        known = _known_fields(loc[:-1])
        near = near_match(str(loc[-1]), known)
        return f"unknown key {shown(loc[-1])}", {"near": near, "allowed": ", ".join(known)}
    if kind == "missing":
        return "is missing", {"allowed": _wanted(loc)}
    if kind in _WANTED:
        return f"not {_WANTED[kind]}", {"found": shown(value), "allowed": _wanted(loc)}
    if kind == "literal_error":
        allowed = context["expected"].replace("'", "").replace(" or ", ", ")
        near = near_match(value, allowed.split(", ")) if isinstance(value, str) else ""
        return "not one of the choices", {"found": shown(value), "near": near, "allowed": allowed}
    return _limits(kind, context, value)


def _limits(kind: str, context: Mapping[str, Any], value: Any) -> tuple[str, dict[str, str]]:
    if kind == "greater_than_equal":
        return "too small", {"found": shown(value), "allowed": f"{context['ge']} or more"}
    if kind == "greater_than":
        return "too small", {"found": shown(value), "allowed": f"more than {context['gt']}"}
    if kind in ("less_than_equal", "less_than"):
        allowed = f"at most {context['le']}" if "le" in context else f"less than {context['lt']}"
        return "too large", {"found": shown(value), "allowed": allowed}
    if kind in ("too_short", "string_too_short"):
        return "is empty", {}
    if kind in ("too_long", "string_too_long"):
        return "too long", {"allowed": f"at most {context['max_length']}"}
    if kind == "string_pattern_mismatch":
        allowed = "small letters, digits and hyphens, such as rolling-restart"
        return "not a name for a scenario", {"found": shown(value), "allowed": allowed}
    return str(kind).replace("_", " "), {"found": shown(value)}


def _known_fields(loc: Path) -> tuple[str, ...]:
    """Return the keys that are known at ``loc``."""
    here = bare(_annotation(loc))
    if isinstance(here, type) and issubclass(here, BaseModel):
        return (*keys(here), *getattr(here, "ALSO", ()))
    return ()


def _wanted(loc: Path) -> str:
    """Return what may stand at ``loc``, in words; "" if the type says it all."""
    words = wanted_text(_annotation(loc))
    if not words and loc and isinstance(loc[-1], int):
        return _wanted(loc[:-1])  # an item that was written without its list
    return words


def _annotation(loc: Path) -> Any:
    """Return the annotation at ``loc``, walking the model; None if there is no such place."""
    here: Any = Scenario
    for part in loc:
        here = _inside(bare(here), part)
    return here


def _inside(here: Any, part: str | int) -> Any:
    if isinstance(here, type) and issubclass(here, BaseModel):
        for name, info in here.model_fields.items():
            if part in (name, written(here, name)):
                return annotation_of(info)
        return None
    arguments = typing.get_args(here)
    if typing.get_origin(here) is dict:
        return arguments[1]
    if typing.get_origin(here) is tuple:
        return arguments[0]
    return None


def _prune(form: Form, data: dict[str, Any], details: list[Any]) -> bool:
    """Take what cannot be used out of ``data``; return whether anything was."""
    paths = {_written_path(data, tuple(detail["loc"])) for detail in details}
    removed = False
    for path in sorted(paths, key=_prune_order, reverse=True):
        removed |= _remove(form, data, path)
    for detail in details:
        if detail["type"] == "missing" and len(detail["loc"]) == 1:
            data[detail["loc"][0]] = copy.deepcopy(_PLACEHOLDERS[detail["loc"][0]])
            removed = True
    return removed


def _prune_order(path: Path) -> list[str]:
    return [str(part).zfill(9) for part in path]


def _remove(form: Form, data: dict[str, Any], path: Path) -> bool:
    if not path:
        return False
    parent: Any = data
    for part in path[:-1]:
        parent = parent[part]
    last = path[-1]
    if isinstance(last, str):
        parent.pop(last, None)
        return True
    if any(isinstance(part, int) for part in path[:-1]):  # a list in a list goes as a whole
        return _remove(form, data, path[:-1])
    indices = form.alive.setdefault(path[:-1], list(range(len(parent))))
    del parent[last]
    del indices[last]
    return True


def _written_path(data: Any, loc: Path) -> Path:
    """Return the part of ``loc`` that stands in ``data``: short forms have fewer levels."""
    path: list[str | int] = []
    here: Any = data
    for part in loc:
        if _has(here, part):
            here = here[part]
            path.append(part)
    return tuple(path)


def _has(here: Any, part: str | int) -> bool:
    if isinstance(here, list):
        return isinstance(part, int) and part < len(here)
    return isinstance(here, dict) and part in here
