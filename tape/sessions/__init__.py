"""Conversations of other programs → tapes, and back: sessions of agents, arrays of messages."""
