"""Render stored text as safe HTML. Stored text is hostile: it came from models, web pages and strangers' files.

Three defences: HTML in the text is escaped; the renderer's output passes a list of allowed elements; and the page's
headers forbid scripts and remote content.
"""

import re
from base64 import b64decode
from collections.abc import Iterator, Sequence
from html import escape, unescape
from itertools import count, islice
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

from registry.domain import image_type

MAX_HIGHLIGHTED_CHARS = 20_000
"""Longer code is shown plain: some lexers take very long on hostile input."""

_STORED = "stored-image"
_STORED_IMAGE = re.compile(rf'<span class="{_STORED}">(\d+) ([^<]*)</span>')
_INLINE_IMAGE = re.compile(r"!\[([^\[\]\n]{0,200})\]\(data:(image/(?:png|jpeg|gif|webp));base64,([A-Za-z0-9+/=\s]+)\)")
_TEX = re.compile(
    r"\$\$[^$]+\$\$|\\\[.{1,1000}?\\\]|\\\(.{1,1000}?\\\)"
    r"|\$[^\s$](?:[^$\n]*[^\s$])?\$(?!\w)",
    re.DOTALL,
)
_TASK = re.compile(r"\[([ xX])\]\s")
_ADDRESS = re.compile(r"https?://[^\s<>\"'`]*[^\s<>\"'`.,;:!?)\]}]")

_FORMATTER = HtmlFormatter(nowrap=True)
_CLASSES = {name for name in STANDARD_TYPES.values() if name}
_TAGS = {
    *("p", "br", "hr", "h3", "h4", "h5", "h6", "strong", "em", "s", "blockquote", "ul", "ol", "li", "a"),
    *("pre", "code", "span", "div", "table", "thead", "tbody", "tr", "th", "td"),
}
_CLEANER = nh3.Cleaner(
    tags=_TAGS,
    clean_content_tags={"script", "style"},
    attributes={"*": set(), "a": {"href"}, "ol": {"start"}, "pre": {"tabindex"}, "table": {"tabindex"}},
    allowed_classes={
        "span": {*_CLASSES, "written-in", _STORED},
        "div": {"code"},
        "code": {"tex", "tex-block"},
        **{cell: {"left", "center", "right"} for cell in ("th", "td")},
    },
    url_schemes={"http", "https", "mailto"},
    url_relative="deny",
    link_rel="noopener noreferrer nofollow",
    strip_comments=True,
)


def html_of(text: str, images: str = "") -> str:
    """Render Markdown as HTML without scripts, remote content or styles.

    `images`: the address below which the text's own pictures are served by number (`with_images_by_number`).
    """
    html = _CLEANER.clean(_MARKDOWN.render(text))
    return _STORED_IMAGE.sub(lambda found: _picture(images, found[1], unescape(found[2])), html)


def _picture(images: str, number: str, name: str) -> str:
    if not images:
        return f"[{escape(name)}]"
    return f'<img src="{escape(images)}/{number}" alt="{escape(name)}" loading="lazy">'


def with_images_by_number(text: str) -> str:
    """Replace embedded images (data URIs) by numbers."""
    if "base64," not in text:
        return text
    numbers = count()
    return _INLINE_IMAGE.sub(lambda found: f"![{found[1]}]({_STORED}:{next(numbers)})", text)


def image_in(text: str, number: int) -> tuple[str, bytes] | None:
    """Return the media type and bytes of an embedded image; None if there is none or its content has another type."""
    found = next(islice(_INLINE_IMAGE.finditer(text), number, None), None)
    if found is None:
        return None
    try:
        content = b64decode(found[3])
    except ValueError:
        return None
    return (found[2], content) if image_type(content) == found[2] else None


def code_html(code: str, language: str) -> str:
    return _CLEANER.clean(_block(code, language))


def _block(code: str, language: str) -> str:
    inside = highlight(code, _lexer(code, language), _FORMATTER)
    # A block that scrolls must be reachable by keyboard.
    shown = _LABELS.get(language.lower(), language if _NAME.fullmatch(language) else "")
    name = f'<span class="written-in">{escape(shown)}</span>' if shown else ""
    return f'<div class="code">{name}<pre tabindex="0"><code>{inside}</code></pre></div>\n'


