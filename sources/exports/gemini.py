"""Parse conversations of the Gemini app in an export of Google's "My Activity" (Takeout, as JSON). Pure.

The export is a list of activities, the newest first. Since 2026 a prompt has a link to its conversation; an older
prompt becomes a separate conversation.
"""

import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser

from registry.domain import Role, Session
from sources.base import Skipped
from sources.exports.provider import Provider, unique_ids, valid_id
from sources.kit.drafts import Conversation
from sources.kit.loose_json import Record, items, objects, string, strings, text_at

_PROMPTED = "Prompted "  # before a prompt in English exports
_LINK = re.compile(r"gemini\.google\.com/(?:u/\d+/)?app/(\w+)")


def conversations(records: Iterator[Record | str]) -> Iterator[Record | str]:
    """Group prompts by their conversation; yield other records, such as feedback, unchanged."""
    grouped: dict[str, Record] = {}
    for record in records:
        if isinstance(record, str) or not _is_prompt(record):
            yield record
        else:
            links = (_LINK.search(string(each.get("url"))) for each in objects(record.get("details")))
            link = next(filter(None, links), None)
            key, time = link[1] if link else valid_id(record["time"]), string(record["time"])
            answers = (text_at(part, "html") for part in items(record.get("safeHtmlItem")))
            text = "\n\n".join(filter(None, map(text_of, answers)))
            group = grouped.setdefault(key, {"id": key, "updated": time, "prompts": []})
            group["updated"] = max(group["updated"], time)
            group["prompts"].append({**record, "answer": text})
    yield from grouped.values()


def _is_prompt(record: Record) -> bool:
    is_gemini = any(name in string(record.get("header")) for name in ("Gemini", "Bard"))
    has_text = string(record.get("title")).startswith(_PROMPTED) or bool(record.get("safeHtmlItem"))
    return is_gemini and "time" in record and has_text


def read(record: Record, skips: Counter[Skipped]) -> Session:
    parser = Conversation(GEMINI_EXPORT.identity(record), skips=skips)
    for prompt in sorted(objects(record.get("prompts")), key=lambda prompt: string(prompt.get("time"))):
        parser.begin(prompt.get("time"), prompt.get("time"))
        typed = string(prompt.get("title")).removeprefix(_PROMPTED)
        parser.say(Role.USER, typed, attachments=strings(prompt.get("attachedFiles")))
        parser.say(Role.ASSISTANT, string(prompt.get("answer")), ":answer")
    unique_ids(parser.drafts)
    return parser.build()


def text_of(html: str) -> str:
    """Return the text of an answer, with lists, code and paragraphs as in Markdown."""
    parser = _Text()
    parser.feed(html)
    parser.close()
    return re.sub(r"[ \t]*\n(?:[ \t]*\n)+", "\n\n", "".join(parser.pieces)).strip()


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self._is_code = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._is_code = self._is_code or tag == "pre"
        breaks = {"pre": "\n\n```\n", "li": "\n- ", "br": "\n", "tr": "\n", "td": " ", "th": " "}
        self.pieces.append(breaks.get(tag, "\n\n" if re.fullmatch("p|div|ul|ol|table|blockquote|h[1-6]", tag) else ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "pre":
            self._is_code = False
            self.pieces.append("\n```\n\n")
        elif re.fullmatch("p|ul|ol|table|h[1-6]", tag):
            self.pieces.append("\n\n")

    def handle_data(self, data: str) -> None:
        self.pieces.append(data if self._is_code else re.sub(r"\s+", " ", data))


GEMINI_EXPORT = Provider("gemini.google.com", "prompts", ("id",), "updated", read, conversations=conversations)
