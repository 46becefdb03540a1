"""extract: read the part of one conversation that answers a request, and record the delivery."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from orchestrator.answer.composing import as_delivered, compose
from orchestrator.answer.delivery import tokens_for, tokens_in
from orchestrator.answer.digests.summary import SHORT_TOKENS, digest_of, summary_of
from orchestrator.answer.finding.choosing import Choice, choose, nothing_similar_error
from orchestrator.answer.finding.elsewhere import empty_scope_error, format_span, no_match_error
from orchestrator.answer.finding.extraction import (
    Extraction,
    NothingFound,
    read_answer,
    read_last_messages,
    read_turns,
)
from orchestrator.answer.finding.lookup import (
    AT_ANY_TIME,
    Lookup,
    describe_request,
    exclude_asking_chat,
    parse_in_scope,
)
from orchestrator.answer.finding.relevance import confidence_in, describe_search, describe_verdicts, judge_messages
from orchestrator.answer.selection import with_gaps
from orchestrator.outside.writing import SUMMARY, transcript, written_by
from orchestrator.requests.calls import project_of, source_of, utc_offset_minutes
from orchestrator.requests.field_types import ChannelName, SourceName, Timestamp
from orchestrator.requests.shapes import ExtractQuery, ExtractRequest, Meta
from orchestrator.state import AttemptOutcome, GeneralState, Operation, Run, Steps
from orchestrator.tool import Caller, Effect, Outcome, ProjectName, Question, Tool, ToolArguments, rename_arguments
from registry.access import Level
from registry.domain import parse_time, storable
from registry.errors import InvalidRequest, NotFound
from registry.search.scope import Scope
from registry.storage.conversations.channels import ChannelRow, get_channel
from registry.storage.conversations.messages import seqs_of
from registry.storage.conversations.references import existing_channel
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.paging import decode_cursor
from registry.storage.records.extract_results import get_result
from registry.text.ranking.confidence import Confidence
from registry.text.request.query import has_no_subject


def read(tx: ReadTransaction, run: Run, request: ExtractRequest) -> Extraction | NothingFound:
    """Read the answer from the channel (given, or best match), and say which part of the request to drop next."""
    request = request.for_selection()
    query = request.query
    ranking = _ranking_position(query.cursor)
    if ranking:
        return _next_page(tx, run, request, ranking)
    row = existing_channel(tx, request.channel) if request.channel else None
    number, project = row.number if row else None, request.project if row is None else None
    given = Scope(number, project=project, roles=query.roles, from_=query.from_, to=query.to)
    parsed, scope = parse_in_scope(tx, query.text or "", query.utc_offset_minutes, given)
    scope = exclude_asking_chat(tx, run, request.source, query.text or "", scope)
    lookup = Lookup(tx, run, query, parsed, scope)
    relaxation = "" if query.cursor else lookup.relaxation(has_channel=row is not None)
    if not relaxation and row is None and parsed.search.when_words and parsed.has_words:
        relaxation = AT_ANY_TIME  # a conversation of another time is a guess, and better than nothing
    try:
        data = _search(lookup.relaxed(run.attempt), row, request.folder)
    except NotFound as not_found:
        if project is not None:
            only = f"{not_found.details}; only the project {project} was searched, not all"
            not_found = NotFound(not_found.message, only)
        if not relaxation:
            raise not_found from None
        error = empty_scope_error(lookup) if relaxation == AT_ANY_TIME and not run.attempt else not_found
        return NothingFound(error, "" if run.attempt else relaxation)
    if run.attempt == AT_ANY_TIME:
        return _note_other_time(lookup, data)
    is_enough = row is not None or not parsed.is_continuation or _is_sure(data)
    holds_as_is = relaxation == AT_ANY_TIME and not data.relaxed and is_enough
    return replace(data, relaxation="" if run.attempt or holds_as_is else relaxation)


def _note_other_time(lookup: Lookup[ExtractQuery], data: Extraction) -> Extraction:
    span = format_span(lookup.scope, lookup.query.utc_offset_minutes)
    note = f"Nothing of it is from {span}, so that time was ignored."
    relaxed = " and ".join(filter(None, ["time", data.relaxed]))
    # in a request to continue, the time was only mentioned in passing
    confidence = data.confidence if lookup.parsed.is_continuation else Confidence.LOW
    lookup.run.recorder.explain(understood=describe_request(lookup.parsed, data.result, relaxed=relaxed))
    return replace(data, relaxed=relaxed, confidence=confidence, note=note)


def _search(lookup: Lookup[ExtractQuery], row: ChannelRow | None, folder: str | None) -> Extraction:
    query, parsed, recorder = lookup.query, lookup.parsed, lookup.run.recorder
    if query.cursor or not (parsed.has_words or (query.also and not parsed.is_narrowed)):
        return read_last_messages(lookup, row)
    found = lookup.find()
    recorder.explain(
        channel=row.name if row else None, **describe_search(found), understood=describe_request(parsed, found)
    )
    choice = Choice(found, judge_messages(found), row, found) if row else choose(lookup, found, folder)
    if choice is None or (row and not found.is_supported(row.number, is_narrowed=parsed.is_narrowed)):
        if not parsed.has_words:
            return read_last_messages(lookup, row)
        asks_for_all = parsed.is_continuation or has_no_subject(parsed.search.words, is_last_session=True)
        if not parsed.is_narrowed and not (row and asks_for_all):
            raise nothing_similar_error(lookup, found)
        return replace(read_last_messages(lookup, row, relaxed="words"), confidence=Confidence.LOW)
    scores = [score for _, score in choice.candidates]
    confidence = confidence_in(choice.found, choice.channel.number, scores, parsed)
    if parsed.is_about_recent and confidence is Confidence.LOW:
        return read_last_messages(lookup, row)
    recorder.explain(channel=choice.channel.name)
    recorder.channel = choice.channel.name
    if choice.hits:
        return read_answer(lookup, choice, choice.hits, confidence)
    recorder.explain(**describe_verdicts(choice.verdicts))
    # the title matches, but no message
    ended = read_last_messages(lookup, choice.channel, relaxed="words", is_chosen=bool(choice.candidates))
    return ended if parsed.is_narrowed else replace(ended, confidence=confidence)


def pick_best(run: Run, request: ExtractRequest, earlier: AttemptOutcome, relaxed: AttemptOutcome) -> AttemptOutcome:
    first, second = earlier.data, relaxed.data
    if relaxed.error or earlier.error:
        chosen = earlier if relaxed.error else relaxed
    elif isinstance(first, Extraction) and first.parsed.is_continuation and (request.channel or first.relaxed):
        chosen = relaxed
    else:
        chosen = relaxed if isinstance(second, Extraction) and _is_sure(second) else earlier
    if chosen is earlier and isinstance(first, Extraction):
        _record_attempt(run, first)
    return chosen


def _record_attempt(run: Run, data: Extraction) -> None:
    """Record the original attempt, overwriting the record of the relaxed one."""
    run.recorder.channel = data.channel.name
    run.recorder.explain(
        channel=data.channel.name,
        confidence=data.confidence.value if data.confidence else None,
        understood=describe_request(data.parsed, data.result, relaxed=data.relaxed),
    )
    if data.result:
        run.recorder.explain(**describe_search(data.result))


def _is_sure(data: Extraction) -> bool:
    """Return True if the confidence is not low even without the filters of the request."""
    if data.result is None:
        return False
    scores = [one.score for one in data.result.channels]
    return confidence_in(data.result, data.channel.number, scores) is not Confidence.LOW


def _ranking_position(cursor: str | None) -> dict[str, Any] | None:
    """Return the position in a stored ranking, if the cursor names one."""
    for shape in ({"x": str, "o": int}, {"x": str, "o": int, "h": int}):
        with suppress(InvalidRequest):  # it is another kind of cursor, or invalid, which is reported later
            return decode_cursor(cursor, **shape) if cursor else None
    return None


def _next_page(tx: ReadTransaction, run: Run, request: ExtractRequest, position: dict[str, Any]) -> Extraction:
    saved = get_result(tx, storable(position["x"]))
    if "turns" not in saved.metadata or position["o"] < 0:
        raise InvalidRequest("The cursor is not valid.", "cursor: allowed: the next_cursor of the last answer")
    row = get_channel(tx, saved.channel)
    run.recorder.channel = row.name
    turns = saved.metadata["turns"][position["o"] :]
    run.recorder.explain(channel=row.name, by=f"the ranking kept with {saved.id}", candidates=len(turns))
    parsed, _ = parse_in_scope(tx, request.query.text or "", request.query.utc_offset_minutes, Scope())
    hits = {number: at for at, number in enumerate(saved.metadata["hits"])}
    ranked = read_turns(tx, row.number, turns[: 2 * request.query.limit], request.query)
    given = {number for number, at in hits.items() if at < position.get("h", 0)}
    ranked[:1] = [[message for message in turn if message["number"] not in given] for turn in ranked[:1]]
    rest = [[message for message in turn if message["id"] not in saved.items] for turn in ranked]
    return Extraction(
        channel=row,
        parsed=parsed,
        ranked=[turn for turn in rest if turn],
        turns=turns,
        hits=hits,
        seqs=seqs_of(tx, row.number, request.query.roles),
        position=position,
    )


async def compose_answer(run: Run, request: ExtractRequest, data: Extraction | NothingFound) -> dict[str, Any]:
    """Compose the answer within the requested size and the client's limit. Raises NotFound."""
    if isinstance(data, NothingFound):
        raise data.error
    request = request.for_selection()
    result, tokens = compose(request, data, run.limit)
    if data.verdicts:
        run.recorder.explain(**describe_verdicts(data.verdicts))
    if not result["messages"]:
        raise no_match_error(request.query.text)
    run.recorder.explain(turns=len(data.turns), messages=len(result["messages"]), max_tokens=tokens)
    return result


