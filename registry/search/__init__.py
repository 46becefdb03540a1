"""Search: text to tokens, query to weighted terms, candidates to a ranking. Everything here is pure."""
