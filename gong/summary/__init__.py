"""Summaries: what a summariser is asked, how its answer is read, and a summary without a model."""
