"""Build exports of Claude.ai and ChatGPT accounts, from the description of their formats."""

from __future__ import annotations

import json
import uuid
import zipfile
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

Record = dict[str, Any]

BEGIN = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
ROOT = "00000000-0000-4000-8000-000000000000"
E_MAIL = "ann@example.org"


def an_id(number: int) -> str:
    """Return an id in the providers' form."""
    return str(uuid.UUID(int=0x6650_0000_0000_4000_8000_0000_0000_0000 + number))


# Claude.ai


@dataclass
class ClaudeChat:
    """A conversation of Claude.ai; a message follows the last one, or `after`."""

    number: int = 1
    name: str = "Baskets"
    has_parents: bool = True
    has_content: bool = True
    more: Record = field(default_factory=dict)
    messages: list[Record] = field(default_factory=list)
    last: str = ROOT

    def says(self, sender: str, *blocks: Record, after: str | None = None, text: str | None = None, **more: Any) -> str:
        """Add a message of blocks, 10 s after the last, and return its id."""
        number = len(self.messages) + 1
        at = (BEGIN + timedelta(seconds=10 * number, microseconds=123456)).isoformat()
        full = text if text is not None else "\n".join(block.get("text", "") for block in blocks)
        message: Record = {"uuid": an_id(self.number * 1000 + number), "sender": sender, "text": full, "created_at": at,
                   "updated_at": at, "attachments": [], "files": []}  # fmt: skip
        if self.has_content:
            message["content"] = list(blocks)
        if self.has_parents:
            message["parent_message_uuid"] = self.last if after is None else after
        self.messages.append(message | more)
        self.last = str(message["uuid"])
        return self.last

    def asks(self, text: str, **more: Any) -> str:
        """Add a user message."""
        return self.says("human", words(text), **more)

    def answers(self, text: str, **more: Any) -> str:
        """Add an answer."""
        return self.says("assistant", words(text), **more)

    def record(self) -> Record:
        """Return the conversation as the file contains it."""
        last = self.messages[-1]["created_at"] if self.messages else BEGIN.isoformat()
        known = {"uuid": an_id(self.number), "name": self.name, "summary": "", "created_at": BEGIN.isoformat(),
                 "updated_at": last, "account": {"uuid": an_id(99)}, "chat_messages": self.messages}  # fmt: skip
        return known | self.more


def words(text: str) -> Record:
    """Return a text block."""
    return {"type": "text", "text": text, "citations": [], "start_timestamp": None}


def use(name: str, given: Record, call_id: str | None = None) -> Record:
    """Return a block with a tool call."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": given, "message": None}


def result(name: str, content: Any, call_id: str | None = None, *, is_error: bool = False) -> Record:
    """Return a block with a tool's result."""
    return {"type": "tool_result", "tool_use_id": call_id, "name": name, "content": content, "is_error": is_error}


def claude_chat(number: int = 1) -> ClaudeChat:
    """Return a current conversation: thoughts, tools, an artifact, files, and a regenerated answer."""
    chat = ClaudeChat(number)
    pasted = {"file_name": "", "file_size": 9, "file_type": "txt", "extracted_content": "Traceback: basket.py"}
    first = chat.asks("Why does the basket lose its items?", attachments=[pasted], files=[{"file_name": "shot.png"}])
    chat.answers("It is the cache.")
    chat.says(
        "assistant",
        {"type": "thinking", "thinking": "A new list each time.", "summaries": [], "cut_off": False},
        words("Let me look it up."),
        use("web_search", {"query": "python list default"}),
        result("web_search", [{"type": "knowledge", "title": "Defaults", "url": "https://example.org/d", "text": "…"}]),
        words("It makes a new list each time."),
        {"type": "token_budget", "remaining": 1},
        after=first,
    )
    chat.asks("Write the fix")
    code = {"id": "fix", "type": "application/vnd.ant.code", "title": "basket.py", "command": "create",
            "content": "def keep(items): ...", "language": "python"}  # fmt: skip
    chat.says("assistant", use("artifacts", code), result("artifacts", [words("OK")]), words("Here it is."))
    return chat


def old_claude_chat(number: int = 2) -> ClaudeChat:
    """Return a conversation exported before 2025, without blocks and parents."""
    chat = ClaudeChat(number, name="", has_parents=False, has_content=False)
    chat.asks("안녕, how do I memoize fibonacci?")
    chat.answers("With lru_cache.")
    return chat


def claude_files(*chats: ClaudeChat) -> dict[str, bytes]:
    """Return an export's files by name, also those that are not conversations."""
    return {
        "conversations.json": as_json([chat.record() for chat in chats]),
        "users.json": as_json([{"uuid": an_id(99), "full_name": "Ann", "email_address": E_MAIL}]),
        "projects.json": as_json(
            [{"uuid": an_id(50), "name": "Shop", "description": "", "prompt_template": "Be brief", "docs": []}]
        ),
        "memories.json": as_json([{"conversations_memory": "Likes tests"}]),
    }


# ChatGPT


