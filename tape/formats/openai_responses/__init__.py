"""The OpenAI Responses API's array of items: emit, parse, rules."""
