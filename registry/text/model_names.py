"""Turn the model name that a client notes into the usual one. Pure."""

import re

_DATE = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2})$")
_VERSION = re.compile(r"(?<=-)(\d{1,2})-(\d{1,2})(?=-|$)")
_FAMILY = re.compile(r"(?<=^Claude )([\d.]+) ([A-Z][a-z]+)$")
_SETTINGS = frozenset({"minimal", "low", "medium", "high", "xhigh", "thinking", "fast"})
"""Words at the end of a name that say how the model was set. `high` before `thinking` is the default and left out."""
_WRITTEN = {"gpt": "GPT", "glm": "GLM", "deepseek": "DeepSeek", "xai": "xAI"}


def model_name(noted: str) -> str:
    """Turn `claude-4.5-opus-high-thinking` into `Claude Opus 4.5 (Thinking)`; other forms stay."""
    plain = noted.rpartition("/")[2]
    if not re.fullmatch(r"[a-z]+(?:-[a-z0-9.]+)+", plain):
        return noted
    words = _VERSION.sub(r"\1.\2", _DATE.sub("", plain)).split("-")
    settings: list[str] = []
    while len(words) > 2 and words[-1] in _SETTINGS:
        settings.insert(0, words.pop())
    said = " ".join(_WRITTEN.get(word, word.capitalize() if word.isalpha() else word) for word in words)
    said = _FAMILY.sub(r"\2 \1", re.sub(r"^(GPT|GLM) (?=\d)", r"\1-", said))
    if settings[-2:] == ["high", "thinking"]:
        settings.remove("high")
    return f"{said} ({', '.join(map(str.capitalize, settings))})" if settings else said
