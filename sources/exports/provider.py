"""The interface of a provider's export, and functions that the providers share. Pure."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from registry.domain import Session, format_time, preview_of
from sources.kit import drafts
from sources.kit.drafts import Draft
from sources.kit.files import digest
from sources.kit.loose_json import Record, first_text, items, mapping, objects, string

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class TreeNode(NamedTuple):
    """A message in a tree: its parent, whether it is a question, its time."""

    parent: str
    is_question: bool
    at: datetime | None = None


def path_to(nodes: Mapping[str, TreeNode], leaf: str) -> set[str]:
    path: set[str] = set()
    while leaf in nodes and leaf not in path:
        path.add(leaf)
        leaf = nodes[leaf].parent
    return path


def walk(nodes: Mapping[str, TreeNode], leaf: str) -> Iterator[tuple[str, bool]]:
    """Yield every message once, and whether it is on the path to `leaf`, or to the newest leaf if `leaf` is unknown.

    Messages follow the path. A branch that leaves it comes before the path's next question, so that alternative answers
    stay with their question.
    """
    parents = {node.parent for node in nodes.values()}
    leaves = [name for name in nodes if name not in parents] or list(nodes)
    newest = max(reversed(leaves), key=lambda name: nodes[name].at or _LONG_AGO, default="")
    path = path_to(nodes, leaf) or path_to(nodes, newest)
    children: dict[str, list[str]] = defaultdict(list)
    for name, node in nodes.items():
        children[node.parent if node.parent in nodes else ""].append(name)
    visited: set[str] = set()
    waiting = [*reversed(list(nodes)), *_path_last(children[""], path)]  # cycles have no root: their messages come last
    while waiting:
        current, follows, siblings = waiting.pop(), "", list[str]()
        while current and current not in visited:
            visited.add(current)
            yield current, current in path
            *others, follows = _path_last(children[current], path) or [""]
            siblings += others
            current = "" if follows and nodes[follows].is_question else follows
        waiting += [follows] if follows else []
        waiting += reversed(siblings)


def _path_last(names: list[str], path: set[str]) -> list[str]:
    """Sort the names on the path last, so that the stack of `walk` returns them first."""
    return sorted(names, key=lambda name: name in path)


def valid_id(value: object) -> str:
    """Return an id, or its digest if it is too long or unprintable for a key."""
    given = string(value)
    if given.isprintable() and len(given) <= 200:
        return given
    return digest(given)


def version_of(updated: datetime | None, messages: int, *rest: object) -> str:
    """Return a conversation's fingerprint, whose parts `is_known` compares; `rest`: other fields that may change."""
    return f"{format_time(updated) if updated else '-'} {messages} {digest(rest)}"


@dataclass(frozen=True, slots=True)
class Provider:
    """The functions that read a provider's export. `site`: the name of the store.

    `version`: returns a conversation's fingerprint; `read`: parses it, and counts unknown contents. `conversations`:
    converts the records of a file to conversations.
    """

    site: str
    is_conversation: Callable[[Record], bool]
    identity: Callable[[Record], str]
    version: Callable[[Record], str]
    read: Callable[[Record, Counter[str]], Session]
    conversations: Callable[[Iterator[Record | str]], Iterator[Record | str]] = iter


def is_known(seen: str | None, found: str) -> bool:
    """Return True if the found version of a conversation is the seen one or an older one."""
    if seen is None or seen == found:
        return seen is not None
    (seen_at, had, _), (found_at, has, _) = seen.split(" ")[-3:], found.split(" ")
    return "-" not in (seen_at, found_at) and found_at < seen_at and int(has) <= int(had)


def unique_ids(found: Iterable[Draft]) -> None:
    """Make the messages' native ids valid keys, and number those that repeat."""
    counts = Counter[str]()
    for draft in found:
        name = valid_id(draft.more.get("native_id"))
        counts[name] += 1
        draft.more["native_id"] = name if counts[name] == 1 else f"{name}#{counts[name]}"


def append_result(draft: Draft, result: str, status: str) -> None:
    """Add a result to a call; some calls have several."""
    tool = draft.more["tool"]
    if tool["status"] == drafts.PENDING:
        draft.set_result(result, status)
    elif result:
        tool["result"] = f"{tool['result']}\n\n{result}"
        draft.add(result)


def show_document(draft: Draft, params: object) -> None:
    """Add a call's document or script (artifacts, canvases) to the message's text."""
    text, title = first_text(params, "content", "file_text", "code", "input"), draft.parts[0]
    name = first_text(params, "title", "name")
    if text:
        draft.parts[0] = f"{title} {preview_of(name)}".strip() if name not in title else title
        draft.add(text.strip())


def citations_in(*lists: object) -> dict[str, list[dict[str, str]]]:
    """Return the web pages in lists of citations, as fields for a message's `more`."""
    pages: dict[str, str] = {}
    for entry in (entry for entries in lists for entry in items(entries)):
        for page in _pages(mapping(entry)):
            if url := string(page.get("url")):
                pages.setdefault(url, string(page.get("title")))
    return {"citations": [{"title": title, "url": url} for url, title in pages.items()]} if pages else {}


def _pages(entry: Record) -> Iterator[Record]:
    yield entry
    yield mapping(entry.get("metadata"))
    yield from objects(entry.get("items"))
