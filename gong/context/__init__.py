"""What stands before the model: system prompt, project documents, the token window."""
