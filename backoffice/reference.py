"""/docs: the HTTP API as a page. FastAPI's own page would load scripts from other hosts."""

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
            parameters = operation.get("parameters", [])
            yield {
                "name": f"{method.upper()} {path}",
                "about": operation.get("description", ""),
                "parameters": [(one["name"], one["in"], _about(one, one["schema"])) for one in parameters],
                "bodies": [json.dumps(one["value"], ensure_ascii=False, indent=2) for one in bodies.values()],
                "fields": _fields_of(schema, document),
            }


def _about(described: dict[str, Any], schema: dict[str, Any]) -> str:
    kinds = [kind for kind in schema.get("anyOf", [schema]) if kind.get("type") != "null"]
    allowed = [str(value) for kind in kinds for value in kind.get("enum", kind.get("items", {}).get("enum", []))]
    parts = [described.get("description", ""), " | ".join(allowed)]
    if schema.get("default") is not None:
        parts.append(f"default {schema['default']}")
    return "; ".join(part for part in parts if part)


def _fields_of(schema: dict[str, Any], document: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return name, kind and description of an answer's fields; of a list those of an item."""
    shape = document["components"]["schemas"][_name_of(schema)] if "$ref" in schema else schema
    properties = shape.get("properties", {})
    if "items" in properties:
        return _fields_of(properties["items"]["items"], document)
    return [(name, _kind_of(one), one.get("description", "")) for name, one in properties.items()]


def _kind_of(schema: dict[str, Any]) -> str:
    kinds = schema.get("anyOf", [schema])
    return " | ".join(_name_of(one) if "$ref" in one else one.get("type", "any") for one in kinds)


def _name_of(reference: dict[str, Any]) -> str:
    return str(reference["$ref"]).rpartition("/")[2]
