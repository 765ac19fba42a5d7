"""The agent: events, the loop, the session."""
