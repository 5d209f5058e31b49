"""YAML text to plain data, with the line and column of everything in it.

Theory of operation. ruamel.yaml's parser yields events; data is composed here, because a
scenario must be refused politely whatever it is: its limits (size, nesting, what aliases unfold
to) are checked while reading, so that a hostile file costs no more than a good one. Scalars
follow YAML 1.2's core schema: ``on`` and ``yes`` are text, ``1:30`` is text, ``0s`` is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
    StreamStartEvent,
)

from groupsim.scenario.faults import Fault, Path, ScenarioError, shown

__all__ = ["MAX_BYTES", "Document", "read_document"]

MAX_BYTES: Final = 1 << 18
"""The longest scenario of the catalogue has some 5 kB; this keeps reading within a second or two."""

MAX_DEPTH: Final = 24
"""A scenario's deepest place is 9 levels down."""

MAX_VALUES: Final = 20_000
"""After aliases have been unfolded."""

_INT: Final = re.compile(r"[-+]?[0-9]+", re.ASCII)
_FLOAT: Final = re.compile(
    r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*)([eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+", re.ASCII
)
_HEX: Final = re.compile(r"0x[0-9a-fA-F]+", re.ASCII)
_WORDS: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


@dataclass(frozen=True, slots=True)
class Document:
    """Plain data and where it stands. ``places`` has (line, column) of values, by path; a mapping's
    entry stands where its key does.
    """

    source: str
    data: Any
    places: dict[Path, tuple[int, int]]
    faults: tuple[Fault, ...]

    def place(self, path: Path) -> tuple[int, int]:
        """Return the line and column of ``path``, or of the innermost thing around it."""
        for length in range(len(path), 0, -1):
            found = self.places.get(path[:length])
            if found is not None:
                return found
        return self.places.get((), (1, 1))

    def fault(self, path: Path, problem: str, **more: str) -> Fault:
        """Return a fault of the field ``path``."""
        line, column = self.place(path)
        return Fault(
            source=self.source, line=line, column=column, path=path, problem=problem, **more
        )


@dataclass(slots=True)
class _Node:
    line: int
    column: int
    size: int
    scalar: Any = None
    items: list[_Node] | None = None
    entries: list[tuple[_Node, _Node]] | None = None


@dataclass(slots=True)
class _Composer:
    source: str
    events: Iterator[Event]
    anchors: dict[str, _Node] = field(default_factory=dict)
    values: int = 0

    def fail(self, at: Event, problem: str, **more: str) -> ScenarioError:
        mark = at.start_mark
        return _error(self.source, mark.line + 1, mark.column + 1, problem, **more)

    def node(self, event: Any, depth: int) -> _Node:
        if depth > MAX_DEPTH:
            raise self.fail(event, "nested too deeply", allowed=f"{MAX_DEPTH} levels")
        if isinstance(event, AliasEvent):
            return self.alias(event)
        if event.tag is not None and str(event.tag) != "!":
            raise self.fail(
                event, f"tag {shown(str(event.tag))} is not used in scenarios", allowed="plain YAML"
            )
        made = _Node(line=event.start_mark.line + 1, column=event.start_mark.column + 1, size=1)
        if isinstance(event, ScalarEvent):
            made.scalar = _scalar(event)
        elif isinstance(event, SequenceStartEvent):
            made.items = self.sequence(depth)
            made.size += sum(item.size for item in made.items)
        else:
            made.entries = self.mapping(depth)
            made.size += sum(key.size + value.size for key, value in made.entries)
        self.count(event, 1)
        if event.anchor is not None:
            self.anchors[str(event.anchor)] = made
        return made

    def alias(self, event: AliasEvent) -> _Node:
        name = str(event.anchor)
        target = self.anchors.get(name)
        if target is None:
            raise self.fail(event, f"alias *{name} names nothing that stands before it")
        self.count(event, target.size)
        return target

    def count(self, event: Event, more: int) -> None:
        self.values += more
        if self.values > MAX_VALUES:
            raise self.fail(event, "too many values", allowed=f"{MAX_VALUES} with aliases unfolded")

    def sequence(self, depth: int) -> list[_Node]:
        items = []
        while not isinstance(event := next(self.events), SequenceEndEvent):
            items.append(self.node(event, depth + 1))
        return items

    def mapping(self, depth: int) -> list[tuple[_Node, _Node]]:
        entries = []
        while not isinstance(event := next(self.events), MappingEndEvent):
            key = self.node(event, depth + 1)
            entries.append((key, self.node(next(self.events), depth + 1)))
        return entries


@dataclass(slots=True)
class _Flattener:
    source: str
    places: dict[Path, tuple[int, int]] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def flatten(self, node: _Node, path: Path) -> Any:
        self.places.setdefault(path, (node.line, node.column))
        if node.items is not None:
            return [self.flatten(item, (*path, index)) for index, item in enumerate(node.items)]
        if node.entries is None:
            return node.scalar
        return self.mapping(node.entries, path)

    def mapping(self, entries: list[tuple[_Node, _Node]], path: Path) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, value in entries:
            name = key.scalar
            if not isinstance(name, str):
                found = shown(name) if key.items is None and key.entries is None else "a collection"
                self.add(key, path, "a key must be text", found=found)
            elif name in made:
                first = self.places[(*path, name)][0]
                self.add(key, (*path, name), f"the key stands twice, first in line {first}")
            else:
                self.places[(*path, name)] = (key.line, key.column)
                made[name] = self.flatten(value, (*path, name))
        return made

    def add(self, node: _Node, path: Path, problem: str, **more: str) -> None:
        self.faults.append(
            Fault(
                source=self.source,
                line=node.line,
                column=node.column,
                path=path,
                problem=problem,
                **more,
            )
        )


def read_document(raw: bytes, source: str) -> Document:
    """Read one YAML document.

    Raises:
        ScenarioError: it is not one. Faults that leave the rest readable are in ``faults`` instead.

    """
    text = _decode(raw, source)
    composer = _Composer(source, _events(text, source))
    root: _Node | None = None
    for event in composer.events:
        if isinstance(event, StreamStartEvent | StreamEndEvent | DocumentEndEvent):
            continue
        if isinstance(event, DocumentStartEvent):
            if root is not None:
                raise composer.fail(event, "a second document begins", allowed="one a file")
            continue
        root = composer.node(event, 1)
    if root is None or (root.items is None and root.entries is None and root.scalar is None):
        raise _error(
            source, 1, 1, "the file is empty", allowed="a scenario; groupsim init writes one"
        )
    flattener = _Flattener(source)
    data = flattener.flatten(root, ())
    return Document(source, data, flattener.places, tuple(flattener.faults))


def _events(text: str, source: str) -> Iterator[Event]:
    try:
        yield from YAML(typ="safe", pure=True).parse(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
        raise _error(source, line, column, _yaml_problem(error, text, line)) from None
    except YAMLError as error:
        raise _error(source, 1, 1, f"not YAML: {_first_line(str(error))}") from None
    except RecursionError:  # the parser itself counts levels on our behalf, long before this
        raise _error(source, 1, 1, "nested too deeply", allowed=f"{MAX_DEPTH} levels") from None


def _yaml_problem(error: MarkedYAMLError, text: str, line: int) -> str:
    problem = _first_line(str(error.problem or error.context or "cannot be read"))
    if "'\\t'" in problem or "\\t" in problem:
        return "a tab stands where YAML allows only spaces"
    lines = text.splitlines()
    before = lines[line - 1] if 0 < line <= len(lines) else ""
    if before[: len(before) - len(before.lstrip())].find("\t") >= 0:
        return "a tab stands where YAML allows only spaces"
    context = f" {error.context}" if error.context and error.problem else ""
    return f"not YAML: {problem}{_first_line(context)}"


def _first_line(text: str) -> str:
    return text.splitlines()[0] if text else text


def _scalar(event: ScalarEvent) -> Any:
    text = str(event.value)
    if not event.implicit[0]:  # quoted, or a block
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text) if len(text) < 30 else text
    if _HEX.fullmatch(text):
        return int(text, 16) if len(text) < 30 else text
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


def _decode(raw: bytes, source: str) -> str:
    if len(raw) > MAX_BYTES:
        allowed = f"{MAX_BYTES // 1024} KiB"
        raise _error(source, 1, 1, "the file is too large", allowed=f"at most {allowed}")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - raw.rfind(b"\n", 0, error.start)
        found = f"the byte 0x{raw[error.start]:02x}"
        raise _error(source, line, column, "not UTF-8 text", found=found) from None
    for index, char in enumerate(text):
        if (char < " " and char not in "\t\n\r") or char in "\x7f\ufffe\uffff":
            line = text.count("\n", 0, index) + 1
            column = index - text.rfind("\n", 0, index)
            found = f"the character U+{ord(char):04X}"
            raise _error(source, line, column, "not a text file", found=found)
    return text


def _error(source: str, line: int, column: int, problem: str, **more: str) -> ScenarioError:
    fault = Fault(source=source, line=line, column=column, path=(), problem=problem, **more)
    return ScenarioError((fault,))
