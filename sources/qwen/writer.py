"""A conversation as a chat of Qwen Code's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

from registry.domain import Message, Role, format_time, now
from sources.base import Places
from sources.qwen.client import QWEN_CODE
from sources.writing import Carried, Written, lines, stamped


class QwenWriter:
    """Writes `projects/<folder>/chats/<session>.jsonl`."""

    client = QWEN_CODE
    program = "qwen"
    tested = "0.24.4"

    def opens(self, session_id: str) -> tuple[str, ...]:
        """The command that goes on with a session."""
        return (self.program, "--resume", session_id)

    def write(self, talk: Carried, version: str, places: Places, drafts: Path) -> Written:
        """Records in one chain, as the client itself leaves them, and the title."""
        session_id = str(uuid4())
        slot = re.sub("[^a-zA-Z0-9]", "-", talk.folder)
        home = places.folder(("CTXR_QWEN_CODE_DIR", "QWEN_HOME"), ".qwen")
        path = home / "projects" / slot / "chats" / f"{session_id}.jsonl"
        common = {"sessionId": session_id, "cwd": talk.folder, "version": version}
        records = _chained([*_messages(talk), *_title(talk)], common)
        return Written(session_id, path, {path: lines(records)}, self.opens(session_id))


def _messages(talk: Carried) -> Iterator[dict[str, Any]]:
    for message, time in stamped(talk.messages):
        is_question = message.role is Role.USER
        yield {
            "timestamp": time,
            "type": "user" if is_question else "assistant",
            **_model(message),
            "message": {"role": "user" if is_question else "model", "parts": [{"text": message.text}]},
        }


def _model(message: Message) -> dict[str, str]:
    return {} if message.role is Role.USER else {"model": str(message.more.get("model") or "unknown")}


def _title(talk: Carried) -> Iterator[dict[str, Any]]:
    if talk.title:
        told = {"customTitle": talk.title, "titleSource": "auto"}
        yield {"timestamp": format_time(now()), "type": "system", "subtype": "custom_title", "systemPayload": told}


def _chained(records: list[dict[str, Any]], common: dict[str, str]) -> Iterator[dict[str, Any]]:
    parent = None
    for record in records:
        uuid = str(uuid4())
        yield {"uuid": uuid, "parentUuid": parent, **common, **record}
        parent = uuid
