"""A chat resumed in several clients: each client's messages are stored once, from its hooks and its store."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, select

from registry.domain import Message, Role, Session, digest_of, new_id
from registry.ingest.from_client import ingest_from_client
from registry.ingest.from_hook import ingest_from_hook
from registry.storage.conversations.channels import find_channel
from registry.storage.conversations.references import add_alias
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.records.extract_results import RESUMED, save_result
from registry.storage.tables import channel, conversation
from tests.registry.ingest.chats import NINE, Turn

WORDS = st.sampled_from(["go on please", "continue", "run the tests", "all pass", "two fail", "I did it."])
TURNS = st.lists(st.builds(Turn, WORDS, WORDS), min_size=1, max_size=3)
HISTORY = (Turn("How often do we retry?", "Five times."), Turn("go on please", "I did it."))
CLIENTS = ("codex", "gemini-cli", "copilot-cli", "codex")


@dataclass
class Resumed:
    """A session in which the chat was resumed, with its new turns."""

    client: str
    session_id: str
    turns: list[Turn]
    start: datetime

    def messages(self) -> list[Message]:
        return [
            Message(
                role, text, self.start + timedelta(seconds=10 * turn + part), more={"native_id": self.id_of(turn, part)}
            )
            for turn, words in enumerate(self.turns)
            for part, (role, text) in enumerate(zip((Role.USER, Role.ASSISTANT), words, strict=True))
        ]

    def id_of(self, turn: int, part: int) -> str:
        return f"{self.session_id}-{turn}-{part}"

    def read_store(self, tx: WriteTransaction, count: int) -> None:
        """Read the client's store: the original messages and `count` new ones."""
        known = [Message(one.role, one.text, one.timestamp, more={"native_id": f"{self.session_id}-old-{at}"})
                 for at, one in enumerate(original())]  # fmt: skip
        session = Session(self.session_id, (*known, *self.messages()[:count]))
        ingest_from_client(tx, self.client, session)

    def send_hook(self, tx: WriteTransaction, at: int) -> None:
        """Send one new message by hook, without its native id."""
        one = self.messages()[at]
        more = {"request_id": f"{self.session_id}-request-{at // 2}"}
        ingest_from_hook(
            tx, self.client, Session(self.session_id, (Message(one.role, one.text, one.timestamp, more=more),))
        )


def original() -> list[Message]:
    return [
        Message(role, text, NINE + timedelta(minutes=turn, seconds=part), more={"native_id": f"a-{turn}-{part}"})
        for turn, words in enumerate(HISTORY)
        for part, (role, text) in enumerate(zip((Role.USER, Role.ASSISTANT), words, strict=True))
    ]


def resume(tx: WriteTransaction, session_id: str) -> None:
    """Write to the registry what `ctxr resume` writes."""
    row = find_channel(tx, "original")
    assert row
    add_alias(tx, session_id, row.number)
    questions = [digest_of(Role.USER, turn.question).hex() for turn in HISTORY]
    save_result(tx, new_id("ext"), record_type=RESUMED, channel=row.name, result_type=RESUMED, items=[],
                metadata={"client": "x", "session_id": session_id, "questions": questions},
                timestamp=NINE + timedelta(hours=1))  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), talks=st.lists(TURNS, min_size=2, max_size=4))
def test_each_clients_messages_are_stored_once(
    shared_engine: Engine, data: st.DataObject, talks: list[list[Turn]]
) -> None:
    sessions = [
        Resumed(client, f"session-{at}-{client}", turns, NINE + timedelta(hours=2, seconds=at))
        for at, (client, turns) in enumerate(zip(CLIENTS, talks, strict=False))
    ]
    steps = [
        (at, way, n) for at, one in enumerate(sessions) for n in range(2 * len(one.turns)) for way in ("hook", "read")
    ]
    order = data.draw(st.permutations([step for step in steps if data.draw(st.booleans())]))
    with shared_engine.connect() as connection:
        tx = WriteTransaction(ReadTransaction(connection))
        ingest_from_client(tx, "claude-code", Session("original", tuple(original())))
        tx.execute(conversation.update().values(channel="original"))
        tx.execute(channel.update().values(name="original"))
        for one in sessions:
            resume(tx, one.session_id)
        for at, way, n in order:
            if way == "hook":
                sessions[at].send_hook(tx, n)
            else:
                sessions[at].read_store(tx, n + 1)
        for one in sessions:
            one.read_store(tx, len(one.turns) * 2)
            one.read_store(tx, len(one.turns) * 2)
        rows = tx.execute(select(conversation).order_by(conversation.c.timestamp, conversation.c.number)).all()
        connection.rollback()
    expected = [(one.role, one.text) for one in original()]
    expected += [(one.role, one.text) for session in sessions for one in session.messages()]
    assert Counter((row.role, row.text) for row in rows) == Counter(expected)
    for session in sessions:
        for turn in range(len(session.turns)):
            [question] = [row for row in rows if row.native_id == session.id_of(turn, 0)]
            [answer] = [row for row in rows if row.native_id == session.id_of(turn, 1)]
            assert answer.turn in (question.seq, answer.seq), "the answer belongs to its own question"
