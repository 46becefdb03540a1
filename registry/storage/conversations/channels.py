"""Read, create, describe and list channels, the identities of conversations."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from operator import eq, ge, le
from types import MappingProxyType
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, ColumnElement, Executable, Row, Select, bindparam, func, or_, select, true, update

from registry.domain import Role, format_time, now, preview_of, storable
from registry.errors import NotFound
from registry.project import NO_PROJECT, Project, repository_id
from registry.storage.column_types import shown
from registry.storage.conditions import (
    FilterRules,
    Filters,
    contains,
    filter_conditions,
    is_of_project,
    is_one_of,
    is_tagged,
)
from registry.storage.database import ReadTransaction, WriteTransaction, insert_into, update_rows
from registry.storage.index.message_index import TITLE, Entry, index_of
from registry.storage.paging import Page, read_page
from registry.storage.safety.masking import masked
from registry.storage.safety.visibility import is_called, owner_of, reader_options
from registry.storage.tables import channel, conversation, edit, message_vector, tag
from registry.text.analysis.analyzer import analyze
from registry.text.model_names import model_name

ChannelRow = Row[Any]

_META_COLUMNS = ("title", "session_id", "summary")  # keys of `meta` that columns repeat


def find_channel(
    tx: ReadTransaction, name: str, *conditions: ColumnElement[bool], lock: bool = False
) -> ChannelRow | None:
    """Return the channel of that name or alias, deleted or not; `lock` blocks other writers of it."""
    query = _BY_NAME.where(*conditions) if conditions else _BY_NAME
    return tx.execute(query.with_for_update(of=channel) if lock else query, {"called": name}).first()


_NAME: BindParameter[str] = bindparam("called")
_BY_NAME = select(channel).where(is_called(_NAME)).order_by((channel.c.name == _NAME).desc(), channel.c.number).limit(1)


def lock_channel(tx: WriteTransaction, number: int) -> ChannelRow:
    """Return the channel of that number; other writers of it wait until the transaction ends."""
    return tx.execute(select(channel).where(channel.c.number == number).with_for_update()).one()


def get_channel(tx: ReadTransaction, name: str, *, with_deleted: bool = False) -> ChannelRow:
    """Return the channel of that name; NotFound if there is none, or it was deleted."""
    row = find_channel(tx, name)
    if row is None or (row.deleted and not with_deleted):
        raise NotFound("No such channel", f"No channel {name!r} in the registry")
    return row


def channels_by_number(tx: ReadTransaction, numbers: Sequence[int]) -> dict[int, ChannelRow]:
    """Return the channels with these numbers in the given order, without deleted ones."""
    query = select(channel).where(is_one_of(channel.c.number, numbers), channel.c.deleted.is_(False))
    found = {row.number: row for row in tx.execute(query)} if numbers else {}
    return {number: found[number] for number in numbers if number in found}


def latest_activity(tx: ReadTransaction, numbers: Sequence[int]) -> dict[int, datetime]:
    """Return the time of the latest activity in these channels, without deleted ones."""
    these = is_one_of(channel.c.number, numbers), channel.c.deleted.is_(False)
    return {number: at for number, at in tx.execute(select(channel.c.number, channel.c.updated_at).where(*these))}


def some_channels(tx: ReadTransaction, *, limit: int, offset: int, **wanted: Any) -> tuple[list[dict[str, Any]], int]:
    """Return channels that have messages from an offset, latest activity first, and the total: `#3` counts so, too."""
    conditions = [*_conditions(wanted), channel.c.message_count > 0]
    total = tx.execute(select(func.count()).select_from(channel).where(*conditions)).scalar_one()
    ordering = channel.c.updated_at.desc(), channel.c.number.desc()
    rows = tx.execute(select(channel).where(*conditions).order_by(*ordering).limit(limit).offset(offset)).all()
    return items_of(tx, rows), total


def numbers_of(tx: ReadTransaction, names: Sequence[str]) -> dict[str, int]:
    rows = tx.execute(select(channel.c.name, channel.c.number).where(channel.c.name.in_(names)))
    return {row.name: row.number for row in rows}


def recent_channels(tx: ReadTransaction, limit: int, *, is_as_listed: bool = False) -> list[ChannelRow]:
    """Return the latest channels; `is_as_listed`: with shared ones, also in a write transaction."""
    options = reader_options(tx) if is_as_listed else {}
    return list(tx.execute(_latest_first(select(channel)).limit(limit), execution_options=options))


def positions_among_recent(tx: ReadTransaction, most: int) -> dict[str, int]:
    """Return the list position of each of the latest channels, by name: `#3` is the third one."""
    names = tx.execute(_latest_first(select(channel.c.name)).limit(most)).scalars()
    return {name: position for position, name in enumerate(names, 1)}


def _latest_first(query: Select[Any]) -> Select[Any]:
    ordering = channel.c.updated_at.desc(), channel.c.number.desc()
    return query.where(channel.c.deleted.is_(False), channel.c.message_count > 0).order_by(*ordering)


def open_channel(tx: WriteTransaction, name: str, source: str, at: datetime) -> ChannelRow:
    """Return the channel, created if new, locked until the transaction ends."""
    row = find_channel(tx, name, lock=True)
    row = row or tx.execute(_insert_or_nothing(tx.dialect.name), _new_values(tx, name, source, at)).first()
    row = row or find_channel(tx, name, lock=True)  # another writer has created it meanwhile
    if row is None:
        raise NotFound("No such channel", f"Channel {name!r} was removed while it was written")
    return row


def make_channels(
    tx: WriteTransaction, described: Mapping[str, Mapping[str, Any]], source: str, at: datetime
) -> dict[str, ChannelRow]:
    """Create channels with the given names and `meta`; skip names that were taken meanwhile."""
    if not described:
        return {}
    nothing = dict.fromkeys((*_META_COLUMNS, "project_path", "project_name", "repository"))
    rows = [
        {**nothing, **_new_values(tx, name, source, at), **masked(tx, storable(_changes_from_meta(meta)))}
        for name, meta in described.items()
    ]
    made = tx.execute(_insert_or_nothing(tx.dialect.name), rows).all()
    index_of(tx).add(tx, title_entries(made))
    return {row.name: row for row in made}


def describe_channel(tx: WriteTransaction, row: ChannelRow, meta: Mapping[str, Any]) -> None:
    changes = _changes_from_meta(meta, row.meta, row.project_path)
    if "title" in changes and title_edited_at(tx, row):
        del changes["title"]
    if changes:
        change_channel(tx, row, masked(tx, storable(changes)))


def title_edited_at(tx: ReadTransaction, row: ChannelRow) -> datetime | None:
    """Return when the user set the title, which a machine that does not know it yet must not overwrite."""
    is_edited = edit.c.channel_number == row.number, edit.c.message_number.is_(None), edit.c.field == "title"
    return tx.execute(select(edit.c.done_at).where(*is_edited)).scalar()


def _new_values(tx: WriteTransaction, name: str, source: str, at: datetime) -> dict[str, Any]:
    return {
        "name": name,
        "owner": owner_of(tx),
        "source": source,
        "meta": {},
        "message_count": 0,
        "seq_count": 0,
        "token_count": 0,
        "created_at": at,
        "updated_at": at,
        "deleted": False,
    }


def _insert_or_nothing(dialect: str) -> Executable:
    return insert_into(dialect, channel).on_conflict_do_nothing(index_elements=["name"]).returning(channel)


def _changes_from_meta(
    meta: Mapping[str, Any], before: Mapping[str, Any] = MappingProxyType({}), project_path: str | None = None
) -> dict[str, Any]:
    """Return the columns that `meta` changes; metadata without a project leaves the project unchanged."""
    known = {**before, **storable(meta)}
    changes: dict[str, Any] = {} if known == before else {"meta": known}
    for name in _META_COLUMNS:
        value = known.get(name)
        # a client that resends its title must not overwrite the user's
        if isinstance(value, str) and value and value != before.get(name):
            changes[name] = value
    if isinstance(known.get("project"), str) and known["project"]:
        # a client may still send the folder from which the user moved the channel
        moved = known.get(MOVED) or {}
        project = Project.from_path(moved.get(known["project"], known["project"]))
        if project.path != project_path:
            changes |= project_columns(project, known.get(REPOSITORY))
    return changes


def project_columns(project: Project, repository: str | None = None) -> dict[str, str | None]:
    """Return the columns of a project; `repository`: its id, if the folder is on another machine."""
    repository = repository or repository_id(project.path)
    return {"project_path": project.path, "project_name": project.name, "repository": repository}


REPOSITORY = "repository_id"
"""Key in a channel's `meta` under which registries exchange the id of its repository."""


