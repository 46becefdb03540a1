"""Test answers about changed decisions: python -m benchmarks.retrieval.changes FILE [--meaning] [--misses] [--named]

A file has `name`, `now`, `zone`, `sessions` like the other sets, and `cases`: {`id`, `kind`, `lang`, `old_session`,
`new_session`, `old_messages`, `new_messages`, `ask_neutral`, `ask_now`, `ask_past`, `also`}. In a case of kind
`control` the later conversation changes nothing.

- delivered: the answer contains a message with the current statement
- first: the current statement is in `newer`, or before the old one
- named: the old statement, if shown, has `replaced_on`
- wrong: a control whose valid statement has `replaced_on`
- past: a question about the past is answered from the old conversation, with the old statement
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.retrieval.product import Answer, Product, product_with
from benchmarks.retrieval.question_sets import QuestionSet, read_set
from benchmarks.setup.figures import table

Case = Mapping[str, Any]


@dataclass(frozen=True)
class CaseAnswer:
    """The answer to a question of a case; `way` tells whether other wordings were sent."""

    case: Case
    about: str
    way: str
    answer: Answer
    shown: Sequence[str]
    """The set's messages in the order of the answer, `newer` first."""
    replaced: frozenset[str]
    """The messages with `replaced_on`."""
    session: str

    @property
    def is_delivered(self) -> bool:
        """Return True if the answer contains a message with the current statement."""
        return bool(set(self.case["new_messages"]) & set(self.shown))

    @property
    def is_first(self) -> bool:
        """Return True if the current statement is shown before the old one."""
        stated = {*self.case["new_messages"], *self.case["old_messages"]}
        return next((one in self.case["new_messages"] for one in self.shown if one in stated), False)

    @property
    def names_old(self) -> bool | None:
        """Return True if the old statement is shown as replaced; None if it is not shown."""
        old = set(self.case["old_messages"]) & set(self.shown)
        return bool(old & self.replaced) if old else None

    @property
    def is_past(self) -> bool:
        """Return True if the old statement is shown first, and the answer is from the old conversation."""
        stated = {*self.case["new_messages"], *self.case["old_messages"]}
        met = next((one in self.case["old_messages"] for one in self.shown if one in stated), False)
        return met and self.session == self.case["old_session"]

    @property
    def is_right(self) -> bool:
        """Return True if the answer is right for the question's kind."""
        if self.case["kind"] == "control":
            return set(self.case["old_messages"]) & set(self.shown) != set() and not self.names_old
        return self.is_past if self.about == "past" else self.is_first


async def ask_cases(product: Product, cases: Iterable[Case], *, is_named: bool = False) -> AsyncIterator[CaseAnswer]:
    """Ask every question of every case, with and without other wordings; if `is_named`, in the old conversation."""
    channels = {session: channel for channel, session in product.sessions.items()}
    ids = {stored: message for message, stored in product.stored_ids().items()}
    for case in cases:
        for about in ("neutral", "now", "past"):
            for way, also in (("one wording", []), ("also", case.get("also") or [])):
                text = case.get(f"ask_{about}")
                if not text or (way == "also" and not also):
                    continue
                asked: dict[str, Any] = {"query": {"text": text, **({"also": also} if also else {})}}
                if is_named:
                    asked["channel"] = channels[case["old_session"]]
                answer = await product.ask("extract", asked)
                marked = [one["id"] for one in _messages(answer.result) if "replaced_on" in one]
                yield CaseAnswer(
                    case,
                    about,
                    way,
                    answer,
                    [*_quoted(product, case, answer.result.get("newer") or {}), *answer.messages],
                    frozenset(ids[one] for one in marked if one in ids),
                    product.sessions.get(answer.result.get("channel", ""), ""),
                )


def _quoted(product: Product, case: Case, newer: Mapping[str, Any]) -> list[str]:
    """Return the messages with the current statement that `newer` names, or quotes in its line."""
    ids, line = product.stored_ids(), "".join(newer.get("line", "").split())
    texts = {one: "".join(product.texts[one].split()) for one in case["new_messages"]}
    pieces = {one: [text[at : at + 20] for at in range(0, max(len(text) - 19, 1), 5)] for one, text in texts.items()}
    return [
        one
        for one in case["new_messages"]
        if ids[one] == newer.get("message_id") or (line and any(piece in line for piece in pieces[one]))
    ]


