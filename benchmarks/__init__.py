"""Measure speed, search quality, and behaviour in failures. A file or folder is a command: `python -m benchmarks.NAME`.

- `python -m benchmarks` compares with a bare MCP server in the same run; its parts are in `costs`.
- Search quality: `retrieval`, `answers`, `blame`, `summaries`. Unrequested context for chats: `start_note`, `arriving`.
- Large registries and many clients: `scale`, `meaning`, `crowd`, `events`, `pages`.
- Several nodes and machines: `replicas`, `failover`, `laptops`, `moving`.
- Failures and hostile input: `faults`, `fuzz`, `secrets`, `backups`, `damaged_backups`.
- Installation: `installing`. Quality of the tests: `mutants`.
- The table of docs/figures.md: `scoreboard`. The README's picture: `demo`.

Shared code (servers, registries, conversations, tables) is in `setup`.
"""
