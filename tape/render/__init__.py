"""Entries, calls and what they changed as text for people."""
