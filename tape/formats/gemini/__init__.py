"""The Gemini API's array of contents: emit, parse, rules."""
