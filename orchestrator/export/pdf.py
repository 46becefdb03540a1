"""Write a session as a PDF with its Korean font. Typst gets the text as data, never as markup."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from orchestrator.export.texts import FOLDED, facts_of, speaker_of, time_of, title_of
from registry.domain import preview_of
from registry.errors import InvalidRequest
from registry.extras import install_command

Node = dict[str, Any]
_LONG_WORD = re.compile(r"\S{60}(?=\S)")
_TEMPLATE = Path(__file__).with_name("session.typ")


def as_pdf(session: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the PDF; InvalidRequest if the extra `pdf` is not installed."""
    if find_spec("typst") is None or find_spec("pylopdf_fonts_ko") is None:
        raise InvalidRequest("A PDF needs the extra `pdf`.", install_command("pdf"))
    import typst
    from pylopdf_fonts_ko import sans_path

    about = {
        "title": title_of(session),
        "lang": "ko" if any("가" <= letter <= "힣" for one in messages[:20] for letter in one["text"]) else "en",
        "facts": [[label, _breakable(fact)] for label, fact in facts_of(session)],
        "messages": [_message(message) for message in messages],
    }
    made: bytes = typst.compile(
        _TEMPLATE, font_paths=[Path(sans_path()).parent], sys_inputs={"session": json.dumps(about, ensure_ascii=False)}
    )
    return made


def _message(message: Mapping[str, Any]) -> Node:
    text = message["text"]
    folded = message["role"] in FOLDED
    # a PDF cannot be unfolded
    body = [{"is": "block", "text": _breakable(preview_of(text, 400))}] if folded else nodes_of(text)
    return {"role": message["role"], "speaker": speaker_of(message), "time": time_of(message), "body": body}


def _breakable(text: str) -> str:
    return _LONG_WORD.sub("\\g<0>\N{ZERO WIDTH SPACE}", text)


@cache
def _markdown() -> Any:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable(["table"])


def nodes_of(text: str) -> list[Node]:
    """Parse a Markdown text into nodes for the template."""
    from markdown_it.tree import SyntaxTreeNode

    tokens = _markdown().parse(text)
    depth = max((inner.level for token in tokens for inner in (token, *(token.children or ()))), default=0)
    if depth > 14:  # Typst fails at 16 nested quotes
        return [{"is": "block", "text": _breakable(text)}]
    return [node for child in SyntaxTreeNode(tokens).children for node in _nodes(child)]


_KINDS = {
    "paragraph": "paragraph",
    "heading": "heading",
    "strong": "strong",
    "em": "em",
    "bullet_list": "bullets",
    "blockquote": "quote",
    "hr": "rule",
}


def _nodes(tree: Any) -> Iterator[Node]:
    inside = [node for child in tree.children for node in _nodes(child)]
    match tree.type:
        case "text" | "html_inline" | "html_block":
            yield {"is": "text", "text": _breakable(tree.content)}
        case "softbreak" | "hardbreak":
            yield {"is": "break"}
        case "code_inline":
            yield {"is": "code", "text": _breakable(tree.content)}
        case "fence" | "code_block":
            text = _breakable(tree.content.rstrip("\n"))
            yield {"is": "block", "text": text, "lang": next(iter(tree.info.split()), None)}
        case "ordered_list":
            yield {"is": "numbers", "start": int(tree.attrs.get("start", 1)), "in": inside}
        case "list_item" | "th" | "td":
            yield {"is": "part", "in": inside}
        case "table":
            cells = [cell for cell in inside if cell["is"] == "part"]
            first_row = tree.children[0].children[0]
            yield {"is": "table", "columns": len(first_row.children), "in": cells}
        case "image":
            yield {"is": "text", "text": tree.content}
        case kind if kind in _KINDS:
            yield {"is": _KINDS[kind], "in": inside}
        case _:
            yield from inside
