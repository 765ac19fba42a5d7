"""A session put together: its tape, model, tools, hooks and sub-agents."""
