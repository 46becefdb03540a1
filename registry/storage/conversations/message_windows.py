"""Read messages in order: a window of a channel, messages with some words, and remembered sentences."""

from collections.abc import Sequence
from hashlib import blake2b
from itertools import count
from typing import Any, NamedTuple

from sqlalchemy import Row, case, func, literal, or_, select

from registry.domain import Role, format_time
from registry.project import REMEMBERED, Project
from registry.storage.conditions import contains, is_in_folder, is_one_of
from registry.storage.conversations.messages import MessageRow
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.paging import Page, cursor_of, read_rows
from registry.storage.safety.visibility import ask_all, is_called, is_named_like, name_for_owner, owner_of
from registry.storage.tables import channel, conversation


class Window(NamedTuple):
    """Messages in order, with the cursors for those before and after them, if there are any."""

    rows: Sequence[Row[Any]]
    earlier: str | None = None
    later: str | None = None


def read_window(tx: ReadTransaction, channel_number: int, page: Page, *, deleted: bool | None = False) -> Window:
    """Return the messages after the page's cursor, or before it if the order is "desc"; in order either way.

    `deleted`: the deleted messages; None: all.
    """
    conditions = [conversation.c.channel_number == channel_number]
    conditions += [] if deleted is None else [conversation.c.deleted.is_(deleted)]
    rows, cursor = read_rows(tx, conversation.c.timestamp, conditions, page)
    return Window(rows, None, cursor) if page.order == "asc" else Window(rows[::-1], cursor, None)


def window_around(
    tx: ReadTransaction, row: MessageRow, before: int, limit: int, *, deleted: bool | None = False
) -> Window:
    """Return the window around a message: up to `before` earlier ones, then `limit` from the message on."""
    at, just_before = (cursor_of(row.timestamp, number) for number in (row.number, row.number - 1))
    earlier = read_window(tx, row.channel_number, Page(before, at, "desc"), deleted=deleted)
    rest = read_window(tx, row.channel_number, Page(limit, just_before, "asc"), deleted=deleted)
    return Window([*earlier.rows, *rest.rows], earlier.earlier, rest.later)


def find_deleted(tx: ReadTransaction, words: Sequence[str], min_words: int, limit: int) -> Sequence[Any]:
    """Return channels with at least `min_words` of the words in title and deleted messages, most words first."""
    columns = (conversation.c.text, channel.c.title)
    conditions = (or_(*(contains(column, word) for column in columns)) for word in words)
    match_count = sum((func.max(case((one, 1), else_=0)) for one in conditions), literal(0))
    query = select(channel).join(conversation, conversation.c.channel_number == channel.c.number)
    query = query.where(conversation.c.deleted.is_(True)).group_by(channel.c.number).having(match_count >= min_words)
    return tx.execute(query.order_by(match_count.desc(), channel.c.updated_at.desc()).limit(limit)).all()


def counts_with_deleted(tx: ReadTransaction, channels: Sequence[str]) -> dict[str, int]:
    """Return the number of messages of these channels, including deleted ones."""
    query = select(channel.c.name, func.count()).join(conversation, conversation.c.channel_number == channel.c.number)
    rows = tx.execute(query.where(channel.c.name.in_(channels)).group_by(channel.c.name)).all()
    return dict((row[0], row[1]) for row in rows)


def first_questions(tx: ReadTransaction, channels: Sequence[str]) -> dict[str, str]:
    """Return the beginning of the user's first message in each channel, including deleted ones."""
    first = select(func.min(conversation.c.number)).join(channel, channel.c.number == conversation.c.channel_number)
    first = first.where(channel.c.name.in_(channels), conversation.c.role == Role.USER).group_by(channel.c.number)
    query = select(channel.c.name, func.substr(conversation.c.text, 1, 500))
    query = query.join(conversation, conversation.c.channel_number == channel.c.number)
    rows = tx.execute(query.where(conversation.c.number.in_(first))).all()
    return dict((row[0], row[1]) for row in rows)


