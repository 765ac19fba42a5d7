"""A requirement as a plan of tasks, done side by side by sub-agents (docs/workflow.md)."""
