"""Order the tree of a conversation with edited questions and regenerated answers. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class TreeNode(NamedTuple):
    """One message in the tree: its parent, whether it is a question, its time."""

    parent: str
    is_question: bool
    at: datetime | None = None


def newest_leaf(nodes: Mapping[str, TreeNode]) -> str:
    """Return the leaf of the newest branch; "" of an empty tree."""
    parents = {node.parent for node in nodes.values()}
    leaves = [name for name in nodes if name not in parents] or list(nodes)
    return max(reversed(leaves), key=lambda name: nodes[name].at or _LONG_AGO, default="")


def path_to(nodes: Mapping[str, TreeNode], leaf: str) -> set[str]:
    """Return the messages from the root to a leaf: what the user saw in the end."""
    path: set[str] = set()
    while leaf in nodes and leaf not in path:
        path.add(leaf)
        leaf = nodes[leaf].parent
    return path


def in_order(nodes: Mapping[str, TreeNode], path: set[str]) -> Iterator[str]:
    """Yield every message once: along the path, and next to each answer on it the answers given before.

    A branch that leaves the path comes before the next question on it, so an answer stays with its question.
    """
    below: dict[str, list[str]] = defaultdict(list)
    for name, node in nodes.items():
        below[node.parent if node.parent in nodes else ""].append(name)
    done: set[str] = set()
    waiting = [
        *reversed(list(nodes)),
        *_turned(below[""], path),
    ]  # cycles have no beginning: whatever is left comes last
    while waiting:
        here, follows, beside = waiting.pop(), "", list[str]()
        while here and here not in done:
            done.add(here)
            yield here
            *others, follows = _turned(below[here], path) or [""]
            beside += others
            here = "" if follows and nodes[follows].is_question else follows
        waiting += [follows] if follows else []
        waiting += reversed(beside)


def _turned(names: list[str], path: set[str]) -> list[str]:
    """Sort what is on the path last: the stack of `in_order` takes it first."""
    return sorted(names, key=lambda name: name in path)
