"""Shared functions of the readers of both providers' exports. Pure."""

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
    """A message in the tree: its parent, whether it is a question, its time."""

    parent: str
    is_question: bool
    at: datetime | None = None


def path_to(nodes: Mapping[str, TreeNode], leaf: str) -> set[str]:
    """Return the messages from the root to a leaf: what the user saw in the end."""
    path: set[str] = set()
    while leaf in nodes and leaf not in path:
        path.add(leaf)
        leaf = nodes[leaf].parent
    return path


def walk(nodes: Mapping[str, TreeNode], leaf: str) -> Iterator[tuple[str, bool]]:
    """Yield every message once, and whether it is on the path to `leaf`, or to the newest leaf without it.

    They come along the path, and next to each answer on it the answers given before. A branch that leaves the path
    comes before the next question on it, so an answer stays with its question.
    """
    parents = {node.parent for node in nodes.values()}
    leaves = [name for name in nodes if name not in parents] or list(nodes)
    newest = max(reversed(leaves), key=lambda name: nodes[name].at or _LONG_AGO, default="")
    path = path_to(nodes, leaf) or path_to(nodes, newest)
    below: dict[str, list[str]] = defaultdict(list)
    for name, node in nodes.items():
        below[node.parent if node.parent in nodes else ""].append(name)
    done: set[str] = set()
    waiting = [
        *reversed(list(nodes)),
        *_path_last(below[""], path),
    ]  # cycles have no beginning: whatever is left comes last
    while waiting:
        here, follows, beside = waiting.pop(), "", list[str]()
        while here and here not in done:
            done.add(here)
            yield here, here in path
            *others, follows = _path_last(below[here], path) or [""]
            beside += others
            here = "" if follows and nodes[follows].is_question else follows
        waiting += [follows] if follows else []
        waiting += reversed(beside)


def _path_last(names: list[str], path: set[str]) -> list[str]:
    """Sort what is on the path last: the stack of `walk` takes it first."""
    return sorted(names, key=lambda name: name in path)


def name_of(value: object) -> str:
    """Return an id as it is; its digest if it is too long or unprintable for a key."""
    given = string(value)
    if given.isprintable() and len(given) <= 200:
        return given
    return digest(given)


def version_of(updated: datetime | None, messages: int, *rest: object) -> str:
    """Return a conversation's fingerprint, of which `is_known` compares the parts; `rest`: what else may change."""
    return f"{format_time(updated) if updated else '-'} {messages} {digest(rest)}"


@dataclass(frozen=True, slots=True)
class Provider:
    """The functions that read a provider's export. `site`: names the account.

    `version`: the state of a conversation; `read`: given a count of what is not understood. `conversations`: puts the
    records of a file together.
    """

    site: str
    is_conversation: Callable[[Record], bool]
    identity: Callable[[Record], str]
    version: Callable[[Record], str]
    read: Callable[[Record, Counter[str]], Session]
    conversations: Callable[[Iterator[Record | str]], Iterator[Record | str]] = iter


def is_known(seen: str | None, found: str) -> bool:
    """Return True if an export has nothing new of a conversation: it is the same or an older one."""
    if seen is None or seen == found:
        return seen is not None
    (seen_at, had, _), (found_at, has, _) = seen.split(" ")[-3:], found.split(" ")
    return "-" not in (seen_at, found_at) and found_at < seen_at and int(has) <= int(had)


def unique_ids(found: Iterable[Draft]) -> None:
    """Make the messages' native ids valid keys, and number those that repeat."""
    counts = Counter[str]()
    for draft in found:
        name = name_of(draft.more.get("native_id"))
        counts[name] += 1
        draft.more["native_id"] = name if counts[name] == 1 else f"{name}#{counts[name]}"


def more_result(draft: Draft, result: str, status: str) -> None:
    """Add a result to a call; some calls have several."""
    tool = draft.more["tool"]
    if tool["status"] == drafts.PENDING:
        draft.answer(result, status)
    elif result:
        tool["result"] = f"{tool['result']}\n\n{result}"
        draft.add(result)


def show_document(draft: Draft, params: object) -> None:
    """Add the document or script that a call writes or runs (artifacts, canvases) to the message's text."""
    text, title = first_text(params, "content", "file_text", "code", "input"), draft.parts[0]
    name = first_text(params, "title", "name")
    if text:
        draft.parts[0] = f"{title} {preview_of(name)}".strip() if name not in title else title
        draft.add(text.strip())


def cited(*lists: object) -> dict[str, list[dict[str, str]]]:
    """Return the pages that a text refers to, for a message's `more`."""
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
