"""Tasks in Harbor's format, tried by an agent and judged by their own tests (docs/evals.md)."""
