"""Start Context Registry as Claude Desktop's bundle does."""

from cli.entry import main

main()