MOVED = "project_moved"
"""Key of a channel's `meta`: a map from its earlier folders to the folder to which the user has moved it."""


_TITLE_COLUMNS = ("title", "nickname", "project_name")


def title_entry(row: ChannelRow, changes: Mapping[str, Any]) -> Entry:
    """Return the index entry of a channel's title, nickname and project."""
    known = {**row._mapping, **changes}
    text = " ".join(known[key] for key in _TITLE_COLUMNS if known[key])
    return Entry(-row.number, [TITLE, *analyze(text)])


def title_entries(rows: Iterable[ChannelRow], changes: Mapping[str, Any] = MappingProxyType({})) -> list[Entry]:
    """Return the index entries of the channels that have a title, nickname or project."""
    return [entry for row in rows if len((entry := title_entry(row, changes)).tokens) > 1]


def unindex_title(tx: WriteTransaction, row: ChannelRow) -> None:
    """Remove the index entry of a channel's title, before the channel is deleted for good."""
    index_of(tx).remove(tx, title_entries([row]))


def change_channel(tx: WriteTransaction, row: ChannelRow, changes: Mapping[str, Any]) -> None:
    """Update columns of a channel, and what is derived from its title if that changes."""
    tx.execute(update(channel).where(channel.c.number == row.number).values(**changes))
    if changes.get("title", row.title) != row.title:  # its messages are embedded with it, so they are embedded again
        of_channel = select(conversation.c.number).where(conversation.c.channel_number == row.number)
        outdated = update(message_vector).where(message_vector.c.message_number.in_(of_channel))
        tx.execute(outdated.values(digest=b""))
    if not changes.keys().isdisjoint(_TITLE_COLUMNS):
        unindex_title(tx, row)
        index_of(tx).add(tx, title_entries([row], changes))


