"""The Anthropic Messages API's array of messages: emit, parse, rules."""
