"""A later message that takes an earlier one back ("use sessions instead of JWT"), where words alone can tell."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from heapq import nlargest
from typing import NamedTuple

from orchestrator.answer.finding.relevance import Judged
from registry.search.retrieval import SearchResult, Wording
from registry.storage.conversations.messages import MessageRow, by_numbers
from registry.storage.database import ReadTransaction
from registry.text.analysis.analyzer import analyze
from registry.text.ranking.scores import Candidate, weight_of

SHARED = 2
"""So many significant tokens of the earlier message stand in the one that takes it back."""
_IN_ENGLISH = re.compile(
    r"""\b(?:instead(?:\ of)?|actually|after\ all|no\ longer|not\ anymore|any\ ?more|changed?\ (?:my|our)\ minds?
        |scrap(?:ped)?(?:\ that)?|ditch(?:ed|ing)?|abandon(?:ed|ing)?
        |(?:kick|rip|throw|thrown|threw|take|took|pull)(?:ed|ped|ing)?\ (?:\w+\ )?out|g[eo]t(?:ting)?\ rid\ of
        |(?:go|going|went)\ back\ to|back\ to\ \w+\ (?:then|again)
        |switch(?:ed|ing)?\ (?:back\ |over\ )?(?:to|from)|move[ds]?\ (?:away|off|over|back)?\ ?(?:from|to)
        |swap(?:ped)?\ (?:\w+\ )?(?:for|out)|migrat(?:e|ed|ing)\ (?:\w+\ )?(?:from|to|off)
        |revert(?:ed|ing)?|roll(?:ed)?\ back|postpone[sd]?|push(?:ed)?\ back
        |drop(?:ped|ping)?\ (?:the|that)|forget\ (?:the|that|about)|rather\ than|reconsider(?:ed)?|replac(?:e|ed|ing)
        |called?\ (?:it\ )?off|cancel(?:led|ed|ling)?|undo|turn(?:s|ed)\ out|wrong\ about|you\ were\ right|correction
        )\b""",
    re.VERBOSE,
)
_IN_KOREAN = re.compile(
    r"""대신|말고|바꾸|바꿨|바꿔|바꿀|변경하|취소|철회|되돌|번복|안\ ?하기로|않기로|없던
      | 돌아가자|돌아가기로|돌아갔|다시\ .{0,20}?(?:로|으로)\ ?돌[아려렸]
      | 결국|접고|접었|버리고|버렸|걷어내
      | 옮기|옮겼|옮긴|미루|미뤘|미룬|전환하|전환했|갈아타|갈아탔
      | 다시\ 생각|생각해\ ?보니|사실은|알고\ ?보니|그만두|포기|접기로|물렀""",
    re.VERBOSE,
)


_SENTENCES = re.compile(r"(?<=[.!?。])\s+|\n")


class Said(NamedTuple):
    """A message found: its id, its place in time, its text, the significant tokens of the request it holds, and the
    turn that it belongs to."""

    id: str
    place: tuple[str, int]
    text: str
    tokens: Collection[str]
    turn: tuple[int, int] | None = None


def sentences_that_take_back(text: str) -> list[str]:
    """The sentences of a text that speak of something else than before."""
    if not takes_back(text):
        return []
    return [sentence for sentence in _SENTENCES.split(text) if takes_back(sentence)]


def takes_back(text: str) -> bool:
    """Whether a text speaks of something else than before.

    One pattern for both languages that ignores case would try all that it knows at every letter.
    """
    return bool(_IN_ENGLISH.search(text.lower()) or _IN_KOREAN.search(text))


def taken_back(messages: Sequence[Said]) -> dict[str, str]:
    """For the id of a message the id of the later one that takes it back; the latest such one."""
    found: dict[str, str] = {}
    ordered = sorted(messages, key=lambda said: said.place)
    held = [frozenset(said.tokens) for said in ordered]
    for at, later in enumerate(ordered):
        about = [
            earlier
            for earlier, tokens in zip(ordered[:at], held, strict=False)
            if len(tokens & held[at]) >= SHARED and (earlier.turn is None or earlier.turn != later.turn)
        ]
        if about and takes_back(later.text):
            found.update((earlier.id, later.id) for earlier in about)
    return found


HITS = 3
"""So many of the best messages are asked whether they still hold."""
SHARE = 0.3
"""So much of a wording must stand in both messages."""
SHARE_OF_ALL = 0.2
"""Of a request that is mostly words nobody used: the other message holds all of it that the hit does."""
LATER = 12
"""So many of the later messages that share most are read."""
SPOKEN = ("user", "assistant")


def second_thoughts(
    tx: ReadTransaction, found: SearchResult, best: Sequence[Judged], among: Collection[int]
) -> dict[str, MessageRow]:
    """For the ids of the best messages, later ones in these channels that take them back."""
    if not (among and best):
        return {}
    alike = [_alike(wording, among) for wording in found.wordings]
    hits = [one.ranked.candidate for one in best[:HITS]]
    sharing = {hit.number: shared for hit in hits if (shared := _sharing_most(found, hit, alike))}
    rows = by_numbers(tx, list({*sharing}.union(*sharing.values())))
    known = {row.number: row for row in rows}
    taken: dict[str, MessageRow] = {}
    for earlier, shared in ((known[number], shared) for number, shared in sharing.items() if number in known):
        later = (row for row in reversed(rows) if row.number in shared and _is_later(row, earlier))
        if latest := next((row for row in later if _speaks_of(row, shared[row.number][1])), None):
            taken[earlier.id] = latest
    return taken


Shared = tuple[float, frozenset[str]]
"""How much of a wording two messages share, and by which tokens."""


def _sharing_most(found: SearchResult, hit: Candidate, alike: Sequence[Mapping[int, list[int]]]) -> dict[int, Shared]:
    """Of the messages that share enough of a wording with a hit those that share most, of equal ones the newest, by
    their numbers; `alike`: those of each wording by what they hold."""
    groups: list[tuple[Shared, list[int]]] = []
    for wording, by_held in zip(found.wordings, alike, strict=True):
        if not (own := wording.candidates.get(hit.number)):
            continue
        for held, numbers in by_held.items():
            both = _shared(wording, held & own.held)
            if both[0] >= (SHARE_OF_ALL if held & own.held == own.held else SHARE):
                groups.append((both, numbers))
    sharing: dict[int, Shared] = {}
    for both, numbers in groups:  # of each as many as are read, and the hit itself
        newest = nlargest(LATER + 1, numbers)
        sharing.update((one, both) for one in newest if both[0] >= sharing.get(one, both)[0])
    sharing.pop(hit.number, None)
    most = nlargest(LATER, sharing, key=lambda number: (sharing[number][0], number))
    return {number: sharing[number] for number in most}


def _alike(wording: Wording, among: Collection[int]) -> dict[int, list[int]]:
    """The messages of these channels by what they hold: thousands hold the same few sets of terms."""
    alike: dict[int, list[int]] = defaultdict(list)
    for number, channel_id, *_, held in wording.candidates.values():
        if channel_id in among:
            alike[held].append(number)
    return alike


def _shared(wording: Wording, held: int) -> Shared:
    tokens = frozenset(term.token for place, term in enumerate(wording.terms) if held >> place & 1)
    return weight_of(held, wording.weights) / wording.full, tokens


def _is_later(row: MessageRow, earlier: MessageRow) -> bool:
    """What answers a question does not take it back."""
    is_answer = (row.channel_number, row.turn) == (earlier.channel_number, earlier.turn)
    return row.role in SPOKEN and not is_answer and (row.timestamp, row.number) > (earlier.timestamp, earlier.number)


def _speaks_of(row: MessageRow, tokens: frozenset[str]) -> bool:
    return any(not tokens.isdisjoint(analyze(sentence)) for sentence in sentences_that_take_back(row.text))
