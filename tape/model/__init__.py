"""TODO: say what model is."""
