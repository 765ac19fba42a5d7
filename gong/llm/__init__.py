"""The unified client: one vocabulary for every model."""
