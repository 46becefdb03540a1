"""Write a session as one HTML page without scripts or other files. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from orchestrator.export.code_fences import passages
from registry.domain import preview_of

FOLDED = ("tool", "thinking", "system")

_PAGE = """\
<!DOCTYPE html>
<html>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark }}
body {{ font: 16px/1.55 system-ui, sans-serif; max-width: 48rem; margin: 2rem auto; padding: 0 1rem }}
dl {{ display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; font-size: .9rem }}
dd {{ margin: 0; overflow-wrap: anywhere }}
article {{ margin: 1.5rem 0; padding-left: 1rem; border-left: 3px solid GrayText }}
article.user {{ border-color: #0b7285 }}
article.error {{ border-color: #c92a2a }}
header, summary {{ font-size: .85rem; color: GrayText }}
p, pre {{ white-space: pre-wrap; overflow-wrap: anywhere; margin: .5rem 0 }}
pre {{ padding: .75rem; background: rgb(128 128 128 / .15); font-size: .85rem }}
</style>
</head>
<body>
<h1>{title}</h1>
<dl>
{facts}
</dl>
{messages}
</body>
</html>
"""

_FACTS = {
    "Source": "source",
    "Project": "project_path",
    "Session": "session_id",
    "Nickname": "nickname",
    "Tags": "tags",
    "Messages": "message_count",
    "Begun": "created_at",
    "Last activity": "updated_at",
}


def as_html(session: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the page; all text of the session is escaped."""
    title = title_of(session)
    facts = "\n".join(f"<dt>{label}</dt><dd>{escape(fact)}</dd>" for label, fact in facts_of(session))
    return _PAGE.format(title=escape(title), facts=facts, messages="\n".join(map(_message, messages)))


def title_of(session: Mapping[str, Any]) -> str:
    """Return the session's title on one line, else its first words or its channel."""
    return " ".join((session["title"] or session["first_message_preview"] or session["channel"]).split())


def facts_of(session: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield label and value of the session's fields that are set."""
    for label, name in _FACTS.items():
        value = session[name]
        shown = ", ".join(value) if isinstance(value, list) else value
        if shown:
            yield label, str(shown)


def time_of(message: Mapping[str, Any]) -> str:
    """Return the time of a message, and whether it is inferred."""
    at = f"{message['timestamp'][:16].replace('T', ' ')} UTC"
    return f"{at} (inferred)" if message.get("time") == "inferred" else at


def _message(message: Mapping[str, Any]) -> str:
    role, text = message["role"], message["text"]
    time = f'<time datetime="{message["timestamp"]}">{time_of(message)}</time>'
    body = "\n".join(_passages(text))
    if role in FOLDED:
        body = f"<details><summary>{escape(preview_of(text, 80))}</summary>\n{body}\n</details>"
    return f'<article class="{role}"><header>{role} · {time}</header>\n{body}\n</article>'


def _passages(text: str) -> Iterator[str]:
    for passage in passages(text):
        words = escape(passage.text.strip("\n"))
        yield f"<pre><code>{words}</code></pre>" if passage.is_code else f"<p>{words}</p>"
