"""Redact, detach, move, and delete what nothing reaches."""
