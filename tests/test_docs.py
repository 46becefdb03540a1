"""The README says what the program says. `python tests/test_docs.py` renews what is made from the program."""

import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # for the script; pytest knows it already

from cli.connect.snippets import StdioServer  # noqa: E402
from cli.main import COMMANDS, cli  # noqa: E402
from registry.settings import Settings  # noqa: E402
from sources.clients import CLIENTS  # noqa: E402
from sources.cursor.client import CURSOR  # noqa: E402

README = ROOT / "README.md"
BLOCK = re.compile(r"(?<=<!-- made: )([\w-]+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)
EXAMPLE = StdioServer(("/path/to/context-registry/.venv/bin/ctxr", "mcp"))


def fenced(language: str, text: str) -> str:
    """A code block, also of a text that has code blocks in it."""
    return f"````{language}\n{text.rstrip()}\n````\n"


def help_text() -> str:
    """What `ctxr -h` prints."""
    return CliRunner().invoke(cli, ["-h"], prog_name="ctxr").output


def settings_table() -> str:
    """Every setting, its default and its meaning."""
    rows = [
        f"| `CTXR_{name.upper()}` | {shown_default(name)} | {field.description} |"
        for name, field in Settings.model_fields.items()
    ]
    return "\n".join(["| variable | default | meaning |", "| --- | --- | --- |", *rows, ""])


def clients_table() -> str:
    """Every client whose conversations are read on this machine, and where."""
    rows = [
        f"| {each.history_name or each.name} | `{each.source}` | {each.history} |" for each in CLIENTS if each.history
    ]
    head = [
        "| client | `--source` | where it looks, and the variable that names another place |",
        "| --- | --- | --- |",
    ]
    return "\n".join([*head, *rows, ""])


def shown_default(name: str) -> str:
    """A default as it stands in the table. The home folder's is another on every system, and stands above it."""
    field = Settings.model_fields[name]
    if field.default_factory:
        return "see above"
    return f"`{field.default}`" if str(field.default) else ""


def made() -> dict[str, str]:
    """The blocks by name, as they must stand in the README."""
    return {
        "mcp-json": fenced("json", EXAMPLE.mcp_json()),
        "cursor-rule": fenced("markdown", CURSOR.rule.alone if CURSOR.rule else ""),
        "claude-code": fenced("sh", EXAMPLE.claude_code_command()),
        "help": fenced("text", help_text()),
        "settings": settings_table(),
        "clients": clients_table(),
    }


def renewed(page: str) -> str:
    """The page with every block made anew."""
    blocks = made()
    return BLOCK.sub(lambda found: found[1] + found[2] + blocks[found[1]], page)


def test_the_readme_shows_what_the_program_prints() -> None:
    page = README.read_text(encoding="utf-8")
    assert page == renewed(page), "run: python tests/test_docs.py"


def test_the_readme_has_every_block() -> None:
    names = {found[1] for found in BLOCK.finditer(README.read_text(encoding="utf-8"))}
    assert names == made().keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_what_it_is_for(name: str) -> None:
    page = CliRunner().invoke(cli, [name, "-h"], prog_name="ctxr")
    assert page.exit_code == 0
    assert max(map(len, page.output.splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_and_argument_has_a_help_text(name: str) -> None:
    command = cli.get_command(cli.make_context("ctxr", ["-h"], resilient_parsing=True), name)
    assert command is not None
    assert [given.name for given in command.params if not getattr(given, "help", None)] == []


@pytest.mark.parametrize("name", Settings.model_fields)
def test_a_setting_says_what_it_is_for(name: str) -> None:
    assert Settings.model_fields[name].description


@pytest.mark.parametrize("link", re.findall(r"\]\((?!http)([^)#]+)\)", README.read_text(encoding="utf-8")))
def test_a_link_of_the_readme_leads_somewhere(link: str) -> None:
    assert (ROOT / link).exists()


if __name__ == "__main__":
    README.write_text(renewed(README.read_text(encoding="utf-8")), encoding="utf-8")
