"""Copies of tapes elsewhere: push to them, pull from them. The only room with a network."""
