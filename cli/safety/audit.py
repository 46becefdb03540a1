"""`ctxr audit`: list the records of who read or changed something."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from cli.conversations.log_and_extract import Moment
from cli.operations import with_registry
from cli.output import as_json_option, dim, local_time, one_line, pad, print_json
from registry.domain import parse_time
from registry.errors import InvalidRequest

if TYPE_CHECKING:
    from registry.registry import Registry


@click.command()
@click.option("--from", "from_", type=Moment(), help="Only since this day or time: 2025-09-29, yesterday, 7d.")
@click.option("--to", type=Moment(is_end=True), help="Only up to and including this day or time.")
@click.option("--who", metavar="NAME", help="Only this person, or the token of this name.")
@click.option("--operation", help="Only this one, such as share, delete, fetch or conversation_log.")
@click.option("--channel", help="Only on this conversation.")
@as_json_option
def audit(as_json: bool, who: str | None, **options: str | None) -> None:
    """List who read, wrote, shared, deleted or exported what, oldest first.

    These are the records of runs, which are kept for CTXR_KEEP_EXECUTIONS_DAYS.
    With --json each act is one line, for storage elsewhere. Records of forgotten
    conversations keep who did something and when, but no names or contents.
    """
    wanted: dict[str, Any] = {name: value for name, value in options.items() if value}
    wanted |= {name: parse_time(wanted[name]) for name in ("from_", "to") if name in wanted}
    if "operation" in wanted:
        wanted["operation"] = _known_operation(wanted["operation"])

    async def show_all(registry: Registry) -> None:
        from registry.storage.records.acts import read_acts

        read = partial(read_acts, wanted=wanted, who=who)
        acts, cursor = await registry.read(read)
        if not acts:
            click.echo("No acts.", err=True)
        while acts:
            for act in acts:
                if as_json:
                    print_json(act, indent=None)
                else:
                    click.echo("  ".join(_columns(act)))
            acts, cursor = await registry.read(partial(read, cursor=cursor)) if cursor else ([], None)

    with_registry(show_all)


def _known_operation(name: str) -> str:
    from orchestrator.operations import aliases, operations

    known = [*operations(), *aliases(), "unknown"]
    if name not in known:
        raise InvalidRequest("No such operation.", f"operation: given {name!r}; allowed: {', '.join(known)}")
    return aliases().get(name, name)


def _columns(act: dict[str, Any]) -> Iterator[str]:
    shown = {name: " and ".join(value) if isinstance(value, list) else value for name, value in act["details"].items()}
    details = one_line(", ".join(f"{name} {value}" for name, value in shown.items()))
    yield local_time(act["at"])
    yield pad(one_line(act["who"] or "(this machine)"), 20)
    yield pad(act["operation"], 16)
    yield pad(act["outcome"], 9)
    yield " ".join(filter(None, [one_line(act["channel"] or ""), dim(details) if details else ""]))
