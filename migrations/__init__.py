"""Schemas in ordered steps; a released step is never changed, a later one changes the schema."""
