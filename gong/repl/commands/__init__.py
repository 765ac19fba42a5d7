"""Slash commands by subject, and the table of them."""
