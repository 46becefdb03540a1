"""`ctxr meaning`: the models that find what was said in other words."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from cli.output import TerminalError
from registry.errors import InvalidRequest
from registry.settings import read_settings


class DownloadFailed(TerminalError):
    """The hub does not have the model, or cannot be reached."""

    code = "DOWNLOAD_FAILED"


@click.group()
def meaning() -> None:
    """Look after the models that find what was said in other words."""


@meaning.command()
@click.argument("name")
def install(name: str) -> None:
    """Download a sentence model in ONNX by its name on the Hugging Face hub.

    Such as intfloat/multilingual-e5-base. CTXR_EMBED_MODEL=NAME chooses it then; it
    needs the extra `embed`. HF_ENDPOINT may name a mirror of the hub.
    """
    from orchestrator.semantic.download import NotDownloaded, download
    from orchestrator.semantic.models import folder_of

    settings = read_settings()
    if not all(part.strip(".") for part in name.split("/")):
        raise InvalidRequest(f"{name} is no name of a model.", "OWNER/NAME, as its page on the hub calls it")
    folder = folder_of(settings.model_copy(update={"embed_model": name}))
    with click.progressbar(length=1, label="Downloading", file=sys.stderr) as bar:

        def show(done: int, total: int) -> None:
            bar.length = max(total, 1)
            bar.update(done - bar.pos)

        try:
            download(name, folder, show)
        except NotDownloaded as exc:
            raise DownloadFailed(f"{name} was not downloaded.", str(exc)) from exc
    click.echo(f"{name} is in {_shown(folder)}. CTXR_EMBED_MODEL={name} chooses it.")


def _shown(folder: Path) -> str:
    return click.format_filename(folder)
