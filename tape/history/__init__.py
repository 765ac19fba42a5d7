"""TODO: say what history is."""
