"""The union of two copies of a tape or a store: everything of both, and nothing dropped."""
