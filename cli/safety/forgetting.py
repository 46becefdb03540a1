"""`ctxr forget`, `ctxr scan` and `ctxr redact`: delete conversations for good, and mask stored secrets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from cli.operations import ProjectFolder, SessionId, run_operation, with_registry
from cli.output import as_json_option, confirm, counted, print_json, progress, show, yes_option
from registry.domain import is_message_id
from registry.errors import InvalidRequest, NotFound, StorageError
from registry.settings import read_settings

if TYPE_CHECKING:
    from registry.ingest.redact_existing import SecretCounts


@click.command()
@click.argument("named", metavar="[ID]", required=False, type=SessionId(), help="A message id, or as --channel.")
@click.option("--channel", type=SessionId(), help="A whole conversation, by any of its names.")
@click.option("--owner", metavar="PERSON", help="Only conversations of this person, as `ctxr token list` names them.")
@click.option("--project", type=ProjectFolder(), help="A whole project: current, a path, or a folder's name.")
@click.option("--before", metavar="TIME", help="Only what is older: 2025-01-31, 90d, last year.")
@click.option("--matching", metavar="WORDS", help="Only messages that contain exactly these words, in any case.")
@click.option("--by-policy", is_flag=True, help="Only what the retention policies of the settings select now.")
@click.option("--dry-run", is_flag=True, help="Only say what would be forgotten.")
@yes_option
@as_json_option
def forget(
    named: str | None,
    channel: str | None,
    by_policy: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **conditions: str | None,
) -> None:
    """Delete for good: messages cannot be restored, and are not imported again.

    All conditions must hold: --project with --before deletes what is old in one
    project. Messages, index, vectors and their records are deleted. If a client
    sends them again they are recognised and not stored; of a conversation that was
    forgotten as a whole, later messages are not stored either.
    """
    message_id = named if named and is_message_id(named) else None
    channel = channel or (named if named and not message_id else None)
    query = {"id": message_id, **conditions, "soft": False}
    if by_policy:
        if named or channel or any(conditions.values()):
            raise InvalidRequest("--by-policy takes no conditions.", "allowed with --by-policy: --dry-run, --yes")
        _apply_policies(dry_run=dry_run, yes=yes, as_json=as_json)
        return
    if not any((message_id, channel, *conditions.values())):
        raise InvalidRequest(
            "Nothing to forget was named.", "allowed: ID, --channel, --owner, --project, --before, --matching"
        )
    preview = run_operation("delete", {**query, "dry_run": True}, channel)
    receipt = preview["receipt"]
    if not dry_run:
        row = preview.get("channel")
        title = f", {row['title'] or row['channel']!r}," if row else ""
        if not yes:
            confirm(f"Forget {_counted(receipt)}{title} for good?", err=True)
        receipt = run_operation("delete", query, channel)["receipt"]
    if as_json:
        print_json(receipt)
    elif dry_run:
        click.echo(f"Would forget {_counted(receipt)}.")
    else:
        derived = [counted(receipt[name], noun) for name, noun in _DERIVED.items() if receipt[name]]
        click.echo(f"Forgotten: {', '.join([_counted(receipt), *derived])}. Receipt {receipt['id']}.")
        click.echo("Exported files, backups and the clients' own histories are unchanged.")


_DERIVED = {
    "vectors": "vector",
    "executions": "record",
    "results": "result",
    "cases": "test case",
    "files": "session file",
}


def _apply_policies(*, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Show what each policy matches, and forget it after a yes. A conversation that two match is counted twice."""
    policies = read_settings().retention
    if not policies:
        raise InvalidRequest("No retention policy is set.", "CTXR_RETENTION, or [[retention]] in config.toml")
    results = []
    for policy in policies:
        query = policy.model_dump(exclude_none=True)
        try:
            receipt = run_operation("retention", {**query, "dry_run": True})["receipt"]
            if not dry_run:
                if not yes:
                    confirm(f"Forget {_counted(receipt)}, {policy}, for good?", err=True)
                receipt = run_operation("retention", query)["receipt"]
        except NotFound:
            receipt = None
        results.append({"policy": query, "receipt": receipt})
        if not as_json:
            done = "Would forget" if dry_run else "Forgotten:"
            end = f" Receipt {receipt['id']}." if receipt and not dry_run else ""
            click.echo(f"{done} {_counted(receipt) if receipt else 'nothing'}, {policy}.{end}")
    if as_json:
        print_json({"policies": results})
    failed = sum(one["receipt"]["failed"] for one in results if one["receipt"])
    if failed:
        raise StorageError(f"{counted(failed, 'conversation')} could not be forgotten.", "the log says why")


def _counted(receipt: dict[str, Any]) -> str:
    return f"{counted(receipt['messages'], 'message')} ({counted(receipt['channels'], 'whole conversation')})"


@click.command()
@as_json_option
def scan(as_json: bool) -> None:
    """Count the secrets that are stored unmasked."""
    show(_scan_or_mask().as_dict(), as_json, lambda figures: _secret_lines(figures, "are stored"))


@click.command()
@click.option("--existing", is_flag=True, required=True, help="Mask what is stored; new messages are masked anyway.")
@click.option("--dry-run", is_flag=True, help="Only say what would be masked.")
@yes_option
@as_json_option
def redact(existing: bool, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Mask the secrets that are stored: in messages, index, titles and records.

    If it is stopped it masks the rest when run again. At the end the registry's
    file is rewritten, which needs as much free space as it is large.
    """
    found = _scan_or_mask()
    if found.rows and not dry_run:
        if not yes:
            confirm(f"Mask {found.kinds.total()} secrets for good?", err=True)
        found = _scan_or_mask(masks=True)
    outcome = "would be masked" if dry_run else "were masked"
    show(found.as_dict(), as_json, lambda figures: _secret_lines(figures, outcome))


def _secret_lines(figures: dict[str, Any], outcome: str) -> Iterator[str]:
    if not figures["total"]:
        yield "No secrets: nothing in the registry looks like one."
        return
    for kind, count in figures["secrets"].items():
        yield f"{count:6}  {kind}"
    rows = f"{figures['messages']} messages, {figures['channels']} titles and summaries"
    yield f"{figures['total']} secrets {outcome}, in {rows}, {figures['executions']} records."


def _scan_or_mask(*, masks: bool = False) -> SecretCounts:
    from registry.ingest.redact_existing import redact, scan, write_last_scan
    from registry.text.privacy.rules import load_rules, use_own_rules

    settings = read_settings()
    use_own_rules(settings.home)
    if load_rules().problem:
        raise InvalidRequest("The rules for secrets are wrong.", load_rules().problem)
    work = redact if masks else scan
    with progress("Masking" if masks else "Scanning") as show_progress:
        counts: SecretCounts = with_registry(lambda registry: work(registry, show_progress))
    write_last_scan(settings.home, None if masks else counts)
    return counts
