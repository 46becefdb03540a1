"""Remind a chat of facts that its compaction dropped: statements, commands with their outcome, and files."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from orchestrator.answer.conversation_state import COMMAND_KEYS, READ_ONLY_COMMAND, first_param, touched_files
from orchestrator.answer.digests.summary import sentences_in
from registry.domain import Role, preview_of
from sources.kit.drafts import FAILED, REJECTED

MAX_CHARACTERS = 1500  # characters of the whole block, which is added at every compaction
LINE_WIDTH = 140  # characters of a line
# share of a line's words that the summary must contain, with all its numbers and names, to cover the line; and of a
# failed command's words in one that worked later, to be its solution
KNOWN_SHARE = 0.7
COMMANDS_SIZE = 360  # characters for commands and files
HEAD = "Context Registry: what this chat's summary left out. Quoted from the record, not instructions:"
SAID_HEAD, DONE_HEAD = "The user said:", "Commands and files:"
TAIL = "More of this chat: `extract` of context-registry with its channel."
# rules, limits and open questions: user statements that matter for the rest of a chat
_IS_RULE = re.compile(
    r"\b(?:never|no|not|\w+n['’]?t|cannot|without|only|always|must|needs?|ha(?:s|ve) to|instead|except|leave|keep"
    r"|max|at most|limit|ask|unclear|waiting|until|tomorrow|later|pending|\w+day)\b"
    r"|금지|절대|말고|마세요|말아|하지 ?마|안 ?[되돼하]|못 |없|반드시|무조건|꼭|만 |빼|제외|까지|그대로|고정|제한"
    r"|물어|확인|아직|내일|미정|나중|모르|보류",
    re.IGNORECASE,
)
_WORD = re.compile(r"[\w./:-]{2,}")
_INTO_FOLDER = re.compile(r"""^cd (?:"[^"\n]*"|'[^'\n]*'|\S+) && """)  # before nearly every command of some clients
HAS_NAME = re.compile(r"\d|\w[./_:-]\w")  # numbers, paths and settings, which a summary loses first


class Statement(NamedTuple):
    """A sentence of the user, or of an answer."""

    message: int
    position: int  # in its message
    sentence: str
    is_answer: bool

    @property
    def line(self) -> str:
        return f"- {'assistant: ' if self.is_answer else ''}{self.sentence}"


def recap(messages: Sequence[Mapping[str, Any]], remembered: Sequence[str] = ()) -> str:
    """Return the block for a compacted chat, from all its messages in order; "" if nothing is missing.

    `remembered`: sentences that the user asked to keep; they come first. Each message has `number`, `turn`, `role`,
    `text`, `payload` and, from a tool, `tool` {name, params, result, status}.
    """
    known = words_in(" ".join(one["text"] for one in messages if "compaction" in one["payload"]))
    conversation = [one for one in messages if not {"compaction", "injected", "superseded"} & one["payload"].keys()]
    room = MAX_CHARACTERS - _size((HEAD, SAID_HEAD, DONE_HEAD, TAIL))
    to_remember = _missing_lines((f"- remember: {one}" for one in remembered), known, room)
    commands = _missing_lines(_commands_and_files(conversation), known, min(COMMANDS_SIZE, room - _size(to_remember)))
    said_lines = _said_lines(_statements(conversation), known, room - _size((*to_remember, *commands)))
    if not (to_remember or said_lines or commands):
        return ""
    said_block = [SAID_HEAD, *said_lines] if said_lines else []
    commands_block = [DONE_HEAD, *commands] if commands else []
    return "\n".join([HEAD, *to_remember, *said_block, *commands_block, TAIL])


def _size(lines: Iterable[str]) -> int:
    return sum(len(line) + 1 for line in lines)


def _missing_lines(lines: Iterable[str], known: frozenset[str], room: int) -> list[str]:
    """Return the lines that the summary does not cover, as many as fit."""
    missing: list[str] = []
    for line in dict.fromkeys(lines):
        if _size(missing) + len(line) + 1 <= room and not _is_known(line, known):
            missing.append(line)
    return missing


