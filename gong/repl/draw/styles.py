"""How each kind of text looks: names of styles and their colours.

The theme `terminal` has only the sixteen colours of the terminal's own theme, so that both dark and
light ones stay readable. `dark` and `light` have colours of their own, `plain` none; with NO_COLOR
bold, dim and underlined remain of each.
"""

from __future__ import annotations

from functools import lru_cache

from prompt_toolkit.styles import Style

_STYLES = {
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

THEMES = {
    "terminal": {},
    "dark": {
        **dict.fromkeys(("call", "code", "number"), "#7fd1de"),
        **dict.fromkeys(("string", "added"), "#a3d977"),
        "note": "#e5c07b",
        "error": "#ff7b72",
        "removed": "#ff7b72",
        "name": "#82aaff",
        "keyword": "#c792ea",
        "risky": "#ff7b72 bold underline",
        "link": "#82aaff underline",
    },
    "light": {
        **dict.fromkeys(("call", "code", "number"), "#0b6e7f"),
        **dict.fromkeys(("string", "added"), "#2b7a1f"),
        "note": "#8a5a00",
        "error": "#b3261e",
        "removed": "#b3261e",
        "name": "#1f4fbf",
        "keyword": "#7b2fa8",
        "risky": "#b3261e bold underline",
        "link": "#1f4fbf underline",
    },
    "plain": {
        **dict.fromkeys(("call", "code", "number", "string", "name", "note"), ""),
        "keyword": "bold",
        "error": "bold",
        "added": "bold",
        "removed": "dim",
        "risky": "bold underline",
    },
}
"""Theme → the styles in which it differs."""
DEFAULT_THEME = "terminal"


@lru_cache(maxsize=len(THEMES))
def build_style(theme: str) -> Style:
    """Return the styles of a theme."""
    return Style.from_dict({**_STYLES, **THEMES[theme]})
