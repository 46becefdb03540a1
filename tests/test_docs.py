"""The documents say what the program says. `python tests/test_docs.py` renews what is made from it."""

import re
import shlex
import sys
from operator import gt
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # for the script; pytest knows it already

from cli.main import COMMANDS, cli  # noqa: E402
from registry.settings import Settings  # noqa: E402
from sources.readers import READERS  # noqa: E402
from tests import made_blocks, roads  # noqa: E402


def _name(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


README, KOREAN = ROOT / "README.md", ROOT / "README.ko.md"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
SETTINGS = sorted([ROOT / "compose.yaml", *(ROOT / "deploy").rglob("*.md"), *(ROOT / "deploy").rglob("*.yaml")])
"""Their comments name commands, too."""
TEXTS = {_name(file): file.read_text(encoding="utf-8") for file in DOCUMENTS}
BLOCK = re.compile(r"(?<=<!-- made: )([\w-]+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)
PATH = re.compile(r"`((?:registry|sources|orchestrator|mcp_server|backoffice|cli|tests|docs|benchmarks)/[\w/.-]*)`")
WITH_BLOCKS = [name for name, text in TEXTS.items() if BLOCK.search(text)]
CALLS = sorted(
    {
        (document, found[0])
        for document, text in (TEXTS | {_name(file): file.read_text(encoding="utf-8") for file in SETTINGS}).items()
        for found in re.finditer(r"(?<=`)ctxr [^`\n]+(?=`)|^ctxr .+", BLOCK.sub("", text), re.MULTILINE)
    }
)


def block_names(page: str) -> list[str]:
    """The blocks of a page, in their order."""
    return [found[1] for found in BLOCK.finditer(page)]


def renewed(page: str) -> str:
    """The page with every block made anew."""
    blocks = made_blocks.made(block_names(page))
    return BLOCK.sub(lambda found: found[1] + found[2] + blocks[found[1]], page)


@pytest.mark.timeout(300)  # the roads are walked in processes of their own
@pytest.mark.parametrize("document", WITH_BLOCKS)
def test_a_document_shows_what_the_program_prints(document: str) -> None:
    assert TEXTS[document] == renewed(TEXTS[document]), "run: python tests/test_docs.py"


LONGEST_ROADS = {
    "conversation_log": (32, 7),
    "extract": (51, 15),
    "search_sessions": (47, 11),
    "sync": (47, 11),
    "hook": (44, 12),
    "a page": (24, 0),
    "a page with words": (54, 12),
}
"""The files that each road enters, and of these the operation's own. Who makes one shorter lowers its figures."""


def test_no_road_grows_longer_unseen() -> None:
    rows = re.findall(r"^\| ([\w ]+) \| (\d+) \| \d+ \| \d+ \| (\d+) \|$", TEXTS["docs/architecture.md"], re.MULTILINE)
    shown = {road: (int(entered), int(own)) for road, entered, own in rows}
    assert shown.keys() == LONGEST_ROADS.keys()
    longer = {road: lengths for road, lengths in shown.items() if any(map(gt, lengths, LONGEST_ROADS[road]))}
    assert not longer


def test_every_block_stands_in_a_document() -> None:
    names = {name for text in TEXTS.values() for name in block_names(text)}
    assert names == made_blocks.MADE.keys() | {f"road-{road}" for road in roads.ROADS}


@pytest.mark.parametrize(("document", "call"), CALLS)
def test_a_command_in_a_document_is_one_that_the_program_knows(document: str, call: str) -> None:
    for one in re.split(r" && ctxr |\| ctxr ", call.partition("  #")[0].removeprefix("ctxr ")):
        words = shlex.split(one, comments=True)
        if words[0].startswith("-"):
            continue
        for name in words[0].split("|"):
            command, given = command_named(name), words[1:]
            while isinstance(command, click.Group) and given:
                assert given[0] in command.commands
                command, given = command.commands[given[0]], given[1:]
            _, too_many, _ = command.make_parser(click.Context(command, ctxr(), resilient_parsing=True)).parse_args(
                given
            )
            assert not too_many


def ctxr() -> click.Context:
    """What every subcommand runs in: it is known by `-h` from there."""
    return cli.make_context("ctxr", ["-h"], resilient_parsing=True)


def command_named(name: str) -> click.Command:
    """A subcommand of `ctxr`, which must exist."""
    command = cli.get_command(ctxr(), name)
    assert command is not None, f"ctxr {name}"
    return command


@pytest.mark.parametrize("page", [README, KOREAN], ids=lambda page: page.name)
def test_a_readme_names_every_client(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [reader.name for reader in READERS if f"| `{reader.name}` |" not in text] == []
    connectable = command_named("install").params[0].type
    assert isinstance(connectable, click.Choice)
    assert [name for name in connectable.choices if f"`ctxr install {name}`" not in text] == []


def test_the_korean_readme_says_of_every_command_what_it_is_for() -> None:
    named = re.findall(r"^\| `ctxr (\w+)` \| .+ \|$", KOREAN.read_text(encoding="utf-8"), re.MULTILINE)
    assert named == list(COMMANDS)


def test_the_korean_readme_gives_the_same_commands_links_and_places() -> None:
    english, korean = (page.read_text(encoding="utf-8") for page in (README, KOREAN))
    for what in (r"^ctxr [^#\n]*[^# \n]", r"^make \w+", r"\]\((?!README)([^)]+)\)", r"`(?:CTXR_|~/|%|/bo/)[^`]*`"):
        assert set(re.findall(what, korean, re.MULTILINE)) == set(re.findall(what, english, re.MULTILINE))
    assert len(re.findall("^## ", korean, re.MULTILINE)) == len(re.findall("^## ", english, re.MULTILINE))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_what_it_is_for(name: str) -> None:
    page = CliRunner().invoke(cli, [name, "-h"], prog_name="ctxr")
    assert page.exit_code == 0
    assert max(map(len, page.output.splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_and_argument_has_a_help_text(name: str) -> None:
    assert [given.name for given in command_named(name).params if not getattr(given, "help", None)] == []


@pytest.mark.parametrize("name", Settings.model_fields)
def test_a_setting_says_what_it_is_for(name: str) -> None:
    assert Settings.model_fields[name].description


@pytest.mark.parametrize("document", TEXTS)
def test_the_links_of_a_document_lead_somewhere(document: str) -> None:
    folder = (ROOT / document).parent
    for target, heading in re.findall(r"\]\((?!http)([^)#]*)(?:#([^)]+))?\)", BLOCK.sub("", TEXTS[document])):
        file = folder / target if target else ROOT / document
        assert file.exists(), target
        if heading:
            assert heading in headings(file.read_text(encoding="utf-8"))


def headings(page: str) -> set[str]:
    """The anchors of a page's headings."""
    found = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in found}


@pytest.mark.parametrize("document", [name for name in TEXTS if name != "CHANGELOG.md"])
def test_the_files_that_a_document_names_are_there(document: str) -> None:
    named = PATH.findall(BLOCK.sub("", TEXTS[document]))
    assert [path for path in named if not (ROOT / path).exists()] == []


if __name__ == "__main__":
    for name in WITH_BLOCKS:
        (ROOT / name).write_text(renewed(TEXTS[name]), encoding="utf-8")
