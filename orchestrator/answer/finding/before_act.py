"""Warn before a command that failed in a past chat, or an edit that contradicts a past decision. Pure."""

import re
import shlex
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import groupby, takewhile
from operator import eq
from typing import NamedTuple

from orchestrator.answer.conversation_state import COMMAND_KEYS, PATH_KEYS, first_param
from orchestrator.answer.delivery import MessageDict
from registry.domain import preview_of
from registry.text.analysis.analyzer import analyze
from sources.kit.drafts import COMPLETED, FAILED

Words = frozenset[str]

OLD_KEYS = ("old_string", "oldString", "old_str")
NEW_KEYS = ("new_string", "newString", "new_str", "content", "file_text")
PATCH_KEYS = ("input", "patch", "patchText")
_PATCHED = re.compile(r"^\*\*\* (?:Update|Add) File: (.+)$", re.MULTILINE)  # the first of several files
COMMAND, REASON = 45, 35  # characters of the failed command and of its error; the rest is for the command that worked
MIN_SHARED_TOKENS = 3  # tokens in common of a changed line and the line that a comment explains
MAX_CURE_DISTANCE = 8  # messages after a failure in which to look for the command that worked
_WORD = re.compile(r"[^\s'\"`=:,;/@(){}\[\]<>|&]+")
_VALUE = re.compile(r"(?<= --)[\w-]+[ =]([^-\s]\S*)|(\S*\d\S*)")
_COMMENT = re.compile(r"(?:^|\s)(?:#|//|/\*+|--|%|;|<!--)\s+(\w.{11,})")  # shorter comments give no reason
_NAMES_ERROR = re.compile(r"error(?!: \(none\)$)|fail|fatal|denied|not found", re.IGNORECASE)
_EXIT_CODE = re.compile(r"^exit code:? [1-9]", re.IGNORECASE)


class Act(NamedTuple):
    """A shell command, or the change of a file's text from `old` to `new`."""

    command: str = ""
    file: str = ""
    old: str = ""
    new: str = ""

    @property
    def removed(self) -> list[str]:
        """Return the lines that the change removes."""
        new = self.new.splitlines()
        return [line for line in self.old.splitlines() if line not in new]

    @property
    def added(self) -> list[str]:
        """Return the lines that the change adds."""
        old = self.old.splitlines()
        return [line for line in self.new.splitlines() if line not in old]

    @property
    def subject(self) -> str:
        """Return the text to search past messages for."""
        return self.command or "\n".join([self.file, *self.added, *self.removed])


class PastWarning(NamedTuple):
    """A warning before an act, and the past message that it is taken from."""

    text: str
    message: MessageDict


class ShellCommand(NamedTuple):
    """A simple command: its text and the set of its words."""

    text: str
    words: Words


def act_of(params: object) -> Act | None:
    """Return the act that a tool's parameters describe; None for a read or another call that changes nothing."""
    given = first_param(params, (*COMMAND_KEYS, *PATCH_KEYS))
    if patched := _PATCHED.search(given):
        return _change_of(patched[1].strip(), given[patched.end() :])
    changes = params.get("changes") if isinstance(params, Mapping) else None
    for file, change in changes.items() if isinstance(changes, Mapping) else ():  # as Codex records a patch
        if diff := first_param(change, ("unified_diff",)):
            return _change_of(str(file), diff)
    if command := first_param(params, COMMAND_KEYS):
        return Act(command)
    file, new = first_param(params, PATH_KEYS), first_param(params, NEW_KEYS)
    return Act("", file, first_param(params, OLD_KEYS), new) if file and new else None


def _change_of(file: str, diff: str) -> Act:
    """Return the change that a diff describes, with its context lines on both sides."""
    lines = diff.splitlines()
    old, new = ("\n".join(line[1:] for line in lines if line[:1] in signs) for signs in ("- ", "+ "))
    return Act("", file, old, new)


def find_warning(act: Act, messages: Sequence[MessageDict]) -> PastWarning | None:
    """Return the warning about an act in `messages` of a project's past chats (in order of time), if any."""
    return find_past_failure(act, messages) if act.command else find_past_decision(act, messages)


