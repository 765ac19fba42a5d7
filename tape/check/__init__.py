"""TODO: say what check is."""
