"""Stored text as HTML that can do no harm. Stored text is hostile: it came from models, web pages and strangers' files.

Three walls: HTML in the text is shown as text; what leaves the renderer goes through a list of allowed elements;
and the page's own headers allow no script and nothing from elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.lexers.special import TextLexer
from pygments.token import STANDARD_TYPES
from pygments.util import ClassNotFound

LONGEST_HIGHLIGHTED = 20_000
"""Characters of code; more is shown plain, for some rules of highlighting take ever longer on what is made to hurt."""

_FORMATTER = HtmlFormatter(nowrap=True)
_CLASSES = {name for name in STANDARD_TYPES.values() if name}
_TAGS = {
    *("p", "br", "hr", "h3", "h4", "h5", "h6", "strong", "em", "s", "blockquote", "ul", "ol", "li", "a"),
    *("pre", "code", "span", "div", "table", "thead", "tbody", "tr", "th", "td"),
}
_CLEANER = nh3.Cleaner(
    tags=_TAGS,
    clean_content_tags={"script", "style"},
    attributes={"*": set(), "a": {"href"}, "ol": {"start"}, "pre": {"tabindex"}},
    allowed_classes={"span": _CLASSES, "div": {"code"}},
    url_schemes={"http", "https", "mailto"},
    url_relative="deny",
    link_rel="noopener noreferrer nofollow",
    strip_comments=True,
)


def html_of(text: str) -> str:
    """Markdown as HTML in which nothing runs, loads, or leaves its place."""
    return _CLEANER.clean(_MARKDOWN.render(text))


def code_html(code: str, language: str) -> str:
    """A block of code, highlighted if the language is known."""
    return _CLEANER.clean(_block(code, language))


def _block(code: str, language: str) -> str:
    inside = highlight(code, _lexer(code, language), _FORMATTER)
    # A block that scrolls must be reachable by keyboard.
    return f'<div class="code"><pre tabindex="0"><code>{inside}</code></pre></div>\n'


def _lexer(code: str, language: str) -> Any:
    if len(code) > LONGEST_HIGHLIGHTED:
        return TextLexer(stripnl=False)
    try:
        return get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return TextLexer(stripnl=False)


def _fence(_renderer: object, tokens: Sequence[Token], index: int, _options: object, _env: object) -> str:
    language = tokens[index].info.strip().partition(" ")[0]
    return _block(tokens[index].content, language)


def _image(_renderer: object, tokens: Sequence[Token], index: int, _options: object, _env: object) -> str:
    """A picture is never loaded: it would tell its server that, when and from where this is read."""
    address = str(tokens[index].attrs.get("src", ""))
    name = tokens[index].content or address
    return f'<a href="{escape(address)}">[{escape(name)}]</a>'


def _lower_headings(state: Any) -> None:
    """The page has headings of its own above the text's."""
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + 2, 6)}"


def _renderer() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
    markdown.core.ruler.push("lower_headings", _lower_headings)
    markdown.add_render_rule("fence", _fence)
    markdown.add_render_rule("code_block", _fence)
    markdown.add_render_rule("image", _image)
    return markdown


_MARKDOWN = _renderer()
