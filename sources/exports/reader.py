"""Read the account exports of Claude.ai, ChatGPT and Gemini that are passed to `ctxr import`."""

import os
import zipfile
import zlib
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from math import inf
from pathlib import Path
from typing import BinaryIO, cast

from registry.errors import InvalidRequest, StorageError
from sources.base import FoundSession, Paths, Skipped, Source
from sources.clients import CHATGPT, CLAUDE, GEMINI
from sources.exports.chatgpt import CHATGPT_EXPORT
from sources.exports.claude import CLAUDE_EXPORT
from sources.exports.gemini import GEMINI_EXPORT
from sources.exports.json_stream import MAX_BYTES, NO_OBJECT, TooLarge, Utf8Source, records_in
from sources.exports.provider import is_known
from sources.kit.files import File, digest, file_at, system_reason
from sources.kit.loose_json import Record

EMPTY = "no messages in it"
_FOREIGN = Skipped("a conversation", "not a conversation of this provider")
_EXPECTED = (
    "Expected: the zip from Claude.ai or ChatGPT (Settings, Data controls or Privacy, Export data), or "
    "Google Takeout's My Activity of Gemini Apps as JSON; the folder it was unpacked to, or the JSON file in it."
)

PROVIDERS = {CLAUDE.source: CLAUDE_EXPORT, CHATGPT.source: CHATGPT_EXPORT, GEMINI.source: GEMINI_EXPORT}


@dataclass(frozen=True, slots=True)
class ExportFile:
    """A JSON file of an export. `fingerprint`: that of the file, or of the zip that contains it."""

    name: str
    size: int
    fingerprint: str
    open: Callable[[], BinaryIO]


@dataclass(slots=True)
class AccountExport(Source):
    """The conversations of one provider in an export.

    Its store is the account, not the file, so that conversations are recognised in a later export with another name.
    `on_read` is called with the number of bytes of every read.
    """

    name: str
    parts: list[ExportFile]
    damaged: Sequence[Skipped] = ()
    on_read: Callable[[int], None] = lambda _: None
    _is_stopped: bool = False

    def stop(self) -> None:
        """Stop `sessions`, which runs in another thread, at its next read."""
        self._is_stopped = True

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    def find(self, _paths: Paths) -> Iterator[Path]:
        yield Path(PROVIDERS[self.name].site)

    def stamp(self, store: Path) -> str:
        return digest([(part.name, part.fingerprint, part.size) for part in self.parts])

    def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        """Yield the new and the changed conversations. Raises StorageError at the end if some could not be read."""
        yield from self.damaged
        is_damaged = bool(self.damaged)
        known, provider = dict(seen), PROVIDERS[self.name]
        skips = Counter[Skipped]()
        read = ((part, provider.conversations(_records(part, self._count))) for part in self.parts)
        numbered = ((part, *each) for part, records in read for each in enumerate(records, 1))
        for part, number, record in numbered:
            if isinstance(record, str):
                is_damaged = True
                yield Skipped(f"{part.name}, conversation {number}", record)
                continue
            key = provider.identity(record)
            if not provider.is_conversation(record) or not key:
                skips[_FOREIGN] += 1
                continue
            fingerprint = provider.version(record)
            if is_known(known.get(key), fingerprint):
                continue
            session = provider.read(record, skips)
            if not session.messages:
                skips[Skipped("a conversation", EMPTY)] += 1
                continue
            known[key] = fingerprint
            yield FoundSession(key, fingerprint, session)
        yield from (Skipped(f"{count} x {printable_name(one.what)}", one.why) for one, count in skips.items())
        if is_damaged:
            raise StorageError("Some of the export could not be read.", "The rest was imported.")

    def _count(self, count: int) -> None:
        if self._is_stopped:
            raise TooLarge
        self.on_read(count)


def exports_in(path: Path, stack: ExitStack) -> list[AccountExport]:
    """Recognise the exports in a file or folder by their contents; their files are closed with the stack.

    Raises InvalidRequest with a description if it is not an export or damaged; StorageError if it cannot be read.
    """
    try:
        if not (path.is_file() or path.is_dir()):
            raise InvalidRequest(f"There is no file or folder {path}.", _EXPECTED)
        found = list(parts_of(path, stack))
    except OSError as exc:
        raise StorageError(f"Could not read {path}.", system_reason(exc)) from exc
    parts_by_provider: dict[str, list[ExportFile]] = {}
    others = list[ExportFile | Skipped]()
    for part in found:
        provider, why = _provider_of(part) if isinstance(part, ExportFile) else ("", "")
        if isinstance(part, ExportFile) and provider:
            parts_by_provider.setdefault(provider, []).append(part)
        else:
            others.append(Skipped(part.name, why) if isinstance(part, ExportFile) and why else part)
    damaged = [other for other in others if isinstance(other, Skipped)]
    damage = [other for other in damaged if _is_export(other.what)]
    if not parts_by_provider and damage:
        raise InvalidRequest(
            f"An export of an account, but damaged or encrypted: {path.name or path}",
            f"No conversation in it could be read ({_names(damage)}). Download it again.",
        )
    if not parts_by_provider:
        kind = "a folder" if path.is_dir() else "a zip" if is_zip(path) else "a file"
        contents = f"in which no conversation can be read ({_names(others)})" if others else "without any JSON in it"
        raise InvalidRequest(
            f"Not an export of an account: {path.name or path}", f"Recognised: {kind} {contents}. {_EXPECTED}"
        )
    return [AccountExport(name, parts, damaged) for name, parts in parts_by_provider.items()]


