"""The text in a rich-text editor's saved state: Lexical and ProseMirror (formats/cursor-ide.md, 5). Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sources.kit.jsonl import items, mapping, string
from sources.kit.loose_json import read_json

_BLOCKS = frozenset(
    (
        *("paragraph", "heading", "quote", "blockquote", "listitem", "listItem", "list_item"),
        *("code", "codeBlock", "code_block"),
    )
)
_BREAKS = frozenset({"linebreak", "hardBreak", "hard_break"})


def plain_text(state: Any) -> str:
    """The text of an editor's state, given as its JSON or as the value; unknown nodes count for what they hold."""
    value = mapping(read_json(state) if isinstance(state, str) else state)
    return "".join(_pieces(value.get("root", value))).strip()


def _pieces(root: Any) -> Iterator[str]:
    waiting = [root]
    while waiting:  # no recursion: a damaged state may be nested deeper than Python's stack
        node = waiting.pop()
        if isinstance(node, str):
            yield node
            continue
        node = mapping(node)
        kind = string(node.get("type"))
        yield "\n" if kind in _BREAKS else _leaf(node)
        if kind in _BLOCKS:
            waiting.append("\n")
        waiting.extend(reversed(items(node.get("children")) or items(node.get("content"))))


def _leaf(node: dict[str, Any]) -> str:
    attributes = mapping(node.get("attrs"))
    named = (node.get("text"), node.get("mentionName"), attributes.get("label"), attributes.get("mentionName"))
    return next(filter(None, map(string, named)), "")