async def shorten(run: Run, request: ExtractRequest, state: GeneralState) -> GeneralState:
    """Return a digest or a summary of the messages within the requested size."""
    result, data = state["result"], state["data"]
    tokens = tokens_for(run.limit, request.query.max_tokens or SHORT_TOKENS)
    run.recorder.explain(messages=len(result["messages"]), max_tokens=tokens)
    if request.query.mode == "digest":
        return {"result": _as_digest(result, data, tokens)}
    summary, by = await written_by(run.writer, run.recorder, SUMMARY, transcript(result["messages"]), tokens)
    if not summary:
        tools = [message for message in data.recent if message.get("tool")]
        summary = summary_of([*result["messages"], *tools], tokens)
    run.recorder.explain(by=by)
    return {"result": {**result, "summary": summary, "summary_by": by}}


def _as_digest(result: dict[str, Any], data: Extraction, tokens: int) -> dict[str, Any]:
    """Shorten the messages; count those that still do not fit as left out."""
    short = digest_of(result["messages"], tokens)
    metadata = {**result["metadata"], "filtered_count": len(short)}
    shown_ids = {message["id"] for message in short}
    if cut := [message for message in result["messages"] if message["id"] not in shown_ids]:
        before = metadata.get("left_out", {"messages": 0, "tokens": 0})
        metadata["left_out"] = {
            "messages": before["messages"] + len(cut),
            "tokens": before["tokens"] + sum(tokens_in(message["text"]) for message in cut),
        }
    return {**result, "messages": with_gaps(short, data.seqs), "metadata": metadata}


