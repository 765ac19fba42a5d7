"""Logins at providers by OAuth 2: how one is made, kept, refreshed and withdrawn."""
