"""Bash as values: words, quotes, expansions, commands. No opinion about them."""
