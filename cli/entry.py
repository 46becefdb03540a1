"""Where the installed program begins. What somebody waits for is spared the rest of the command line: a hook, and the
chat windows and reading commands that the local process serves."""

from __future__ import annotations

import gc
import os
import sys

SHARED = ("extract", "list", "note", "recent", "search", "show", "sync")
"""The commands that the local process runs for a user."""
OBJECTS = 10_000
"""After so many new ones it is looked for garbage in circles; after 700, as usual, a seventh of each start went there:
nearly all that is loaded stays."""


def main() -> None:
    """`ctxr …`."""
    words = sys.argv[1:]
    if words[:1] == ["hook"] and not {"-h", "--help"} & set(words):
        from cli.incoming.hook import run_hook

        client, event, *_ = [*words[1:], "", ""]
        run_hook(client, event)
        os._exit(0)  # there is nothing to tidy up, and a client waits
    gc.set_threshold(OBJECTS)
    if {"-h", "--help"} & set(words):
        pass  # nobody starts a process for that
    elif words[:1] == ["mcp"]:
        from cli.shared.window import run_window

        if run_window(words[1:]):
            return
    elif words and words[0] in SHARED:
        from cli.shared.command import run_shared

        status = run_shared(words)
        if status is not None:
            sys.exit(status)
    from cli.main import main as command_line

    try:
        command_line()
    finally:
        gc.freeze()  # else Python looks through all that is loaded once more before it ends: up to .45 s


if __name__ == "__main__":
    main()
