"""What the product costs beside a bare MCP server, measured in the same run: `python -m benchmarks`."""
