"""The published JSON Schema of scenario files, made from the model, short forms included."""

from __future__ import annotations

from typing import Any, Final

from pydantic.json_schema import GenerateJsonSchema

from groupsim.scenario.model import Scenario

__all__ = ["SCHEMA_DIALECT", "json_schema"]

SCHEMA_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) that every scenario file satisfies.

    It knows keys, types, times and choices; that names are declared is for ``groupsim validate``.
    """
    made = Scenario.model_json_schema(by_alias=True, schema_generator=GenerateJsonSchema)
    for name in Scenario.HIDDEN:
        made["properties"].pop(name)
    made["required"] = sorted({*made["required"], "groupsim"})
    return {
        "$schema": SCHEMA_DIALECT,
        **_for_editors(made),
        "title": "groupsim scenario",
        "description": "A scenario file of groupsim; docs/scenarios.md explains it.",
    }


def _for_editors(schema: Any) -> Any:
    """Return the schema with descriptions in one line: editors show them as they are."""
    if isinstance(schema, list):
        return [_for_editors(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: " ".join(value.replace("``", "`").split())
        if name == "description" and isinstance(value, str)
        else _for_editors(value)
        for name, value in schema.items()
    }