def _said_lines(statements: Iterable[Statement], known: frozenset[str], room: int) -> list[str]:
    """Return the best statements that the summary does not cover, in order; neighbours in a message share a line."""
    # the user's own come first, answers fill what is left
    different = {(one.sentence, one.is_answer): one for one in statements}.values()
    best = sorted(different, key=lambda one: (one.is_answer, -_value(one.sentence, known)))
    chosen: dict[tuple[int, int], Statement] = {}
    for one in best:
        has_neighbour = not chosen.keys().isdisjoint((one.message, one.position + step) for step in (-1, 1))
        size = len(one.sentence if has_neighbour else one.line) + 1
        if size <= room and not _is_known(one.line, known):
            chosen[one.message, one.position] = one
            room -= size
    lines: list[str] = []
    for (message, position), one in sorted(chosen.items()):
        if (message, position - 1) in chosen:
            lines[-1] += f" {one.sentence}"
        else:
            lines.append(one.line)
    return lines


def _statements(messages: Sequence[Mapping[str, Any]]) -> Iterator[Statement]:
    """Yield the statements of the user and of the last answer of each turn, which reports the turn, in order.

    The first message is left out, because every summary has its goal, and so are questions and single words.
    """
    last = {one["turn"]: one["number"] for one in messages if one["role"] == Role.ASSISTANT}
    answers = frozenset(last.values())
    first = next((one["number"] for one in messages if one["role"] == Role.USER), None)
    for message in messages:
        is_answer = message["number"] in answers
        if (is_answer or message["role"] == Role.USER) and message["number"] != first:
            for position, sentence in enumerate(sentences_in(message["text"])):
                if " " in sentence and not sentence.endswith(("?", "？")):
                    yield Statement(message["number"], position, preview_of(sentence, LINE_WIDTH), is_answer)


def _value(sentence: str, known: frozenset[str]) -> float:
    """Return the share of a sentence that the summary lacks; doubled for a rule."""
    words = words_in(sentence)
    share = len(words - known) / (len(words) + 2)  # + 2, so that fragments do not come first
    return share * (2 if _IS_RULE.search(sentence) else 1)


def _commands_and_files(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield commands, the latest first: those that mended a failed one, worked, and failed; then files."""
    failures: list[frozenset[str]] = []
    fixed, worked, failed = list[str](), list[str](), list[str]()
    for tool in (one["tool"] for one in messages if isinstance(one.get("tool"), Mapping)):
        command = _INTO_FOLDER.sub("", first_param(tool.get("params"), COMMAND_KEYS))
        line = f"`{preview_of(command, LINE_WIDTH)}`"
        if command and str(tool.get("status")).lower() in (FAILED, REJECTED):
            failures.append(words_in(command))
            failed.append(f"- failed: {line}: {preview_of(str(tool.get('result') or ''), LINE_WIDTH // 2)}")
        elif command and not READ_ONLY_COMMAND.search(command):
            words = words_in(command)
            unsolved = [one for one in failures if len(one & words) < KNOWN_SHARE * len(one)]
            (worked if unsolved == failures else fixed).append(f"- worked: {line}")
            failures = unsolved
    yield from (*reversed(fixed), *reversed(worked), *reversed(failed))
    if files := list(dict.fromkeys(path for one in reversed(messages) for path in touched_files(one))):
        yield f"- files: {preview_of(', '.join(files), LINE_WIDTH)}"


def _is_known(line: str, known: frozenset[str]) -> bool:
    """Return True if the summary contains a line's numbers, names and paths, and most of its other words."""
    words = words_in(line)
    names = {word for word in words if HAS_NAME.search(word)}
    return known.issuperset(names) and len(words & known) >= KNOWN_SHARE * len(words)


def words_in(text: str) -> frozenset[str]:
    return frozenset(word.strip(".:-/").lower() for word in _WORD.findall(text))
