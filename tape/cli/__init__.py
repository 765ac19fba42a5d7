"""The command line of the store: thin click commands, the only readers of argv and environment."""
