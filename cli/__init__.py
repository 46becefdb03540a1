"""The command line interface: the ctxr command."""
