"""Test how pages show stored text, which is hostile."""

from __future__ import annotations

import time
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from backoffice.pages.viewer.markdown import code_html, html_of, image_in, with_images_by_number

ATTACKS = [
    "<script>alert(1)</script>",
    "<ScRiPt src=//evil.example/x.js></sCrIpT>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<style>@import 'http://evil.example';</style>",
    "<link rel=stylesheet href=http://evil.example>",
    "<iframe src=http://evil.example></iframe>",
    "<form action=http://evil.example><button>x</button></form>",
    '<div id="main" class="notice" style="position:fixed" hx-get="/" hx-trigger="load" data-hx-get="/">x</div>',
    "<a href='javascript:alert(1)'>x</a>",
    "<base href=http://evil.example><meta http-equiv=refresh content='0;url=http://evil.example'>",
    "[x](javascript:alert(1))",
    "[x](JaVa\tScRiPt:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](vbscript:msgbox(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](file:///etc/passwd)",
    "[x](//evil.example)",
    "[x](/bo/channels)",
    "[x](#main)",
    "![x](http://evil.example/pixel.png)",
    "![x](data:image/svg+xml,<svg/onload=alert(1)>)",
    '![x" onerror="alert(1)](http://evil.example)',
    "[x](http://evil.example 'a\" onmouseover=\"alert(1)')",
    '<http://evil.example/"onmouseover=alert(1)>',
    '```html" onload="alert(1)\n<script>alert(1)</script>\n```',
    "    <script>alert(1)</script>",
    "| <img src=x onerror=alert(1)> |\n|---|\n| <script>alert(1)</script> |",
    "# <script>alert(1)</script> {#main}",
    "<!-- --><script>alert(1)</script>",
    "<math><mtext></p><style><img src=x onerror=alert(1)></style></mtext></math>",
    "\u202e<script>\u202c\u0000alert(1)</script>",
    "<details open ontoggle=alert(1)>",
    '![x" onerror="alert(1)](stored-image:0)',
    "$<script>alert(1)</script>$ $$<img src=x onerror=alert(1)>$$ \\(<script>\\)",
    'https://evil.example/<script> https://evil.example/"onmouseover=alert(1)',
    '<span class="stored-image">0 x</span>',
]
ALLOWED = {
    *("p", "br", "hr", "h3", "h4", "h5", "h6", "strong", "em", "s", "blockquote", "ul", "ol", "li", "a"),
    *("pre", "code", "span", "div", "table", "thead", "tbody", "tr", "th", "td"),
}
OURS = {"written-in", "tex", "tex-block", "right", "center"}
HARMLESS = {"href", "rel", "class", "start", "tabindex"}


