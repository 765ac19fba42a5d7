"""TODO: say what exchange is."""
