"""The parts of `python -m benchmarks`: what the product costs beside a bare server, and another reader of histories."""
