"""/docs: the HTTP API as a page. FastAPI's own page would load scripts from other hosts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from backoffice.pages.rendering import render

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


@router.get("/docs")
async def docs(request: Request) -> HTMLResponse:
    document = request.app.openapi()
    return render(request, "reference.html", info=document["info"], operations=_operations(document))


def _operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            bodies = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("examples", {})
            answer = next(answer for status, answer in operation["responses"].items() if status.startswith("2"))
            schema = answer.get("content", {}).get("application/json", {}).get("schema", {})
            examples = [("Body", example["value"]) for example in bodies.values()]
            examples += [("Answer", example) for example in _examples_of(schema, document)]
            yield {
                "name": f"{method.upper()} {path}",
                "about": operation.get("description", ""),
                "parameters": [(one["name"], one["in"], _about(one)) for one in operation.get("parameters", [])],
                "examples": [(label, json.dumps(one, ensure_ascii=False, indent=2)) for label, one in examples],
            }


def _about(parameter: dict[str, Any]) -> str:
    schema = parameter["schema"]
    kinds = [kind for kind in schema.get("anyOf", [schema]) if kind.get("type") != "null"]
    allowed = [str(value) for kind in kinds for value in kind.get("enum", kind.get("items", {}).get("enum", []))]
    parts = [parameter.get("description", ""), " | ".join(allowed)]
    if schema.get("default") is not None:
        parts.append(f"default {schema['default']}")
    return "; ".join(part for part in parts if part)


def _examples_of(schema: dict[str, Any], document: dict[str, Any]) -> list[Any]:
    """Return the examples of a schema; a page of a list shows one item."""
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if "items" in schema.get("properties", {}):
        items = _examples_of(schema["properties"]["items"]["items"], document)
        return [{"items": items, "total": len(items), "next_cursor": None}] if items else []
    return [schema["example"]] if "example" in schema else list(schema.get("examples", []))
