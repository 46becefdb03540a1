"""How well the right session and message are found, asked through the tools that an AI calls.

`python -m benchmarks.retrieval` asks every question of every set of `sets/`, beside SQLite's FTS5.
"""
