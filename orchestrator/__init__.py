"""What the product does: one graph that every operation of every door runs through."""