class Inspector(HTMLParser):
    """Collect the elements and attributes that are not allowed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.bad: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ALLOWED:
            self.bad.append(tag)
        for name, value in attrs:
            if name not in HARMLESS or (name == "href" and not str(value).startswith(("http:", "https:", "mailto:"))):
                self.bad.append(f"{tag} {name}={value}")
            if name == "class" and len(str(value)) > 4 and value not in OURS:
                self.bad.append(f"{tag} class={value}")


def dangers(html: str) -> list[str]:
    return Inspector(html).bad


def test_nothing_in_a_message_runs_loads_or_escapes() -> None:
    for attack in ATTACKS:
        for text in (attack, f"- {attack}", f"> {attack}", f"**{attack}**", f"a\n\n{attack}\n\nb"):
            assert dangers(html_of(text)) == []
        for language in ("", "html", "diff", attack):
            assert dangers(code_html(attack, language)) == []


FRAGMENTS = st.sampled_from(
    [*ATTACKS, "<", ">", "`", "```", "[", "](", ")", "!", "\n", "\n\n", "    ", "|", "*", "&#", ";", '"', "'"]
)


@given(st.lists(st.one_of(FRAGMENTS, st.text(max_size=5)), max_size=12).map("".join))
def test_no_combination_of_attacks_gets_through(text: str) -> None:
    assert dangers(html_of(text)) == []


def test_an_image_is_a_link_that_needs_a_click() -> None:
    html = html_of("![a cat](https://example.org/cat.png)")
    assert "<img" not in html
    assert '<a href="https://example.org/cat.png" rel="noopener noreferrer nofollow">[a cat]</a>' in html


def test_markdown_is_rendered() -> None:
    html = html_of("# Title\n\nfirst\nsecond **bold** `code` ~~gone~~\n\n3. three\n\n| a |\n|---|\n| b |")
    assert "<h3>Title</h3>" in html, "below the headings of the page"
    assert "first<br>" in html, "line breaks are kept"
    assert '<table tabindex="0">' in html, "the keyboard scrolls a wide one"
    for part in ("<strong>bold</strong>", "<code>code</code>", "<s>gone</s>", '<ol start="3">', "<td>b</td>"):
        assert part in html


def test_code_and_diffs_are_highlighted() -> None:
    assert '<span class="k">def</span>' in html_of("```python\ndef f(): pass\n```")
    diff = html_of("```diff\n-old\n+new\n```")
    assert '<span class="gd">-old</span>' in diff
    assert '<span class="gi">+new</span>' in diff
    assert "print" in html_of("```no-such-language\nprint\n```")


def test_a_text_made_to_be_slow_is_rendered_quickly() -> None:
    cases: list[str] = [
        "a*" * 12_000,
        "[" * 5_000,
        "> " * 1_500 + "x",
        "\\(" * 5_000,
        "$a" * 12_000,
        "https://" * 5_000,
        "```js\n'" + "\\" * 25_000 + "\n```",
    ]
    for text in cases:
        start = time.process_time()
        html_of(text)
        assert time.process_time() - start < 1, text[:10]


PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAA"
    "AABJRU5ErkJggg=="
)


def test_an_image_in_the_text_is_served_from_our_own_address() -> None:
    text = with_images_by_number(f'![a "cat" onerror=alert(1)]({PIXEL}) and ![b]({PIXEL})')
    html = html_of(text, "/messages/conv_1/images")
    assert '<img src="/messages/conv_1/images/0" alt="a &quot;cat&quot; onerror=alert(1)" loading="lazy">' in html
    assert '<img src="/messages/conv_1/images/1" alt="b"' in html
    assert "[b]" in html_of(text)


def test_an_image_is_served_only_with_its_real_type() -> None:
    assert image_in(f"![a]({PIXEL})", 0) is not None
    assert image_in(f"![a]({PIXEL})", 1) is None
    assert image_in("![a](data:image/png;base64,PHNjcmlwdD4=)", 0) is None
    assert image_in("![a](data:image/svg+xml;base64,PHN2Zz4=)", 0) is None


def test_tables_keep_their_alignment_tasks_their_boxes_and_addresses_are_links() -> None:
    html = html_of("| a | b |\n|:-:|--:|\n| 1 | 2 |\n\n- [x] done\n- [ ] open\n\nSee https://example.org/a_b_c.")
    assert '<td class="center">1</td>' in html
    assert '<td class="right">2</td>' in html
    assert "☑ done" in html
    assert "☐ open" in html
    assert (
        '<a href="https://example.org/a_b_c" rel="noopener noreferrer nofollow">https://example.org/a_b_c</a>.' in html
    )
    assert html_of("`https://example.org`").count("<a ") == 0


def test_diagrams_and_formulas_are_shown_as_source_and_marked() -> None:
    html = html_of("$x_1 * y_2 * z$ costs $5 or $6 of $HOME\n\n$$\n\\frac{a_b}{c_d}\n$$\n\n```mermaid\ngraph TD\n```")
    assert '<code class="tex">$x_1 * y_2 * z$</code> costs $5 or $6 of $HOME' in html
    assert '<code class="tex-block">$$\n\\frac{a_b}{c_d}\n$$</code>' in html
    assert '<span class="written-in">Mermaid</span>' in html