def write(tx: WriteTransaction, run: Run, request: ExtractRequest, state: GeneralState) -> dict[str, Any]:
    """Record which messages were delivered to which client: ids, never texts."""
    found: dict[str, Any] = state["result"]
    ids = [message["id"] for message in found["messages"]]
    about = {
        "source": request.source,
        "client": run.recorder.client,
        "query": request.query.model_dump(mode="json", by_alias=True, exclude_none=True),
        **found.get("ranking", {}),
    }
    result_id = found["extract_id"]
    if run.is_recorded:
        delivery = {"channel": found["channel"], "items": ids, "result_type": request.query.mode}
        run.recorder.record_delivery(tx, result_id, "extract_result", about, **delivery)
    answer = as_delivered(found)
    texts = [message["text"] for message in answer["messages"]]
    if "summary" in found:  # it replaces its messages; their ids are stored with the result
        answer["messages"], texts = [], [found["summary"]]
    run.recorder.explain(extract_result=result_id, delivered=ids, tokens=sum(map(tokens_in, texts)))
    if not run.is_recorded and "ranking" in found:  # the cursor needs the stored ranking
        answer["metadata"] = {name: part for name, part in answer["metadata"].items() if name != "next_cursor"}
    return answer


# With one wording the right conversation is first for 0.72 of the strangers' questions, for 0.93 if an AI follows this.
ASK_AGAIN = "Only one wording was sent: ask again with 3-4 others in query.also."
_QUERY_NAMES = [field.alias or name for name, field in ExtractQuery.model_fields.items()]


