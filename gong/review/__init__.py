"""Findings about changes: what can be known for sure, then a model's (docs/review.md)."""
