"""Find what a project's past chats say against a command or an edit: it failed, or was decided otherwise. Pure."""

import re
import shlex
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from orchestrator.answer.delivery import MessageDict
from orchestrator.answer.standing import COMMAND_KEYS, PATH_KEYS, first_param
from registry.domain import preview_of
from registry.text.analysis.analyzer import analyze
from sources.kit.drafts import COMPLETED, FAILED

Words = frozenset[str]

OLD_KEYS = ("old_string", "oldString", "old_str")
NEW_KEYS = ("new_string", "newString", "new_str", "content", "file_text")
PATCH_KEYS = ("input", "patch", "patchText")
_PATCHED = re.compile(r"^\*\*\* (?:Update|Add) File: (.+)$", re.MULTILINE)  # of several files the first
COMMAND, REASON = 45, 35  # characters of what failed, and why; the rest is for what worked
SHARED = 3  # tokens that a changed line has in common with the one that a comment speaks of
CURE_WITHIN = 8  # messages after a failure in which the command that worked is looked for
_WORD = re.compile(r"[^\s'\"`=:,;/@(){}\[\]<>|&]+")
_COMMENT = re.compile(r"(?:^|\s)(?:#|//|/\*+|--|%|;|<!--)\s+(\w.{11,})")  # shorter ones give no reason
_NAMES_ERROR = re.compile("error|fail|fatal|denied|not found", re.IGNORECASE)


class Act(NamedTuple):
    """A shell command, or the change of a file's text from `old` to `new`."""

    command: str = ""
    file: str = ""
    old: str = ""
    new: str = ""

    @property
    def removed(self) -> list[str]:
        """Return the lines that the change takes out."""
        new = self.new.splitlines()
        return [line for line in self.old.splitlines() if line not in new]

    @property
    def added(self) -> list[str]:
        """Return the lines that the change puts in."""
        old = self.old.splitlines()
        return [line for line in self.new.splitlines() if line not in old]

    @property
    def subject(self) -> str:
        """Return the text that past messages about it have words of."""
        return self.command or "\n".join([self.file, *self.added, *self.removed])


class Told(NamedTuple):
    """A sentence of a past chat about an act, and the message that says it."""

    text: str
    message: MessageDict


class ShellCommand(NamedTuple):
    """A simple command: its text, and its words without their order."""

    text: str
    words: Words


def act_of(params: object) -> Act | None:
    """Return the act that a tool's parameters describe; None for reads and what else changes nothing."""
    given = first_param(params, (*COMMAND_KEYS, *PATCH_KEYS))
    if patched := _PATCHED.search(given):
        lines = given[patched.end() :].splitlines()
        old, new = ("\n".join(line[1:] for line in lines if line[:1] in signs) for signs in ("- ", "+ "))
        return Act("", patched[1].strip(), old, new)
    if command := first_param(params, COMMAND_KEYS):
        return Act(command)
    file, new = first_param(params, PATH_KEYS), first_param(params, NEW_KEYS)
    return Act("", file, first_param(params, OLD_KEYS), new) if file and new else None


def told_against(act: Act, messages: Sequence[MessageDict]) -> Told | None:
    """Return what `messages` of a project's past chats, in order of time, say against an act; None if nothing does."""
    return failed_before(act, messages) if act.command else decided_about(act, messages)


def failed_before(act: Act, messages: Sequence[MessageDict]) -> Told | None:
    """Return that a command like this one failed, and which one worked, unless this one has worked since."""
    wanted = [one.words for one in commands_in(act.command)]
    found = None
    for at, message in enumerate(messages):
        ended, commands = _status(message), commands_in(_act_in(message).command)
        if ended == COMPLETED and any(one.words in wanted for one in commands):
            found = None
        for one in commands if ended == FAILED else ():
            cure = _cure(one, message, messages[at + 1 :])
            if cure and any(_is_like_failed(words, one.words, cure.words) for words in wanted):
                failed = f"`{preview_of(one.text, COMMAND)}` failed ({_reason(message)})"
                found = Told(f"{failed}; this worked: `{cure.text}`", message)
    return found


def decided_about(act: Act, messages: Sequence[MessageDict]) -> Told | None:
    """Return the comment with which a past edit put in the lines that this one changes."""
    changed = [_tokens(line) for line in act.removed]
    for message in reversed(messages):
        past = _act_in(message)
        if not (past.old and _is_same_file(past.file, act.file)):
            continue
        comment = ""
        for line in past.added:
            found = _COMMENT.search(line)
            code = _tokens(line[: found.start()] if found else line)
            comment = found[1] if found else comment
            if comment and any(len(one & code) >= SHARED for one in changed):
                return Told(f"{act.file.rpartition('/')[2]}: {comment}", message)
            comment = comment if found and not code else ""  # it stands above the next line
    return None


@lru_cache(4096)
def commands_in(line: str) -> list[ShellCommand]:
    """Return the simple commands of a shell line; none if a quote is not closed."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        parts = [(is_sign, " ".join(some)) for is_sign, some in groupby(lexer, lambda one: set(one) <= set("();<>|&"))]
    except ValueError:
        return []
    return [ShellCommand(text, frozenset(_WORD.findall(text))) for is_sign, text in parts if not is_sign]


def _cure(failed: ShellCommand, message: MessageDict, following: Sequence[MessageDict]) -> ShellCommand | None:
    """Return the similar command that worked next, unless a file was changed in between."""
    for other in following:
        if other["channel_number"] != message["channel_number"] or other["seq"] > message["seq"] + CURE_WITHIN:
            continue
        act = _act_in(other)
        if act.file:
            return None
        for one in commands_in(act.command) if _status(other) == COMPLETED else ():
            if 2 * len(one.words & failed.words) >= len(failed.words) and one.words != failed.words:
                return one
    return None


def _is_like_failed(words: Words, failed: Words, worked: Words) -> bool:
    """Return True if a command holds what the one that worked left out, and nothing that it added."""
    dropped, added = failed - worked, worked - failed
    return 2 * len(failed & words) >= len(failed) and (dropped or failed - {"sudo"}) <= words and not added & words


@lru_cache(4096)
def _tokens(text: str) -> Words:
    return frozenset(analyze(text))


def _is_same_file(one: str, other: str) -> bool:
    return one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")


def _act_in(message: MessageDict) -> Act:
    tool = message.get("tool")
    return (act_of(tool.get("params")) if isinstance(tool, Mapping) else None) or Act()


def _status(message: MessageDict) -> str:
    tool = message.get("tool")
    return str(tool.get("status")) if isinstance(tool, Mapping) else ""


def _reason(message: MessageDict) -> str:
    """Return the first line of a result that names an error, else its first line."""
    lines = [line for line in str(message["tool"].get("result") or "").splitlines() if line.strip()]
    return preview_of(next((line for line in lines if _NAMES_ERROR.search(line)), "".join(lines[:1])), REASON)
