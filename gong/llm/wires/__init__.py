"""TODO: say what wires is."""
