"""Plant secrets through each input and search the disk for them: `python -m benchmarks.secrets`."""
