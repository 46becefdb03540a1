"""The kernel: domain types, errors, storage and search. It imports no other package of this program."""
