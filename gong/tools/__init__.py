"""The tools: one a file, the registry, truncation."""
