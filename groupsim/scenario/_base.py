"""What all parts of the model share: strict bases, durations, lists that may be written short."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, ClassVar, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from groupsim.scenario.durations import (
    DURATION_EXAMPLES,
    DURATION_PATTERN,
    DurationUs,
    duration,
    duration_text,
)
from groupsim.scenario.wanted import Wants, annotation_of, wanted_text, written

__all__ = [
    "DURATION_SCHEMA",
    "NAMES_SCHEMA",
    "ConfigMap",
    "ConfigValue",
    "Duration",
    "GroupName",
    "GroupRef",
    "MemberName",
    "Names",
    "NodeId",
    "NodeIds",
    "NotEmpty",
    "OneOrMore",
    "Part",
    "TopicName",
    "Wants",
    "fault",
    "one_of",
    "written",
]


def fault(problem: str, **more: str) -> PydanticCustomError:
    """Return an error whose text is a whole sentence of ours; ``more`` is found, allowed, near."""
    return PydanticCustomError("groupsim", "{problem}", {"problem": problem, **more})


class Part(BaseModel):
    """Base of every part of a scenario: strict, nothing unknown, immutable.

    A part that may be written short says so three times: ``SHORT`` is the JSON Schema of the bare
    values, ``WANTED`` their words for messages, and ``short`` makes the mapping that they stand for.
    """

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        populate_by_name=True,
        use_attribute_docstrings=True,
    )

    SHORT: ClassVar[Mapping[str, Any] | None] = None
    WANTED: ClassVar[str] = ""

    @classmethod
    def short(cls, value: Any) -> Any:
        """Return the mapping that the bare ``value`` stands for, or ``value`` as it is."""
        return value

    @model_validator(mode="before")
    @classmethod
    def _written_short(cls, value: Any) -> Any:
        return value if isinstance(value, dict | cls) else cls.short(value)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Describe the short form beside the long one."""
        schema = handler(core)
        if cls.SHORT is not None:
            target = handler.resolve_ref_schema(schema)
            long = dict(target)
            target.clear()
            for name in ("title", "description"):
                if name in long:
                    target[name] = long.pop(name)
            target["anyOf"] = [long, dict(cls.SHORT)]
        return schema


def one_of(part: Part, names: Iterable[str], *, least: int = 1) -> None:
    """Check that exactly one (or, with ``least`` 0, at most one) of the fields is given.

    Raises:
        PydanticCustomError: none or several are.

    """
    names = tuple(names)
    given = [name for name in names if getattr(part, name) is not None]
    wanted = ", ".join(written(type(part), name) for name in names)
    if len(given) > 1:
        found = " and ".join(written(type(part), name) for name in given)
        raise fault("only one of these can be given", found=found, allowed=wanted)
    if len(given) < least:
        empty = [name for name in names if name in part.model_fields_set]
        if len(empty) == 1:  # the key stands there, and nothing after it
            problem = f"nothing is said after {written(type(part), empty[0])}"
            allowed = wanted_text(annotation_of(type(part).model_fields[empty[0]]))
            raise fault(problem, allowed=allowed or "a value")
        raise fault("one of these must be given", allowed=wanted)


def _duration(value: Any) -> DurationUs:
    try:
        return duration(value)
    except ValueError as error:
        problem, _, allowed = str(error).partition("wanted ")
        if allowed:
            raise fault("not a time", allowed=allowed) from None
        raise fault(problem) from None


DURATION_SCHEMA: Final[dict[str, Any]] = {
    "anyOf": [{"type": "string", "pattern": DURATION_PATTERN}, {"const": 0}],
    "description": "A time with its unit: 45s, 1500ms, 2m, 1h30m, 250us.",
}

Duration = Annotated[
    int,
    BeforeValidator(_duration),
    PlainSerializer(duration_text, return_type=str),
    WithJsonSchema(DURATION_SCHEMA),
    Wants(DURATION_EXAMPLES),
]
"""Whole microseconds. In files text with a unit; the number 0 needs none."""


class _OneOrMore:
    """Lists in files are tuples in the model; where a list is meant, one item needs no brackets."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_before_validator_function(_one_or_more, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        lists = handler(schema)
        branches = lists.get("anyOf", [lists])
        items = [branch["items"] for branch in branches if "items" in branch]
        return {"anyOf": [*branches, *items]}


def _one_or_more(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    return value if isinstance(value, tuple) or value is None else (value,)


def _not_empty(value: Any) -> Any:
    if value is not None and len(value) == 0:
        raise fault("is empty", found="nothing in it", allowed="at least one")
    return value


OneOrMore: Final = _OneOrMore()
NotEmpty: Final = AfterValidator(_not_empty)
"""Checked last: a list whose items have faults is not empty besides."""

Named = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)
_TOPIC_MAX: Final = 249  # org.apache.kafka.common.internals.Topic


def _named(what: str, longest: int) -> Callable[[str], str]:
    def check(value: str) -> str:
        if not value or len(value) > longest or not Named.fullmatch(value) or value in (".", ".."):
            allowed = f"1 to {longest} of the letters a-z, A-Z, 0-9 and . _ -"
            raise fault(f"not a name for a {what}", allowed=allowed)
        return value

    return check


TopicName = Annotated[str, AfterValidator(_named("topic", _TOPIC_MAX)), Wants("a topic's name")]
MemberName = Annotated[str, AfterValidator(_named("member", 100)), Wants("a name such as c")]
GroupName = Annotated[str, Field(min_length=1, max_length=249)]
GroupRef = Annotated[str, Wants("a group's name")]
"""A group where it is meant, not declared."""

NAMES_SCHEMA: Final[Mapping[str, Any]] = {
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]
}
Names = Annotated[
    tuple[str, ...],
    OneOrMore,
    NotEmpty,
    Wants("a member's name, a family's, a pattern, or a list of these"),
]
"""One name or a list of them; where members are meant, patterns with ``*`` too."""

NodeId = Annotated[int, Field(ge=1), Wants("a broker's number, such as 1")]
NodeIds = Annotated[
    tuple[NodeId, ...], OneOrMore, NotEmpty, Wants("a broker's number, or a list of them")
]

_CONFIG_SCHEMA: Final[dict[str, Any]] = {
    "anyOf": [
        {"type": ["string", "number", "boolean"]},
        {"type": "array", "items": {"type": "string"}},
    ]
}


def _config_value(value: Any) -> ConfigValue:
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return tuple(value)
    if isinstance(value, str | int | float | bool):
        return value
    raise fault(
        "not a configuration value", allowed="text, a number, true, false, or a list of texts"
    )


ConfigValue = str | int | float | bool | tuple[str, ...]
ConfigMap = dict[str, Annotated[Any, AfterValidator(_config_value), WithJsonSchema(_CONFIG_SCHEMA)]]
"""Kafka's own configuration names. Names and values are checked once the client kind is known."""
