"""The kernel: words, errors, storage and search. Imports nothing of ours."""
