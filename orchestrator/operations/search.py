"""search: find messages by words."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from orchestrator.answer.delivery import deliver, message_dict
from orchestrator.answer.finding.lookup import (
    CONVERSATION_ROLES,
    describe_request,
    find,
    parse_in_scope,
    scope_of,
    subject_of,
)
from orchestrator.answer.finding.relevance import (
    JudgedSearch,
    describe_search,
    describe_verdicts,
    has_subject,
    judge_messages,
)
from orchestrator.requests.shapes import SearchQuery, SearchRequest
from orchestrator.state import Operation, Run, Steps
from registry.access import Level
from registry.search.scope import list_messages_in_scope
from registry.storage.conversations.channels import get_channel
from registry.storage.conversations.messages import MessageRow, by_numbers, list_messages, message_item
from registry.storage.database import ReadTransaction
from registry.storage.paging import Order, Page, decode_cursor, encode_cursor
from registry.text.ranking.matching import matched_words


def find_in_registry(tx: ReadTransaction, run: Run, request: SearchRequest) -> JudgedSearch:
    query = request.query
    channel = get_channel(tx, request.channel) if request.channel else None
    parsed, scope = parse_in_scope(tx, query.text, None, scope_of(query, channel.number if channel else None))
    result = find(tx, run, parsed, scope)
    run.recorder.explain(channel=channel.name if channel else None, **describe_search(result))
    is_span = parsed.is_narrowed and not has_subject(parsed, result)
    listed_scope = replace(scope, roles=scope.roles or CONVERSATION_ROLES) if is_span else None
    return JudgedSearch(parsed, result, judge_messages(result), listed_scope)


async def answer_search(run: Run, request: SearchRequest, data: JudgedSearch) -> dict[str, Any]:
    """Return a page of the relevant messages, best first or by time."""
    run.recorder.explain(**describe_verdicts(data.verdicts))
    by_time = request.query.order or ("desc" if data.listed_scope else None)
    shown = await run.registry.read(
        lambda tx: _dated_page(tx, request.query, data, by_time) if by_time else _best_page(tx, request.query, data)
    )
    return {**shown, "understood": describe_request(data.parsed, data.result)}


def _best_page(tx: ReadTransaction, query: SearchQuery, data: JudgedSearch) -> dict[str, Any]:
    start = max(decode_cursor(query.cursor, o=int)["o"], 0) if query.cursor else 0
    page = data.hits[start : start + query.limit]
    rows = {row.number: row for row in by_numbers(tx, [judged.ranked.candidate.number for judged in page])}
    parsed_query = data.result.query
    messages = [
        {**_message_item(row), "score": round(judged.score, 3), "words": list(matched_words(parsed_query, row.text))}
        for judged in page
        if (row := rows.get(judged.ranked.candidate.number))
    ]
    end = start + len(page)
    metadata: dict[str, Any] = {"total_count": len(data.hits), "filtered_count": len(messages)}
    if end < len(data.hits):
        metadata["next_cursor"] = encode_cursor({"o": end})
    return {"messages": messages, "metadata": metadata}


def _message_item(row: MessageRow) -> dict[str, Any]:
    return {**deliver(message_dict(row)), "channel": row.channel, "source": row.source}


def _message_items(rows: Sequence[MessageRow]) -> list[dict[str, Any]]:
    return [{**message_item(row), **_message_item(row), "score": None, "words": []} for row in rows]


def _dated_page(tx: ReadTransaction, query: SearchQuery, data: JudgedSearch, order: Order) -> dict[str, Any]:
    wanted = Page(query.limit, query.cursor, order)
    if data.listed_scope:
        page = list_messages_in_scope(tx, data.listed_scope, wanted, _message_items)
    else:
        numbers = [judged.ranked.candidate.number for judged in data.hits]
        page = list_messages(tx, {"numbers": numbers}, wanted)
    metadata = {"total_count": page["total"], "filtered_count": len(page["items"])}
    cursor = {"next_cursor": page["next_cursor"]} if page["next_cursor"] else {}
    return {"messages": page["items"], "metadata": {**metadata, **cursor}}


OPERATION = Operation(
    request=SearchRequest,
    level=Level.READ,
    syncs_first=True,
    steps=Steps[SearchRequest, JudgedSearch](
        query=find_in_registry, answer=answer_search, subject=lambda request: subject_of(request.query.text)
    ),
)
