"""What a registry does when things break: `python -m benchmarks.faults`."""