def questions_of(tx: ReadTransaction, channel_number: int, *, deleted: bool = False) -> Sequence[Any]:
    """Return the user's messages in order, without text injected by clients: id, beginning, timestamp, superseded."""
    # enough text to identify a question
    beginning, superseded = func.substr(conversation.c.text, 1, 500), conversation.c.payload["superseded"].as_string()
    columns = conversation.c.id, beginning.label("text"), conversation.c.timestamp, superseded.label("superseded")
    conditions = conversation.c.role == Role.USER, conversation.c.deleted.is_(deleted)
    query = select(*columns).where(conversation.c.channel_number == channel_number, *conditions)
    query = query.where(conversation.c.payload["injected"].as_string().is_(None))
    return tx.execute(query.order_by(conversation.c.timestamp, conversation.c.number)).all()


def numbers_containing(tx: ReadTransaction, channel_number: int, words: str, limit: int) -> list[int]:
    """Return the numbers of a channel's messages that contain these characters, in order of arrival."""
    query = select(conversation.c.number).where(
        conversation.c.channel_number == channel_number,
        conversation.c.deleted.is_(False),
        contains(conversation.c.text, words),
    )
    return list(tx.execute(query.order_by(conversation.c.number).limit(limit)).scalars())


def remembered(tx: ReadTransaction, project: str | None) -> list[dict[str, Any]]:
    """Return the remembered sentences for a project and for all projects, oldest first: id, text, project, time."""
    everywhere = channel.c.project_path.is_(None)
    channels = select(channel.c.number, channel.c.project_path).where(
        is_named_like(channel.c.name, f"{REMEMBERED}*", tx.dialect.name),
        channel.c.source == REMEMBERED,
        everywhere if project is None else or_(everywhere, is_in_folder(channel.c.project_path, project)),
        or_(channel.c.owner.is_(None), channel.c.owner == owner_of(tx)),
        channel.c.deleted.is_(False),
    )
    projects = {row.number: row.project_path for row in tx.execute(channels)}
    # no join: SQLite would scan all messages by time
    columns = conversation.c
    read = columns.id, columns.text, columns.channel_number, columns.timestamp, columns.number
    # on a laptop, which knows no owners, a colleague's sentences may be in the same channel, if shared
    is_own = columns.of_other_person.is_(False), columns.deleted.is_(False)
    query = select(*read).where(is_one_of(columns.channel_number, projects), columns.role == Role.USER, *is_own)
    return [
        {
            "id": row.id,
            "text": row.text,
            "project": projects[row.channel_number],
            "timestamp": format_time(row.timestamp),
        }
        for row in sorted(tx.execute(query), key=lambda row: (row.timestamp, row.number))
    ]


def latest_prompts(tx: ReadTransaction, project: str | None, longest: int, limit: int) -> Sequence[Any]:
    """Return the user's own messages of up to `longest` characters, in a project or everywhere: channel_number, text.

    The latest come first; remembered sentences are left out.
    """
    columns = conversation.c
    query = select(columns.channel_number, columns.text).join(channel, channel.c.number == columns.channel_number)
    is_own = columns.of_other_person.is_(False), columns.deleted.is_(False), channel.c.deleted.is_(False)
    query = query.where(columns.role == Role.USER, columns.source != REMEMBERED, *is_own)
    query = query.where(func.length(columns.text) <= longest)
    if project is not None:
        query = query.where(is_in_folder(channel.c.project_path, project))
    return tx.execute(query.order_by(columns.timestamp.desc(), columns.number.desc()).limit(limit)).all()


def channel_to_remember_in(tx: WriteTransaction, project: str | None) -> str:
    """Return the channel that stores the sentences for a project; None: those for all projects.

    A sentence is valid in the current project of its channel, which may have been moved since it was named.
    """
    path = Project.from_path(project).path if project else None
    name = f"{REMEMBERED}_{blake2b(path.encode(), digest_size=6).hexdigest()}" if path else REMEMBERED
    names = (name_for_owner(tx, name if number == 1 else f"{name}_{number}") for number in count(1))
    taken = select(channel.c.project_path)
    return next(
        one for one in names if all(used == path for used in ask_all(tx, taken.where(is_called(one))).scalars())
    )
