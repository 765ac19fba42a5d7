"""TODO: say what google is."""
