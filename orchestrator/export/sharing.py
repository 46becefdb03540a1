"""Remove personal data and secrets from a session before it is shared. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from secrets import token_bytes
from typing import Any

from registry.domain import texts_in
from registry.text.privacy.secrets import is_secret_value, mask, mask_secrets

# a home folder; its group is the user
_HOME = re.compile(r"(?:/(?:home|Users)|[A-Za-z]:\\{1,2}Users)(?:/|\\{1,2})([^/\\\s\"'`:*?<>|,;)\]}]+)")
# names of home folders that are not a person's
_GENERIC_NAMES = frozenset({"user", "users", "you", "me", "name", "username", "shared", "public", "default", "runner"})
_REST = r"(?:[/\\]+[^/\\\s\"'`:*?<>|,;()\[\]{}]+)*"
_UNDER_HOME = re.compile(_HOME.pattern + _REST)
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_PHONE = re.compile(r"(?<![\d-])(?:\+82[- ]?|0)1[016789][- ]?\d{3,4}[- ]?\d{4}(?!\d)")
_AUTHOR = re.compile(r"((?:Author|Signed-off-by|Co-authored-by|Committer):[ \t]*)([^<\n\[]+?)([ \t]*<)")
_PROMPT = re.compile(r"\b[\w.-]+@[\w.-]+(?=[:~][^\s]*[$#] )")
PERSON, FOLDER = "[name]", "[path]"


def for_others(
    session: Mapping[str, Any], messages: Sequence[Mapping[str, Any]], names: Iterable[str] = ()
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the session without secrets, home folders, user names, e-mail addresses and telephone numbers.

    The project's folder is replaced by its name, any other folder below a home by [path]. `names`: further words to
    remove, such as other people's names; case is ignored.
    """
    masked_value = _Mask(session, messages, names)
    masked = {name: masked_value(value, name) for name, value in session.items()}
    return masked, [{name: masked_value(value, name) for name, value in message.items()} for message in messages]


class _Mask:
    """Masks all texts of one session."""

    def __init__(self, session: Mapping[str, Any], messages: Sequence[Mapping[str, Any]], names: Iterable[str]) -> None:
        self._key = token_bytes(32)
        project = session.get("project_path")
        self._project = re.compile(_any_slash(project)) if project else None
        self._project_name = session.get("project_name") or "project"
        owners = {found[1] for text in texts_in([session, *messages]) for found in _HOME.finditer(text)}
        people = {*names, *(owner for owner in owners if owner.lower() not in _GENERIC_NAMES)}
        longest_first = sorted(filter(None, people), key=len, reverse=True)
        self._people = re.compile("|".join(map(_as_word, longest_first)), re.IGNORECASE) if longest_first else None

    def __call__(self, value: Any, name: object = None) -> Any:
        match value:
            case str() if isinstance(name, str) and is_secret_value(name, value):
                return mask(value, "secret", self._key)
            case str():
                return self._text(value)
            case Mapping():
                return {self._text(str(key)): self(item, key) for key, item in value.items()}
            case list() | tuple():
                return [self(item) for item in value]
        return value

    def _text(self, text: str) -> str:
        text = mask_secrets(text, self._key)
        if self._project:
            text = self._project.sub(lambda _: self._project_name, text)
        text = _UNDER_HOME.sub(FOLDER, text)
        text = _AUTHOR.sub(rf"\g<1>{PERSON}\g<3>", text)
        text = _PROMPT.sub(f"{PERSON}@[host]", text)
        text = _PHONE.sub("[phone]", _EMAIL.sub("[email]", text))
        return self._people.sub(PERSON, text) if self._people else text


def _any_slash(path: str) -> str:
    """Return a pattern for the path in texts, also with doubled backslashes, up to the end of a name."""
    parts = [re.escape(part) for part in re.split(r"[/\\]+", path)]
    return r"[/\\]{1,2}".join(parts) + r"(?![\w.-])"


def _as_word(name: str) -> str:
    """Return a pattern for a name as a word; Korean particles may follow."""
    return rf"(?<![A-Za-z0-9_가-힣]){re.escape(name)}(?![A-Za-z0-9_])"
