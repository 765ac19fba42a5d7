"""TODO: say what maintenance is."""
