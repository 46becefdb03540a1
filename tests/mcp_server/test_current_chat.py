"""Test which chat is meant: each has its own channel that no other chat writes to, and only a known one is named."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx2
import pytest
from jsonschema import Draft202012Validator
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, Implementation, Tool

from mcp_server.server import create_server, tools_of
from orchestrator.operations import tools
from orchestrator.service import Orchestrator

pytestmark = pytest.mark.anyio

CURSOR = Implementation(name="cursor-vscode", version="1.0")
CLAUDE = Implementation(name="claude-ai", version="1.0")


def user_messages(*texts: str) -> list[dict[str, str]]:
    return [{"role": "user", "text": text} for text in texts]


class Chat:
    """A client in a folder."""

    def __init__(self, orchestrator: Orchestrator, program: Implementation = CURSOR, folder: str | None = None) -> None:
        self._server = create_server(orchestrator.run, project=folder, is_local=True)
        self._program = program

    async def call(self, called: str, meta: dict[str, Any] | None = None, /, **arguments: Any) -> dict[str, Any]:
        async with Client(self._server, client_info=self._program) as client:
            answer = await client.call_tool(called, arguments, meta=meta)  # type: ignore[arg-type]
        assert isinstance(answer, CallToolResult)
        body = answer.structured_content
        assert body
        return body["result"] if body["ok"] else body["error"]  # type: ignore[no-any-return]

    async def log(self, *texts: str, **about: Any) -> dict[str, Any]:
        return await self.call("conversation_log", messages=user_messages(*texts), **about)


async def test_a_chat_without_a_channel_gets_one_and_continues_in_it(orchestrator: Orchestrator) -> None:
    chat = Chat(orchestrator)
    first = await chat.log("Why is the basket empty?")
    assert first["channel"].startswith("cursor_session_")
    assert "pass it with every later call" in first["note"]
    second = await chat.log("And after login?", channel=first["channel"])
    assert (second["channel"], second["new_count"], "note" in second) == (first["channel"], 1, False)
    other = await chat.log("Paint the fence.")
    assert other["channel"] != first["channel"]


async def test_a_retry_of_a_call_without_a_channel_is_recognised(orchestrator: Orchestrator) -> None:
    chat = Chat(orchestrator)
    first, retry = [await chat.log("Why is the basket empty?", "And after login?") for _ in range(2)]
    assert (retry["channel"], retry["new_count"]) == (first["channel"], 0)
    await chat.log("It is the cookie.", channel=first["channel"])
    other = await chat.log("Why is the basket empty?", "And after login?")
    assert other["channel"] != first["channel"], "the first chat has its own channel"
    assert other["new_count"] == 2


async def test_a_whole_chat_sent_again_without_a_channel_stays_in_its_own(orchestrator: Orchestrator) -> None:
    chat, texts = Chat(orchestrator), ["Why is the basket empty?", "password=hunter2hunter2", "And now?", "It is full."]
    await chat.log("Paint the fence.", "Which colour?")
    answers = [await chat.log(*texts[:count]) for count in (1, 2, 4, 4)]
    assert len({one["channel"] for one in answers}) == 1
    assert [one["new_count"] for one in answers] == [1, 1, 2, 0]
    other = await chat.log("Why is the basket empty?", "It is not.")
    assert (other["channel"] == answers[0]["channel"], other["new_count"]) == (False, 2)


async def test_a_client_name_with_the_servers_name_appended_is_recognised(orchestrator: Orchestrator) -> None:
    for server in ("", "-context-registry", "-my notes"):
        program = Implementation(name=f"qwen-cli-mcp-client{server}", version="0.0.1")
        first = await Chat(orchestrator, program).log(f"Why is the basket{server} empty?")
        assert first["channel"].startswith("qwen-code_session_"), server


async def test_a_client_that_sends_the_chats_id_gets_the_same_channel_each_time(orchestrator: Orchestrator) -> None:
    chat, meta = Chat(orchestrator), {"example.com/session_id": "s-1"}
    channels = [
        (await chat.call("conversation_log", meta, messages=user_messages(text)))["channel"] for text in ("one", "two")
    ]
    assert channels == ["cursor_session_s-1"] * 2


async def test_over_http_an_older_client_is_recognised_by_its_user_agent(orchestrator: Orchestrator) -> None:
    for agent, source in (("opencode/1.18.33", "opencode"), ("undici", "unknown")):
        app = create_server(orchestrator.run).streamable_http_app(stateless_http=True)
        here, headers = "http://127.0.0.1:8765", {"User-Agent": agent}
        web = httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=here, headers=headers)
        server = streamable_http_client(f"{here}/mcp", http_client=web)
        async with app.router.lifespan_context(app), Client(server, mode="legacy") as client:
            answer = await client.call_tool("conversation_log", {"messages": user_messages(f"I am {agent}.")})
        assert answer.structured_content
        assert answer.structured_content["result"]["channel"].startswith(f"{source}_session_")


async def test_a_source_is_the_same_in_any_spelling(orchestrator: Orchestrator) -> None:
    chat = Chat(orchestrator)
    for spelled in ("Claude Code", "claude_code", " claude-code "):
        answer = await chat.log(f"said by {spelled}", channel="shop", meta={"source": spelled})
        assert answer["channel"] == "shop", spelled
    assert {one["source"] for one in await orchestrator.registry.get_conversations("shop")} == {"claude-code"}


async def test_a_write_of_another_client_into_a_channel_is_stored_apart_and_the_answer_says_so(
    orchestrator: Orchestrator,
) -> None:
    first = await Chat(orchestrator).log("Why is the basket empty?", channel="shop")
    claude = Chat(orchestrator, CLAUDE)
    forks = [await claude.log(text, channel="shop") for text in ("Go on please.", "And now?")]
    assert first["channel"] == "shop"
    assert [one["channel"] for one in forks] == ["shop_claude"] * 2
    assert "is a chat of another client" in forks[0]["note"]
    stored = await orchestrator.registry.get_conversations("shop")
    assert [one["text"] for one in stored] == ["Why is the basket empty?"]


async def test_two_projects_with_the_same_channel_name_are_not_mixed(orchestrator: Orchestrator) -> None:
    folders = ("/home/ann/shop", "/home/ann/blog")
    windows = [Chat(orchestrator, folder=folder) for folder in folders]
    kept = [(await window.log(f"In {number}.", channel="chat"))["channel"] for number, window in enumerate(windows)]
    assert kept[0] == "chat" != kept[1]
    again = await windows[1].log("Still here.", channel=kept[1])
    assert again["channel"] == kept[1]


WORDS = ["shop", "Shop/", "shop ", "shop/api", "~/shop", "file://{}", ".", "./", "current", "Current", ""]


async def test_a_folder_is_recognised_in_any_form_a_model_writes(
    orchestrator: Orchestrator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / ".git").mkdir()  # as Codex's sandbox makes them
    folder = str(tmp_path / "home" / "shop")
    window = Chat(orchestrator, folder=folder)
    for place, word in enumerate(WORDS):
        for number, about in enumerate(({"project": word.format(folder)}, {}, {"project": folder})):
            kept = await window.log(f"Turn {number} of {place}.", channel=f"chat {place}", meta=about)
            assert (kept["channel"], "note" in kept) == (f"chat {place}", False), word
    listed = (await window.call("list_sessions", full=True))["sessions"]
    assert [(one["project_path"], one["message_count"]) for one in listed] == [(folder, 3)] * len(WORDS)


async def test_an_invalid_folder_is_refused(orchestrator: Orchestrator) -> None:
    for word in ("file://[x", "file://", "~\0a"):
        refused = await Chat(orchestrator, folder="/home/ann/shop").log(
            "Hello.", channel="chat", meta={"project": word}
        )
        assert refused["code"] == "INVALID_REQUEST"
        assert f"meta.project: given {word!r}; allowed: " in refused["details"]


async def test_a_windows_folder_is_recognised_by_its_file_address(orchestrator: Orchestrator) -> None:
    window = Chat(orchestrator, folder="c:\\src\\shop")
    for word in ("file:///c%3A/src/shop", "Shop\\", "shop"):
        await window.log(f"In {word}", channel="chat", meta={"project": word})
    [session] = (await window.call("list_sessions", full=True))["sessions"]
    assert (session["project_path"], session["message_count"]) == ("c:\\src\\shop", 3)


async def test_a_placeholder_of_an_example_is_refused(orchestrator: Orchestrator) -> None:
    refused = await Chat(orchestrator).log("x", channel="<channel of the last answer>")
    assert refused["message"] == "The example's placeholder was sent."


async def test_messages_without_a_time_get_that_of_the_call(orchestrator: Orchestrator) -> None:
    messages = [{"role": "human", "content": "one"}, {"role": "ai", "text": "two", "timestamp": "2026-01-02T00:00:00Z"}]
    given = {"channel": "c", "messages": messages, "timestamp": "2026-01-01T00:00:00Z"}
    await Chat(orchestrator).call("conversation_log", tool="conversation_log", parameters=given)
    stored = await orchestrator.registry.get_conversations("c")
    assert [(one["role"], one["text"], one["timestamp"][:10]) for one in stored] == [
        ("user", "one", "2026-01-01"),
        ("assistant", "two", "2026-01-02"),
    ]


async def test_text_parts_of_a_message_are_joined(orchestrator: Orchestrator) -> None:
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    await Chat(orchestrator).call("conversation_log", channel="c", messages=[{"role": "user", "content": parts}])
    assert (await orchestrator.registry.get_conversations("c"))[0]["text"] == "one\ntwo"


async def test_a_nickname_goes_to_the_only_chat_that_can_be_meant(orchestrator: Orchestrator) -> None:
    chat = Chat(orchestrator, folder="/home/ann/shop")
    await chat.log("Why is the basket empty?", channel="basket")
    named = await chat.call("tag_current_session", nickname="basket-bug")
    assert (named["session"]["channel"], named["session"]["nickname"]) == ("basket", "basket-bug")


async def test_if_two_chats_can_be_meant_both_are_named_and_neither_is_tagged(orchestrator: Orchestrator) -> None:
    chat = Chat(orchestrator, folder="/home/ann/shop")
    for channel in ("basket", "prices"):
        await chat.log(f"About {channel}.", channel=channel)
    await Chat(orchestrator, folder="/home/ann/blog").log("Elsewhere.", channel="blog")
    refused = await chat.call("tag_current_session", nickname="this")
    assert refused["message"] == "It is not known which chat is meant."
    assert "basket (About basket.)" in refused["details"]
    assert "prices (About prices.)" in refused["details"]
    assert "blog" not in refused["details"].partition("; a correct call")[0]
    found = await chat.call("list_sessions", project="all", tagged_only=True)
    assert found["sessions"] == []


async def test_a_chat_is_found_by_its_id_while_its_messages_are_in_the_spool(
    orchestrator: Orchestrator,
) -> None:
    async def take_in(is_about_now: bool) -> None:
        assert is_about_now
        orchestrator.before_reading = None
        await Chat(orchestrator).log("Why is the basket empty?", channel="session-7")

    orchestrator.before_reading = take_in
    named = await Chat(orchestrator).call("tag_current_session", nickname="basket-bug", session_id="session-7")
    assert named["session"]["channel"] == "session-7"


async def test_a_chat_of_another_day_is_not_the_current_one(orchestrator: Orchestrator) -> None:
    old = {"role": "user", "text": "Long ago.", "timestamp": "2026-01-01T00:00:00Z"}
    await Chat(orchestrator).call("conversation_log", channel="old", messages=[old])
    refused = await Chat(orchestrator).call("tag_current_session", tags=["x"])
    assert "none was active within the hour" in refused["details"]


async def test_a_session_in_a_list_is_one_line_with_its_age(orchestrator: Orchestrator) -> None:
    chat = Chat(orchestrator, folder="/home/ann/shop")
    title = "Why does the basket lose its items after login " * 3
    await chat.log("Why?", channel="basket", meta={"title": title})
    [line] = (await chat.call("list_sessions"))["sessions"]
    assert line.startswith("basket · just now · Why does the basket")
    assert line.endswith("· shop · cursor · 1 message")
    assert len(line) <= 120
    [whole] = (await chat.call("list_sessions", full=True))["sessions"]
    assert (whole["channel"], whole["project_path"]) == ("basket", "/home/ann/shop")


STRICT = {"type", "properties", "required", "additionalProperties", "items", "enum", "anyOf", "description", "format"}
STRICT |= {"minimum", "maximum", "minItems", "maxItems"}


def keywords(schema: Any) -> set[str]:
    """Return the keywords of a schema and of all schemas in it."""
    inside = [*schema.get("properties", {}).values(), *schema.get("anyOf", ()), *filter(None, [schema.get("items")])]
    return set(schema).union(*map(keywords, inside))


async def published(orchestrator: Orchestrator) -> list[Tool]:
    async with Client(create_server(orchestrator.run, ("all", "archive", "admin"))) as client:
        listed = await client.list_tools()
        assert listed.ttl_ms == 5 * 60 * 1000
        return listed.tools


async def test_a_strict_host_accepts_every_tool_and_descriptions_begin_with_a_short_sentence(
    orchestrator: Orchestrator,
) -> None:
    for tool in await published(orchestrator):
        assert keywords(tool.input_schema) <= STRICT, tool.name
        assert tool.input_schema["additionalProperties"] is False
        if tool.name in tools_of("all"):
            first = re.split(r"[;:.] ", tool.description or "")[0]
            assert len(first) <= 150, tool.name


def as_strict(schema: dict[str, Any], path: str, free: list[str]) -> dict[str, Any]:
    """Convert a schema to OpenAI's rules: every field is required, optional ones may be null, no others are allowed.

    `free` collects the paths of objects without declared fields, which strict mode cannot express.
    """
    if "anyOf" in schema:
        return {**schema, "anyOf": [as_strict(one, path, free) for one in schema["anyOf"]]}
    if schema.get("type") == "array":
        return {**schema, "items": as_strict(schema.get("items", {}), f"{path}[]", free)}
    if schema.get("type") != "object":
        return schema
    if "properties" not in schema:
        free.append(path)
        return schema
    fields = {name: as_strict(part, f"{path}.{name}", free) for name, part in schema["properties"].items()}
    optional = fields.keys() - set(schema.get("required", ()))
    nullable = {
        name: {"anyOf": [part, {"type": "null"}]} if name in optional else part for name, part in fields.items()
    }
    return {"type": "object", "properties": nullable, "required": [*nullable], "additionalProperties": False}


def with_nulls(given: Any, schema: dict[str, Any]) -> Any:
    """Return a call as a strict host sends it: every absent field is null."""
    if isinstance(given, list):
        return [with_nulls(one, schema["items"]) for one in given]
    if isinstance(given, dict) and "properties" in schema:
        fields = schema["properties"]
        return {name: with_nulls(given[name], part) if name in given else None for name, part in fields.items()}
    return given


async def test_a_strict_host_may_call_every_tool_with_null_for_absent_fields(
    orchestrator: Orchestrator,
) -> None:
    free: list[str] = []
    listed = {tool.name: tool.input_schema for tool in await published(orchestrator)}
    strict = {name: as_strict(schema, name, free) for name, schema in listed.items()}
    assert sorted(free) == [
        "conversation_log.messages[].context",
        "conversation_log.meta.additional_context",
        "extract.meta",
    ]
    for name, schema in strict.items():
        Draft202012Validator.check_schema(schema)
        tool = tools()[name]
        given = with_nulls({key: value for key, value in tool.example.items()}, listed[name])
        Draft202012Validator(schema).validate(given)
        tool.arguments.model_validate(given)
