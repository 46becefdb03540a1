"""Sum the tokens that clients count, and their price, by day, client, project, model or session.

Deleted messages do not count. A message that is in several conversations, because one was forked or resumed from
the other, counts once, in the conversation that was stored first.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Literal, NamedTuple, get_args

from sqlalchemy import BigInteger, ColumnElement, String, and_, case, cast, exists, func, or_, select

from registry.domain import Role
from registry.monitor.activity import day_of_message, undeleted_since
from registry.monitor.prices import are_shown, price_of
from registry.storage.database import ReadTransaction
from registry.storage.tables import channel, conversation
from registry.text.model_names import model_name

By = Literal["project", "session", "model", "client", "day"]
GROUPS: tuple[By, ...] = get_args(By)
KINDS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
    "reasoning": "reasoning_tokens",
}
"""The kinds of tokens, and their names in messages. Input excludes the cache, output includes the reasoning."""


MOST_GROUPS = 4  # groups that a chart distinguishes
MOST_DAYS = timedelta(days=62)  # two months; a longer chart has a bar for each week


class Span(NamedTuple):
    """Selects the messages to sum: from one instant to another (both included), of one channel or of all."""

    start: datetime | None = None
    end: datetime | None = None
    channel_number: int | None = None

    def conditions(self) -> list[ColumnElement[bool]]:
        found = undeleted_since(self.start)
        if self.end:
            found.append(conversation.c.timestamp <= self.end)
        if self.channel_number is not None:
            found.append(conversation.c.channel_number == self.channel_number)
        return found


class Usage(NamedTuple):
    """Answers with token counts that share a day, client, project, model and, if asked for, session."""

    day: str
    client: str
    project: str | None
    session: str | None
    title: str | None
    model: str | None
    answers: int
    tokens: tuple[int, ...]  # in the order of `KINDS`
    dollars: float | None  # None: no price is known, or shown


def read_usage(tx: ReadTransaction, span: Span, utc_offset_minutes: int, *, by_session: bool = False) -> list[Usage]:
    """Return the token counts of the selected messages; days follow the UTC offset."""
    counted = _counted(tx, span, utc_offset_minutes)
    session = (channel.c.name, func.coalesce(channel.c.title, channel.c.first_message_preview)) if by_session else ()
    model = func.coalesce(counted.c.model, channel.c.meta["model"].as_string())
    keys = (counted.c.day, counted.c.source, channel.c.project_path, model, *session)
    sums = [cast(func.sum(_as_count(counted.c[kind])), BigInteger) for kind in KINDS]
    query = select(*keys, func.count(), *sums).join_from(counted, channel, channel.c.number == counted.c.channel_number)
    found = []
    for day, source, project, named, *rest in tx.execute(query.where(counted.c.copy == 1).group_by(*keys)).all():
        name, title = rest[:2] if by_session else (None, None)
        answers, *counts = rest[-len(KINDS) - 1 :]
        price = price_of(named, date.fromisoformat(str(day))) if named and are_shown() else None
        dollars = price.dollars(dict(zip(KINDS, counts, strict=True))) if price else None
        found.append(Usage(str(day), source, project, name, title, named, answers, tuple(counts), dollars))
    return found


def usage_of_channel(tx: ReadTransaction, number: int) -> dict[str, Any]:
    """Return the sums of one conversation; messages that it shares with another one count in both."""
    return total(read_usage(tx, Span(channel_number=number), 0))


def _counted(tx: ReadTransaction, span: Span, utc_offset_minutes: int) -> Any:
    """Return the messages with token counts as a subquery. `copy`: 1 for the first of several that are the same."""
    columns = conversation.c
    same = (columns.source, func.coalesce(columns.native_id, cast(columns.number, String)), columns.digest)
    copy = func.row_number().over(partition_by=same, order_by=columns.number)
    day = day_of_message(tx, utc_offset_minutes)
    model = columns.payload["model"].as_string()
    counts = {kind: columns.payload["usage", name].as_string() for kind, name in KINDS.items()}
    of_message = (columns.source, columns.channel_number, day.label("day"), model.label("model"), copy.label("copy"))
    is_counted = or_(counts["input"].is_not(None), counts["output"].is_not(None))
    named = (count.label(kind) for kind, count in counts.items())
    return select(*of_message, *named).where(*span.conditions(), is_counted).subquery()


def _as_count(counted: ColumnElement[str]) -> ColumnElement[int]:
    """Convert a count to a number; anything else is 0, because a caller may log any value."""
    # sums of longer numbers would overflow
    is_count = and_(func.length(counted) <= 12, func.ltrim(counted, "0123456789") == "", counted != "")
    return case((is_count, cast(counted, BigInteger)), else_=0)


def answers_without_counts(tx: ReadTransaction, span: Span) -> list[dict[str, Any]]:
    """Count the answers in turns without any token count, by client, most first: a tool call may have the count."""
    columns, other = conversation.c, conversation.alias()
    counted = other.c.payload["usage"].as_string().is_not(None)
    of_turn = exists().where(other.c.channel_number == columns.channel_number, other.c.turn == columns.turn, counted)
    count = func.count()
    # most answers have a count of their own: for the others the turn is looked up
    unknown = columns.role == Role.ASSISTANT, columns.payload["usage"].as_string().is_(None), ~of_turn
    query = select(columns.source, count).where(*span.conditions(), *unknown)
    rows = tx.execute(query.group_by(columns.source).order_by(count.desc(), columns.source))
    return [{"client": source, "answers": answers} for source, answers in rows]


def total(usages: Sequence[Usage]) -> dict[str, Any]:
    """Sum token counts and cost. `cost_usd`: of the models with a price; null if none has one."""
    costs = [usage.dollars for usage in usages if usage.dollars is not None]
    nothing = (0,) * len(KINDS)
    sums = map(sum, zip(nothing, *(usage.tokens for usage in usages), strict=True))
    return {
        "answers": sum(usage.answers for usage in usages),
        **{f"{kind}_tokens": count for kind, count in zip(KINDS, sums, strict=True)},
        "cost_usd": sum(costs) if costs else None,
    }


def grouped(usages: Sequence[Usage], by: By) -> list[dict[str, Any]]:
    """Return the sums by `name` (null: unknown): days newest first, all others by cost and tokens."""
    groups: defaultdict[str | None, list[Usage]] = defaultdict(list)
    for usage in usages:
        groups[getattr(usage, by)].append(usage)
    rows = [
        {"name": name, **({"title": of_name[0].title} if by == "session" else {}), **total(of_name)}
        for name, of_name in groups.items()
    ]
    if by == "day":
        return sorted(rows, key=lambda row: str(row["name"]), reverse=True)
    return sorted(rows, key=lambda row: (-(row["cost_usd"] or 0), -row["output_tokens"], str(row["name"])))


def over_time(usages: Sequence[Usage], by: Literal["client", "model"]) -> dict[str, Any]:
    """Return the output tokens and the cost by day, or week if there are many days; at most of a year.

    `names`: the groups with the most tokens; `rows`: (day, tokens of each group and of all others, US dollars);
    `days`: of a row.
    """
    if not usages:
        return {"names": [], "days": 1, "rows": []}
    output = list(KINDS).index("output")
    sums = Counter[str | None]()
    for usage in usages:
        sums[_display_name(usage, by)] += usage.tokens[output]
    names = [name for name, tokens in sums.most_common(MOST_GROUPS) if tokens]
    days = [date.fromisoformat(usage.day) for usage in usages]
    first = max(min(days), max(days) - timedelta(days=365))
    step = timedelta(days=1) if max(days) - first < MOST_DAYS else timedelta(weeks=1)
    count = (max(days) - first) // step + 1
    tokens, dollars = [[0] * (len(names) + 1) for _ in range(count)], [0.0] * count
    for day, usage in zip(days, usages, strict=True):
        if day >= first:
            row, name = (day - first) // step, _display_name(usage, by)
            tokens[row][names.index(name) if name in names else -1] += usage.tokens[output]
            dollars[row] += usage.dollars or 0
    starts = [str(first + row * step) for row in range(count)]
    return {"names": names, "days": step.days, "rows": list(zip(starts, tokens, dollars, strict=True))}


def _display_name(usage: Usage, by: Literal["client", "model"]) -> str | None:
    return usage.client if by == "client" else usage.model and model_name(usage.model)


def unpriced(usages: Iterable[Usage]) -> list[str]:
    """Return the models without a price; an empty list if costs are not shown."""
    without = (usage for usage in usages if usage.dollars is None and any(usage.tokens))
    return sorted({usage.model or "unknown" for usage in without}) if are_shown() else []
