"""What the model sees: system prompt, project documents, and how the context window is used."""
