"""JSON schemas as published: without what says nothing, because a model reads them in every conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.field_types import MOST_COUNTED


def slim(schema: dict[str, Any], unsaid: frozenset[str] = frozenset({"title"})) -> dict[str, Any]:
    """The same schema with every part where it is used, and without those keys and what holds anyway.

    That is `default: null`, `null` as an alternative to leaving out, `additionalProperties: true`, and that a text is
    not empty.
    """
    return _slim(_in_place(schema, schema.get("$defs", {})), unsaid)


def slim_output(schema: dict[str, Any]) -> dict[str, Any]:
    """A result's schema: its names speak, and no model has to choose what to put into it.

    What is always there is said of the result itself, and not of every object in it.
    """
    unsaid = frozenset({"title", "description"})
    said, slimmed = slim(schema, unsaid), slim(schema, unsaid | {"required"})
    always = said.get("properties", {}).get("result", {}).get("required")
    if always:
        slimmed["properties"]["result"]["required"] = always
    return slimmed


def _in_place(schema: Any, parts: Mapping[str, Any]) -> Any:
    match schema:
        case {"$ref": str(ref), **beside}:
            return {**_in_place(parts[ref.rpartition("/")[2]], parts), **beside}
        case dict():
            return {key: _in_place(value, parts) for key, value in schema.items() if key != "$defs"}
        case list():
            return [_in_place(item, parts) for item in schema]
    return schema


def _slim(schema: dict[str, Any], unsaid: frozenset[str]) -> dict[str, Any]:
    kept = {key: value for key, value in schema.items() if key not in unsaid and not _holds_anyway(key, value)}
    if "properties" in kept:
        kept["properties"] = {name: _slim(part, unsaid) for name, part in kept["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(kept.get(key), dict):
            kept[key] = _slim(kept[key], unsaid)
    if "anyOf" in kept:
        some = [_slim(part, unsaid) for part in kept.pop("anyOf") if part != {"type": "null"}]
        kept = {**some[0], **kept} if len(some) == 1 else {**kept, "anyOf": some}
    return kept


def _holds_anyway(key: str, value: object) -> bool:
    says_nothing = ("default", None), ("additionalProperties", True), ("minLength", 1), ("maximum", MOST_COUNTED)
    return (key, value) in says_nothing
