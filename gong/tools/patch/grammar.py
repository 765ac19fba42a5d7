"""What a patch must look like, for models that can be held to a grammar while they write."""

from __future__ import annotations

from ...llm.types import Grammar

PATCH_GRAMMAR = Grammar(
    "lark",
    r"""
start: FIRST change+ LAST

?change: added | deleted | updated

added: "*** Add File: " NAME LF new_line+
deleted: "*** Delete File: " NAME LF
updated: "*** Update File: " NAME LF moved? part*

moved: "*** Move to: " NAME LF
part: place+ line+ at_end? | line+ at_end?
place: "@@" (" " TEXT)? LF
line: (" " | "-" | "+") TEXT? LF
new_line: "+" TEXT? LF
at_end: "*** End of File" LF

FIRST: "*** Begin Patch" LF
LAST: "*** End Patch" LF?
NAME: /[^\r\n]+/
TEXT: /[^\r\n]+/

%import common.LF
""".lstrip(),
)
"""The patches that `apply_patch` describes to models; what it reads besides is not asked for."""
