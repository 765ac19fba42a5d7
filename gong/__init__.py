"""gong: the coding agent that lives on tapes."""

__version__ = "0.1.0"
