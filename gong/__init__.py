"""gong: a coding agent that records its sessions on tapes."""

__version__ = "0.1.0"
