"""hint: quote a past conversation that clearly answers a prompt, or warns against a command or edit."""

from collections import defaultdict
from typing import Any

from pydantic import Field

from orchestrator.answer.delivery import message_dict
from orchestrator.answer.digests.hint_text import hint_of, warning_line
from orchestrator.answer.finding.before_act import MAX_CURE_DISTANCE, Act, find_warning
from orchestrator.answer.finding.choosing import choose
from orchestrator.answer.finding.lookup import Lookup
from orchestrator.answer.finding.newer import find_later_statement
from orchestrator.operations.search_sessions import numbers_of
from orchestrator.requests.shapes import ExtractQuery, QueryShape, Request
from orchestrator.state import GeneralState, Operation, Run, Steps, as_read
from registry.access import Level
from registry.domain import Role, new_id
from registry.project import Project
from registry.search.retrieval import SearchResult
from registry.search.scope import Scope
from registry.search.sessions import read_messages_around
from registry.storage.conversations.messages import by_numbers, superseded_among
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.records.extract_results import HINT, has_hint, latest_result, useless_hints
from registry.text.request.syntax import Search
from registry.text.request.understanding import ParsedRequest

NO_HINT: dict[str, Any] = {"hint": "", "channel": None, "told_of": []}
MIN_EVIDENCE = 8.0  # least evidence for a hint on a prompt; see `evidence_in`
SAME_TASK = 0.9  # share of the best conversation's matching words from which another is about the same task
DISMISSED = "a hint from it was rated not useful in this project"


class HintQuery(QueryShape):
    """A prompt, or an act of a project's chat, and that chat."""

    text: str = Field(min_length=1, max_length=4000, description="what the user asks; of an act the command or file")
    session_id: str | None = Field(None, description="the chat itself, which is left out")
    act: Act | None = Field(None, description="the command or edit that is about to be done")
    folder: str | None = Field(None, description="where it is asked; before an act only its project's chats count")


class HintRequest(Request):
    operation = "hint"
    is_optional = True
    query: HintQuery

    def summary(self) -> dict[str, Any]:
        """Summarise the request without the contents of an edit."""
        return self.model_dump(
            mode="json", exclude_none=True, exclude={"metadata": True, "source": True, "query": {"act"}}
        )


def evidence_in(found: SearchResult) -> float:
    """Return the weight of the words that match in the best conversation, times its relative lead over the next other.

    The share of matched words is not used, since a prompt contains many new words. Up to three further conversations
    with nearly the same words are not others: the task was asked again there. With more it is a routine. A lead over
    few conversations says little: over one (the registry has no other) it counts as 1/2, over two as 2/3.
    """
    if not found.channels:
        return 0.0
    best, *further = found.channels[:5]
    weight = found.matched_weight(best.number)
    least = SAME_TASK * weight
    others = [*(one for one in further[:3] if found.matched_weight(one.number) < least), *further[3:]]
    lead = 1 - others[0].score / best.score if others else 1.0
    count = found.corpus.channels
    return min(lead, count / (count + 1)) * weight


def _project(query: HintQuery) -> str | None:
    return Project.from_path(query.folder).path if query.folder else None


def read_hint(tx: ReadTransaction, run: Run, request: HintRequest) -> dict[str, Any]:
    """Return the hint with the channel and messages that it quotes; "" without clear evidence."""
    query = request.query
    excluded = numbers_of(tx, query.session_id)
    return _before_act(tx, run, query, query.act, excluded) if query.act else _with_prompt(tx, run, query, excluded)