@dataclass
class ChatGptChat:
    """A conversation of ChatGPT; a node follows the last one, or `after`."""

    number: int = 1
    title: str | None = "Baskets"
    more: Record = field(default_factory=dict)
    nodes: dict[str, Record] = field(default_factory=dict)
    last: str | None = None

    def __post_init__(self) -> None:
        self.root = self.node(None)

    def node(self, message: Record | None, after: str | None = None) -> str:
        """Add a node to the tree, and return its id."""
        name = an_id(self.number * 1000 + len(self.nodes))
        parent = after or self.last
        self.nodes[name] = {
            "id": name,
            "parent": parent,
            "children": [],
            "message": message and {"id": name, **message},
        }
        if parent in self.nodes:
            self.nodes[str(parent)]["children"].append(name)
        self.last = name
        return name

    def says(self, role: str, content: Record, after: str | None = None, **more: Any) -> str:
        """Add a message, 10 s after the last; system messages have no time."""
        at = BEGIN.timestamp() + 10 * len(self.nodes) + 0.123456
        metadata = more.pop("metadata", {})
        author = {"role": role, "name": more.pop("name", None), "metadata": {}}
        known = {"author": author, "content": content, "create_time": None if role == "system" else at,
                 "update_time": None, "weight": 1.0, "recipient": "all", "status": "finished_successfully",
                 "channel": None, "metadata": metadata}  # fmt: skip
        return self.node(known | more, after)

    def asks(self, *parts: Any, **more: Any) -> str:
        """Add a user message."""
        return self.says("user", content(*parts), **more)

    def answers(self, *parts: Any, **more: Any) -> str:
        """Add an answer."""
        more.setdefault("metadata", {"model_slug": "gpt-5-thinking"})
        return self.says("assistant", content(*parts), **more)

    def record(self) -> Record:
        """Return the conversation as the file contains it."""
        known = {"title": self.title, "create_time": BEGIN.timestamp(),
                 "update_time": BEGIN.timestamp() + 10 * len(self.nodes), "mapping": self.nodes,
                 "current_node": self.last, "conversation_id": an_id(self.number), "id": an_id(self.number),
                 "default_model_slug": "gpt-5", "gizmo_id": None, "is_archived": False}  # fmt: skip
        return known | self.more


def content(*parts: Any) -> Record:
    """Return a message's content: text, or text and other parts."""
    plain = all(isinstance(part, str) for part in parts)
    return {"content_type": "text" if plain else "multimodal_text", "parts": list(parts)}


def chatgpt_chat(number: int = 1) -> ChatGptChat:
    """Return a current conversation: instructions, thoughts, executed code, browsing, a canvas, a second answer."""
    chat = ChatGptChat(number)
    hidden = {"is_visually_hidden_from_conversation": True}
    chat.says("system", content(""), metadata=hidden, weight=0.0)
    profile = {"content_type": "user_editable_context", "user_profile": "I run a shop", "user_instructions": "Be brief"}
    chat.says("user", profile, metadata=hidden)
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_1", "width": 1}
    named = {"attachments": [{"id": "file_1", "name": "shot.png", "mime_type": "image/png", "size": 1}]}
    question = chat.asks(picture, "Why does the basket lose its items?", metadata=named)
    chat.answers("It is the cache.")
    chat.says("assistant", {"content_type": "thoughts", "thoughts": [{"summary": "Lists", "content": "A new one"}]},
              after=question)  # fmt: skip
    chat.says("assistant", {"content_type": "reasoning_recap", "content": "Thought for 7s"})
    chat.says("assistant", {"content_type": "code", "language": "unknown", "text": "print([])"}, recipient="python")
    ran = {"content_type": "execution_output", "text": "[]"}
    chat.says("tool", ran, name="python", metadata={"aggregate_result": {"status": "success"}})
    chat.answers("It makes a new list \ue200cite\ue202turn0search1\ue201each time【12†source】.")
    chat.asks("Look it up, and write the fix")
    chat.says("assistant", {"content_type": "code", "language": "json", "text": '{"query": "lists"}'}, recipient="web")
    chat.says("tool", {"content_type": "tether_browsing_display", "result": "two pages"}, name="web")
    quote = {"content_type": "tether_quote", "title": "Defaults", "url": "https://example.org/d", "text": "…"}
    chat.says("tool", quote, name="web")
    canvas = json.dumps({"name": "basket.py", "type": "code/python", "content": "def keep(items): ..."})
    chat.says("assistant", content(canvas), recipient="canmore.create_textdoc")
    chat.says("tool", content("Created"), name="canmore.create_textdoc")
    page = {"type": "webpage", "title": "Defaults", "url": "https://example.org/d"}
    chat.answers("Here it is【3†Defaults】.", metadata={"content_references": [page]})
    return chat


def chatgpt_files(*chats: ChatGptChat, shards: int = 0) -> dict[str, bytes]:
    """Return an export's files by name; `shards` as since 2026."""
    records = [chat.record() for chat in chats]
    named = {f"conversations-{shard:03}.json": as_json(records[shard::shards]) for shard in range(shards)}
    return {
        **(named or {"conversations.json": as_json(records)}),
        "user.json": as_json({"id": "user-1", "email": E_MAIL}),
        "shared_conversations.json": as_json([{"id": an_id(70), "conversation_id": an_id(1), "title": "Baskets"}]),
        "message_feedback.json": b"[]",
        "chat.html": b"<html>",
        "file_1-shot.png": b"\x89PNG",
    }


# Files


def as_json(value: Any) -> bytes:
    """Return JSON as the providers write it."""
    return json.dumps(value, ensure_ascii=False).encode()


def write_zip(path: Path, files: dict[str, bytes]) -> Path:
    """Write an export as a ZIP file."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def write_folder(path: Path, files: dict[str, bytes]) -> Path:
    """Write an export as a folder."""
    for name, data in files.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return path
