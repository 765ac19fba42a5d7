"""Redact, detach, move, archive, and delete what nothing reaches."""