class ExtractArguments(ToolArguments):
    channel: ChannelName | None = None
    project: ProjectName = "all"
    query: ExtractQuery | None = None
    meta: dict[str, Any] | None = None
    source: SourceName | None = None
    timestamp: Timestamp | None = None

    @classmethod
    def names(cls) -> Collection[str]:
        return {*cls.model_fields, *_QUERY_NAMES}

    @classmethod
    def reshape(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Move query fields from the top level into `query`, and `channel` and `project` out of it."""
        query = given.pop("query", {})
        if not isinstance(query, Mapping | str | list):
            return {**given, "query": query}
        inside = query if isinstance(query, Mapping) else {"text": query}
        inside = rename_arguments(inside, {*_QUERY_NAMES, "channel", "project"})
        if isinstance(inside.get("text"), Mapping):
            inside |= inside.pop("text")
        if isinstance(texts := inside.get("text"), list) and texts:
            inside = {"also": texts[1:], **inside, "text": texts[0]}
        given = {name: inside.pop(name) for name in ("channel", "project") if name in inside} | given
        merged = {name: given.pop(name) for name in _QUERY_NAMES if name in given} | inside
        merged = {name: value for name, value in merged.items() if value != [] and str(value).strip()}
        return {**given, "query": merged} if merged else given

    def request(self, caller: Caller) -> ExtractRequest:
        meta = Meta.model_validate(self.meta or {})
        query = self.query or ExtractQuery()
        if query.utc_offset_minutes is None:
            query = query.model_copy(update={"utc_offset_minutes": utc_offset_minutes()})
        return ExtractRequest(
            channel=self.channel,
            query=query,
            source=source_of(meta.source or self.source, caller.client, self.channel),
            metadata=meta,
            timestamp=self.timestamp,
            project=project_of(self.project, caller.project),
            folder=caller.project,
        )

    async def result(self, outcome: Outcome, caller: Caller) -> dict[str, Any]:
        is_choice = outcome.get("confidence") == Confidence.LOW and "candidates" in outcome
        if is_choice and not (self.query and self.query.also):
            outcome = {**outcome, "note": " ".join(filter(None, [outcome.get("note"), ASK_AGAIN]))}
        return extract_result(outcome)

    def question(self, result: Mapping[str, Any]) -> Question | None:
        """Ask the user to choose between conversations with about equal scores."""
        others = [one for one in result.get("candidates", ()) if one.get("score", 0) >= MIN_EQUAL_SHARE]
        first = {**result, "when": result["metadata"]["last_activity"]}
        named = {_label(one): {"channel": one["channel"]} for one in (first, *others)}
        return Question("Which conversation do you mean?", named) if len(named) > 1 else None


MIN_EQUAL_SHARE = 0.9  # share of the best score from which a candidate is offered in the question


def _label(one: Mapping[str, Any]) -> str:
    day = parse_time(one["when"]).astimezone().date()
    return f"{one.get('title', one['channel'])} ({one.get('project', 'General')}, {one.get('source', '')}, {day})"


def extract_result(outcome: Outcome) -> dict[str, Any]:
    """Put the conversation's facts before its messages: some clients show only the beginning of an answer."""
    counts = outcome["metadata"]
    more = ("next_cursor", "understood", "newer_messages", "left_out", "syncing", "local_copy")
    metadata = {
        "total_messages": counts["total_count"],
        "filtered_messages": counts["filtered_count"],
        "last_activity": counts["last_activity"],
    } | {name: counts[name] for name in more if counts.get(name)}
    return {
        "channel": outcome["channel"],
        **{name: outcome[name] for name in _BEFORE if outcome.get(name)},
        "messages": outcome["messages"],
        "metadata": metadata,
        **{name: outcome[name] for name in _AFTER if outcome.get(name)},
    }


_BEFORE = ("newer", "title", "source", "project", "confidence", "note", "stands_at")
_AFTER = ("first", "last", "summary", "summary_by", "candidates")

EXTRACT_TOOL = Tool(
    name="extract",
    title="Find and continue a past conversation",
    description="Find a PAST or OTHER conversation: the user's own words as query.text and always 3-4 other wordings "
    "as query.also. Use it when the user wants to continue, recall or reuse earlier work, also of another "
    'AI client ("continue the fibonacci conversation", "지난번 인증 대화 이어서"); times too ("last Tuesday"). Not '
    "for the current chat, which you already have. You get its relevant part, quoted. Without a channel "
    "the best one of all projects is found. newer is a later statement that may replace this one. Confidence low: "
    "choose from candidates, or ask. NOT_FOUND means that nothing relevant is kept: do not guess. full_length: "
    "shortened; fetch_session_by_id with message_id has all.",
    effect=Effect.READS,
    arguments=ExtractArguments,
    is_history=False,
    returns=["quoted", "channel", *_BEFORE, "messages", "metadata", *_AFTER],
    example={"query": {"text": "make login faster", "also": ["speed up sign-in", "cache sessions", "로그인 속도"]}},
    quotes=True,
)
OPERATION = Operation(
    request=ExtractRequest,
    alias="retrieve",
    level=Level.READ,
    syncs_first=True,
    steps=Steps[ExtractRequest, Extraction | NothingFound](
        query=read,
        answer=compose_answer,
        relax=lambda data: data.relaxation,
        choose=pick_best,
        shorten=shorten,
        write=write,
        subject=lambda request: "" if request.query.cursor else request.query.text or "",
    ),
    tools=[EXTRACT_TOOL],
)
