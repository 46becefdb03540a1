"""Convert a model id as a client records it to a display name. Pure."""

import re

_DATE = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2})$")
_VERSION = re.compile(r"(?<=-)(\d{1,2})-(\d{1,2})(?=-|$)")
_FAMILY = re.compile(r"(?<=^Claude )([\d.]+) ([A-Z][a-z]+)$")
_SETTINGS = frozenset({"minimal", "low", "medium", "high", "xhigh", "thinking", "fast"})
"""Words at the end of an id that are settings of the model. `high` before `thinking` is the default and omitted."""
_SPELLINGS = {"gpt": "GPT", "glm": "GLM", "deepseek": "DeepSeek", "xai": "xAI"}


def model_name(raw: str) -> str:
    """Convert `claude-4.5-opus-high-thinking` to `Claude Opus 4.5 (Thinking)`; return other forms unchanged."""
    without_provider = raw.rpartition("/")[2]
    if not re.fullmatch(r"[a-z]+(?:-[a-z0-9.]+)+", without_provider):
        return raw
    words = _VERSION.sub(r"\1.\2", _DATE.sub("", without_provider)).split("-")
    settings: list[str] = []
    while len(words) > 2 and words[-1] in _SETTINGS:
        settings.insert(0, words.pop())
    name = " ".join(_SPELLINGS.get(word, word.capitalize() if word.isalpha() else word) for word in words)
    name = _FAMILY.sub(r"\2 \1", re.sub(r"^(GPT|GLM) (?=\d)", r"\1-", name))
    if settings[-2:] == ["high", "thinking"]:
        settings.remove("high")
    return f"{name} ({', '.join(map(str.capitalize, settings))})" if settings else name