def _messages(node: Any) -> list[Mapping[str, Any]]:
    parts = node if isinstance(node, list) else list(node.values()) if isinstance(node, dict) else []
    found = [one for part in parts for one in _messages(part)]
    return [node, *found] if isinstance(node, dict) and "id" in node else found


def result_table(asked: Sequence[CaseAnswer]) -> str:
    """Return the table: a row for each kind of question, language and way."""
    rows = []
    for lang in ("en", "ko"):
        for way in ("one wording", "also"):
            here = [one for one in asked if one.case["lang"] == lang and one.way == way]
            changed = [one for one in here if one.case["kind"] != "control"]
            for about in ("neutral", "now"):
                some = [one for one in changed if one.about == about]
                rows.append((f"{lang}, {about}, {way}", *_changed(some), *_control(here, about), "-", _tokens(some)))
            past = [one for one in changed if one.about == "past"]
            right = _share(one.is_past for one in past)
            rows.append((f"{lang}, past, {way}", "-", "-", "-", "-", "-", right, _tokens(past)))
    kinds = dict.fromkeys(one.case["kind"] for one in asked if one.case["kind"] != "control")
    for kind in kinds:
        some = [one for one in asked if one.case["kind"] == kind and one.about != "past"]
        past = [one for one in asked if one.case["kind"] == kind and one.about == "past"]
        rows.append((kind, *_changed(some), "-", "-", _share(one.is_past for one in past), _tokens(some)))
    changed = [one for one in asked if one.case["kind"] != "control"]
    now, past = ([one for one in changed if (one.about == "past") == is_past] for is_past in (False, True))
    rows.append(("all", *_changed(now), *_control(asked), _share(one.is_past for one in past), _tokens(asked)))
    heads = ("asked", "delivered", "first", "named", "wrong", "controls with newer", "past", "tokens")
    return table(heads, rows)


def _changed(asked: Sequence[CaseAnswer]) -> tuple[str, str, str]:
    named = [one.names_old for one in asked if one.names_old is not None]
    return _share(one.is_delivered for one in asked), _share(one.is_first for one in asked), _share(named)


def _control(asked: Sequence[CaseAnswer], about: str = "") -> tuple[str, str]:
    some = [one for one in asked if one.case["kind"] == "control" and about in ("", one.about)]
    return _share(bool(one.names_old) for one in some), _share("newer" in one.answer.result for one in some)


def _share(hits: Iterable[bool]) -> str:
    listed = list(hits)
    return f"{sum(listed) / len(listed):.2f} of {len(listed)}" if listed else "-"


def _tokens(asked: Sequence[CaseAnswer]) -> str:
    return str(round(median([len(one.answer.text) for one in asked]) / 4)) if asked else "-"


def _miss(one: CaseAnswer) -> str:
    case, newer = one.case, one.answer.result.get("newer") or {}
    return (
        f"{case['id']} {case['kind']} {one.about} {one.way}: {case[f'ask_{one.about}']}\n"
        f"    old {case['old_session']} {case['old_messages']}, new {case['new_session']} {case['new_messages']}\n"
        f"    from {one.session} ({one.answer.result.get('confidence')}), shown {list(one.shown)[:8]}\n"
        f"    newer {newer.get('line', '')[:100]}; replaced {sorted(one.replaced)}"
    )


async def ask_file(given: Mapping[str, Any], *, by_meaning: bool, is_named: bool = False) -> list[CaseAnswer]:
    """Ask the cases of one file in a new registry."""
    held: QuestionSet = read_set({**given, "questions": []})
    async with product_with(held, by_meaning=by_meaning) as product:
        return [one async for one in ask_cases(product, given["cases"], is_named=is_named)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retrieval.changes", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--misses", action="store_true", help="print each question with a wrong answer")
    parser.add_argument("--meaning", action="store_true", help="also search by meaning, with the configured model")
    parser.add_argument(
        "--named", action="store_true", help="name the channel of the old conversation in each question"
    )
    options = parser.parse_args()
    given = json.loads(options.file.read_text(encoding="utf-8"))
    asked = asyncio.run(ask_file(given, by_meaning=options.meaning, is_named=options.named))
    print(result_table(asked))
    if options.misses:
        print(*[_miss(one) for one in asked if not one.is_right], sep="\n")


if __name__ == "__main__":
    main()
