"""TODO: say what sdk is."""
