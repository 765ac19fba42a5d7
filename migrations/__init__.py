"""Schemas in ordered steps; a step that was released is never changed, a later one changes it."""
