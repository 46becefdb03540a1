"""/docs: the HTTP API as a page. FastAPI's own page would load scripts from other hosts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from backoffice.pages.rendering import HEADERS, asset

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="stylesheet" href="{style}">
<main class="reference">
<h1>{title}</h1>
{body}
</main>
</html>
"""


@router.get("/docs")
async def docs(request: Request) -> HTMLResponse:
    document = request.app.openapi()
    intro = f'<p>{escape(document["info"]["description"])} <a href="/openapi.json">openapi.json</a>\n'
    title, body = escape(document["info"]["title"]), intro + "".join(_operations(document))
    return HTMLResponse(PAGE.format(title=title, style=asset("app.css"), body=body), headers=HEADERS)


def _operations(document: dict[str, Any]) -> Iterator[str]:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            yield f"<h2><code>{method.upper()} {escape(path)}</code></h2>\n"
            yield f"<p>{escape(operation.get('description', ''))}\n"
            yield _parameters(operation.get("parameters", []))
            yield from _examples("Body", _body_examples(operation))
            yield from _examples("Answer", _answer_examples(operation, document))


def _parameters(parameters: list[dict[str, Any]]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(parameter['name'])}</code><td>{parameter['in']}<td>{_about(parameter)}\n"
        for parameter in parameters
    )
    return f"<table>\n{rows}</table>\n" if rows else ""


def _about(parameter: dict[str, Any]) -> str:
    schema = parameter["schema"]
    kinds = [kind for kind in schema.get("anyOf", [schema]) if kind.get("type") != "null"]
    allowed = [str(value) for kind in kinds for value in kind.get("enum", kind.get("items", {}).get("enum", []))]
    parts = [parameter.get("description", ""), " | ".join(allowed)]
    if schema.get("default") is not None:
        parts.append(f"default {schema['default']}")
    return escape("; ".join(part for part in parts if part))


def _body_examples(operation: dict[str, Any]) -> list[Any]:
    content = operation.get("requestBody", {}).get("content", {})
    examples = content.get("application/json", {}).get("examples", {})
    return [example["value"] for example in examples.values()]


def _answer_examples(operation: dict[str, Any], document: dict[str, Any]) -> list[Any]:
    good = next(answer for status, answer in operation["responses"].items() if status.startswith("2"))
    return _examples_of(good.get("content", {}).get("application/json", {}).get("schema", {}), document)


def _examples_of(schema: dict[str, Any], document: dict[str, Any]) -> list[Any]:
    """Return the examples of a schema; a page of a list shows one item."""
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if "items" in schema.get("properties", {}):
        items = _examples_of(schema["properties"]["items"]["items"], document)
        return [{"items": items, "total": len(items), "next_cursor": None}] if items else []
    return [schema["example"]] if "example" in schema else list(schema.get("examples", []))


def _examples(title: str, examples: list[Any]) -> Iterator[str]:
    for example in examples:
        yield f"<p>{title}\n<pre tabindex='0'>{escape(json.dumps(example, ensure_ascii=False, indent=2))}</pre>\n"
