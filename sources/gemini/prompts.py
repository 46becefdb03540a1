"""Separate the text that a user of Gemini CLI or Qwen Code typed from the client's additions. Pure."""

import re
from collections.abc import Iterator

from sources.kit.loose_json import Record, objects, string

_INJECTED = (
    "This is the Gemini CLI. We are setting up the context",
    *("<session_context>", "<state_snapshot>", "<environment_context>", "<system-reminder>"),
)
# put before a prompt: messages of hooks, descriptions of servers for a sub-agent, and reminders of Qwen Code
_BEFORE = re.compile(r"(?:\s*<(hook_context|loaded_context|system-reminder)>.*?</\1>\s*)+", re.DOTALL)
_REFERENCED = "--- Content from referenced files ---"
_REFERENCE = re.compile(r"^Content from @(.+):$", re.MULTILINE)


def prompt_of(message: Record) -> tuple[str, str, list[str]]:
    """Return the user's text in a message, the client's additions, and the names of files in these."""
    content = message.get("content")
    text, shown = parts_text(content).strip(), parts_text(message.get("displayContent")).strip()
    note, text = _split_note(text)
    if text.startswith(_INJECTED):
        return "", note + text, []
    shown = _split_note(shown)[1]  # its note may differ: the client expands mentions of files in notes, too
    typed, found, referenced = text.partition(_REFERENCED)
    context = note + found + referenced
    if shown and shown != text:  # a command or a mention with its expansion, or a prompt followed by a hook's answer
        typed, context = shown, note + text.removeprefix(shown)
    return typed.strip(), context.strip(), list(dict.fromkeys(_REFERENCE.findall(context)))


def _split_note(text: str) -> tuple[str, str]:
    """Return the client's additions before a prompt, and the rest."""
    before = _BEFORE.match(text)
    end = before.end() if before else 0
    return text[:end], text[end:]


def parts_text(content: object) -> str:
    """Return the text of a content, a string or a list of parts, without thoughts."""
    if isinstance(content, str):
        return content
    return "".join(string(part.get("text")) for part in objects(content) if not part.get("thought"))


def typed(prompt: str) -> Iterator[str]:
    """Return the parts of a hook's prompt that the user typed."""
    return filter(None, prompt_of({"content": prompt})[:1])