_NAME = re.compile(r"[\w+#.-]{1,30}")
_LABELS = {"mermaid": "Mermaid", "tex": "TeX", "latex": "TeX", "math": "TeX", "text": "", "diff": ""}
"""Labels of code blocks in other than programming languages; "": no label."""


def _lexer(code: str, language: str) -> Any:
    if len(code) > MAX_HIGHLIGHTED_CHARS:
        return TextLexer(stripnl=False)
    try:
        return get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return TextLexer(stripnl=False)


def _fence(_renderer: object, tokens: Sequence[Token], index: int, _options: object, _env: object) -> str:
    language = tokens[index].info.strip().partition(" ")[0]
    return _block(tokens[index].content, language)


def _image(_renderer: object, tokens: Sequence[Token], index: int, _options: object, _env: object) -> str:
    """Render a remote image as a link: loading it would tell its server who reads this and when."""
    address = str(tokens[index].attrs.get("src", ""))
    name = tokens[index].content or address
    kind, _, number = address.partition(":")
    if kind == _STORED and number.isdecimal():
        return f'<span class="{_STORED}">{number} {escape(tokens[index].content or "image")}</span>'
    return f'<a href="{escape(address)}">[{escape(name)}]</a>'


def _lower_headings(state: Any) -> None:
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + 2, 6)}"


def _let_tables_scroll(state: Any) -> None:
    """Let a table have the focus: the keyboard scrolls one that is too wide."""
    for token in state.tokens:
        if token.type == "table_open":
            token.attrs["tabindex"] = "0"


def _mark_alignment(state: Any) -> None:
    """Mark a cell's alignment by a class; style attributes are removed."""
    for token in state.tokens:
        if token.type in ("th_open", "td_open") and (style := str(token.attrs.pop("style", ""))):
            token.attrs["class"] = style.rpartition(":")[2]


def _add_checkboxes(state: Any) -> None:
    """Render `- [x] done` with a ticked box."""
    for item, _paragraph, token in zip(state.tokens, state.tokens[1:], state.tokens[2:], strict=False):
        first = token.children[0] if item.type == "list_item_open" and token.children else None
        if first and first.type == "text" and (task := _TASK.match(first.content)):
            first.content = ("☐ " if task[1] == " " else "☑ ") + first.content[task.end() :]


def _link_addresses(state: Any) -> None:
    for block in state.tokens:
        if block.type == "inline" and "://" in block.content:
            block.children = list(_with_links(block.children or []))


def _with_links(tokens: Sequence[Token]) -> Iterator[Token]:
    inside = 0
    for token in tokens:
        inside += token.nesting if token.type in ("link_open", "link_close") else 0
        if token.type != "text" or inside:
            yield token
            continue
        at = 0
        for found in _ADDRESS.finditer(token.content):
            yield _text(token.content[at : found.start()])
            yield Token("link_open", "a", 1, attrs={"href": found[0]})
            yield _text(found[0])
            yield Token("link_close", "a", -1)
            at = found.end()
        yield _text(token.content[at:])


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


def _keep_tex(state: Any, silent: bool) -> bool:
    """Keep TeX between dollars or backslashed brackets verbatim."""
    if state.src[state.pos] not in "$\\" or not (found := _TEX.match(state.src, state.pos)):
        return False
    if not silent:
        state.push("tex", "code", 0).content = found[0]
    state.pos = found.end()
    return True


def _tex(_renderer: object, tokens: Sequence[Token], index: int, _options: object, _env: object) -> str:
    source = tokens[index].content
    kind = "tex-block" if source.startswith(("$$", "\\[")) else "tex"
    return f'<code class="{kind}">{escape(source)}</code>'


def _renderer() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
    for rule in (_lower_headings, _let_tables_scroll, _mark_alignment, _add_checkboxes, _link_addresses):
        markdown.core.ruler.push(rule.__name__, rule)
    markdown.inline.ruler.before("escape", "tex", _keep_tex)
    markdown.add_render_rule("tex", _tex)
    markdown.add_render_rule("fence", _fence)
    markdown.add_render_rule("code_block", _fence)
    markdown.add_render_rule("image", _image)
    return markdown


_MARKDOWN = _renderer()
