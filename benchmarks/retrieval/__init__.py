"""Measure search quality through the tools that an AI calls: `python -m benchmarks.retrieval`."""
