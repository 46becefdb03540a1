"""Test backups: made during writes, damaged, and restored, on each database."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import zipfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.service import Orchestrator
from orchestrator.state import LocalFiles
from registry.registry import Registry
from sources.base import Paths
from tests.seeded import Seeded

pytestmark = pytest.mark.anyio

CHANNELS = [f"cursor_session_2025092{day}_1430" for day in range(4)]


def shelf_in(folder: Path) -> LocalFiles:
    return LocalFiles(folder / "backups", [], Paths(folder, {}), folder / "resume")


@pytest.fixture
async def orchestrator(database_url: str, tmp_path: Path) -> AsyncIterator[Orchestrator]:
    registry = Registry(database_url)
    yield Orchestrator(registry, local_files=shelf_in(tmp_path))
    registry.close()


async def run(orchestrator: Orchestrator, operation: str, **query: Any) -> dict[str, Any]:
    answer = await orchestrator.run({"operation": operation, "query": query})
    assert answer["success"], answer
    return answer


async def refused(orchestrator: Orchestrator, operation: str, **query: Any) -> dict[str, str]:
    answer = await orchestrator.run({"operation": operation, "query": query})
    assert not answer["success"]
    return dict(answer["error"])


async def log(orchestrator: Orchestrator, channel: str, *texts: str) -> None:
    roles = ("user", "assistant")
    messages = [{"role": roles[i % 2], "text": text, "context": {"line": i}} for i, text in enumerate(texts)]
    answer = await orchestrator.run({"operation": "save", "channel": channel, "messages": messages, "source": "cursor"})
    assert answer["success"], answer


async def stored(orchestrator: Orchestrator) -> dict[str, list[dict[str, Any]]]:
    return {name: await orchestrator.registry.get_conversations(name, 1000) for name in CHANNELS}


async def four_conversations(orchestrator: Orchestrator) -> None:
    for number, channel in enumerate(CHANNELS):
        await log(orchestrator, channel, f"JWT 토큰은 어떻게 갱신해? {number}", f"refresh token을 쓰세요 {number}")
    await orchestrator.run({"operation": "tag", "channel": CHANNELS[0], "query": {"nickname": "auth", "tags": ["api"]}})


@pytest.fixture
async def filled(seeded_file: Seeded, tmp_path: Path) -> AsyncIterator[Orchestrator]:
    registry = Registry(await seeded_file(four_conversations))
    yield Orchestrator(registry, local_files=shelf_in(tmp_path))
    registry.close()


async def test_a_restored_backup_has_every_message_and_finds_it(filled: Orchestrator) -> None:
    before = await stored(filled)
    made = await run(filled, "create_backup")
    assert made["manifest"]["version"] == "1"
    assert made["manifest"]["stats"].items() >= {"sessionCount": 4, "messageCount": 8}.items()
    assert made["manifest"]["stats"]["fileSize"] == size_of(made["path"])
    await log(filled, "later", "this came after the backup")
    await filled.run({"operation": "delete", "channel": CHANNELS[1], "query": {"soft": True}})
    back = await run(filled, "restore_backup", path=made["path"])
    assert (back["sessionsRestored"], back["messagesRestored"], back["damaged"]) == (4, 8, [])
    assert await stored(filled) == before
    assert await filled.registry.get_conversations("later") == []
    found = await filled.run({"operation": "extract", "query": {"text": "refresh token 1"}})
    assert CHANNELS[1] in {found["channel"], *(other["channel"] for other in found.get("candidates", ()))}
    named = await run(filled, "fetch", session_id="auth")
    assert (named["session"]["channel"], named["session"]["tags"]) == (CHANNELS[0], ["api"])
    await log(filled, CHANNELS[0], "and it goes on", "as before")
    assert len(await filled.registry.get_conversations(CHANNELS[0])) == 4


async def test_a_dry_run_says_what_would_come_back_and_a_restore_keeps_the_previous_registry_in_a_backup(
    filled: Orchestrator,
) -> None:
    made = await run(filled, "create_backup")
    await log(filled, "later", "this came after the backup")
    would = await run(filled, "restore_backup", path=Path(made["path"]).name, dry_run=True)
    assert (would["sessionsRestored"], would["safety_copy"]) == (4, None)
    assert len(await filled.registry.get_conversations("later")) == 1
    back = await run(filled, "restore_backup", path=made["path"])
    await run(filled, "restore_backup", path=back["safety_copy"])
    assert len(await filled.registry.get_conversations("later")) == 1


async def test_a_restore_does_not_share_what_is_no_longer_shared(filled: Orchestrator) -> None:
    async def share(channel: str, group: str) -> None:
        answer = await filled.run({"operation": "share", "channel": channel, "query": {"with": group}})
        assert answer["success"], answer

    for channel in CHANNELS[:2]:
        await share(channel, "team")
    made = await run(filled, "create_backup")
    await share(CHANNELS[0], "nobody")
    await share(CHANNELS[2], "team")
    await run(filled, "restore_backup", path=made["path"])
    sessions = (await run(filled, "list"))["sessions"]
    assert [one["channel"] for one in sessions if one.get("shared_with")] == [CHANNELS[1]]


async def test_the_same_registry_gives_the_same_backup(filled: Orchestrator) -> None:
    first, second = [(await run(filled, "create_backup"))["manifest"]["parts"] for _ in range(2)]
    changing = ("about.json", "registry/execution.jsonl.0001")  # the time of the backup, and its run
    assert [part for part in first if part["name"] not in changing] == [
        part for part in second if part["name"] not in changing
    ]


async def test_a_backup_made_during_writes_holds_whole_turns(orchestrator: Orchestrator) -> None:
    async def write(channel: str) -> None:
        for turn in range(5):
            await log(orchestrator, channel, *(f"{channel} {i}" for i in range(2 * turn + 2)))

    backup = asyncio.create_task(run(orchestrator, "create_backup"))
    await asyncio.gather(*map(write, CHANNELS))
    made = await backup
    after = await stored(orchestrator)
    await run(orchestrator, "restore_backup", path=made["path"])
    for channel, messages in (await stored(orchestrator)).items():
        assert len(messages) % 2 == 0
        assert messages == after[channel][: len(messages)]


async def test_backups_made_at_once_are_files_of_their_own(filled: Orchestrator) -> None:
    for _ in range(3):
        made = await asyncio.gather(*(run(filled, "create_backup", stores=False) for _ in range(4)))
        assert len({one["path"] for one in made}) == 4
        for one in made:
            assert (await run(filled, "validate_backup", path=one["path"]))["valid"], one["path"]
    assert len(list(Path(made[0]["path"]).parent.iterdir())) == 12


async def test_backups_are_listed_newest_first_and_a_missing_one_names_them(filled: Orchestrator) -> None:
    paths = [(await run(filled, "create_backup"))["path"] for _ in range(2)]
    listed = (await run(filled, "list_backups"))["backups"]
    assert [one["path"] for one in listed] == paths[::-1]
    assert listed[0]["manifest"]["stats"]["messageCount"] == 8
    error = await refused(filled, "restore_backup", path="yesterday.zip")
    assert error["code"] == "NOT_FOUND"
    assert all(Path(path).name in error["details"] for path in paths)


async def test_a_damaged_part_is_named_and_the_rest_is_restored(filled: Orchestrator) -> None:
    before = await stored(filled)
    path = Path((await run(filled, "create_backup"))["path"])
    damage(path, "registry/channel.jsonl.0001")
    checked = await run(filled, "validate_backup", path=str(path))
    assert not checked["valid"]
    assert [one["part"] for one in checked["damaged"]] == ["registry/channel.jsonl.0001"]
    error = await refused(filled, "restore_backup", path=str(path))
    assert error["code"] == "STORAGE_ERROR"
    assert "registry/channel.jsonl.0001" in error["details"]
    assert await stored(filled) == before
    back = await run(filled, "restore_backup", path=str(path), rest=True)
    assert (back["sessionsRestored"], back["messagesRestored"]) == (4, 8)
    assert await stored(filled) == before
    await log(filled, CHANNELS[0], "it goes on", "without its title")
    assert len(await filled.registry.get_conversations(CHANNELS[0])) == 4


def damage(path: Path, part: str) -> None:
    with zipfile.ZipFile(path) as archive:
        entry = archive.getinfo(part)
    content = bytearray(path.read_bytes())
    content[entry.header_offset + 30 + len(part) + entry.compress_size // 2] ^= 0xFF
    path.write_bytes(content)


def cut_off(path: Path, part: str) -> None:
    with zipfile.ZipFile(path) as archive:
        end = archive.getinfo(part).header_offset
    path.write_bytes(path.read_bytes()[:end])


def damage_randomly(whole: Path, path: Path, dice: random.Random) -> None:
    content = bytearray(whole.read_bytes())
    begin = dice.randrange(len(content))
    content[begin : begin + 40] = dice.randbytes(40)
    path.write_bytes(content)


def size_of(path: str) -> int:
    return Path(path).stat().st_size


async def test_a_truncated_backup_restores_what_is_left(filled: Orchestrator) -> None:
    path = Path((await run(filled, "create_backup"))["path"])
    cut_off(path, "registry/tag.jsonl.0001")
    before = await stored(filled)
    checked = await run(filled, "validate_backup", path=str(path))
    assert "manifest.json" in [one["part"] for one in checked["damaged"]]
    await filled.run({"operation": "delete", "channel": CHANNELS[1], "query": {"soft": True}})
    await run(filled, "restore_backup", path=str(path), rest=True)
    assert await stored(filled) == before


async def test_a_file_that_is_no_backup_is_reported_as_such(orchestrator: Orchestrator, tmp_path: Path) -> None:
    path = tmp_path / "other.zip"
    for content in (b"", b"no backup", b"PK\x03\x04 nor this"):
        path.write_bytes(content)
        for operation in ("validate_backup", "restore_backup"):
            assert (await refused(orchestrator, operation, path=str(path)))["code"] == "STORAGE_ERROR"


async def test_any_damage_is_noticed(filled: Orchestrator, tmp_path: Path) -> None:
    whole, path = Path((await run(filled, "create_backup"))["path"]), tmp_path / "damaged.zip"
    before, dice = await stored(filled), random.Random(1)
    for _ in range(8):
        damage_randomly(whole, path, dice)
        answer = await filled.run({"operation": "restore_backup", "query": {"path": str(path)}})
        assert answer["success"] or answer["error"]["code"] == "STORAGE_ERROR", answer
        assert await stored(filled) == before


Edit = Callable[[dict[str, bytes]], None]


def manifest_with(**fields: Any) -> Edit:
    def edit(parts: dict[str, bytes]) -> None:
        parts["manifest.json"] = json.dumps(json.loads(parts["manifest.json"]) | fields).encode()

    return edit


def swap_parts(parts: dict[str, bytes]) -> None:
    one, other = "registry/channel.jsonl.0001", "registry/conversation.jsonl.0001"
    parts[one], parts[other] = parts[other], parts[one]


def rename_part(parts: dict[str, bytes]) -> None:
    manifest = json.loads(parts["manifest.json"])
    named = [part for part in manifest["parts"] if "conversation.jsonl" not in part["name"]]
    manifest_with(parts=named)(parts)


CHANGES = [
    (lambda parts: parts.pop("manifest.json"), "manifest.json", 8),
    (lambda parts: parts.update({"manifest.json": b"[1]"}), "manifest.json", 8),
    (manifest_with(parts=[1, 2]), "manifest.json", 8),
    (manifest_with(revision="0003x"), "manifest.json", 8),
    (lambda parts: parts.pop("about.json"), "about.json", 8),
    (lambda parts: parts.pop("registry/conversation.jsonl.0001"), "registry/conversation.jsonl.0001", 0),
    (rename_part, "registry/conversation.jsonl", 0),
    (swap_parts, "registry/channel.jsonl.0001", 0),
    (lambda parts: parts.update({"registry/tag.jsonl.9999": b"{}"}), "registry/tag.jsonl.9999", 8),
]


async def test_a_changed_archive_names_the_part_and_restores_the_rest(
    filled: Orchestrator, subtests: pytest.Subtests, tmp_path: Path
) -> None:
    whole, path = (await run(filled, "create_backup"))["path"], tmp_path / "changed.zip"
    for edit, named, left in CHANGES:
        with subtests.test(named):
            shutil.copy(whole, path)
            rewrite(path, edit)
            checked = await run(filled, "validate_backup", path=str(path))
            assert named in [one["part"] for one in checked["damaged"]]
            assert named in (await refused(filled, "restore_backup", path=str(path)))["details"]
            back = await run(filled, "restore_backup", path=str(path), rest=True, dry_run=True)
            assert back["messagesRestored"] == left


async def test_a_manifest_with_other_counts_is_named(filled: Orchestrator) -> None:
    path = Path((await run(filled, "create_backup"))["path"])
    rewrite(path, manifest_with(stats={"sessionCount": 4, "messageCount": 7}))
    assert "manifest.json" in (await refused(filled, "restore_backup", path=str(path)))["details"]
    assert (await run(filled, "restore_backup", path=str(path), rest=True))["messagesRestored"] == 8


async def test_a_backup_of_an_unknown_version_is_refused_by_every_operation(filled: Orchestrator) -> None:
    path = Path((await run(filled, "create_backup"))["path"])
    rewrite(path, manifest_with(version="99"))
    for operation in ("validate_backup", "restore_backup"):
        assert "'99'" in (await refused(filled, operation, path=str(path)))["details"]


async def test_one_damaged_byte_loses_few_messages(filled: Orchestrator) -> None:
    for number in range(4):
        await log(
            filled, f"long_{number}", *(f"{number} {i} {random.Random(i).randbytes(1000).hex()}" for i in range(20))
        )
    path = Path((await run(filled, "create_backup"))["path"])
    damage(path, "registry/conversation.jsonl.0002")
    back = await run(filled, "restore_backup", path=str(path), rest=True, dry_run=True)
    assert 60 < back["messagesRestored"] < 88


def rewrite(path: Path, edit: Edit) -> None:
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    edit(parts)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


async def test_a_backup_of_a_newer_version_is_refused(filled: Orchestrator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.operations.create_backup.HEAD", "9999")
    path = (await run(filled, "create_backup"))["path"]
    monkeypatch.undo()
    error = await refused(filled, "restore_backup", path=path)
    assert "newer version" in error["message"]


async def test_an_existing_file_is_never_overwritten(orchestrator: Orchestrator, tmp_path: Path) -> None:
    path = tmp_path / "mine.zip"
    path.write_bytes(b"mine")
    error = await refused(orchestrator, "create_backup", path=str(path))
    assert error["code"] == "INVALID_REQUEST"
    assert path.read_bytes() == b"mine"
