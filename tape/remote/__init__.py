"""Copies of tapes elsewhere: push to them, pull from them. The only room with a network."""

REGISTRY_NAME = "remotes.json"
"""In the folder of a store: its remotes."""
