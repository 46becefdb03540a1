"""The generated blocks of the documents, by name."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
from click.testing import CliRunner
from mcp import Client
from mcp.types import PromptArgument, Tool

from backoffice.app import create_app
from backoffice.errors import STATUS
from cli.connect.snippets import SERVER, StdioServer
from cli.incoming.hook import PROMPT_EVENTS, START_EVENTS, TOOL_EVENTS
from cli.main import COMMANDS, EXIT_STATUS, cli
from mcp_server.envelope import publish_tool
from mcp_server.prompts import list_prompts
from mcp_server.resources import list_resources, list_templates
from mcp_server.server import DEFAULT, TOOLSETS, create_server, tools_of
from orchestrator.operations import tools as known_tools
from orchestrator.service import Orchestrator
from registry.errors import RegistryError
from registry.registry import Registry
from registry.settings import Settings
from sources.clients import CLAUDE_CODE, CLIENTS

ROOT = Path(__file__).parent.parent
EXAMPLE = StdioServer(("/path/to/ctxr", "mcp"))


def fenced(language: str, text: str) -> str:
    """Return a Markdown code block; the text may contain code blocks."""
    return f"````{language}\n{text.rstrip()}\n````\n"


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    lines = [list(heads), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def settings_table() -> str:
    """Return a table of all settings."""
    rows = [
        (f"`CTXR_{name.upper()}`", shown_default(name), str(field.description))
        for name, field in Settings.model_fields.items()
    ]
    return table(("variable", "default", "meaning"), rows)


def shown_default(name: str) -> str:
    """Return a setting's default; the home folder's depends on the system."""
    field = Settings.model_fields[name]
    if field.default_factory:
        return "a folder of its own"
    return f"`{field.default}`" if str(field.default) else ""


def help_of(*words: str) -> str:
    """Return the output of `ctxr … -h`."""
    return CliRunner().invoke(cli, [*words, "-h"], prog_name="ctxr").output


def commands() -> Iterator[tuple[str, ...]]:
    """Yield every command, and after each group its commands."""
    for name in COMMANDS:
        yield (name,)
        command = cli.get_command(cli.make_context("ctxr", ["-h"], resilient_parsing=True), name)
        if isinstance(command, click.Group):
            yield from ((name, inner) for inner in sorted(command.commands))


def command_line() -> str:
    """Return the help of every command."""
    return "\n".join(f"#### `ctxr {' '.join(words)}`\n\n{fenced('text', help_of(*words))}" for words in commands())


def exit_codes() -> str:
    """Return a table of error codes with HTTP and exit status."""
    rows = [
        (f"`{kind.code}`", (kind.__doc__ or "").strip(), str(STATUS[kind.code]), str(EXIT_STATUS.get(kind.code, 1)))
        for kind in RegistryError.__subclasses__()
        if kind.__module__ == RegistryError.__module__
    ]
    return table(("code", "meaning", "HTTP", "exit status"), rows)


ANY_CALLER: Any = None
"""Prompts and resources do not depend on the caller."""


def toolsets() -> str:
    """Return a table of the toolsets with their tools, in published order."""
    rows = [(f"`{toolset}`", ", ".join(f"`{name}`" for name in tools_of(toolset))) for toolset in TOOLSETS]
    return table(("toolset", "tools"), rows)


def tools() -> str:
    """Return each tool's description, arguments and result."""
    return "\n".join(_tool(publish_tool(known_tools()[name])) for name in tools_of("all"))


def _tool(tool: Tool) -> str:
    result = (tool.output_schema or {})["properties"]["result"]
    rows = [
        (f"`{name}`", _type_of(part), _default_of(part, is_required), part.get("description", ""))
        for name, part, is_required in _fields(tool.input_schema)
    ]
    hints = tool.annotations
    does = "only reads" if hints and hints.read_only_hint else "writes"
    parts = [
        f"#### `{tool.name}`",
        f"*{tool.title}* ({does}{'' if tool.name in tools_of(DEFAULT) else '; not in the default toolset'})",
        f"> {tool.description}",
        table(("argument", "type", "default", "meaning"), rows).rstrip(),
        f"Result: {_shape_of(result)}",
    ]
    return "\n\n".join(parts) + "\n"


