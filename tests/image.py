"""Read the Dockerfile and .dockerignore without a container engine."""

import json
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parent.parent
WILDCARDS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def ignore_rules() -> list[str]:
    """Return the rules of .dockerignore, in order."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def is_sent(path: str, rules: list[str]) -> bool:
    """Return whether `docker build` sends a file: the last rule that matches it or a parent folder decides."""
    sent = True
    above = [path, *map(str, list(PurePosixPath(path).parents)[:-1])]
    for rule in rules:
        if any(_as_regex(rule.removeprefix("!").strip("/")).fullmatch(name) for name in above):
            sent = rule.startswith("!")
    return sent


@cache
def _as_regex(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    return re.compile("".join(WILDCARDS.get(part, re.escape(part)) for part in parts))


def sent_files() -> Iterator[str]:
    """Yield every file that `docker build` sends, tracked by git or not."""
    rules = ignore_rules()
    can_send_again = any(rule.startswith("!") for rule in rules)
    for folder, subfolders, files in os.walk(ROOT):
        inside = Path(folder).relative_to(ROOT)
        if not can_send_again:
            subfolders[:] = [name for name in subfolders if is_sent((inside / name).as_posix(), rules)]
        yield from filter(lambda path: is_sent(path, rules), ((inside / name).as_posix() for name in files))


def last_stage() -> list[str]:
    """Return the instructions of the Dockerfile's last stage, one per line."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    return text.rpartition("\nFROM ")[2].splitlines()


def settings_of_the_image() -> dict[str, str]:
    """Return the product's environment variables in the image."""
    words = [word for line in last_stage() if line.startswith("ENV ") for word in line.split()[1:]]
    return dict(word.split("=", 1) for word in words if word.startswith("CTXR_"))


def command_of(instruction: str) -> list[str]:
    """Return the command line of CMD or HEALTHCHECK."""
    [line] = [line for line in last_stage() if line.startswith(instruction)]
    return list(json.loads(line[line.index("[") :]))
