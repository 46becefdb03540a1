"""English words for the fields of a record and for the program's own values in them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

from backoffice.pages.reader import FOLDER
from orchestrator.operations import labels

WORDS: Mapping[str, Any] = tomllib.loads((FOLDER / "words.toml").read_text(encoding="utf-8"))
FIELDS: Mapping[str, str] = {name: english for name, (english, _) in labels().items()}
ROLES: Mapping[str, str] = WORDS["roles"]
ERRORS: Mapping[str, str] = WORDS["errors"]
# By field; a value that is not listed here is data and is shown as it is.
VALUES: Mapping[str, Mapping[str, str]] = WORDS["values"] | {"role": ROLES, "roles": ROLES, "changed": FIELDS}


def field(name: str) -> str:
    """Return the English label of a record's field."""
    return FIELDS.get(name, name.replace("_", " "))


def named(details: str, translate: Callable[[str], str]) -> str:
    """Replace field names in an error's details by their labels: `query.limit: given 0` becomes `at most: given 0`."""
    return _FAULTY.sub(lambda found: translate(field(found[1])), details)


_FAULTY = re.compile(r"(?:^|(?<=; ))(?:query\.)?(\w+)(?=: (?:given|missing))")


def value(given: str, name: str) -> str | None:
    """Return the English words for a field's value; None if the value is data."""
    return VALUES.get(name, {}).get(given)


def asked(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a request, those of its query among them."""
    return {**{name: given for name, given in request.items() if name != "query"}, **request.get("query", {})}
