"""Separate the text that a user of Claude Code typed from the client's additions. Pure."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from registry.domain import Role


class Piece(NamedTuple):
    """A part of a user record. `command`: the slash command in the text, if it is one."""

    role: Role
    text: str
    command: str = ""


# tags that the client adds: around context, or around parts of a command
_CONTEXT = (
    *("ide_opened_file", "ide_selection", "ide_diagnostics", "new-diagnostics", "system-reminder"),
    *("task-notification", "local-command-stdout", "local-command-stderr", "local-command-caveat"),
    *("bash-stdout", "bash-stderr", "user-prompt-submit-hook", "command-contents"),
)
_COMMAND = ("command-name", "command-message", "command-args", "bash-input")
_WRAPPER = re.compile(rf"<({'|'.join(_CONTEXT + _COMMAND)})>(.*?)</\1>\s*", re.DOTALL)
_OPENED = tuple(f"<{tag}>" for tag in _CONTEXT + _COMMAND)
_REMINDER, _REMINDER_END = "<system-reminder>", "</system-reminder>"
_NOT_TYPED = (
    "Caveat: The messages below",
    "[Request interrupted by user",
    "This session is being continued from a previous conversation",
    *_OPENED,  # a wrapper that is never closed
)
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def pieces_of(texts: Iterable[str]) -> Iterator[Piece]:
    """Yield the pieces of a user record in order. All text after a command is its expansion."""
    is_expansion = False
    for text in texts:
        for piece in _pieces(text):
            yield Piece(Role.SYSTEM, piece.text) if is_expansion else piece
            is_expansion = is_expansion or bool(piece.command)


def typed(prompt: str) -> Iterator[str]:
    """Return the parts of a hook's prompt that the user typed."""
    return (piece.text for piece in pieces_of([prompt]) if piece.role is Role.USER)


def _pieces(text: str) -> Iterator[Piece]:
    text = text.strip()
    end, reminders = _trailing_reminders(text)
    command: dict[str, str] = {}
    at = 0
    while wrapper := _WRAPPER.match(text, at, end):
        tag, body = wrapper.group(1), _COLOURS.sub("", wrapper.group(2)).strip()
        if tag in _COMMAND:
            command[tag] = body
        elif body:
            yield Piece(Role.SYSTEM, body)
        at = wrapper.end()
    yield from _command(command)
    if at < end:
        yield Piece(Role.SYSTEM if text.startswith(_NOT_TYPED, at) else Role.USER, text[at:end])
    yield from reminders


def _trailing_reminders(text: str) -> tuple[int, list[Piece]]:
    """Return the end of the user's text, and the reminders that the client appended to it."""
    end, reminders = len(text), []
    while text.endswith(_REMINDER_END, 0, end) and (start := text.rfind(_REMINDER, 0, end)) > 0:
        if body := text[start + len(_REMINDER) : end - len(_REMINDER_END)].strip():
            reminders.append(Piece(Role.SYSTEM, body))
        end = start
        while end and text[end - 1].isspace():
            end -= 1
    return end, reminders[::-1]


def _command(tags: dict[str, str]) -> Iterator[Piece]:
    """Yield `/name args` or `! shell command`, as it was typed."""
    if typed := tags.get("bash-input"):
        yield Piece(Role.USER, f"! {typed}", "!")
    if called := tags.get("command-name") or tags.get("command-message"):
        name = "/" + called.removeprefix("/")
        yield Piece(Role.USER, f"{name} {tags.get('command-args', '')}".strip(), name)
