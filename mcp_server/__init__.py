"""The door for AI clients: MCP tools over stdio and streamable HTTP."""
