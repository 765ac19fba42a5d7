"""How each kind of text looks: names of styles and their colours.

Only the sixteen colours of the terminal's own theme, so that both dark and light ones stay
readable; with NO_COLOR bold, dim and underlined remain.
"""

from __future__ import annotations

STYLES = {
    "you": "bold",
    "thinking": "dim italic",
    "call": "ansicyan",
    "result": "dim",
    "note": "ansiyellow",
    "error": "ansired",
    "heading": "bold",
    "title": "bold underline",
    "strong": "bold",
    "emphasis": "italic",
    "strike": "strike",
    "code": "ansicyan",
    "link": "underline",
    "faint": "dim",
    "keyword": "ansimagenta",
    "string": "ansigreen",
    "comment": "dim italic",
    "number": "ansicyan",
    "name": "ansibrightblue",
    "added": "ansigreen",
    "removed": "ansired",
    "changed": "reverse",
    "risky": "ansired bold underline",
    "bottom-toolbar": "noreverse dim",
}
"""Name of a style → how it looks, as prompt-toolkit writes it."""
