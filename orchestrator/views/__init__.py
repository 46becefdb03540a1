"""What pages and lists show: reads of the registry that are no execution of their own, and what an operator notes."""
