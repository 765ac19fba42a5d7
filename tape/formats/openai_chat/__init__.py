"""The Chat Completions API's array of messages: emit, parse, rules."""
