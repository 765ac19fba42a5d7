"""The Chat Completions API, of OpenAI and the hosts that speak it."""
