"""Test exports of a session: Markdown, JSON, HTML, and PDF."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.export.texts import ExportFormat, closed, passages
from orchestrator.export.texts import export as exported

SESSION: dict[str, Any] = {
    "session_id": "5e55",
    "channel": "c",
    "source": "cursor",
    "title": 'Basket: "prices" <b>',
    "nickname": None,
    "tags": ["auth", "설계"],
    "project_path": "/home/ann/shop",
    "project_name": "shop",
    "message_count": 5,
    "created_at": "2026-01-01T12:00:00.000Z",
    "updated_at": "2026-01-01T12:09:00.000Z",
    "first_message_preview": "How?",
    "summary": None,
}
CODE = "Like this:\n\n```python\nif a < b:\n    print('*')\n```"


def export(to: ExportFormat, session: dict[str, Any], messages: list[dict[str, Any]]) -> str:
    return exported(to, session, messages).decode()


def message(role: str, text: str, minute: int = 0) -> dict[str, Any]:
    at = f"2026-01-01T12:{minute:02}:00.000Z"
    return {"id": "conv_1", "role": role, "text": text, "timestamp": at, "sequence": minute + 1}


DIALOGUE = [
    message("user", "How?"),
    message("tool", "<script>x</script>\n```\nout\n```", 1),
    message("assistant", CODE, 2),
    message("user", "And then?", 3),
    message("assistant", "```sh\nmake", 4),
]


def test_markdown_has_a_header_and_a_section_for_each_turn() -> None:
    page = export("markdown", SESSION, DIALOGUE)
    assert page.startswith(
        '---\nsession_id: "5e55"\nchannel: "c"\nsource: "cursor"\ntitle: "Basket: \\"prices\\" <b>"\n'
    )
    assert 'tags: ["auth", "설계"]\n' in page
    assert "nickname" not in page
    assert re.findall(r"(?m)^## .*", page) == ["## 1 · 2026-01-01 12:00 UTC", "## 2 · 2026-01-01 12:03 UTC"]


@pytest.mark.parametrize("to", ["markdown", "html"])
def test_attachments_are_named(to: ExportFormat) -> None:
    attached = {"attachments": [{"name": "shot.png"}, "a.pdf"]}
    page = export(to, SESSION, [{**message("user", "```sh\nmake"), **attached}])
    assert "(attached: shot.png, a.pdf)" in page
    assert "make\n\n(attached" not in page, "the attachment is outside the code block"


def test_an_undone_message_is_marked() -> None:
    dialogue = [{**each, "superseded": True} for each in DIALOGUE[:3]] + DIALOGUE[3:]
    undone = "(undone or replaced in its client)"
    page = export("markdown", SESSION, dialogue)
    assert page.count(undone) == 3
    assert f"**User {undone}**" in page
    assert f"<summary>Tool {undone}: " in page
    assert export("html", SESSION, dialogue).count(undone) == 3


def test_code_stays_as_it_is_and_ends_with_its_message() -> None:
    page = export("markdown", SESSION, [*DIALOGUE, message("user", "Thanks", 5)])
    assert CODE in page
    assert "```sh\nmake\n```\n\n## 3" in page


def test_tool_output_is_folded_in_a_fence_that_it_cannot_close() -> None:
    page = export("markdown", SESSION, DIALOGUE)
    assert "<summary>Tool: &lt;script&gt;x&lt;/script&gt; ``` out ```</summary>" in page
    assert "\n````text\n<script>x</script>\n```\nout\n```\n````\n\n</details>" in page


def test_json_is_the_session_and_its_messages() -> None:
    assert json.loads(export("json", SESSION, DIALOGUE)) == {"session": SESSION, "messages": DIALOGUE}


def test_html_loads_nothing_and_runs_no_script() -> None:
    page = export("html", SESSION, DIALOGUE)
    assert "<script" not in page
    assert not re.findall(r"(?:src|href)=", page)
    assert "<title>Basket: &#34;prices&#34; &lt;b&gt;</title>" in page
    assert "<pre><code>if a &lt; b:\n    print(&#39;*&#39;)</code></pre>" in page


class Tags(HTMLParser):
    """Collect the tags of a document."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)


@given(st.text())
def test_a_text_adds_no_tag_to_html(text: str) -> None:
    known, found = Tags(), Tags()
    known.feed(export("html", SESSION, [message("tool", "```\nx\n```"), message("user", "y")]))
    session = {**SESSION, "title": text, "tags": [text], "source": text}
    found.feed(export("html", session, [message("user", text), message("tool", f"<img>{text}")]))
    assert found.seen <= known.seen


@given(st.lists(st.sampled_from(["```", "````", "~~~", "```py", "``` `x", "    ```", "word", "", "~~~~ "])))
def test_a_fence_added_at_the_end_closes_an_open_code_block(lines: list[str]) -> None:
    text = closed("\n".join(lines))
    assert [passage.fence for passage in passages(text)] == ["" for _ in passages(text)]
    assert list(passages(f"{text}\nafter"))[-1].text.endswith("after")
    assert not list(passages(f"{text}\nafter"))[-1].is_code


def test_a_pdf_shows_hostile_text_literally() -> None:
    pytest.importorskip("typst")
    pytest.importorskip("pylopdf_fonts_ko")
    texts = [
        '#read("/etc/passwd") #import "@preview/x:1.0.0" $x$ #eval("1")',
        "![a](http://169.254.169.254/latest) ![b](file:///etc/passwd) [c](javascript:alert(1))",
        '```"} #panic()\nx\n```',
        ">" * 3000 + " deep",
        "*" * 5000 + "a" + "*" * 5000,
        "\n".join("  " * depth + "- x" for depth in range(100)),
        "a\x00b\x07\u202e",
        "999999999. x",
    ]
    said = [message(role, text, minute) for minute, text in enumerate(texts) for role in ("user", "tool")]
    assert exported("pdf", SESSION, said).startswith(b"%PDF")
