"""Find the conversations that a retention policy selects."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, exists, or_, select

from registry.domain import now
from registry.project import REMEMBERED
from registry.settings import RetentionPolicy
from registry.storage.conditions import is_one_of
from registry.storage.conversations.channels import ChannelRow
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.safety.visibility import is_in_project
from registry.storage.tables import channel, pin

NO_CHATS = (REMEMBERED, "memory-files", "notion")  # notes and pages stay valid until replaced, at any age


def _conditions(policy: RetentionPolicy, dialect: str, at: datetime) -> list[ColumnElement[bool]]:
    """Return the policy's conditions; pinned channels, and channels shared until a future time, are excluded."""
    # from midnight, so that SQLite's file is rewritten once a day, not each hour
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    conditions = [channel.c.updated_at < midnight - timedelta(days=policy.days), channel.c.source.not_in(NO_CHATS)]
    if policy.project:
        conditions.append(is_in_project(channel, policy.project, dialect))
    if policy.owner:
        conditions.append(channel.c.owner == policy.owner)
    is_free = or_(channel.c.shared_with.is_(None), channel.c.shared_until.is_(None), channel.c.shared_until <= at)
    return [*conditions, is_free, ~exists().where(pin.c.channel_number == channel.c.number)]


def find_quiet(tx: ReadTransaction, policy: RetentionPolicy) -> dict[int, int]:
    """Return the numbers of the channels that a policy selects, with their message counts."""
    query = select(channel.c.number, channel.c.message_count).where(*_conditions(policy, tx.dialect.name, now()))
    return dict(tx.execute(query.order_by(channel.c.number)).all())


def lock_quiet(tx: WriteTransaction, policy: RetentionPolicy, numbers: Sequence[int]) -> list[ChannelRow]:
    """Return the channels that the policy still selects, locked until the transaction ends."""
    of_policy = is_one_of(channel.c.number, numbers), *_conditions(policy, tx.dialect.name, now())
    return list(tx.execute(select(channel).where(*of_policy).order_by(channel.c.number).with_for_update()))
