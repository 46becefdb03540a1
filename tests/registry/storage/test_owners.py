"""Two people on one registry: no answer contains anything of the other's private chats."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import func, insert, select, update

from orchestrator.service import Orchestrator
from orchestrator.views import conversations as views
from orchestrator.views.events import list_changes, list_edits
from registry.access import Access, Level
from registry.domain import now
from registry.errors import RegistryError
from registry.monitor.token_usage import usage_of_channel
from registry.registry import Registry
from registry.search.meaning import similar_messages
from registry.search.scope import Scope
from registry.search.vectors import Vector, find_model, save_model, save_vectors
from registry.storage.conversations.channels import find_channel
from registry.storage.conversations.facets import names_like, projects_by_activity, registry_totals
from registry.storage.conversations.references import resolve_session
from registry.storage.database import ReadTransaction
from registry.storage.exchange.change_feed import FeedPosition, Listener
from registry.storage.index import message_index
from registry.storage.index.message_index import index_of
from registry.storage.tables import channel, conversation, edit, tag

pytestmark = [pytest.mark.anyio, pytest.mark.both_databases]

CHATS = 9
PROJECTS = ("/srv/shop", "/srv/blog", "/srv/blog/theme")
PEOPLE = ("ann", "bob")


def word_of(number: int) -> str:
    """Return the word that only this chat contains, in its name, texts, title, tag and edit."""
    return f"zq{number:02}x"


@dataclass(frozen=True)
class Chat:
    """A chat's fields that decide who sees it."""

    number: int
    project: str | None
    owner: str | None
    shared_with: str | None
    shared_until: datetime | None


def random_chats(chance: random.Random, at: datetime) -> list[Chat]:
    return [
        Chat(
            number,
            chance.choice((*PROJECTS, None)),
            chance.choice((*PEOPLE, *PEOPLE, None)),
            chance.choice((None, None, "project", "team")),
            chance.choice((None, at - timedelta(seconds=1), at + timedelta(hours=1))),
        )
        for number in range(1, CHATS + 1)
    ]


def random_token(chance: random.Random) -> Access:
    level = chance.choice((Level.READ, Level.WRITE, Level.WRITE, Level.ADMIN))
    channels = chance.choice(((), (), (), ("zq0*",), ("*1x", "*2x")))
    projects = chance.choice(((), (), ("/srv/shop",), ("blog",), ("/srv/blog*",), ("/srv/*/theme", "shop")))
    owner = chance.choice(PEOPLE)
    return Access(owner, level, channels, projects, owner)


def is_in_project(chat: Chat, wanted: str) -> bool:
    path = chat.project or ""
    return bool(chat.project) and (
        path == wanted
        or path.endswith(f"/{wanted}")
        or (wanted == "/srv/blog*" and path.startswith("/srv/blog"))
        or (wanted == "/srv/*/theme" and path.endswith("/theme"))
    )


def may_see(token: Access, chat: Chat, at: datetime, *, is_writing: bool = False) -> bool:
    """Return whether a token sees a chat, computed independently of the product."""
    name = word_of(chat.number)
    named = {"zq0*": name.startswith("zq0"), "*1x": name.endswith("1x"), "*2x": name.endswith("2x")}
    if token.channels and not any(named[pattern] for pattern in token.channels):
        return False
    if token.projects and not any(is_in_project(chat, wanted) for wanted in token.projects):
        return False
    if token.level is Level.ADMIN or chat.owner in (None, token.owner):
        return True
    if is_writing or (chat.shared_until and chat.shared_until <= at):
        return False
    return chat.shared_with == "team" or (chat.shared_with == "project" and bool(token.projects))


