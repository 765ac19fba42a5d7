"""TODO: say what openai_responses is."""
