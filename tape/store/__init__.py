"""TODO: say what store is."""
