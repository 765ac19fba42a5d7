"""Typographic characters that look like ASCII ones, which models and people mix up; pure.

One table for everything that compares texts by their looks: the edit tool, patches, blame.
"""

from __future__ import annotations

_ASCII_LOOKALIKES = {
    **dict.fromkeys((*range(0x2010, 0x2016), 0x2212), "-"),
    **dict.fromkeys(range(0x2018, 0x201C), "'"),
    **dict.fromkeys(range(0x201C, 0x2020), '"'),
    # Unicode defines U+2000 and U+2001 as the same characters as U+2002 and U+2003.
    **dict.fromkeys((0x00A0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000), " "),
}
"""Dashes, quotation marks and blanks, each with the ASCII character it looks like."""


def replace_lookalikes(text: str) -> str:
    """Return a text of the same length with ASCII dashes, quotation marks and blanks."""
    return text if text.isascii() else text.translate(_ASCII_LOOKALIKES)
