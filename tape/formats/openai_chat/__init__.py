"""TODO: say what openai_chat is."""
