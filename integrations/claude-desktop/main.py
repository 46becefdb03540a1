"""Entry point of the bundle for Claude Desktop."""

from cli.entry import main

main()