def find_past_failure(act: Act, messages: Sequence[MessageDict]) -> PastWarning | None:
    """Return the failure of a similar command and the command that worked, unless this one has worked since."""
    wanted = [one.words for one in split_commands(act.command)]
    found = None
    for at, message in enumerate(messages):
        ended, commands = _status(message), split_commands(_act_in(message).command)
        if ended == COMPLETED and any(one.words in wanted for one in commands):
            found = None
        for one in commands if ended == FAILED else ():
            cure = _find_working_command(one, message, messages[at + 1 :])
            if cure and any(_is_like_failed(words, one, cure.words) for words in wanted):
                failed = f"`{preview_of(_where_it_differs(one, cure), COMMAND)}` failed ({_reason(message)})"
                found = PastWarning(f"{failed}; this worked: `{_where_it_differs(cure, one)}`", message)
    return found


def find_past_decision(act: Act, messages: Sequence[MessageDict]) -> PastWarning | None:
    """Return the comment of the past edit that added the lines which this act removes."""
    changed = [_tokens(line) for line in act.removed]
    for message in reversed(messages):
        past = _act_in(message)
        if message.get("superseded") or not (past.old and _is_same_file(past.file, act.file)):
            continue
        comment = ""
        for line in past.added:
            found = _COMMENT.search(line)
            code = _tokens(line[: found.start()] if found else line)
            comment = found[1] if found else comment
            if comment and any(len(one & code) >= MIN_SHARED_TOKENS for one in changed):
                return PastWarning(f"{act.file.rpartition('/')[2]}: {comment}", message)
            comment = comment if found and not code else ""  # a comment above the next line
    return None


@lru_cache(4096)
def split_commands(line: str) -> list[ShellCommand]:
    """Return the simple commands of a shell line; none if a quote is not closed."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        parts = [(is_sign, " ".join(some)) for is_sign, some in groupby(lexer, lambda one: set(one) <= set("();<>|&"))]
    except ValueError:
        return []
    return [ShellCommand(text, frozenset(_WORD.findall(text))) for is_sign, text in parts if not is_sign]


def _find_working_command(
    failed: ShellCommand, message: MessageDict, following: Sequence[MessageDict]
) -> ShellCommand | None:
    """Return the next similar command that worked, unless a file was changed before it."""
    least = max(len(failed.words) / 2, min(len(failed.words), 2))  # more than the program's name
    for other in following:
        distance = other["seq"] - message["seq"]
        if other["channel_number"] != message["channel_number"] or not 0 < distance <= MAX_CURE_DISTANCE:
            continue
        act = _act_in(other)
        if act.file:
            return None
        for one in split_commands(act.command) if _status(other) == COMPLETED else ():
            if len(one.words & failed.words) >= least and one.words != failed.words:
                return one
    return None


def _where_it_differs(one: ShellCommand, other: ShellCommand) -> str:
    """Return a command's text; if it is long, without the words after the first that both begin with."""
    words = one.text.split(" ")
    same = len(list(takewhile(lambda pair: eq(*pair), zip(words, other.text.split(" "), strict=False))))
    return f"{words[0]} … {' '.join(words[same:])}" if len(one.text) > COMMAND and 1 < same < len(words) else one.text


def _is_like_failed(words: Words, failed: ShellCommand, worked: Words) -> bool:
    """Return True if a command has the words that the working command dropped, and none that it added.

    If it dropped none, all words count except dates, numbers and the values of options.
    """
    dropped, added = failed.words - worked, worked - failed.words
    values = {word for value in _VALUE.finditer(failed.text) for word in _WORD.findall(value[1] or value[2])}
    needed = dropped or failed.words - values - {"sudo"}
    return 2 * len(failed.words & words) >= len(failed.words) and needed <= words and not added & words


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
    """Return the first line of a result that names an error, else its exit code, else its first line."""
    lines = [line for line in str(message["tool"].get("result") or "").splitlines() if line.strip()]
    naming = (line for pattern in (_NAMES_ERROR, _EXIT_CODE) for line in lines if pattern.search(line))
    return preview_of(next(naming, "".join(lines[:1])), REASON)