async def fill(registry: Registry) -> None:
    for number in range(1, CHATS + 1):
        word = word_of(number)
        turn = [{"role": "user", "text": f"kafka timeout {word}"}, {"role": "assistant", "text": f"raise it {word}"}]
        await registry.save_conversation(word, turn, "test", {"title": f"Kafka {word}", "session_id": f"s-{word}"})

    def add_vectors_tags_and_edits(tx: Any) -> None:
        model = save_model(tx, "flat", 4, 1, 0.0, 0.1)
        rows = tx.execute(select(conversation.c.number, conversation.c.digest)).all()
        save_vectors(tx, model, [Vector(row.number, row.digest, bytes([100, row.number, 0, 0])) for row in rows])
        for row in tx.execute(select(channel.c.number, channel.c.name)).all():
            tx.execute(insert(tag).values(channel_number=row.number, name=f"of-{row.name}"))
            renamed = {"field": "title", "value": f"Kafka {row.name}", "done_at": now()}
            tx.execute(insert(edit).values(channel_number=row.number, **renamed))

    await registry.write(add_vectors_tags_and_edits)


async def assign_owners(registry: Registry, chats: list[Chat]) -> None:
    """Set project, owner and sharing of the stored chats."""

    def work(tx: Any) -> None:
        for chat in chats:
            project = {"project_path": chat.project, "project_name": (chat.project or "").rpartition("/")[2] or None}
            shared = {"owner": chat.owner, "shared_with": chat.shared_with, "shared_until": chat.shared_until}
            here = channel.c.name == word_of(chat.number)
            tx.execute(update(channel).where(here).values(**project, **shared))

    await registry.write(work)


def resolved(tx: ReadTransaction, name: str) -> Any:
    try:
        return resolve_session(tx, name).name
    except RegistryError as exc:
        return str(exc.details).replace(repr(name), "")


def whole(tx: ReadTransaction, name: str) -> Any:
    return views.transcript(tx, name) if find_channel(tx, name) else None


def page_of(tx: ReadTransaction, name: str) -> Any:
    row = find_channel(tx, name)
    if row is None:
        return None
    beside = usage_of_channel(tx, row.number)
    return views.conversation(tx, name, views.MessageRange(size=9, ahead=1)), beside


def similar(tx: ReadTransaction) -> Any:
    model = find_model(tx, "flat")
    assert model
    found = similar_messages(tx, Scope(), model, [1.0, 0.0, 0.0, 0.0])
    numbers = [*found.candidates, *found.similarities]
    return tx.execute(select(channel.c.name).join(conversation).where(conversation.c.number.in_(numbers))).all()


PAGE = views.Page(limit=100)
ALL: Mapping[str, Callable[[ReadTransaction], Any]] = {
    "channels": lambda tx: views.list_channels(tx, {}, PAGE),
    "messages": lambda tx: views.list_messages(tx, {}, PAGE),
    "changes": lambda tx: list_changes(tx, 0),
    "edits": lambda tx: list_edits(tx, 0),
    "events": lambda tx: [
        one for one in Listener(FeedPosition()).news(tx) if one.kind == "message"
    ],  # a run belongs to its caller
    "tags": lambda tx: names_like(tx, "tag", "of-", 20),
    "meaning": similar,
}
"""Queries whose answer must contain every visible chat."""
SOME: dict[str, Callable[[ReadTransaction, str], Any]] = {
    "a session": resolved,
    "by the beginning of its id": lambda tx, name: resolved(tx, f"s-{name[:-1]}"),
    "a place in the list": lambda tx, _: resolved(tx, "#3"),
    "all its messages": whole,
    "the rail": lambda tx, _: views.rail(tx),
    "tags like it": lambda tx, name: names_like(tx, "tag", name[:3], 20),
}
PAGES: dict[str, Callable[[ReadTransaction, str], Any]] = {"a page": page_of}
RUNS: dict[str, Callable[[str], dict[str, Any]]] = {
    "search": lambda name: {"operation": "search", "query": {"text": f"timeout {name}", "limit": 50}},
    "a typo": lambda name: {"operation": "search", "query": {"text": f"kafak {name[:-1]}"}},
    "sessions": lambda _: {"operation": "search_sessions", "query": {"text": "kafka timeout", "max_tokens": None}},
    "list": lambda name: {"operation": "list", "query": {"text": name}},
    "complete": lambda name: {"operation": "complete", "query": {"kind": "session", "text": name[:2]}},
    "fetch": lambda name: {"operation": "fetch", "query": {"session_id": name}},
    "extract": lambda name: {"operation": "extract", "query": {"text": f"raise it {name}"}},
    "a channel": lambda name: {"operation": "extract", "channel": name},
}
"""Requests to the orchestrator."""


