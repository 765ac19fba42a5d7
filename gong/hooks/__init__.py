"""What people hang into a run: Python hooks and commands, asked by one dispatcher."""

from .hook import HANDLED, Allow, Ask, Block

__all__ = ["HANDLED", "Allow", "Ask", "Block"]
