"""A chat that arrives in three ways: logged by the model, sent by hooks, read from the client's store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Engine, select

from orchestrator.sync.drain import sessions_of
from registry.domain import Message, Role, Session
from registry.ingest.from_client import ingest_from_client
from registry.ingest.from_hook import ingest_from_hook
from registry.ingest.from_tool import ingest_from_tool
from registry.storage.conversations.channels import ChannelRow, find_channel
from registry.storage.conversations.messages import get_message
from registry.storage.conversations.references import links_of
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.tables import channel, conversation

NINE = datetime(2026, 5, 4, 9, tzinfo=UTC)
PROJECT = "/home/ann/shop"


class Turn(NamedTuple):
    """A question and its answer."""

    question: str
    answer: str


BASKET = (
    Turn("Why does the basket lose its items after login?", "It makes a new list each time the session is renewed."),
    Turn("Fix it, please.", "Done: the list is kept in the session now, and the old one is merged into it."),
    Turn("And what about guests who never log in at all?", "They keep theirs in a cookie, which is read at the start."),
)


@dataclass
class Chat:
    """A chat in a registry. Turns begin one minute apart; the model logs each 30 seconds later."""

    engine: Engine
    turns: Sequence[Turn]
    name: str = "cursor_session_20260504_0900"
    session_id: str = "c-1"
    project: str | None = PROJECT
    start: datetime = NINE

    def asked_at(self, turn: int) -> datetime:
        return self.start + timedelta(minutes=turn)

    def log(self, upto: int, since: int = 0, *, words: int = 1000, name: str | None = None) -> list[str]:
        """Log turns `since` to `upto` with `conversation_log`, answers cut to `words`, and return the ids."""
        messages = []
        for question, answer in self.turns[since:upto]:
            short = " ".join(answer.split()[:words])
            messages += [Message(Role.USER, question.replace(" ", "\n", 1)), Message(Role.ASSISTANT, short)]
        return self.log_messages(messages, upto, name)

    def log_messages(self, messages: Sequence[Message], upto: int, name: str | None = None) -> list[str]:
        with self.engine.begin() as connection:
            _, saved = ingest_from_tool(
                WriteTransaction(ReadTransaction(connection)),
                name or self.name,
                messages,
                source="cursor",
                metadata={"source": "cursor", **({"project": self.project} if self.project else {})},
                received_at=self.asked_at(upto - 1) + timedelta(seconds=30),
            )
        return saved.ids

    def send_hooks(self, turn: int) -> None:
        """Send one turn as the client's hooks do."""
        at, request = self.asked_at(turn).timestamp(), f"{self.session_id}-{turn}"
        common = {"conversation_id": self.session_id, "generation_id": request}
        where = {"workspace_roots": [self.project]} if self.project else {}
        events = [
            {
                "event": "beforeSubmitPrompt",
                "at": at,
                "payload": {**common, **where, "prompt": self.turns[turn].question},
            },
            {"event": "afterAgentResponse", "at": at + 25, "payload": {**common, "text": self.turns[turn].answer}},
        ]
        with self.engine.begin() as connection:
            for source, session in sessions_of([{"source": "cursor", **event} for event in events]):
                ingest_from_hook(WriteTransaction(ReadTransaction(connection)), source, session)

    def read_store(self, upto: int) -> None:
        """Read the turns before `upto` from the client's store, with thoughts and tool calls."""
        messages = []
        for number, (question, answer) in enumerate(self.turns[:upto]):
            parts = (
                (Role.USER, question),
                (Role.THINKING, "Hm."),
                (Role.TOOL, f"file {number}"),
                (Role.ASSISTANT, answer),
            )
            for place, (role, text) in enumerate(parts):
                at = self.asked_at(number) + timedelta(seconds=5 * place)
                native_id = f"{self.session_id}-b{number}.{place}"
                messages.append(Message(role, text, at, more={"native_id": native_id}))
        with self.engine.begin() as connection:
            tx = WriteTransaction(ReadTransaction(connection))
            ingest_from_client(tx, "cursor", Session(self.session_id, tuple(messages), project=self.project))

    def channel(self, name: str | None = None) -> ChannelRow | None:
        with self.engine.begin() as connection:
            return find_channel(ReadTransaction(connection), name or self.name)

    def text_of(self, message_id: str) -> str:
        with self.engine.begin() as connection:
            return " ".join(get_message(ReadTransaction(connection), message_id).text.split())


def channels(engine: Engine) -> list[ChannelRow]:
    with engine.begin() as connection:
        return list(connection.execute(select(channel).where(channel.c.deleted.is_(False)).order_by(channel.c.number)))


def links(engine: Engine, name: str) -> list[str]:
    with engine.begin() as connection:
        tx = ReadTransaction(connection)
        row = find_channel(tx, name)
        return links_of(tx, row.number) if row else []


def texts_in(engine: Engine, row: ChannelRow) -> list[tuple[str, str]]:
    """Return (role, text) of a channel's user and assistant messages, in order."""
    within = conversation.c.channel_number == row.number, conversation.c.role.in_(("user", "assistant"))
    query = select(conversation).where(*within, conversation.c.deleted.is_(False))
    with engine.begin() as connection:
        rows = connection.execute(query.order_by(conversation.c.timestamp, conversation.c.number)).all()
    return [(each.role, " ".join(each.text.split())) for each in rows]


def stored_once(turns: Sequence[Turn]) -> list[tuple[str, str]]:
    """Return what `texts_in` returns if each of these turns is stored once."""
    return [line for turn in turns for line in (("user", turn.question), ("assistant", turn.answer))]
