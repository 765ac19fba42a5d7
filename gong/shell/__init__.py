"""TODO: say what shell is."""
