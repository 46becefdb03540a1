"""What a history of Aider's says: Markdown, one chat after the other. Pure.

What the user wrote stands behind `#### `; what the program said behind `> `, and ends in two spaces, which tells it
from what a model quotes; all else is the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256

from registry.domain import Role
from sources.kit import drafts
from sources.kit.drafts import Draft

_BEGIN = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*$")
_TYPED, _TOLD, _LINE_BREAK = "#### ", "> ", "  "
_THINKING = re.compile(r"<(thinking-content-[0-9a-f]+|think)>\s*(.*?)\s*(?:</\1>|\Z)", re.DOTALL)
_MODEL = re.compile(r"(?:Main )?[Mm]odel: (\S+) with")
_EDITED = re.compile(r"Applied edit to (.+)")


@dataclass(slots=True)
class Chat:
    """One chat of a history: when it began, by the machine's clock, and its lines."""

    began: datetime
    lines: list[str] = field(default_factory=list)

    @property
    def fingerprint(self) -> str:
        """Changes with what it says."""
        return sha256("\n".join(self.lines).encode("utf-8", "replace")).hexdigest()[:32]


def chats_of(lines: Iterable[str]) -> Iterator[Chat]:
    """The chats of a history, in order; what stands before the first is none."""
    chat: Chat | None = None
    for line in lines:
        if began := _began(line):
            if chat:
                yield chat
            chat = Chat(began)
        elif chat:
            chat.lines.append(line.rstrip("\r\n"))
    if chat:
        yield chat


def _began(line: str) -> datetime | None:
    begin = _BEGIN.match(line)
    with suppress(ValueError, OverflowError, OSError):
        return datetime.fromisoformat(begin[1]).astimezone() if begin else None
    return None


def drafts_of(chat: Chat) -> list[Draft]:
    """The messages of a chat. None has a time of its own; the first takes that at which it began."""
    found: list[Draft] = []
    model = ""
    for role, text in _blocks(chat.lines):
        if role is Role.ASSISTANT:
            found += _answered(text, model)
        elif role is Role.USER:
            found.append(Draft(Role.USER, [text], None))
        else:
            model = next((told[1] for told in map(_MODEL.match, text.splitlines()) if told), model)
            found += _told(text)
    if found:
        found[0].at = chat.began
    return found


def _blocks(lines: Iterable[str]) -> Iterator[tuple[Role, str]]:
    """Lines of one kind that follow each other, as one text."""
    kind, held, is_open = Role.SYSTEM, list[str](), False
    for line in lines:
        next_kind, words, is_open = _kind_of(line, kind, is_open)
        if next_kind is not kind:
            if text := "\n".join(held).strip():
                yield kind, text
            kind, held = next_kind, []
        held.append(words)
    if text := "\n".join(held).strip():
        yield kind, text


def _kind_of(line: str, before: Role, is_open: bool) -> tuple[Role, str, bool]:
    """A line's kind, its words, and whether the program has more to say: only its first line and its end are marked."""
    is_last = line.endswith(_LINE_BREAK)
    if line.startswith(_TYPED):
        return Role.USER, line.removeprefix(_TYPED).removesuffix(_LINE_BREAK), False
    if line.startswith(_TOLD) and (is_last or before is Role.SYSTEM):
        return Role.SYSTEM, line.removeprefix(_TOLD).rstrip(), not is_last
    if is_open:
        return Role.SYSTEM, line.rstrip(), not is_last
    if not line.strip() and before is Role.SYSTEM:
        return Role.SYSTEM, "", False
    return Role.ASSISTANT, line, False


def _answered(text: str, model: str) -> Iterator[Draft]:
    more = {"model": model} if model else {}
    for thought in _THINKING.finditer(text):
        if thought[2]:
            yield Draft(Role.THINKING, [thought[2]], None, dict(more))
    if said := _THINKING.sub("", text).strip():
        yield Draft(Role.ASSISTANT, [said], None, dict(more))


def _told(text: str) -> Iterator[Draft]:
    """What the program said: its edits are calls, all else nobody wrote."""
    said: list[str] = []
    for line in text.splitlines():
        if edited := _EDITED.match(line):
            yield _edit(edited[1].strip(), line)
        else:
            said.append(line)
    if words := "\n".join(said).strip():
        yield Draft(Role.SYSTEM, [words], None, {"injected": True})


def _edit(file: str, line: str) -> Draft:
    tool = {"name": "edit", "params": {"file_path": file}, "result": line, "status": drafts.COMPLETED}
    return Draft(Role.TOOL, [drafts.call_title("edit", tool["params"])], None, {"tool": tool})
