"""A conversation whose questions and answers were edited or asked for again is a tree; this puts it in order. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class TreeNode(NamedTuple):
    """One message in the tree: the one before it, whether the user asks here, and when."""

    parent: str
    is_question: bool
    at: datetime | None = None


def newest_leaf(nodes: Mapping[str, TreeNode]) -> str:
    """The end of the branch that was written last; "" of an empty tree."""
    parents = {node.parent for node in nodes.values()}
    leaves = [name for name in nodes if name not in parents] or list(nodes)
    return max(reversed(leaves), key=lambda name: nodes[name].at or _LONG_AGO, default="")


def path_to(nodes: Mapping[str, TreeNode], leaf: str) -> set[str]:
    """The messages that lead to this one, itself included: what the user saw in the end."""
    path: set[str] = set()
    while leaf in nodes and leaf not in path:
        path.add(leaf)
        leaf = nodes[leaf].parent
    return path


def in_order(nodes: Mapping[str, TreeNode], path: set[str]) -> Iterator[str]:
    """Every message once: along the path, and beside each answer on it the ones given before.

    What leaves the path comes before the next question on it, so that an answer stays with its own question.
    """
    below: dict[str, list[str]] = defaultdict(list)
    for name, node in nodes.items():
        below[node.parent if node.parent in nodes else ""].append(name)
    told: set[str] = set()
    waiting = [
        *reversed(list(nodes)),
        *_turned(below[""], path),
    ]  # cycles have no beginning: whatever is left is told last
    while waiting:
        here, follows, beside = waiting.pop(), "", list[str]()
        while here and here not in told:
            told.add(here)
            yield here
            *others, follows = _turned(below[here], path) or [""]
            beside += others
            here = "" if follows and nodes[follows].is_question else follows
        waiting += [follows] if follows else []
        waiting += reversed(beside)


def _turned(names: list[str], path: set[str]) -> list[str]:
    """What is on the path comes last, to be taken up first; otherwise the latest does."""
    return sorted(names, key=lambda name: name in path)
