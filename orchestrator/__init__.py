"""Run the product's operations: one graph for all operations of every door."""
