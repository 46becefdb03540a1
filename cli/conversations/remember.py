"""`ctxr remember`: sentences that every later chat gets at its start."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from cli.connect.settings_files import replace_file
from cli.operations import run_operation
from cli.output import dim, one_line, printed
from cli.terminal import terminal
from orchestrator.requests.calls import working_folder
from registry.errors import InvalidRequest

BEGIN, END = "<!-- context-registry: remembered -->", "<!-- context-registry: end -->"
_BLOCK = re.compile(rf"^{BEGIN}\r?\n(?:(?!{BEGIN}).*\n)*?{END}(?=\r?$)", re.MULTILINE)
"""A block, whose marks are whole lines: a sentence may contain one. If a person removed its end, it is none."""


def _lines(result: dict[str, Any]) -> Iterator[str]:
    for number, sentence in enumerate(result["remembered"], 1):
        scope = dim("" if sentence["project"] else "  everywhere")
        yield f"{number}. {one_line(sentence['text'])}{scope}"
    if not result["remembered"]:
        yield "Nothing is remembered here yet."
    for proposal in result.get("proposed", ()):
        yield f'You said in {proposal["chats"]} chats: "{one_line(proposal["text"])}"'
    if result.get("proposed"):
        yield dim('To remember it: ctxr remember "…"')


@click.command()
@click.argument(
    "words", nargs=-1, metavar="[SENTENCE]", help="What to remember; without it, all valid sentences are listed."
)
@click.option("--everywhere", is_flag=True, help="In all projects, not only in this folder's.")
@click.option("--replaces", type=click.IntRange(min=1), metavar="NUMBER", help="The sentence that is no longer valid.")
@click.option(
    "--write",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write them into a file such as AGENTS.md, between marked lines.",
)
@printed(_lines)
def remember(words: tuple[str, ...], everywhere: bool, replaces: int | None, write: Path | None) -> dict[str, Any]:
    """Remember a sentence, which every later chat of this project gets at its start.

    Without a sentence, also corrections that you made in several chats are
    listed, to remember if you like.

    \b
    ctxr remember "Use pnpm, never npm."
    ctxr remember "Answer in Korean." --everywhere
    ctxr remember "Use bun." --replaces 1
    ctxr remember --write AGENTS.md
    """
    project = None if everywhere else working_folder(terminal().folder)
    query: dict[str, Any] = {"text": " ".join(words) or None, "project": project}
    if replaces:
        known = _run({"project": project})["remembered"]
        if replaces > len(known):
            raise InvalidRequest("No such sentence.", f"--replaces: given {replaces}; allowed: 1 to {len(known)}")
        query["replaces"] = known[replaces - 1]["id"]
    result = _run(query)
    if write:
        file = Path(terminal().folder) / write
        before = file.read_bytes().decode(errors="surrogateescape") if file.exists() else ""  # in any encoding
        after = with_block(before, [one["text"] for one in result["remembered"]])
        file.open("ab").close()  # creates it with the mode of a new file; an error if it may not be written
        replace_file(file.resolve(), after)
    return result


def _run(query: dict[str, Any]) -> dict[str, Any]:
    """Return all valid sentences, those for all projects first: their numbers are the same in every folder."""
    result = run_operation("remember", query)
    valid = sorted(result["remembered"], key=lambda one: one["project"] is not None)
    return {"remembered": valid, **({"proposed": result["proposed"]} if result.get("proposed") else {})}


def with_block(text: str, sentences: list[str]) -> str:
    """Return the text with a marked block of these sentences, which replaces an earlier block or is appended."""
    line_end = "\r\n" if "\r\n" in text else "\n"
    block = line_end.join([BEGIN, *(f"- {one_line(sentence)}" for sentence in sentences), END])
    if found := _BLOCK.search(text):
        return text[: found.start()] + block + text[found.end() :]
    return f"{text.rstrip()}{2 * line_end}{block}{line_end}".lstrip()
