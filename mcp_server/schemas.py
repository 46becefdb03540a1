"""JSON schemas as published: without what says nothing, because a model reads them in every conversation."""

from __future__ import annotations

from typing import Any


def slim(schema: dict[str, Any], unsaid: frozenset[str] = frozenset({"title"})) -> dict[str, Any]:
    """The same schema without those keys, `default: null`, and `null` as an alternative to leaving out."""
    kept = {
        key: value for key, value in schema.items() if key not in unsaid and not (key == "default" and value is None)
    }
    for key in ("properties", "$defs"):
        if key in kept:
            kept[key] = {name: slim(part, unsaid) for name, part in kept[key].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(kept.get(key), dict):
            kept[key] = slim(kept[key], unsaid)
    if "anyOf" in kept:
        some = [slim(part, unsaid) for part in kept.pop("anyOf") if part != {"type": "null"}]
        kept = {**some[0], **kept} if len(some) == 1 else {**kept, "anyOf": some}
    return kept


def slim_output(schema: dict[str, Any]) -> dict[str, Any]:
    """A result's schema: its names speak, and no model has to choose what to put into it."""
    return slim(schema, frozenset({"title", "description"}))
