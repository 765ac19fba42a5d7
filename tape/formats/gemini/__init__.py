"""TODO: say what gemini is."""
