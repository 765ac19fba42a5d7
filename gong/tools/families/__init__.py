"""TODO: say what families is."""