def _provider_of(part: ExportFile) -> tuple[str, str]:
    """Return the provider whose conversations a file contains; or, if there are none, the damage in it."""
    why = ""
    with suppress(*ZIP_ERRORS), part.open() as file:  # reading it below reports an error
        begin = file.read(64).removeprefix(BOM_UTF8).lstrip()[:1]
        if not _is_export(part.name) and begin not in (b"[", b"{", b""):
            return "", ""
    for record in islice(_records(part, max_bytes=4 * MAX_BYTES), 20):
        if isinstance(record, str):
            why = "" if record == NO_OBJECT else record
            continue
        for name, provider in PROVIDERS.items():
            [found] = provider.conversations(iter([record]))
            if isinstance(found, dict) and provider.is_conversation(found):
                return name, ""
    return "", why


def _is_export(name: str) -> bool:
    """Return True for the zip itself, and for files with the name of an export's conversations."""
    return name == "the zip" or os.path.basename(name).lower().startswith("conversations")


def _records(
    part: ExportFile, on_read: Callable[[int], None] = lambda _: None, max_bytes: float = inf
) -> Iterator[Record | str]:
    try:
        with part.open() as file:
            yield from records_in(Utf8Source(file, on_read, max_bytes))
    except ZIP_ERRORS as exc:
        yield f"{reason_of_failure(exc)}; the rest was not read"


def _names(others: Sequence[ExportFile | Skipped]) -> str:
    named = [f"{one.what}: {one.why}" if isinstance(one, Skipped) else one.name for one in others]
    more = f" and {len(named) - 3} more" if len(named) > 3 else ""
    return f"{', '.join(named[:3])}{more}"


# The JSON files of an export: in a zip, in a folder, or a single one. Zips are read without unpacking them to disk.

# errors of reading a damaged, encrypted or foreign zip
ZIP_ERRORS = (OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, ValueError)
PRIVATE = ("user.json", "users.json", "user_settings.json")  # the owner's e-mail address: never opened


def parts_of(path: Path, stack: ExitStack) -> Iterator[ExportFile | Skipped]:
    """Yield the JSON files of a zip, or of a folder and the zips in it, or a single file.

    Zips are closed with the stack. Raises OSError if the path does not exist or cannot be read.
    """
    if not path.is_dir():
        yield from _parts_in_file(str(path), "", stack)
        return
    os.listdir(path)  # raises OSError, which os.walk suppresses
    for folder, inner, names in os.walk(path):
        below = os.path.relpath(folder, path)
        inner[:] = [] if below.count(os.sep) > 1 else sorted(inner)  # as in `Takeout/My Activity/Gemini Apps`
        for name in filter(_is_worth_reading, sorted(names)):
            shown_name = name if below == "." else os.path.join(below, name)
            try:
                yield from _parts_in_file(os.path.join(folder, name), shown_name, stack)
            except OSError as exc:
                yield Skipped(printable_name(shown_name), system_reason(exc))


def _parts_in_file(path: str, name: str, stack: ExitStack) -> Iterator[ExportFile | Skipped]:
    """Yield the file or the contents of a zip, which is recognised by its first bytes, not by its name."""
    file = file_at(path)
    if not isinstance(file, File):
        yield Skipped(printable_name(name), file.why if file else "not there")
    elif is_zip(path):
        yield from _parts_in_zip(path, name, file.fingerprint, stack)
    else:
        open_file = cast(Callable[[], BinaryIO], partial(open, path, "rb"))
        shown_name = printable_name(name or os.path.basename(path))
        yield ExportFile(shown_name, os.path.getsize(path), file.fingerprint, open_file)


def is_zip(path: str | Path) -> bool:
    """Return True if the file begins like a zip. Raises OSError."""
    with open(path, "rb") as content:
        return content.read(4) == b"PK\x03\x04"


def _parts_in_zip(path: str, name: str, fingerprint: str, stack: ExitStack) -> Iterator[ExportFile | Skipped]:
    """Yield the JSON files of a zip. Their names are only displayed, never used as paths."""
    try:
        archive = stack.enter_context(zipfile.ZipFile(path))
    except ZIP_ERRORS:
        yield Skipped(printable_name(name) or "the zip", "cut off or damaged")
        return
    members = [member for member in archive.infolist() if _is_worth_reading(member.filename)]
    for member in sorted(members, key=lambda member: member.filename):
        inside = printable_name("/".join(filter(None, (name, member.filename))))
        if member.filename.lower().endswith(".zip"):
            yield Skipped(inside, "a zip in a zip; unpack the outer one first")
        elif member.flag_bits & 0x1:
            yield Skipped(inside, "encrypted; unpack it first")
        else:
            open_member = cast(Callable[[], BinaryIO], partial(archive.open, member))
            yield ExportFile(inside, member.file_size, fingerprint, open_member)


def _is_worth_reading(name: str) -> bool:
    base = os.path.basename(name).lower()
    return base.endswith((".json", ".zip")) and base not in PRIVATE and not base.startswith("._")


def printable_name(name: str) -> str:
    """Make a name from a foreign zip safe for a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)[:300]


def reason_of_failure(exc: Exception) -> str:
    """Return a short reason why a file could not be read."""
    return system_reason(exc) if isinstance(exc, OSError) else printable_name(str(exc)) or type(exc).__name__
