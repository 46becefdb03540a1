"""Fault injection: `python -m benchmarks.faults`."""