def _with_prompt(tx: ReadTransaction, run: Run, query: HintQuery, excluded: list[int]) -> dict[str, Any]:
    recorder = run.recorder
    lookup = _lookup(tx, run, query.text, Scope(exclude_numbers=excluded))
    found = lookup.find()
    evidence = evidence_in(found)
    recorder.explain(
        by="words of the prompt that only one conversation contains", evidence=round(evidence, 1), least=MIN_EVIDENCE
    )
    choice = choose(lookup, found, None) if evidence >= MIN_EVIDENCE else None
    if choice is None:
        recorder.explain(reason="no past conversation clearly answers this")
        return NO_HINT
    channel = choice.channel
    recorder.channel = channel.name
    if query.session_id and latest_result(tx, channel.name, HINT, query.session_id):
        recorder.explain(reason="this chat had a hint from that conversation already")
        return NO_HINT
    if useless_hints(tx, channel.name, _project(query)):
        recorder.explain(reason=DISMISSED)
        return NO_HINT
    hits = [one.ranked.candidate for one in choice.hits]
    superseded = superseded_among(tx, [hit.number for hit in hits])
    best = next((hit for hit in hits if hit.number not in superseded), None)
    if best is None:
        recorder.explain(reason="the user undid the turns that answer this")
        return NO_HINT
    positions = {channel.number: {best.turn, best.seq}}
    rows = read_messages_around(tx, positions, MAX_CURE_DISTANCE, MAX_CURE_DISTANCE)[channel.number]
    around = list(map(message_dict, by_numbers(tx, [row.number for row in rows if not row.superseded])))
    if all(one["role"] == Role.USER for one in around):
        recorder.explain(reason="nobody answered there")
        return NO_HINT
    scores = {one.ranked.candidate.number: one.score for one in choice.verdicts}
    later = find_later_statement(lookup, choice)
    text, quoted_ids = hint_of(channel, around, scores, query.text, later.newer if later.replaced_on else None)
    return {"hint": text, "channel": channel.name, "told_of": quoted_ids}


def _before_act(tx: ReadTransaction, run: Run, query: HintQuery, act: Act, excluded: list[int]) -> dict[str, Any]:
    recorder = run.recorder
    scope = Scope(project=query.folder, exclude_numbers=excluded, roles=(Role.USER, Role.TOOL))
    found = _lookup(tx, run, act.subject[:1000], scope).find()  # characters; more do not improve the results
    positions: dict[int, set[int]] = defaultdict(set)
    for one in found.ranked[:15]:
        candidate = one.candidate
        positions[candidate.channel_id].update(range(candidate.seq, candidate.seq + MAX_CURE_DISTANCE + 1))
    around = read_messages_around(tx, {number: sorted(seqs) for number, seqs in positions.items()})
    rows = by_numbers(tx, [row.number for some in around.values() for row in some])
    messages = sorted(map(message_dict, rows), key=lambda one: (one["timestamp"], one["number"]))
    recorder.explain(by="failed commands and commented edits of the project's chats", candidates=len(messages))
    warning = find_warning(act, messages)
    if warning is None:
        recorder.explain(reason="no past chat says anything against this")
        return NO_HINT
    channel, ids = warning.message["channel"], [warning.message["id"]]
    recorder.channel = channel
    if query.session_id and has_hint(tx, channel, query.session_id, ids):
        recorder.explain(reason="this chat got this warning already")
        return NO_HINT
    if ids in useless_hints(tx, channel, _project(query)):
        recorder.explain(reason=DISMISSED)
        return NO_HINT
    return {"hint": warning_line(warning), "channel": channel, "told_of": ids}


def _lookup(tx: ReadTransaction, run: Run, text: str, scope: Scope) -> Lookup[ExtractQuery]:
    # words of a prompt are never parsed as a time or a project
    return Lookup(tx, run, ExtractQuery(text=text), ParsedRequest(Search(words=text)), scope)


def write_hint(tx: WriteTransaction, run: Run, request: HintRequest, state: GeneralState) -> dict[str, Any]:
    """Record the hint, so that this chat gets no second one from the same conversation."""
    hint: dict[str, Any] = state["result"]
    if not (hint["hint"] and run.is_recorded):
        return hint
    reader = request.query.session_id  # hints are recorded for a chat instead of a client
    about = {"client": reader, "source": request.source, "folder": _project(request.query)}
    run.recorder.record_delivery(tx, new_id("ext"), HINT, about, channel=hint["channel"], items=hint["told_of"])
    return hint


OPERATION = Operation(
    request=HintRequest,
    level=Level.READ,
    labels={"act": ("before this", "이 작업 전에")},
    steps=Steps[HintRequest, dict[str, Any]](
        query=read_hint,
        answer=as_read,
        write=write_hint,
        subject=lambda request: "" if request.query.act else request.query.text,  # acts are matched by exact words
    ),
)
