"""TODO: say what policy is."""
