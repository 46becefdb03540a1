"""Read and write backup files: a zip of small parts, each listed with its SHA-256, so that damage affects one part.

The same content gives the same bytes. If the zip's directory is lost, the parts are found by their own headers.
The clients' stores are copied while the clients may be writing.
"""

import hashlib
import json
import os
import re
import struct
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkstemp
from typing import Any, Self
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile, ZipInfo

from orchestrator.sync.sync import stores_of
from registry.domain import storable
from registry.errors import InvalidRequest, StorageError
from registry.temporary_folder import TemporaryFolder
from sources.base import Paths, Source
from sources.files_to_back_up import copy_database, files_to_back_up, is_database

MANIFEST, ABOUT, DIRECTORY = "manifest.json", "about.json", "the zip's directory"
VERSION = "1"
_HEADER = struct.Struct("<4s5H3I2H")
_SIGNATURE = b"PK\x03\x04"


class DamagedPart(StorageError):
    """A part of a backup is missing or damaged."""


@dataclass(frozen=True, slots=True)
class BadPart:
    """A part that cannot be used, and why."""

    part: str
    why: str


class ArchiveWriter:
    """Writes a backup in a temporary folder, and gives it its name when it is complete and synced to disk."""

    def __init__(self, names: Iterator[Path], about: dict[str, Any]) -> None:
        """`names`: it gets the first that no file has when it is complete.

        `about` is written first, so that it survives if the end of the file is lost, and again in the manifest.
        """
        self._names, self.about = names, about
        self.path = next(names)
        with self._writing():
            self._folder = TemporaryFolder(self.path.parent)
            file, partial = mkstemp(dir=self._folder.name)
        self._partial, self._file = Path(partial), os.fdopen(file, "w+b")
        self._zip = ZipFile(self._file, "w", ZIP_DEFLATED)
        self._parts: list[dict[str, Any]] = []
        try:
            self.add(ABOUT, json.dumps(about, ensure_ascii=False, sort_keys=True).encode())
        except StorageError:
            self.discard()
            raise

    def add(self, name: str, content: bytes, **more: Any) -> None:
        """Add a part; `more` goes into its manifest entry."""
        self._put(name, content)
        digest = hashlib.sha256(content).hexdigest()
        self._parts.append({"name": name, "size": len(content), "sha256": digest, **more})

    def add_lines(self, name: str, lines: Iterator[bytes]) -> int:
        """Add lines, split into parts; return the number of lines."""
        count, pending, size = 0, [], 0
        number = 1
        for line in lines:
            pending.append(line)
            size += len(line)
            count += 1
            if size >= 2**15:  # bytes: the window of deflate
                self.add(_part_name(name, number), b"".join(pending), rows=len(pending))
                pending, size, number = [], 0, number + 1
        if pending or number == 1:
            self.add(_part_name(name, number), b"".join(pending), rows=len(pending))
        return count

    def add_file(self, name: str, path: Path) -> int:
        """Add a file, up to its present size, split into parts; return the size."""
        with path.open("rb") as file:
            left = size = os.fstat(file.fileno()).st_size
            number = 1
            while number == 1 or left > 0:
                content = file.read(min(left, 2**19))  # bytes: the most that one damaged part can lose
                if not content and number > 1:
                    break
                self.add(_part_name(name, number), content, file=name)
                left, number = left - len(content), number + 1
        return size

    def finish(self, stores: Sequence[Mapping[str, Any]]) -> None:
        """Write the manifest and give the file its name; an existing file is never replaced. Raises StorageError."""
        manifest = {**self.about, "stores": stores, "parts": self._parts}
        self._put(MANIFEST, json.dumps(manifest, ensure_ascii=False, indent=1).encode())
        with self._writing():
            self._zip.close()
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._link()
        self._folder.cleanup()

    def _link(self) -> None:
        while True:
            try:
                return os.link(self._partial, self.path)
            except FileExistsError:  # another backup that was begun at the same time
                if (path := next(self._names, None)) is None:
                    raise
                self.path = path

    def discard(self) -> None:
        with suppress(OSError, ValueError):
            self._zip.close()
        with suppress(OSError):  # a full disk does not take what is buffered
            self._file.close()
        self._folder.cleanup()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as exc:
            raise StorageError("The backup could not be written.", f"{self.path}: {exc.strerror}") from exc

    def _put(self, name: str, content: bytes) -> None:
        entry = ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        entry.compress_type, entry.create_system, entry.external_attr = ZIP_DEFLATED, 3, 0o600 << 16
        with self._writing():
            self._zip.writestr(entry, content)


def _part_name(name: str, number: int) -> str:
    return f"{name}.{number:04}"


