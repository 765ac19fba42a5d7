"""Foreign formats, parsed and written: the message arrays of four provider APIs, pure.

`anthropic`, `openai_chat`, `openai_responses` and `gemini` write, `parse/` reads, `rules/`
validates, each with one module per API; `arrays` is the table of all formats by name.
"""
