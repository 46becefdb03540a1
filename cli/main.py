"""The ctxr command: its subcommands, imported on demand, and how a failure is printed."""

import os
import sys
from importlib import import_module
from io import TextIOWrapper
from typing import Any

import click

from cli.output import TerminalError
from registry.errors import ErrorCode, RegistryError

SECTIONS = {
    "First": {
        "try": "cli.running.tour:try_it",
        "up": "cli.running.serving",
        "install": "cli.connect.install",
        "search": "cli.conversations.search",
        "extract": "cli.conversations.log_and_extract",
        "list": "cli.conversations.sessions:list_sessions",
        "show": "cli.conversations.sessions:show_session",
        "resume": "cli.conversations.resume",
        "sync": "cli.incoming.sync",
        "open": "cli.running.serving:open_page",
        "doctor": "cli.upkeep.doctor",
    },
    "Conversations": {
        "recent": "cli.conversations.sessions",
        "tag": "cli.conversations.sessions",
        "nickname": "cli.conversations.sessions",
        "export": "cli.conversations.sessions",
        "share": "cli.conversations.sessions",
        "blame": "cli.conversations.blame",
        "brief": "cli.reports",
        "stats": "cli.reports",
        "cost": "cli.reports",
        "log": "cli.conversations.log_and_extract",
        "remember": "cli.conversations.remember",
        "note": "cli.conversations.note",
        "eval": "cli.reports:evaluate",
    },
    "Servers and clients": {
        "serve": "cli.running.serving",
        "mcp": "cli.running.mcp_command",
        "uninstall": "cli.connect.install",
        "hook": "cli.incoming.sync",
        "token": "cli.safety.token",
        "import": "cli.incoming.imports:import_files",
        "push": "cli.incoming.remote",
        "pull": "cli.incoming.remote",
        "status": "cli.incoming.remote",
    },
    "Data": {
        "audit": "cli.safety.audit",
        "forget": "cli.safety.forgetting",
        "scan": "cli.safety.forgetting",
        "redact": "cli.safety.forgetting",
        "backup": "cli.upkeep.backup",
        "migrate": "cli.upkeep.migrate",
        "project": "cli.upkeep.migrate",
        "db": "cli.upkeep.db",
    },
}
"""The subcommands by the sections of the help: `module`, or `module:attribute` if they differ in name.

Each is imported on demand, because a client starts `ctxr mcp` for every window.
"""
COMMANDS = {name: target for section in SECTIONS.values() for name, target in section.items()}

EXIT_STATUS = {ErrorCode.INVALID_REQUEST: 2, ErrorCode.NOT_FOUND: 3}  # the exit status by error code; 1 for all others


class Commands(click.Group):
    """Imports a subcommand when it is named, and prints every failure as `error: CODE: message`."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module, _, attribute = COMMANDS.get(cmd_name, "").partition(":")
        return getattr(import_module(module), attribute or cmd_name) if module else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands section by section, those that matter most first."""
        for section, names in SECTIONS.items():
            limit = formatter.width - 6 - max(map(len, names))
            commands = {name: self.get_command(ctx, name) for name in names}
            with formatter.section(section):
                formatter.write_dl([(name, one.get_short_help_str(limit)) for name, one in commands.items() if one])

    def main(self, *args: Any, **given: Any) -> Any:
        try:
            result = super().main(*args, **given | {"standalone_mode": False})
        except (RegistryError, TerminalError) as exc:
            _print_error(exc.code, exc.message, exc.details)
            sys.exit(EXIT_STATUS.get(exc.code, 1))  # type: ignore[call-overload]
        except click.exceptions.NoArgsIsHelpError as exc:
            exc.show()
            sys.exit(exc.exit_code)
        except click.ClickException as exc:
            context = getattr(exc, "ctx", None)
            hint = f"Try '{context.command_path} -h' for help." if context else ""
            _print_error(ErrorCode.INVALID_REQUEST, exc.format_message(), hint)
            sys.exit(2)
        except click.Abort:
            sys.exit(130)  # as after Ctrl-C
        except OSError as exc:
            if exc.filename is None:  # a fault of the program
                raise
            details = f"{exc.filename}: {exc.strerror}"
            _print_error(ErrorCode.STORAGE_ERROR, "A file or folder could not be read or written.", details)
            sys.exit(1)
        sys.exit(result if isinstance(result, int) else 0)


def _print_error(code: str, message: str, details: str) -> None:
    click.echo(f"error: {code}: {message}", err=True)
    if details:
        from cli.connect.snippets import with_command_name

        click.echo(with_command_name(details), err=True)


@click.group(
    cls=Commands,
    commands=dict.fromkeys(COMMANDS),  # only names; `get_command` imports them
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)
@click.version_option(package_name="context-registry", message="ctxr %(version)s")
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    help="Colours: on a terminal (auto, unless NO_COLOR is set), always or never.",
)
@click.pass_context
def cli(ctx: click.Context, color: str) -> None:
    """One memory for all AI clients: log a conversation in one, continue it in another."""
    ctx.color = {"always": True, "never": False}.get(color, False if os.environ.get("NO_COLOR") else None)


def main() -> None:
    """Run the installed program. Characters that the terminal cannot encode are printed as `?`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    cli(prog_name="ctxr")
