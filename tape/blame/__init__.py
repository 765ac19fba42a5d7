"""TODO: say what blame is."""
