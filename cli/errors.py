"""The one way to fail that only a terminal knows."""

from __future__ import annotations

import click


class CannotListen(click.ClickException):
    """The server's address is taken, or cannot be had. `details` says what to do."""

    code = "CANNOT_LISTEN"
    exit_code = 1

    def __init__(self, message: str, details: str) -> None:
        super().__init__(message)
        self.details = details