def figures(tx: ReadTransaction) -> tuple[int, ...]:
    """Return counts that would reveal how many other chats there are."""
    total = registry_totals(tx)["channels"]
    projects = sum(count for _, _, count in projects_by_activity(tx, 50))
    messages = tx.execute(select(func.count()).select_from(conversation)).scalar_one()
    return index_of(tx).count(tx, ["kafka"]).get("kafka", 0), messages // 2, total, projects


class Case:
    """A random query of a token."""

    def __init__(self, orchestrator: Orchestrator, chance: random.Random, token: Access, chats: list[Chat]) -> None:
        self._orchestrator, self._chance, self._token, self._chats = orchestrator, chance, token, chats

    async def run(self, at: datetime) -> tuple[str, str, set[str] | None, set[str]]:
        """Return the query, its answer, the words it must contain if known, and the words it may contain.

        A name in the query is removed from the answer.
        """
        kind = self._chance.choice((*[ALL] * 12, *[SOME] * 12, None, None, PAGES, RUNS))
        name = word_of(self._chance.randint(1, CHATS))
        query = self._chance.choice(list(kind)) if kind else "figures"
        is_writing = kind is not RUNS and self._chance.random() < 0.1
        is_for_machine = query in ("changes", "edits")  # an admin's machine gets what that person sees
        token = self._token.as_person() if is_for_machine else self._token
        seen = {chat for chat in self._chats if may_see(token, chat, at, is_writing=is_writing)}
        may = {word_of(chat.number) for chat in seen}
        here = self._orchestrator.registry.seen_by(self._token)
        ask = here.write if is_writing else here.read
        if kind is RUNS:
            request = RUNS[query](name)
            answer = await self._orchestrator.run(request, access=self._token, is_recorded=False)
            text = str(answer if answer["success"] else answer["error"]["details"])
            return query, text if name in may else text.replace(name, ""), None, may
        if kind is None:
            in_projects = sum(chat.project is not None for chat in seen)
            expected = 2 * len(seen), len(seen), len(seen), in_projects  # each has a message and a title
            held = await ask(figures)
            return f"{query} {held} {expected}", "" if held == expected else word_of(0), None, may
        if kind is ALL:
            return query, str(await ask(ALL[query])), may, may
        text = str(await ask(lambda tx: (SOME | PAGES)[query](tx, name)))
        return query, text if name in may else text.replace(f"s-{name[:-1]}", ""), None, may


@pytest.fixture(params=[("sqlite", 400), ("postgresql", 100)], ids=["sqlite", "postgresql"])
def cases(request: pytest.FixtureRequest) -> tuple[str, int]:
    name, count = request.param
    return str(request.getfixturevalue({"sqlite": "sqlite_url", "postgresql": "postgres_url"}[name])), count


@pytest.mark.timeout(480)
async def test_no_answer_contains_a_word_of_an_invisible_chat(
    cases: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, count = cases
    registry, chance, wrong = Registry(url), random.Random(35), list[Any]()
    await fill(registry)
    orchestrator = Orchestrator(registry)
    for case in range(count):
        if case % 100 == 0:  # statements are cached for tokens with the same limits
            tokens = [random_token(chance) for _ in range(6)]
        if case % 25 == 0:
            monkeypatch.setattr(message_index, "MIN_FULL_READ", chance.choice((0, 500)))
            at = now()
            chats = random_chats(chance, at)
            await assign_owners(registry, chats)
        token = chance.choice(tokens)
        query, answer, must, may = await Case(orchestrator, chance, token, chats).run(at)
        held = set(re.findall(r"zq\d\dx", answer))
        if not held <= may or (must is not None and held != must):
            wrong.append((token, query, sorted(held - may), sorted((must or set()) - held)))
    registry.close()
    assert wrong == []
