"""TODO: say what context is."""
