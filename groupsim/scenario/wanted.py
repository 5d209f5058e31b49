"""What may stand at a key of a scenario, in words for messages, read off the model's annotations."""

from __future__ import annotations

import types
import typing
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

__all__ = ["Wants", "annotation_of", "bare", "keys", "wanted_text", "written"]


@dataclass(frozen=True, slots=True)
class Wants:
    """In ``Annotated``: the words for what may stand here, where the type alone does not say it."""

    text: str


def wanted_text(annotation: Any) -> str:
    """Return the words for what may stand at a field of this type; "" if its type says it all.

    They are those of ``Wants``, the choices of a ``Literal``, or the short form (``WANTED``) and the
    keys of a part.
    """
    for extra in reversed(getattr(annotation, "__metadata__", ())):
        if isinstance(extra, Wants):
            return extra.text
    inner = bare(annotation)
    if inner is not annotation and typing.get_origin(annotation) is not typing.Annotated:
        return wanted_text(_first(annotation))  # an alternative, without None
    if typing.get_origin(inner) is typing.Literal:
        return ", ".join(str(choice) for choice in typing.get_args(inner))
    if typing.get_origin(inner) is tuple:
        return wanted_text(typing.get_args(inner)[0])
    if isinstance(inner, type) and issubclass(inner, BaseModel):
        mapping = f"a mapping with {', '.join(keys(inner))}"
        short = getattr(inner, "WANTED", "")
        return f"{short}, or {mapping}" if short else mapping
    return ""


def written(model: type[BaseModel], name: str) -> str:
    """Return a field's name as it stands in files (``for``, not ``for_``)."""
    alias = model.model_fields[name].validation_alias
    return alias if isinstance(alias, str) else name


def keys(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the keys that people write, without those that only recorded runs have."""
    hidden = getattr(model, "HIDDEN", ())
    return tuple(written(model, name) for name in model.model_fields if name not in hidden)


def annotation_of(field: FieldInfo) -> Any:
    """Return a field's whole annotation; pydantic keeps its outermost metadata apart."""
    if not field.metadata:
        return field.annotation
    return typing.Annotated[(field.annotation, *field.metadata)]


def bare(annotation: Any) -> Any:
    """Return an annotation without Annotated and without None."""
    while (inner := _first(annotation)) is not annotation:
        annotation = inner
    return annotation


def _first(annotation: Any) -> Any:
    """Return what is one level below Annotated or a union with None, or ``annotation`` itself."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return typing.get_args(annotation)[0]
    if origin in (typing.Union, types.UnionType):
        parts = typing.get_args(annotation)
        return next(part for part in parts if part is not type(None))
    return annotation
