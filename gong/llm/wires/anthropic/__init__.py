"""TODO: say what anthropic is."""