@dataclass(slots=True)
class Archive:
    """A backup opened for reading; parts of it may be damaged."""

    path: Path
    about: dict[str, Any] = field(default_factory=dict)
    """The manifest; if it is lost, the first part's version, createdAt and revision."""
    damaged: list[BadPart] = field(default_factory=list)
    _locations: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """For each part: offset, packed length and CRC-32."""
    _expected: dict[str, str] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a backup. Raises StorageError if it cannot be read or is no backup. `check` finds damaged parts."""
        archive = cls(path)
        try:
            archive._locations = _locations_from_directory(path)
            if not archive._locations:
                archive._locations = _locations_from_headers(path)
                archive.damaged.append(BadPart(DIRECTORY, "is missing or damaged"))
        except OSError as exc:
            raise StorageError("The backup cannot be read.", f"{path}: {exc.strerror}") from exc
        for name in (MANIFEST, ABOUT):
            with suppress(DamagedPart, ValueError):
                archive.about = _parse_about(archive._bytes(name))
                break
            archive.damaged.append(BadPart(name, "is missing or damaged"))
        if not archive.about and not any(_is_part(name) for name in archive._locations):
            raise StorageError(
                "This is not a backup, or nothing in it can be read.", f"{path}: damaged part: {MANIFEST}"
            )
        if archive.about.get("version", VERSION) != VERSION:
            raise StorageError(
                "The backup is of a version that this program does not know.",
                f"{path}: {MANIFEST}: version: given {archive.about['version']!r}; known: {VERSION!r}",
            )
        archive._expected = {part["name"]: part["sha256"] for part in archive.about.get("parts", ())}
        archive.damaged += archive._manifest_mismatches()
        return archive

    @property
    def names(self) -> list[str]:
        """Return the names of all parts in the manifest; without a manifest, of all parts found."""
        listed = [part["name"] for part in self.about.get("parts", ())]
        return listed or [name for name in self._locations if _is_part(name)]

    def check(self) -> list[BadPart]:
        """Read every part, and return the damaged ones."""
        lost = {damage.part for damage in self.damaged}
        for name in self.names:
            try:
                self.read(name)
            except DamagedPart as exc:
                if name not in lost:
                    self.damaged.append(BadPart(name, exc.details.removeprefix(f"{name}: ")))
        return self.damaged

    def _manifest_mismatches(self) -> list[BadPart]:
        """Return parts that are not in the manifest, and tables whose parts have another number of rows than stated."""
        if not (parts := self.about.get("parts")):
            return []
        listed = {part["name"] for part in parts}
        unlisted = [
            BadPart(name, "is not in the manifest") for name in self._locations if _is_part(name) and name not in listed
        ]
        rows = Counter[str]()
        for part in parts:
            rows[_PART_NUMBER.sub("", part["name"])] += part.get("rows", 0)
        expected = {f"registry/{table}.jsonl": count for table, count in self.about.get("rows", {}).items()}
        mismatches = ((name, count, rows[name]) for name, count in expected.items() if rows[name] != count)
        return unlisted + [
            BadPart(name, f"the manifest's parts hold {found} of {count} rows") for name, count, found in mismatches
        ]

    def read(self, name: str) -> bytes:
        """Return a part's content. Raises DamagedPart."""
        content = self._bytes(name)
        expected = self._expected.get(name)
        if expected and hashlib.sha256(content).hexdigest() != expected:
            raise DamagedPart("A part of the backup is damaged.", f"{name}: its SHA-256 is another one")
        return content

    def lines(self, name: str) -> Iterator[bytes]:
        """Yield the lines of all undamaged parts of a name, in order."""
        for part in (one for one in self.names if _PART_NUMBER.sub("", one) == name):
            with suppress(DamagedPart):
                yield from self.read(part).splitlines()

    def files(self) -> dict[str, list[str]]:
        """Return the parts of each store file, by the file's name."""
        found: dict[str, list[str]] = {}
        for name in self.names:
            if name.startswith("stores/"):
                found.setdefault(_PART_NUMBER.sub("", name), []).append(name)
        return found

    def _bytes(self, name: str) -> bytes:
        if name not in self._locations:
            raise DamagedPart("A part of the backup is missing.", f"{name}: is missing")
        offset, length, crc = self._locations[name]
        with self.path.open("rb") as file:
            file.seek(offset)
            packed = file.read(length)
        try:
            content = zlib.decompress(packed, -zlib.MAX_WBITS)
        except zlib.error as exc:
            raise DamagedPart("A part of the backup is damaged.", f"{name}: cannot be unpacked") from exc
        if zlib.crc32(content) != crc:
            raise DamagedPart("A part of the backup is damaged.", f"{name}: its checksum is another one")
        return content


