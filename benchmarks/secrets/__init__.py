"""Secrets planted by all three ways in, and looked for on the disk: `python -m benchmarks.secrets`."""
