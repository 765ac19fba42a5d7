"""Foreign shapes, parsed and emitted: the message arrays of four provider APIs, pure.

`anthropic`, `openai_chat`, `openai_responses` and `gemini` emit, `parse/` reads, `rules/` judges,
each with one module for each API; `arrays` is the table of all of them by name.
"""
