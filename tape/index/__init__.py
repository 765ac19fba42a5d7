"""TODO: say what index is."""
