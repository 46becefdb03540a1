"""What the content of one ChatGPT message says (formats/exports.md, 2). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sources.exports.reading import Unknown, cited
from sources.kit.jsonl import Record, items, mapping, object_in, string
from sources.kit.loose_json import unfolded

RESULTS = ("execution_output", "computer_output", "tether_quote", "tether_browsing_display", "sonic_webpage")
DROPPED = ("reasoning_recap", "model_editable_context")
"""How long it thought, and what it remembers of the user: neither belongs to the conversation."""
_PLAIN = ("text", "multimodal_text", "code", "thoughts", "user_editable_context", "system_error", *RESULTS)

_MARK = re.compile("\ue200([^\ue200\ue201]{0,2000})\ue201|[\ue200-\ue206]|【\\d+(?::\\d+)?†[^】]{0,200}】")
_POINTERS = {
    "image_asset_pointer": "image",
    "audio_asset_pointer": "audio",
    "real_time_user_audio_video_asset_pointer": "recording",
}


def text_of(content: Record, unknown: Unknown) -> str:
    """The text of a content of any type; of one that is not known what there is."""
    kind = string(content.get("content_type"))
    if kind == "thoughts":
        return "\n\n".join(filter(None, map(_thought, items(content.get("thoughts")))))
    if kind == "code":
        return string(content.get("text"))
    if kind == "user_editable_context":
        return "\n\n".join(filter(None, (string(content.get(key)) for key in ("user_profile", "user_instructions"))))
    if kind not in _PLAIN:
        unknown.note(f"content {kind or 'without type'}")
    told = [string(content.get(key)) for key in ("title", "url", "name")] if kind in (*RESULTS, "system_error") else []
    told += map(_part, items(content.get("parts")))
    told += [string(content.get(key)) for key in ("text", "result", "content")]
    return "\n\n".join(dict.fromkeys(filter(None, map(str.strip, told))))


def _thought(thought: object) -> str:
    given = mapping(thought)
    return "\n\n".join(filter(None, (string(given.get(key)).strip() for key in ("summary", "content"))))


def _part(part: object) -> str:
    """A string, or what was said in a voice chat."""
    return part if isinstance(part, str) else string(mapping(part).get("text"))


def without_marks(text: str) -> str:
    """Without the marks that stand for a citation; where a mark holds words, they stay."""
    return _MARK.sub(_words_in, text).strip() if "\ue200" in text or "†" in text else text


def _words_in(mark: re.Match[str]) -> str:
    kind, *fields = (mark[1] or "").split("\ue202")
    if kind == "entity" and fields:
        named = items(unfolded(fields[0]))
        return string(named[1]) if len(named) > 1 else ""
    return fields[0] if kind == "url" and fields else ""


def fenced(content: Record, text: str) -> str:
    """Code that nobody runs, as a code block."""
    language = string(content.get("language"))
    return f"```{'' if language == 'unknown' else language}\n{text}\n```" if text else ""


def params_of(text: str) -> object:
    """What a tool is called with: JSON, or a script as it is."""
    return object_in(text) or ({"input": text} if text else {})


def attachments(content: Record, metadata: Record) -> Iterator[str]:
    """The names of what was sent along; pictures without a name by their kind."""
    named = list(map(mapping, items(metadata.get("attachments"))))
    ids = {string(each.get("id")) for each in named}
    yield from (string(each.get("name")) or "file" for each in named)
    for part in map(mapping, items(content.get("parts"))):
        kind = _POINTERS.get(string(part.get("content_type")))
        if kind and string(part.get("asset_pointer")).rpartition("/")[2] not in ids:
            yield kind


def citations(metadata: Record) -> Record:
    """The pages that an answer refers to."""
    return cited(metadata.get("citations"), metadata.get("content_references"))
