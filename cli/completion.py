"""`ctxr completion`: what a shell needs to complete our commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

VARIABLE = "_CTXR_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), help="Which shell.")
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script that lets your shell complete ctxr's words.

    \b
    eval "$(ctxr completion bash)"            in ~/.bashrc
    eval "$(ctxr completion zsh)"             in ~/.zshrc
    ctxr completion fish | source             in ~/.config/fish/config.fish
    """
    complete = get_completion_class(shell)
    assert complete is not None  # noqa: S101, the choice is click's own
    click.echo(complete(ctx.find_root().command, {}, "ctxr", VARIABLE).source())
