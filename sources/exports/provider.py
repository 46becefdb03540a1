"""The interface of a provider's export, and functions that the providers share. Pure."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from registry.domain import Session, format_time, preview_of
from sources.base import Skipped
from sources.kit import drafts
from sources.kit.files import digest
from sources.kit.loose_json import Record, first_text, string

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def walk(parents: Mapping[str, str], times: Mapping[str, datetime | None], leaf: str) -> Iterator[tuple[str, bool]]:
    """Yield every message once, after its parent, and whether it is on the path to `leaf`, or else to the newest leaf.

    Branches that leave the path come before it continues, so that alternative answers stay with their question.
    """
    if leaf not in parents:
        leaves = parents.keys() - set(parents.values()) or parents.keys()
        newest_first = reversed([name for name in parents if name in leaves])
        leaf = max(newest_first, key=lambda name: times[name] or _LONG_AGO, default="")
    path = set[str]()
    while leaf in parents and leaf not in path:
        path.add(leaf)
        leaf = parents[leaf]
    children: dict[str, list[str]] = defaultdict(list)
    for name, parent in parents.items():
        children[parent if parent in parents else ""].append(name)
    visited = set[str]()
    waiting = [*parents, *_path_first(children[""], path)]  # cycles have no root: their messages come last
    while waiting:
        if (name := waiting.pop()) not in visited:
            visited.add(name)
            yield name, name in path
            waiting += _path_first(children[name], path)


def _path_first(names: list[str], path: set[str]) -> list[str]:
    return sorted(reversed(names), key=lambda name: name not in path)


def valid_id(value: object) -> str:
    """Return an id, or its digest if it is too long or unprintable for a key."""
    given = string(value)
    if given.isprintable() and len(given) <= 200:
        return given
    return digest(given)


@dataclass(frozen=True, slots=True)
class Provider:
    """The fields and functions by which a provider's export is read. `site`: the name of the store.

    `messages`, `ids`, `updated`: the fields of a conversation with its messages, its id, and its last change; `others`:
    fields that may change without it. `read`: parses a conversation, and counts unknown contents. `conversations`:
    converts the records of a file to conversations.
    """

    site: str
    messages: str
    ids: tuple[str, ...]
    updated: str
    read: Callable[[Record, Counter[Skipped]], Session]
    others: tuple[str, ...] = ()
    conversations: Callable[[Iterator[Record | str]], Iterator[Record | str]] = iter

    def is_conversation(self, record: Record) -> bool:
        return isinstance(record.get(self.messages), dict | list)

    def identity(self, record: Record) -> str:
        return valid_id(first_text(record, *self.ids))

    def version(self, record: Record) -> str:
        """Return a conversation's fingerprint, whose parts `is_known` compares."""
        updated = drafts.moment(record.get(self.updated))
        others = digest(tuple(record.get(name) for name in self.others))
        return f"{format_time(updated) if updated else '-'} {len(record.get(self.messages) or ())} {others}"


def is_known(seen: str | None, found: str) -> bool:
    """Return True if the found version of a conversation is the seen one or an older one."""
    if seen is None or seen == found:
        return seen is not None
    (seen_at, had, _), (found_at, has, _) = seen.split(" ")[-3:], found.split(" ")
    return "-" not in (seen_at, found_at) and found_at < seen_at and int(has) <= int(had)


def unique_ids(found: Iterable[drafts.Draft]) -> None:
    """Make the messages' native ids valid keys, and number those that repeat."""
    counts = Counter[str]()
    for draft in found:
        name = valid_id(draft.more.get("native_id"))
        counts[name] += 1
        draft.more["native_id"] = name if counts[name] == 1 else f"{name}#{counts[name]}"


def append_result(draft: drafts.Draft, result: str, status: str) -> None:
    """Add a result to a call; some calls have several."""
    tool = draft.more["tool"]
    if tool["status"] == drafts.PENDING:
        draft.set_result(result, status)
    elif result:
        tool["result"] = f"{tool['result']}\n\n{result}"
        draft.add(result)


def show_document(draft: drafts.Draft, params: object) -> None:
    """Add a call's document or script (artifacts, canvases) to the message's text."""
    text, title = first_text(params, "content", "file_text", "code", "input"), draft.parts[0]
    name = first_text(params, "title", "name")
    if text:
        draft.parts[0] = f"{title} {preview_of(name)}".strip() if name not in title else title
        draft.add(text.strip())
