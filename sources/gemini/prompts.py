"""Separate what a user of Gemini CLI typed from what the client added. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from sources.kit.loose_json import Record, first_text, mapping, objects, string

_INJECTED = (
    "This is the Gemini CLI. We are setting up the context",
    *("<session_context>", "<state_snapshot>", "<environment_context>", "<system-reminder>"),
)
# messages of hooks at the start of a chat, put before the first prompt
_HOOK_CONTEXT = re.compile(r"\s*<hook_context>.*?</hook_context>\s*", re.DOTALL)
_REFERENCED = "--- Content from referenced files ---"
_REFERENCE = re.compile(r"^Content from @(.+):$", re.MULTILINE)


class Prompt(NamedTuple):
    """A user's message: what was typed, what the client added, and the names of what was sent along."""

    typed: str
    context: str
    attachments: tuple[str, ...]


def prompt_of(message: Record) -> Prompt:
    """Return the parts of a message of type `user`, without the results of tools that it may carry."""
    content = message.get("content")
    text, shown = parts_text(content).strip(), parts_text(message.get("displayContent")).strip()
    if text.startswith(_INJECTED):
        return Prompt("", text, ())
    before = _HOOK_CONTEXT.match(text)
    note = before[0] if before else ""
    text, shown = text.removeprefix(note), shown.removeprefix(note)
    typed, found, referenced = text.partition(_REFERENCED)
    context = note + found + referenced
    if shown and shown != text:  # a command or a mention, and what it expands to; or a hook's answer behind the prompt
        typed, context = shown, note + text.removeprefix(shown)
    names = (*_files_in(content), *_REFERENCE.findall(context))
    return Prompt(typed.strip(), context.strip(), tuple(dict.fromkeys(names)))


def parts_text(content: object) -> str:
    """Return the text of a content, a string or a list of parts, without thoughts."""
    if isinstance(content, str):
        return content
    return "".join(string(part.get("text")) for part in objects(content) if not part.get("thought"))


def thoughts_in(message: Record) -> str:
    """Return the thoughts of an answer, each with its subject."""
    pairs = (
        (string(given.get("subject")), string(given.get("description"))) for given in objects(message.get("thoughts"))
    )
    thoughts = ["\n".join(filter(None, (subject and f"**{subject}**", words))) for subject, words in pairs]
    thoughts += [string(part.get("text")) for part in objects(message.get("content")) if part.get("thought")]
    return "\n\n".join(filter(None, map(str.strip, thoughts)))


def _files_in(content: object) -> Iterator[str]:
    for part in objects(content):
        data = mapping(part.get("inlineData")) or mapping(part.get("fileData"))
        if data:
            yield first_text(data, "displayName", "fileUri", "mimeType") or "file"