def tags_of(tx: ReadTransaction, numbers: Sequence[int]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {number: [] for number in numbers}
    query = select(tag).where(tag.c.channel_number.in_(found)).order_by(tag.c.name)
    for row in tx.execute(query):
        found[row.channel_number].append(row.name)
    return found


def list_channels(tx: ReadTransaction, wanted: Filters, page: Page) -> dict[str, Any]:
    return read_page(tx, channel.c.updated_at, _conditions(wanted), page, partial(items_of, tx))


def _conditions(wanted: Filters) -> list[ColumnElement[bool]]:
    return filter_conditions(_FILTERS, {"deleted": False, **wanted})


def _has_words(name: ColumnElement[str], words: str) -> ColumnElement[bool]:
    return or_(*(contains(each, words) for each in (name, channel.c.title, channel.c.nickname, channel.c.project_name)))


def _is_named(nickname: ColumnElement[Any], wanted: bool) -> ColumnElement[bool]:
    has_name = or_(nickname.is_not(None), channel.c.number.in_(select(tag.c.channel_number)))
    return has_name if wanted else true()


def _is_deleted(deleted: ColumnElement[bool], wanted: bool) -> ColumnElement[bool]:
    """Return a condition; a subquery makes the database find the few deleted channels in an index."""
    some = channel.alias()
    return channel.c.number.in_(select(some.c.number).where(some.c.deleted)) if wanted else deleted.is_(False)


_FILTERS: FilterRules = {
    "deleted": (_is_deleted, channel.c.deleted),
    "source": (eq, channel.c.source),
    "from_": (ge, channel.c.updated_at),
    "to": (le, channel.c.updated_at),
    "project": (is_of_project, channel.c.project_path),
    "tag": (is_tagged, channel.c.number),
    "is_named": (_is_named, channel.c.nickname),  # only channels with a nickname or a tag
    "q": (_has_words, channel.c.name),
}


def _sharing_of(row: ChannelRow) -> dict[str, Any]:
    """Return a channel's owner and its current sharing, without empty fields."""
    is_over = row.shared_until is not None and row.shared_until <= now()
    shared = {
        "owner": row.owner,
        "shared_with": None if is_over else row.shared_with,
        "shared_until": format_time(row.shared_until) if row.shared_until and not is_over else None,
    }
    return {name: value for name, value in shared.items() if value}


def items_of(tx: ReadTransaction, rows: Sequence[ChannelRow]) -> list[dict[str, Any]]:
    tags = tags_of(tx, [row.number for row in rows])
    return [channel_item(row, tags[row.number]) for row in rows]


def item_of(tx: ReadTransaction, row: ChannelRow) -> dict[str, Any]:
    return items_of(tx, [row])[0]


def channel_item(row: ChannelRow, tags: Sequence[str]) -> dict[str, Any]:
    """Return a channel with the fields of a session (docs/interface.md)."""
    some = _sharing_of(row) | ({"time": INFERRED} if row.meta.get(TIMES) == INFERRED else {})
    return some | {
        "session_id": row.session_id or row.name,
        "channel": row.name,
        **shown(row, "source", "title", "nickname"),
        "tags": list(tags),
        "project_path": row.project_path,
        "project_name": row.project_name or NO_PROJECT,
        **shown(row, "message_count", "created_at", "updated_at", "last_accessed", "first_message_preview"),
        "summary": row.summary or made_summary(row),
        "summary_by": summary_writer(row),
    }


TIMES, INFERRED, KNOWN = "times", "inferred", "known"
"""Key and values in a channel's `meta`: whether all times of its messages are inferred; known by default."""


def model_facts(row: ChannelRow) -> dict[str, str]:
    """Return the model that the client recorded last, its usual name, and the mode."""
    noted = {name: row.meta[name] for name in ("model", "mode") if isinstance(row.meta.get(name), str)}
    return noted | ({"model_name": model_name(noted["model"])} if "model" in noted else {})


def count_delivery(tx: WriteTransaction, name: str, at: datetime, tokens: int) -> None:
    """Count tokens of a channel that were delivered to a caller."""
    counted = {"access_count": channel.c.access_count + 1, "tokens_delivered": channel.c.tokens_delivered + tokens}
    tx.execute(update(channel).where(channel.c.name == name).values(last_accessed=at, **counted))


CLIENT = "client"  # author of a summary from a client's store


def content_state(row: ChannelRow) -> str:
    """Return a value that changes whenever a channel gains or loses messages."""
    return f"{row.seq_count}.{row.message_count}"


def made_summary(row: ChannelRow) -> str | None:
    """Return the generated summary; None if there is none or the channel has changed since."""
    return row.made_summary if row.made_summary_of == content_state(row) else None


def summary_writer(row: ChannelRow) -> str | None:
    """Return the summary's author: the client, "extractive", or a model's name."""
    return CLIENT if row.summary else row.made_summary_by if made_summary(row) else None


class MadeSummary(NamedTuple):
    """A generated summary: its author (`by`), and the `content_state` it was made from."""

    channel_number: int
    text: str
    by: str
    state: str


def keep_summaries(tx: WriteTransaction, made: Sequence[MadeSummary]) -> None:
    names = ("number", "made_summary", "made_summary_by", "made_summary_of")
    rows = {one.channel_number: dict(zip(names, one, strict=True)) for one in made}
    update_rows(tx, channel, [rows[number] for number in sorted(rows)])


def recount_channel(tx: WriteTransaction, number: int) -> None:
    """Recompute a channel's counts and time span from its messages, after some were deleted or restored."""
    undeleted = conversation.c.channel_number == number, conversation.c.deleted.is_(False)
    count, tokens, first, last = tx.execute(
        select(
            func.count(),
            func.coalesce(func.sum(conversation.c.length), 0),
            func.min(conversation.c.timestamp),
            func.max(conversation.c.timestamp),
        ).where(*undeleted)
    ).one()
    question = select(conversation.c.text).where(*undeleted, conversation.c.role == Role.USER)
    first_question = tx.execute(question.order_by(conversation.c.timestamp, conversation.c.number).limit(1)).scalar()
    changes: dict[str, Any] = {
        "message_count": count,
        "token_count": tokens,
        "first_message_preview": preview_of(first_question) if first_question else None,
        "made_summary": None,  # it may quote deleted messages
    }
    if count:
        changes |= {"created_at": first, "updated_at": last, "deleted": False}
    tx.execute(update(channel).where(channel.c.number == number).values(**changes))
