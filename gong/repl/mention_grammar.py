"""When a menu of completions opens by itself: a leaf, because the first prompt needs it at once."""

from __future__ import annotations

import re

COMMAND_BEGIN = re.compile(r"/(?P<name>[^\s/]*)\Z")
"""A command that is being typed."""
MENTION_BEGIN = re.compile(r'(?:^|(?<=\s))@(?P<path>"[^"\n]*|[^\s"]*)\Z')
"""A file that is being typed."""


ARGUMENT_BEGIN = re.compile(r"/(?P<name>[^\s/]+)[^\S\n]+(?P<argument>[^\n]*)\Z")
"""The argument of a command that is being typed."""


def is_menu_begin(text: str) -> bool:
    """Return whether the menu opens by itself: `text` is what stands before the cursor."""
    begins = (COMMAND_BEGIN.match, ARGUMENT_BEGIN.match, MENTION_BEGIN.search)
    return any(begin(text) is not None for begin in begins)
