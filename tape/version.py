"""The version of this package, readable without loading anything else of it."""

__version__ = "0.1.0"
