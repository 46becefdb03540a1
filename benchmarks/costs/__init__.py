"""The parts of `python -m benchmarks`: costs of the product compared with a bare server and with other programs."""
