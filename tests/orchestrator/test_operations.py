"""Test that each operation is complete: its permission, steps, tools, and labels of its fields."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from mcp import Client

from mcp_server.server import TOOLSETS, create_server, tools_of
from orchestrator.operations import aliases, labels, operation_of, operations, tools
from orchestrator.requests.shapes import Request
from orchestrator.service import Orchestrator
from orchestrator.state import Operation
from orchestrator.tool import Caller
from registry.access import Access, Level
from registry.errors import Unauthorized

pytestmark = pytest.mark.anyio
ALL = list(operations().values())
HERE = Caller(project="/home/me/shop", is_local=True)


def name_of(operation: Operation) -> str:
    return operation.name


def test_an_operation_reads_or_writes_and_only_one_that_reads_checks_for_news() -> None:
    for operation in ALL:
        assert operation.steps.query or operation.steps.write
        assert bool(operation.syncs_first) <= bool(operation.steps.query)
        assert operation.level is not Level.READ or not operation.names_channel


LEVELS = {
    Level.READ: {"complete", "extract", "fetch", "hint", "list", "note", "search", "search_sessions", "usage"},
    Level.WRITE: {
        "conversation_log",
        "daily_briefing",
        "delete",
        "import",
        "remember",
        "restore",
        "share",
        "supersede",
        "tag",
    },
    Level.ADMIN: {
        *("create_backup", "list_backups", "validate_backup", "restore_backup"),
        *("blame", "export_owner", "migrate", "resume", "retention", "revoke_token"),
    },
}


def test_a_token_below_an_operations_level_may_not_run_it() -> None:
    for operation in ALL:
        assert operation.name in LEVELS[operation.level], "add the new operation's level to LEVELS"
        for level in list(Level)[: list(Level).index(operation.level)]:
            with pytest.raises(Unauthorized):
                operation.check(Request(), Access("a", level))


def test_every_field_of_a_request_has_a_label_in_both_languages() -> None:
    for operation in ALL:
        models: Any = operation.request
        shapes = [models, *(field.annotation for name, field in models.model_fields.items() if name == "query")]
        fields = {field.alias or name for shape in shapes for name, field in shape.model_fields.items()}
        fields -= {"query", "session"}
        assert fields - labels().keys() == set()
        for name in {*fields, *operation.labels}:
            english, korean = labels()[name]
            assert english.isascii()
            assert "_" not in english
            assert any("가" <= letter <= "힣" for letter in korean)


def test_an_operations_labels_are_of_its_own_fields() -> None:
    for operation in ALL:
        request: Any = operation.request
        query = request.model_fields["query"].annotation if operation.has_query else request
        names = {field.alias or name for name, field in query.model_fields.items()}
        assert operation.labels.keys() <= {*names, *operation.request.model_fields}


def example_of(tool: str) -> dict[str, Any]:
    """Return a tool's example with real values for its placeholders."""
    example: dict[str, Any] = json.loads(re.sub(r"<[^>]+>", "auth", json.dumps(dict(tools()[tool].example))))
    return example


def test_a_tools_example_is_a_request_of_its_operation() -> None:
    for name in tools():
        request = tools()[name].parse(example_of(name)).request(HERE)
        operation = request["operation"] if isinstance(request, dict) else request.operation
        assert operation == operation_of(name).name


async def test_a_tools_example_runs(orchestrator: Orchestrator) -> None:
    for name in [*tools_of("all"), "list_backups", "forget"]:
        said = {"role": "user", "text": "make login faster"}
        await orchestrator.run({"operation": "save", "channel": "auth", "source": "unknown", "messages": [said]})
        await orchestrator.run({"operation": "tag", "channel": "auth", "query": {"nickname": "auth-design"}})
        async with Client(create_server(orchestrator.run, ("all", "archive", "admin"), is_local=True)) as client:
            answer = await client.call_tool(name, example_of(name))
        body = answer.structured_content
        assert body
        assert body["ok"] or body["error"]["code"] in ("NOT_FOUND", "INVALID_REQUEST"), body


def test_every_tool_is_in_a_toolset_and_no_name_means_two_tools() -> None:
    assert {name for toolset in TOOLSETS for name in tools_of(toolset)} == tools().keys()
    names = [*tools(), *(alias.name for tool in tools().values() for alias in tool.aliases)]
    assert len(names) == len(set(names))
    assert not aliases().keys() & operations().keys()