def _parse_about(content: bytes) -> dict[str, Any]:
    about = json.loads(content)
    try:
        texts = [about["version"], about["createdAt"]]
        texts += [part[name] for part in about.get("parts", ()) for name in ("name", "sha256")]
        counts = [*about["stats"].values(), *about.get("rows", {}).values()]
    except (TypeError, KeyError, AttributeError) as exc:
        raise ValueError("no manifest") from exc
    if not isinstance(about["revision"], str) or not _REVISION.fullmatch(about["revision"]):
        raise ValueError("no revision of ours")
    if not all(isinstance(text, str) for text in texts) or not all(isinstance(count, int) for count in counts):
        raise ValueError("no manifest")
    return dict(about)


def _is_part(name: str) -> bool:
    return name.startswith(("registry/", "stores/"))


_REVISION = re.compile(r"\d{4}")
_PART_NUMBER = re.compile(r"\.\d{4,}$")


def _locations_from_directory(path: Path) -> dict[str, tuple[int, int, int]]:
    """Locate the parts by the zip's directory; {} if that is damaged."""
    locations = {}
    try:
        with ZipFile(path) as archive, path.open("rb") as file:
            for entry in archive.infolist():
                file.seek(entry.header_offset)
                header = _HEADER.unpack(file.read(_HEADER.size))
                offset = entry.header_offset + _HEADER.size + header[9] + header[10]
                locations[entry.filename] = (offset, entry.compress_size, entry.CRC)
    except (BadZipFile, struct.error, ValueError, NotImplementedError):
        return {}
    return locations


def _locations_from_headers(path: Path) -> dict[str, tuple[int, int, int]]:
    """Locate the parts by their own headers."""
    content = path.read_bytes()
    locations: dict[str, tuple[int, int, int]] = {}
    offset = content.find(_SIGNATURE)
    while offset >= 0:
        with suppress(struct.error, UnicodeDecodeError):
            _, _, flags, _, _, _, crc, size, _, name_size, extra_size = _HEADER.unpack_from(content, offset)
            begin = offset + _HEADER.size
            name = content[begin : begin + name_size].decode("utf-8")
            if name and name.isprintable() and not flags & 8:
                locations[name] = (begin + name_size + extra_size, size, crc)
        offset = content.find(_SIGNATURE, offset + 4)
    return locations


def add_stores(writer: ArchiveWriter, readers: Sequence[Source], paths: Paths) -> list[dict[str, Any]]:
    """Add every file of every store; return for each store its counts and the files that could not be read."""
    added: list[dict[str, Any]] = []
    for reader in readers:
        for store in stores_of(reader, paths):
            folder = f"stores/{reader.name}/{sum(one['source'] == reader.name for one in added)}"
            about = {"source": reader.name, "path": storable(str(store)), "folder": folder}
            added.append({**about, **_add_store(writer, reader, store, folder)})
    return added


def _add_store(writer: ArchiveWriter, reader: Source, store: Path, folder: str) -> dict[str, Any]:
    files = size = 0
    skipped: list[str] = []
    try:
        for path, found_name in files_to_back_up(reader, store):
            name = os.fsencode(found_name).decode(errors="backslashreplace")  # a name that is not UTF-8
            try:
                size += _add_file(writer, path, f"{folder}/{name}")
                files += 1
            except (OSError, StorageError) as exc:
                skipped.append(f"{name}: {exc}")
    except OSError as exc:
        skipped.append(f"{store}: {exc}")
    return {"files": files, "size": size, **({"skipped": storable(skipped)} if skipped else {})}


def _add_file(writer: ArchiveWriter, path: Path, name: str) -> int:
    if not is_database(path):
        return writer.add_file(name, path)
    with TemporaryFolder() as folder:
        copy = Path(folder, "copy.db")
        copy_database(path, copy)
        return writer.add_file(name, copy)


def restore_stores(archive: Archive, folder: Path) -> list[str]:
    """Write the stores' files into a new or empty folder; return the names of damaged ones, which are left out.

    The clients' own folders are never written to.
    """
    folder = folder.expanduser().absolute()
    if folder.exists() and any(folder.iterdir()):
        raise InvalidRequest("The folder is not empty.", f"stores_to: given {str(folder)!r}; allowed: a new folder")
    damaged = []
    for name, parts in archive.files().items():
        target = folder / Path(name).relative_to("stores")
        if ".." in target.parts:
            damaged.append(name)
            continue
        try:
            content = [archive.read(part) for part in parts]
        except DamagedPart:
            damaged.append(name)
            continue
        try:
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with target.open("wb") as file:
                file.writelines(content)
        except OSError as exc:
            raise StorageError("The stores could not be written.", f"{target}: {exc.strerror}") from exc
    return damaged
