"""The entry point of `ctxr`. Hooks, chat windows and shared commands skip the imports of the command line."""

import gc
import os
import sys

SHARED = ("extract", "list", "note", "recent", "search", "show", "sync")
"""The commands that the local process runs for a user."""
GC_THRESHOLD = 10_000
"""New objects between garbage collections. With the default, 700, they take a seventh of each start."""


def main() -> None:
    words = sys.argv[1:]
    asks_for_help = "-h" in words or "--help" in words
    if words[:1] == ["hook"] and not asks_for_help:
        from cli.incoming.hook import run_hook

        client, event, *_ = [*words[1:], "", ""]
        run_hook(client, event)
        os._exit(0)  # nothing to clean up, and a client waits
    gc.set_threshold(GC_THRESHOLD)
    if words[:1] == ["mcp"] and not asks_for_help:
        from cli.shared.window import run_window

        if run_window(words[1:]):
            return
    elif words and words[0] in SHARED and not asks_for_help:
        from cli.shared.command import run_shared

        status = run_shared(words)
        if status is not None:
            sys.exit(status)
    from cli.main import main as command_line

    try:
        command_line()
    finally:
        gc.freeze()  # without it Python runs one more collection over all objects at exit: up to 0.45 s


if __name__ == "__main__":
    main()
