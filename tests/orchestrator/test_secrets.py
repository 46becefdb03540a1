"""Test secrets in messages: none is stored, whatever the source."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from orchestrator.service import Orchestrator
from orchestrator.sync import spool
from orchestrator.sync.drain import drain
from orchestrator.sync.sync import sync
from registry.access import Level
from registry.ingest.intake import StorageRules
from registry.ingest.redact_existing import redact, scan
from registry.registry import Registry
from registry.storage.conversations.references import edit_channel
from registry.storage.safety.tokens import create_token
from registry.storage.tables import channel, metadata
from sources.base import Paths
from sources.readers import READERS
from tests.sources.claude_code.claude_code_files import BEGIN, Dialogue, session_id, write

pytestmark = pytest.mark.anyio

PLANTED = {
    "openai-key": "sk-proj-Zb3kQ9vT1xLw7RmY2uHs8NcE5pJd4AfGoXiK6tB0",
    "aws-access-key": "AKIAQ3EGRTY7WZMNPL2X",
    "github-token": "ghp_k3JdR8xWq1ZtYv5LmN7bPc2HsFg9QaUe4T6o",
    "url-password": "Tr0ub4dor-and-3",
    "secret": "9f2c7ab1e0d84c6fb35a",
    "resident-number": "900101-1234568",
    "card-number": "4539 5787 6362 1486",
}
SAID = (
    f"use {PLANTED['openai-key']} and {PLANTED['aws-access-key']}, push with {PLANTED['github-token']},"
    f" the database is postgresql://app:{PLANTED['url-password']}@db.internal/app, SECRET_KEY = '{PLANTED['secret']}',"
    f" {PLANTED['resident-number']}, {PLANTED['card-number']}"
)


def talk(asked: str, answered: str) -> Dialogue:
    """Return a session as Claude Code stores it."""
    dialogue = Dialogue(session_id(1))
    dialogue.user(asked, promptSource="typed")
    dialogue.calls("Bash", {"command": asked}, "toolu_1", "msg_1")
    dialogue.result("toolu_1", answered)
    dialogue.says(answered, "msg_2")
    return dialogue


def planted_in(found: str) -> list[str]:
    return [kind for kind, secret in PLANTED.items() if secret in found]


def rows_of(registry: Registry) -> Iterator[str]:
    with registry.engine.connect() as connection:
        for table in metadata.sorted_tables:
            yield from (repr(tuple(row)) for row in connection.execute(select(table)))


def sent(*texts: str, channel: str = "c", **more: Any) -> dict[str, Any]:
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "text": text, **more} for at, text in enumerate(texts)]
    return {"operation": "conversation_log", "channel": channel, "source": "cursor", "messages": messages}


async def texts_of(orchestrator: Orchestrator, channel: str = "c") -> list[str]:
    return [message["text"] for message in await orchestrator.registry.get_conversations(channel)]


@pytest.mark.parametrize("way", ["tool", "hook", "reader"])
async def test_a_secret_is_nowhere_in_the_registry_whatever_its_source(
    orchestrator: Orchestrator, tmp_path: Path, way: str
) -> None:
    home = tmp_path / "registry"
    if way == "tool":
        tool = {"name": "Bash", "params": {"env": {"DB_PASSWORD": PLANTED["url-password"]}, "command": SAID}}
        answer = await orchestrator.run(
            {**sent(SAID, tool=tool, context={"file": f"/{SAID}"}), "metadata": {"title": SAID, "note": {"a": [SAID]}}}
        )
        assert answer["success"]
    elif way == "hook":
        payload = {"conversation_id": "c-1", "prompt": SAID, "attachments": [{"file_path": SAID}]}
        spool.append(str(home), {"source": "cursor", "event": "beforeSubmitPrompt", "at": 1e9, "payload": payload})
        await drain(orchestrator, home)
        assert (await orchestrator.run({"operation": "list"}))["pagination"]["total"] == 1
    else:
        user = tmp_path / "user"
        write(user / ".claude", talk(SAID, f"I see {SAID}"))
        [report] = await sync(orchestrator, READERS, Paths(user, {}))
        assert report.new_messages == 3
    await orchestrator.run({"operation": "search", "query": {"text": SAID}})
    await orchestrator.run({"operation": "extract", "query": {"text": SAID, "limit": 0, "also": SAID}})
    assert planted_in("\n".join(rows_of(orchestrator.registry))) == []
    if orchestrator.registry.is_embedded:
        assert planted_in(bytes_of_registry(orchestrator)) == []


def bytes_of_registry(orchestrator: Orchestrator) -> str:
    file = str(orchestrator.registry.engine.url.database)
    files = [Path(file + end) for end in ("", "-wal")]
    return "\n".join(each.read_bytes().decode("latin-1") for each in files if each.exists())


async def test_a_password_is_a_secret_by_the_name_of_its_field(orchestrator: Orchestrator) -> None:
    tool = {"name": "Bash", "params": {"env": {"DB_PASSWORD": PLANTED["url-password"]}, "command": "make run"}}
    assert (await orchestrator.run(sent("run it", "it runs", tool=tool)))["success"]
    assert planted_in("".join(rows_of(orchestrator.registry))) == []


async def test_a_masked_text_stays_readable_and_one_secret_has_one_mark(orchestrator: Orchestrator) -> None:
    key = PLANTED["aws-access-key"]
    await orchestrator.run(sent(f"export AWS_KEY={key}  # mine", f"I set {key} in `deploy.sh`."))
    asked, answered = await texts_of(orchestrator)
    mark = asked.removeprefix("export AWS_KEY=").removesuffix("  # mine")
    assert mark.startswith("[secret:aws-access-key:")
    assert answered == f"I set {mark} in `deploy.sh`."


async def test_a_korean_particle_after_a_secret_stays_and_the_mark_is_the_same(orchestrator: Orchestrator) -> None:
    for kind in ("openai-key", "github-token", "card-number"):
        secret = PLANTED[kind].replace(" ", "")
        await orchestrator.run(sent(f"use {secret} here", f"이 값 {secret}를 넣자", channel=kind))
        asked, answered = await texts_of(orchestrator, kind)
        mark = asked.removeprefix("use ").removesuffix(" here")
        assert mark.startswith(f"[secret:{kind}:")
        assert answered == f"이 값 {mark}를 넣자"


COMMANDS = [
    ("curl -s -u admin:k3yOfMine99 https://shop", "curl -s -u admin:[secret:password:XX] https://shop"),
    ("deploy --db-password k3yOfMine99 --now", "deploy --db-password [secret:password:XX] --now"),
    ("machine shop login ann password k3yOfMine99", "machine shop login ann password [secret:password:XX]"),
    ("curl -u admin:$PASS https://shop", "curl -u admin:$PASS https://shop"),
    ("deploy --password --now or --token token_file", "deploy --password --now or --token token_file"),
]


async def test_a_password_in_a_command_is_a_secret(orchestrator: Orchestrator) -> None:
    await orchestrator.run(sent(*(said for said, _ in COMMANDS)))
    texts = [re.sub(r":[0-9a-f]{2}\]", ":XX]", text) for text in await texts_of(orchestrator)]
    assert texts == [kept for _, kept in COMMANDS]


THROWN = "vT1xLw7RmY2uHs8NcE5pJd4AfGoXiK6tB0Zb3kQ9rWqD5eSn"
CHOSEN = "k3yOfMine99!"
NOTED = {
    f"sk-lf-{'0a1b2c3d-' + '4e5f-' * 3}{'0a1b2c' * 2}": "SECRET",
    f"re_{THROWN[:8]}_{THROWN[:24]}": "RESEND=SECRET",
    f"{THROWN[:3]}8Q~{THROWN[:34]}": "the client's secret is SECRET",
    f"shippo_live_{THROWN[:40]}": "ship with SECRET now",
    THROWN[:32]: "GET https://api.shop.example/stock?page=2&api_key=SECRET",
    THROWN[1:33]: "Cookie: theme=dark; session=SECRET",
    THROWN[2:34]: "KAKAO_ADMIN_KEY=SECRET",
    THROWN[3:35]: "set -x SHOP_TOKEN SECRET",
    THROWN[4:36]: "API 키는 SECRET야",
    f"{CHOSEN}a": "비번 SECRET 로 바꿨어",
    f"{CHOSEN}b": "DB 비밀번호를 SECRET로 설정했어",
    f"{CHOSEN}c": "비밀번호(운영): SECRET",
    f"{CHOSEN}d": "| DB_PASSWORD | `SECRET` |",
    f"{CHOSEN}e": "**Password:** SECRET",
    f"{CHOSEN}f": "use the password SECRET for staging",
    f"{CHOSEN}g": "<password>SECRET</password>",
    f"{CHOSEN}h": "mysql -u root -pSECRET shop",
    f"{CHOSEN}i": "docker login -u ann -p SECRET",
    f"{CHOSEN}j": 'variable "db_password" {\n  default = "SECRET"\n}',
    "k3yOfMine99k": json.dumps({"비밀번호": "SECRET"}),
    "k3yOfMine99l": json.dumps(json.dumps(json.dumps({"note": "비번은 SECRET 야"}))),
    "k3yOfMine99m": "비밀번호는 %20SECRET",
    "k3yOfMine99n": "redirect=%2Flogin%3Fpassword%3DSECRET%26a%3D1",
    "k3yOfMine99p": unicodedata.normalize("NFD", "서버 비밀번호는 SECRET 입니다"),
    "k3yOfMine99q": "비밀번호＝SECRET",
    "k3yOfMine99o": "{&quot;password&quot;:&quot;SECRET&quot;}",
}
PLAIN = (
    "password = get_password(user2, OAuth2Client)",
    "비밀번호는 SHA256으로 해시하고 8자리이상으로 받아요",
    "the token is sent to user2@example.com as base64Encoded2",
    "file = ROOT / 'Dockerfile2' if pwd|quit1|register else key_of_user_2",
    "GET https://shop.example/a%20b?key=name&page=2&quot;",
)


async def test_a_secret_is_found_in_any_notation(orchestrator: Orchestrator) -> None:
    said = [noted.replace("SECRET", secret) for secret, noted in NOTED.items()]
    await orchestrator.run(sent(*said))
    kept = [message["text"] for message in await orchestrator.registry.get_conversations("c", limit=len(NOTED))]
    assert [text for text, secret in zip(kept, NOTED, strict=True) if secret in text or "[secret:" not in text] == []


async def test_a_secret_is_found_in_words_that_were_stored_before_without_one(orchestrator: Orchestrator) -> None:
    await orchestrator.run(
        sent("두 번호 비밀", "번호 wq8Zk!2Lm9 키는 4539", "api 5787 6362", "1486 wq8Zk!2Lm9xR4tB0vN7c")
    )
    said = "비밀 번호: wq8Zk!2Lm9", "api 키는 wq8Zk!2Lm9xR4tB0vN7c", "4539 5787 6362 1486"
    await orchestrator.run(sent(*said, channel="later"))
    assert ["[secret:" in text for text in await texts_of(orchestrator, "later")] == [True, True, True]


async def test_text_that_only_looks_like_a_secret_stays(orchestrator: Orchestrator) -> None:
    await orchestrator.run(sent(*PLAIN))
    assert tuple(await texts_of(orchestrator)) == PLAIN


async def test_our_own_token_is_a_secret(orchestrator: Orchestrator) -> None:
    made = await orchestrator.registry.write(lambda tx: create_token(tx, "mine", Level.READ))
    await orchestrator.run(sent(f"curl -H 'X: {made.secret}' and count ctxr_operation_duration_seconds"))
    [text] = await texts_of(orchestrator)
    assert made.secret not in text
    assert text.startswith("curl -H 'X: [secret:ctxr-token:")
    assert text.endswith("ctxr_operation_duration_seconds")


async def test_the_original_sent_again_is_recognised_as_the_masked_message(orchestrator: Orchestrator) -> None:
    first = await orchestrator.run(sent(SAID, "Noted."))
    again = await orchestrator.run(sent(SAID, "Noted.", "and now?"))
    assert again["stored_ids"][:2] == first["stored_ids"]
    assert again["new_count"] == 1


async def test_two_secrets_in_the_same_words_at_the_same_time_are_two_messages(orchestrator: Orchestrator) -> None:
    first, second, third = (f"use {PLANTED[kind]} here" for kind in ("openai-key", "aws-access-key", "github-token"))
    for said in ([first, second], [first, second], [third]):
        messages = [{"role": "user", "text": text, "timestamp": "2026-01-05T10:00:00Z"} for text in said]
        await orchestrator.run({"operation": "conversation_log", "channel": "c", "messages": messages})
    texts = [row["text"] for row in await orchestrator.registry.get_conversations("c")]
    assert len(texts) == len(set(texts)) == 3


async def test_context_of_a_message_does_not_exclude_other_messages(orchestrator: Orchestrator) -> None:
    contexts: list[dict[str, Any]] = [{"claimed": "mine"}, {"claimed": {"native_id": ["a"]}}, {"native_id": {"a": 1}}]
    for strange in contexts:
        for kind, beside in {"openai-key": strange, "aws-access-key": strange, "github-token": {}}.items():
            messages = [{"role": "user", "text": f"use {PLANTED[kind]} here", **beside}]
            logged = {"operation": "conversation_log", "channel": str(strange), "messages": messages}
            assert (await orchestrator.run(logged))["new_count"] == 1, (strange, kind)


def test_a_hook_masks_a_pin_whose_name_is_in_decomposed_hangul(tmp_path: Path) -> None:
    spool.share_masking(str(tmp_path), b"key", ())
    said = {"prompt": unicodedata.normalize("NFD", "도어락 비번 ") + "4471"}
    assert "4471" not in spool.without_secrets(str(tmp_path), said)["prompt"]


async def test_one_secret_from_hook_and_store_is_one_message(orchestrator: Orchestrator, tmp_path: Path) -> None:
    home, user = tmp_path / "registry", tmp_path / "user"
    dialogue = talk(SAID, "Noted.")
    write(user / ".claude", dialogue)
    payload = {"session_id": session_id(1), "prompt": SAID}
    at = BEGIN.timestamp() + 11
    spool.append(str(home), {"source": "claude-code", "event": "UserPromptSubmit", "at": at, "payload": payload})
    await drain(orchestrator, home)
    await sync(orchestrator, READERS, Paths(user, {}))
    listed = await orchestrator.run({"operation": "list"})
    assert [session["message_count"] for session in listed["sessions"]] == [3]


async def test_text_between_private_tags_is_not_stored(orchestrator: Orchestrator) -> None:
    text = "My name is <private>Ada\nLovelace</private>, call me <PRIVATE>A.</private> please"
    first = await orchestrator.run(sent(text))
    assert await texts_of(orchestrator) == ["My name is [private], call me [private] please"]
    assert (await orchestrator.run(sent(text)))["stored_ids"] == first["stored_ids"]


@pytest.fixture
async def registry_with_rules(database_url: str) -> Any:
    """Return an orchestrator with rules of what is never stored."""
    rules = ("source:chatgpt", "project:/home/me/diary", "channel:hr_*", "path:*.env")
    registry = Registry(database_url, storage_rules=StorageRules(unmasked=("/home/me/lab",), never=rules))
    yield Orchestrator(registry)
    registry.close()


async def test_nothing_is_stored_of_a_conversation_that_a_rule_excludes(registry_with_rules: Orchestrator) -> None:
    excluded: list[dict[str, Any]] = [
        {"source": "chatgpt"},
        {"metadata": {"project": "/home/me/diary/2026"}},
        {"channel": "hr_talks"},
        {"channel": "private_thoughts"},
        {"metadata": {"private": True}},
    ]
    for about in excluded:
        answer = await registry_with_rules.run({**sent("the offer is ninety", "I see"), **about})
        assert (answer["success"], answer["stored_ids"], answer["message_count"]) == (True, [], 2), about
        assert "This conversation is not stored" in answer["not_kept"]
    assert "ninety" not in "\n".join(rows_of(registry_with_rules.registry))


async def test_a_message_about_an_excluded_file_is_stored_as_a_mark(registry_with_rules: Orchestrator) -> None:
    tool = {"name": "Read", "params": {"file_path": "/app/.env"}, "result": "DEBUG=1"}
    messages = [{"role": "user", "text": "look"}, {"role": "tool", "text": "DEBUG=1", "tool": tool}]
    await registry_with_rules.run({**sent(), "messages": messages})
    assert await texts_of(registry_with_rules) == ["look", "[not kept: path:*.env]"]
    assert "DEBUG=1" not in "\n".join(rows_of(registry_with_rules.registry))


async def test_secrets_stay_in_a_project_that_is_not_masked(registry_with_rules: Orchestrator) -> None:
    await registry_with_rules.run({**sent("AKIAQ3EGRTY7WZMNPL2X"), "metadata": {"project": "/home/me/lab"}})
    assert await texts_of(registry_with_rules) == ["AKIAQ3EGRTY7WZMNPL2X"]


async def test_a_title_cut_within_a_secret_holds_nothing_of_it(orchestrator: Orchestrator) -> None:
    for kind in ("openai-key", "aws-access-key", "github-token", "secret"):
        secret = PLANTED[kind]
        said = f"Why is SECRET_KEY='{secret}' refused?"
        begin = said.index(secret)
        for length in {*range(6, len(secret), 5), len(secret) - 1}:
            title = f"{said[: begin + length]}…"
            await orchestrator.run({**sent(said, channel=f"{kind} {length}"), "metadata": {"title": title}})
        rows = "\n".join(rows_of(orchestrator.registry))
        assert "Why is SECRET_KEY=" in rows
        assert secret[:6] not in rows


async def test_a_title_with_a_whole_secret_and_a_cut_one_holds_nothing_of_either(orchestrator: Orchestrator) -> None:
    first, second = PLANTED["github-token"], PLANTED["openai-key"]
    title = f"Push with {first} and {second[:14]}…"
    await orchestrator.run({**sent(f"Push with {first} and {second} now"), "metadata": {"title": title}})
    rows = "\n".join(rows_of(orchestrator.registry))
    assert "Push with [secret:github-token:" in rows
    assert second[:10] not in rows


@pytest.mark.parametrize("more", ["", f" and {PLANTED['github-token']}"])
async def test_a_title_loses_the_private_text_and_keeps_the_rest(orchestrator: Orchestrator, more: str) -> None:
    said = f"Plan the talk <private>for\nAda Lovelace</private> in March{more}"
    for number, title in enumerate(("Plan the talk", "Plan the talk <private>for Ada Lo…")):
        await orchestrator.run({**sent(said, channel=f"talk {number}"), "metadata": {"title": title}})
    listed = await orchestrator.run({"operation": "list"})
    assert sorted(session["title"] for session in listed["sessions"]) == ["Plan the talk", "Plan the talk [private]"]
    assert "Ada" not in "\n".join(rows_of(orchestrator.registry))


async def test_a_title_in_a_project_without_masks_loses_the_private_text(registry_with_rules: Orchestrator) -> None:
    said = "Plan the talk <private>for Ada Lovelace</private> in March"
    about = {"title": "Plan the talk <private>for Ada Lo…", "project": "/home/me/lab"}
    await registry_with_rules.run({**sent(said), "metadata": about})
    assert "Ada" not in "\n".join(rows_of(registry_with_rules.registry))


@pytest.mark.parametrize("renamed", [pytest.param(None, marks=pytest.mark.both_databases), "Pushing"])
@pytest.mark.parametrize("before", ["push with ", f"build with {PLANTED['openai-key']}, then push with "])
async def test_a_cut_title_that_was_stored_unmasked_is_made_again(
    orchestrator: Orchestrator, before: str, renamed: str | None
) -> None:
    secret = PLANTED["github-token"]
    await orchestrator.run({**sent(f"{before}{secret} now"), "metadata": {"title": "x"}})
    registry = orchestrator.registry
    [name] = await registry.read(lambda tx: tx.execute(select(channel.c.name)).scalars().all())
    title = f"{before}{secret[:12]}"
    await registry.write(lambda tx: edit_channel(tx, name, {"title": renamed or title}, None))
    await registry.write(lambda tx: tx.execute(update(channel).values(meta={"title": title})))
    found = await redact(registry, lambda _done, _total: None)
    assert found.rows["channel"] == 1
    assert secret[:8] not in "\n".join(rows_of(registry))
    listed = await orchestrator.run({"operation": "list"})
    assert (renamed or "push with [secret:github-") in listed["sessions"][0]["title"]
    assert not (await scan(registry, lambda _done, _total: None)).rows
