"""Read the histories that Aider keeps in each project, as Markdown files with several chats."""

import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from registry.domain import Role
from registry.errors import StorageError
from sources.base import FoundSession, Paths, Skipped, Source
from sources.clients import AIDER
from sources.kit import drafts
from sources.kit.files import entries, fingerprint_at, folders_in, system_reason
from sources.kit.jsonl import TOO_LONG, Damage, read_lines
from sources.kit.reader import found_session

NAME = ".aider.chat.history.md"
_BEGIN = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*$")
_THINKING = re.compile(r"<(thinking-content-[0-9a-f]+|think)>\s*(.*?)\s*(?:</\1>|\Z)", re.DOTALL)
_MODEL = re.compile(r"(?:Main )?[Mm]odel: (\S+) with")
_EDITED = re.compile(r"Applied edit to (.+)")


@dataclass(slots=True)
class AiderChat:
    """A chat of a history: its start in local time, and its lines."""

    began: datetime
    lines: list[str] = field(default_factory=list)

    @property
    def fingerprint(self) -> str:
        return sha256("\n".join(self.lines).encode("utf-8", "replace")).hexdigest()[:32]


@dataclass(slots=True)
class Aider(Source):
    """Reads the histories, each a store. Projects deeper than `~/src/shop` must be named by the variable."""

    name: str = AIDER.source

    def find(self, paths: Paths) -> Iterator[Path]:
        """Yield the histories below the home folder, or below the folders that a variable names."""
        named = paths.environment.get("CTXR_AIDER_DIRS", "")
        roots = tuple(Path(root).expanduser() for root in named.split(os.pathsep) if root) or (paths.home,)
        found = [*_histories(roots, time.monotonic() // 60), *paths.named("AIDER_CHAT_HISTORY_FILE")]
        yield from (path for path in dict.fromkeys(found) if path.is_file())

    def stamp(self, store: Path) -> str:
        return fingerprint_at(str(store))

    def watched(self, store: Path) -> Iterable[Path]:
        """Return nothing, because the file's folder is a whole project. The regular pass finds new chats."""
        return ()

    def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        """Yield the new and the continued chats, one at a time in memory. Raises StorageError."""
        same_second, damage = Counter[str](), Damage()
        try:
            with store.open("rb") as file:
                for chat in chats_of(_texts(read_lines(file), damage)):
                    key = f"{chat.began:%Y-%m-%dT%H:%M:%S}"
                    same_second[key] += 1
                    key += f"-{same_second[key]}" if same_second[key] > 1 else ""
                    if seen.get(key) != chat.fingerprint:
                        yield _session_of(store, key, chat)
        except OSError as exc:
            raise StorageError(f"Could not read {store}.", system_reason(exc)) from exc
        yield from damage.skipped()


@lru_cache(1)
def _histories(roots: tuple[Path, ...], _minute: float) -> list[Path]:
    """List the histories, at most once a minute: every request calls it, and there are many folders."""
    return [file for root in roots for folder in _folders(root) if (file := folder / NAME).is_file()]


def _folders(root: Path) -> Iterator[Path]:
    """Yield a folder and the folders up to two levels below it, at most 2000 in total."""
    level, left = [str(root)], 2000
    for _ in range(3):
        yield from map(Path, level[:left])
        left -= len(level)
        if left <= 0:
            return
        above, level = level, []
        for folder in above:
            with suppress(OSError):
                inner = folders_in(entries(folder))
                level += [path for path in inner if not os.path.basename(path).startswith((".", "node_"))]


def _texts(lines: Iterable[bytes | None], damage: Damage) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        if line is None:
            damage.note(number, TOO_LONG)
        else:
            yield line.decode("utf-8", "replace")


def _session_of(store: Path, key: str, chat: AiderChat) -> FoundSession:
    """Return a chat, identified by its file and its start, because it has no id."""
    parser = dialogue_of(chat, f"{sha256(os.fsencode(store)).hexdigest()[:8]}-{key}")
    if not any(draft.role in (Role.USER, Role.ASSISTANT) for draft in parser.drafts):
        parser.drafts.clear()
    session = parser.build(folders=[str(store.parent)], began=chat.began)
    return found_session(key, chat.fingerprint, session, (), f"chat of {key}")


# Parsing. The user's lines begin with `#### `. The program's lines begin with `> ` and end in two spaces, unlike
# quotations in an answer. All other lines are the answer.


def chats_of(lines: Iterable[str]) -> Iterator[AiderChat]:
    """Yield the chats of a history in order; skip text before the first one."""
    chat: AiderChat | None = None
    for line in lines:
        began: datetime | None = None
        if begin := _BEGIN.match(line):
            with suppress(ValueError, OverflowError, OSError):
                began = datetime.fromisoformat(begin[1]).astimezone()
        if began:
            if chat:
                yield chat
            chat = AiderChat(began)
        elif chat:
            chat.lines.append(line.rstrip("\r\n"))
    if chat:
        yield chat


def dialogue_of(chat: AiderChat, session_id: str) -> drafts.Conversation:
    """Parse a chat. Only its first message gets a time: the start of the chat."""
    parser = drafts.Conversation(session_id)
    for role, lines in groupby(_roles(chat.lines), key=itemgetter(0)):
        text = "\n".join(words for _, words in lines).strip()
        if role is Role.USER:
            parser.say(Role.USER, text)
        elif role is Role.ASSISTANT:
            for thought in _THINKING.finditer(text):
                parser.say(Role.THINKING, thought[2])
            parser.say(Role.ASSISTANT, _THINKING.sub("", text))
        else:
            _add_notices(parser, text.splitlines())
    if parser.drafts:
        parser.drafts[0].at = chat.began
    return parser


def _roles(lines: Iterable[str]) -> Iterator[tuple[Role, str]]:
    """Yield the role and the words of each line. Only the ends of the program's notices are marked."""
    role, is_open = Role.SYSTEM, False
    for line in lines:
        words, is_last = line, line.endswith("  ")
        if line.startswith("#### "):
            role, is_open, words = Role.USER, False, line.removeprefix("#### ").removesuffix("  ")
        elif is_open or (line.startswith("> ") and (is_last or role is Role.SYSTEM)):
            role, is_open, words = Role.SYSTEM, not is_last, line.removeprefix("> ").rstrip()
        elif line.strip() or role is not Role.SYSTEM:
            role = Role.ASSISTANT
        yield role, words


def _add_notices(parser: drafts.Conversation, lines: list[str]) -> None:
    """Add the program's edits as calls, and its other lines as one injected message."""
    parser.model = next((named[1] for named in map(_MODEL.match, lines) if named), parser.model)
    for line in lines:
        if edited := _EDITED.match(line):
            draft = parser.call("", "edit", {"file_path": edited[1].strip()})
            draft.set_result(line, drafts.COMPLETED, "")
    parser.inject("\n".join(line for line in lines if not _EDITED.match(line)))
