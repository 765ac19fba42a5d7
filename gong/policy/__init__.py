"""Decides whether a call may run."""
