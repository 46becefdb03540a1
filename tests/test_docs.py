"""The documents agree with the program. `python tests/test_docs.py` renews their generated blocks."""

import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import click
from click.testing import CliRunner

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # for the script; pytest adds it itself

from cli.main import COMMANDS, cli  # noqa: E402
from registry.settings import Settings  # noqa: E402
from sources.clients import CLIENTS  # noqa: E402
from sources.readers import READERS  # noqa: E402
from tests.generated_blocks import BLOCKS  # noqa: E402

README, KOREAN = ROOT / "README.md", ROOT / "README.ko.md"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
WITH_COMMANDS = [
    *DOCUMENTS,
    ROOT / "compose.yaml",
    *(ROOT / "deploy").rglob("*.md"),
    *(ROOT / "deploy").rglob("*.yaml"),
]
BLOCK = re.compile(r"(?<=<!-- made: )([\w-]+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)
PATH = re.compile(r"`((?:registry|sources|orchestrator|mcp_server|backoffice|cli|tests|docs|benchmarks)/[\w/.-]*)`")


def text_of(file: Path) -> str:
    """Return a document's text."""
    return file.read_text(encoding="utf-8")


def handwritten(file: Path) -> str:
    """Return a document without its generated blocks."""
    return BLOCK.sub("", text_of(file))


def renewed(page: str) -> str:
    """Return the page with its blocks generated again."""
    return BLOCK.sub(lambda found: found[1] + found[2] + BLOCKS[found[1]](), page)


def failures(check: Callable[[Path], Iterable[str]], files: Iterable[Path]) -> list[str]:
    """Return the failures of a check, each with its document."""
    return [f"{file.relative_to(ROOT)}: {wrong}" for file in files for wrong in check(file)]


def test_the_documents_show_what_the_program_prints() -> None:
    outdated = [file.name for file in DOCUMENTS if text_of(file) != renewed(text_of(file))]
    assert not outdated, "run: python tests/test_docs.py"


def test_every_generated_block_is_in_a_document() -> None:
    assert {found[1] for file in DOCUMENTS for found in BLOCK.finditer(text_of(file))} == BLOCKS.keys()


def test_every_command_in_a_document_exists_with_its_options() -> None:
    calls = re.compile(r"(?<=`)ctxr [^`\n]+(?=`)|^ctxr .+", re.MULTILINE)

    def unknown(file: Path) -> Iterator[str]:
        for call in calls.findall(handwritten(file)):
            for one in re.findall(r"(?:^| && | \| )ctxr (.*?)(?= && | \| |$)", call.partition("  #")[0]):
                words = shlex.split(one, comments=True)
                names = [] if words[0].startswith("-") else words[0].split("|")
                yield from (call for name in names if not is_known([name, *words[1:]]))

    assert not failures(unknown, WITH_COMMANDS)


def is_known(words: list[str]) -> bool:
    """Return whether a command line exists with its options."""
    context, command = ctxr(), cli.get_command(ctxr(), words[0])
    rest = words[1:]
    while isinstance(command, click.Group) and rest:
        command, rest = command.commands.get(rest[0]), rest[1:]
    if command is None:
        return False
    try:
        _, too_many, _ = command.make_parser(click.Context(command, context, resilient_parsing=True)).parse_args(rest)
    except click.UsageError:
        return False
    return not too_many


def ctxr() -> click.Context:
    """Return the context in which subcommands know `-h`."""
    return cli.make_context("ctxr", ["-h"], resilient_parsing=True)


def command_named(name: str) -> click.Command:
    """Return a subcommand of `ctxr`."""
    command = cli.get_command(ctxr(), name)
    assert command is not None, f"ctxr {name}"
    return command


def test_every_client_is_named() -> None:
    connectable = command_named("install").params[0].type
    assert isinstance(connectable, click.Choice)
    text = text_of(ROOT / "docs" / "clients.md")
    assert [reader.name for reader in READERS if f"| `{reader.name}` |" not in text] == []
    assert [name for name in connectable.choices if f"`ctxr install {name}`" not in text] == []
    for page in (README, KOREAN):
        text = text_of(page).casefold()
        assert [one.name for one in CLIENTS if one.command and one.name.casefold() not in text] == []


def test_the_korean_readme_has_the_same_commands_links_and_paths() -> None:
    english, korean = text_of(README), text_of(KOREAN)
    for what in (r"^ctxr [^#\n]*[^# \n]", r"^make \w+", r"\]\((?!README)([^)]+)\)", r"`(?:CTXR_|~/|%|/bo/)[^`]*`"):
        assert set(re.findall(what, korean, re.MULTILINE)) == set(re.findall(what, english, re.MULTILINE))
    assert len(re.findall("^## ", korean, re.MULTILINE)) == len(re.findall("^## ", english, re.MULTILINE))


def test_every_command_option_and_setting_says_what_it_is_for() -> None:
    for name in COMMANDS:
        page = CliRunner().invoke(cli, [name, "-h"], prog_name="ctxr")
        assert (page.exit_code, max(map(len, page.output.splitlines())) <= 80) == (0, True), name
        assert [given.name for given in command_named(name).params if not getattr(given, "help", None)] == [], name
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


def test_no_document_has_a_broken_link() -> None:
    def broken(file: Path) -> Iterator[str]:
        for target, heading in re.findall(r"\]\((?!http)([^)#]*)(?:#([^)]+))?\)", handwritten(file)):
            linked = file.parent / target if target else file
            if not linked.exists() or (heading and heading not in headings(text_of(linked))):
                yield f"{target}#{heading}"

    assert not failures(broken, DOCUMENTS)


def headings(page: str) -> set[str]:
    """Return the anchors of a page's headings."""
    found = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in found}


def test_the_files_that_a_document_names_exist() -> None:
    named = (file for file in DOCUMENTS if file.name != "CHANGELOG.md")
    assert not failures(
        lambda file: (path for path in PATH.findall(handwritten(file)) if not (ROOT / path).exists()), named
    )


if __name__ == "__main__":
    for file in DOCUMENTS:
        file.write_text(renewed(text_of(file)), encoding="utf-8")
