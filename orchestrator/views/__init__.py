"""Read what pages and lists show, without an execution, and store what an operator notes."""
