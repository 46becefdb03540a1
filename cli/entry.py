"""Where the installed program begins. A hook, which a client waits for, is spared the rest of the command line."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """`ctxr …`."""
    words = sys.argv[1:]
    if words[:1] == ["hook"] and not {"-h", "--help"} & set(words):
        from cli.hook import run_hook

        client, event, *_ = [*words[1:], "", ""]
        run_hook(client, event)
        os._exit(0)  # there is nothing to tidy up, and a client waits
    from cli.main import main as command_line

    command_line()


if __name__ == "__main__":
    main()
