"""What the product costs, finds, keeps and survives. A file or a folder is a command: `python -m benchmarks.NAME`.

- `python -m benchmarks` itself: beside a bare MCP server, measured in the same run; its parts are in `costs`.
- What is found: `retrieval`, `answers`, `blame`, `summaries`; what is told without asking: `start_note`, `arriving`.
- How it grows: `scale`, `meaning`, `crowd`, `events`, `pages`.
- Several nodes and machines: `replicas`, `failover`, `laptops`, `moving`.
- What nobody wishes: `faults`, `fuzz`, `secrets`, `backups`, `damaged_backups`.
- How good the tests are: `mutants`.
- The table of docs/figures.md: `scoreboard`; the README's picture: `demo`.

What they share, servers, registries, conversations and tables of figures, is in `setup`.
"""