def _fields(schema: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """Yield (path, schema, is required) of an object's fields, nested ones too: `query.text`, `messages[].role`."""
    for name, part in schema["properties"].items():
        yield prefix + name, part, name in schema.get("required", ())
        inner, mark = (part["items"], "[].") if "items" in part else (part, ".")
        if "properties" in inner:
            yield from _fields(inner, prefix + name + mark)


def _type_of(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(map(_type_of, schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("format") == "date-time":
        return "time"
    if schema["type"] == "array":
        return f"list of {_type_of(schema['items'])}"
    return str(schema["type"]) + _limits_of(schema)


def _limits_of(schema: Mapping[str, Any]) -> str:
    if "minimum" in schema:
        return f" {schema['minimum']}…{schema['maximum']}" if "maximum" in schema else f" from {schema['minimum']}"
    return f", at most {schema['maxLength']} characters" if "maxLength" in schema else ""


def _default_of(schema: Mapping[str, Any], is_required: bool) -> str:
    if is_required:
        return "required"
    return f"`{json.dumps(schema['default'])}`" if "default" in schema else ""


def _shape_of(schema: Mapping[str, Any]) -> str:
    """Return a result's fields in one line, optional ones with a question mark."""
    shown = []
    always = schema.get("required", schema["properties"])
    for name, part in schema["properties"].items():
        inner, mark = (part["items"], "[]") if "items" in part else (part, "")
        more = f" {{{_shape_of(inner)}}}" if "properties" in inner else ""
        shown.append(f"`{name}{mark}{'' if name in always else '?'}`{more}")
    return ", ".join(shown)


def prompts() -> str:
    """Return a table of the prompts."""
    found = asyncio.run(list_prompts(ANY_CALLER, None)).prompts
    rows = [
        (f"`{prompt.name}`", ", ".join(map(_described, prompt.arguments or ())), str(prompt.description))
        for prompt in found
    ]
    return table(("prompt", "arguments", "what for"), rows)


def _described(argument: PromptArgument) -> str:
    return f"`{argument.name}{'' if argument.required else '?'}`: {argument.description}"


def resources() -> str:
    """Return a table of the resources and resource templates."""
    fixed = asyncio.run(list_resources(ANY_CALLER, None)).resources
    by_name = asyncio.run(list_templates(ANY_CALLER, None)).resource_templates
    rows = [(f"`{each.uri}`", str(each.mime_type), str(each.description)) for each in fixed]
    rows += [(f"`{each.uri_template}`", str(each.mime_type), str(each.description)) for each in by_name]
    return table(("resource", "type", "what it is"), rows)


def http_api() -> str:
    """Return a table of the HTTP API's addresses with their parameters."""
    rows = []
    for path, methods in create_app(Settings()).openapi()["paths"].items():
        for method, about in methods.items():
            parameters = [f"`{one['name']}`" for one in about.get("parameters", ()) if one["in"] != "path"]
            rows.append((f"`{method.upper()} {path}`", ", ".join(parameters), about.get("description", "")))
    return table(("address", "parameters", "answer"), rows)


CHANNEL = "cursor_session_20250929_1430"
TURN = [
    {"role": "user", "text": "How do I make the fibonacci function faster?", "timestamp": "2025-09-29T14:30:15.123Z"},
    {
        "role": "assistant",
        "text": "Memoize it: with functools.cache it is O(n).",
        "timestamp": "2025-09-29T14:30:18.456Z",
    },
]


def examples() -> str:
    """Return real calls of three tools with their answers."""
    return asyncio.run(_examples())


async def _examples() -> str:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("conversation_log", {"channel": CHANNEL, "messages": TURN, "meta": {"project": "/home/me/shop"}}),
        ("extract", {"query": {"text": "fibonacci"}}),
        ("search_sessions", {"query": "fibonacci", "context_window": 0}),
        ("extract", {"channel": "cursor_session_20250930"}),
    ]
    parts = []
    with TemporaryDirectory() as home:
        registry = Registry(f"sqlite:///{home}/registry.db")
        async with Client(create_server(Orchestrator(registry).run)) as client:
            for tool, arguments in calls:
                answer = (await client.call_tool(tool, arguments)).structured_content
                parts.append(fenced("json", f"// {tool}\n{_pretty(arguments)}\n// answers\n{_pretty(answer)}"))
        registry.close()
    return "\n".join(parts)


def _pretty(value: Any) -> str:
    """Return indented JSON without random ids and the current time."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    text = re.sub(r'"((?:conv|ext|exec)_)\w+"', r'"\1…"', text)
    text = re.sub(r'(?<=")20\d\d-\d\d-\d\dT[\d:]+[+-][\d:]+(?=")', lambda found: _in_seoul(found[0]), text)
    return re.sub(r"[\[{]\s+([^\[\]{}]{1,90}?)\s+[\]}]", lambda found: re.sub(r"\s*\n\s*", " ", found[0]), text)


def _in_seoul(instant: str) -> str:
    """Return a time in Seoul; the current time is replaced with a fixed one."""
    at = datetime.fromisoformat(instant).astimezone(timezone(timedelta(hours=9)))
    return at.isoformat() if at.year == 2025 else "2025-09-29T23:30:20+09:00"


def arriving() -> str:
    """Return a table of clients with hooks, and at which events the model gets the hook's answer."""
    hooks = {client.name: client.hooks.events for client in CLIENTS if client.hooks}
    moments = START_EVENTS, PROMPT_EVENTS, TOOL_EVENTS
    rows = [(name, *("yes" if {*events} & {*moment} else "" for moment in moments)) for name, events in hooks.items()]
    return table(("client", "a chat begins", "a task is given", "a command or an edit"), rows)


def layers() -> str:
    """Return the import contracts as a list."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    return "".join(f"- **{contract['name']}**{_layers_of(contract)}\n" for contract in contracts)


def _layers_of(contract: Mapping[str, Any]) -> str:
    if contract["type"] == "layers":
        return ": " + " → ".join(f"`{layer}`" for layer in contract["layers"])
    return f": {_named(contract['source_modules'])} must not import {_named(contract['forbidden_modules'])}"


def _named(modules: Iterable[str]) -> str:
    return ", ".join(f"`{module}`" for module in modules)


FIGURES = (
    (
        "lives7, one wording",
        "BM25",
        "a stranger's questions: right one first / in the first five",
        "제3자가 만든 질문: 정답 대화가 1위 / 5위 이내",
    ),
    (
        "LoCoMo sessions",
        "BM25",
        "LoCoMo, sessions: first / in the first five / MRR",
        "LoCoMo 세션: 1위 / 5위 이내 / MRR",
    ),
    ("import of 15000", "fast-resume", "messages imported a second", "초당 가져오는 메시지 수"),
    ("search, command", "fast-resume", "search from the shell, p50 / p95 ms", "셸 검색 시간 p50 / p95(ms)"),
)
"""Rows of docs/figures.md for the READMEs: beginning of the row, other program, English text, Korean text."""


def chosen_figures(heads: Iterable[str], language: int) -> str:
    """Return the rows of `FIGURES` as a table."""
    lines = (ROOT / "docs" / "figures.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip(" *") for cell in line.split(" | ")] for line in lines if line.startswith("| ")]
    ours, others = rows[0].index("ctxr"), {name: rows[0].index(name) for _, name, *_ in FIGURES}
    found = [
        (words[language], row[ours].replace("*", ""), f"{row[others[other]].replace('*', '')} ({other})")
        for begin, other, *words in FIGURES
        for row in rows
        if row[0].startswith(f"| {begin}")
    ]
    return table(heads, found)


BLOCKS: Mapping[str, Callable[[], str]] = {
    "figures": lambda: chosen_figures(("", "ctxr", "another"), 0),
    "figures-ko": lambda: chosen_figures(("", "ctxr", "다른 프로그램"), 1),
    "mcp-json": lambda: fenced("json", EXAMPLE.mcp_json()),
    "claude-code": lambda: fenced(
        "sh", f"claude mcp add --scope user {SERVER} -- {shlex.join(EXAMPLE.started_by(CLAUDE_CODE).words)}"
    ),
    "help": lambda: fenced("text", help_of()),
    "settings": settings_table,
    "command-line": command_line,
    "errors": exit_codes,
    "toolsets": toolsets,
    "tools": tools,
    "prompts": prompts,
    "resources": resources,
    "http-api": http_api,
    "examples": examples,
    "layers": layers,
    "arriving": arriving,
}
"""The function that generates each block."""
