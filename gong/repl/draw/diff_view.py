"""Diffs for a screen: numbered lines, with what changed inside of a line marked; pure.

A diff is as `gong.tools.diff` makes it (sign, number, text), or a patch. Lines that were removed
and as many that were added in their place are compared word by word.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from difflib import SequenceMatcher
from itertools import groupby

from .lines import INDENT, StyledLine, StyledPart, escape_text, join_parts

_LINE = re.compile(r"([-+ ])( *\d+ )?(.*)\Z", re.DOTALL)
_WORD = re.compile(r"\w+|\s+|.")
_STYLES = {"-": "removed", "+": "added", "@": "faint", "*": "faint"}
CONTEXT_LINES = 3
"""Unchanged lines that a screen shows around a change."""
_SIMILAR = 0.4
"""Lines less alike than this are shown without marks: all of them is new."""
_COMPARED_CHARS = 400


def render_diff(text: str) -> list[StyledLine]:
    """Return the lines of a diff or patch; long ones are not cut."""
    lines = escape_text(text).removesuffix("\n").split("\n")
    styled: list[StyledLine] = []
    runs = [(sign, [*run]) for sign, run in groupby(lines, lambda line: line[:1])]
    skip = False
    for at, (sign, run) in enumerate(runs):
        if skip:
            skip = False
            continue
        after = runs[at + 1] if at + 1 < len(runs) else ("", [])
        if sign == "-" and after[0] == "+" and len(run) == len(after[1]):
            pairs = [_mark_changes(old, new) for old, new in zip(run, after[1], strict=True)]
            styled += [old for old, _ in pairs] + [new for _, new in pairs]
            skip = True
        else:
            styled += [StyledLine(INDENT + line, _STYLES.get(sign, "result")) for line in run]
    return styled


def trim_context(text: str) -> str:
    """Return a numbered diff with at most `CONTEXT_LINES` unchanged lines around each change."""
    lines = text.split("\n")
    changed = [place for place, line in enumerate(lines) if line[:1] in {"-", "+"}]
    trimmed: list[str] = []
    last = -1
    for place, line in enumerate(lines):
        after = bisect_left(changed, place)
        near = changed[max(after - 1, 0) : after + 1]
        is_gap = line.strip() == "..." and line[:1] == " "
        if is_gap or not any(abs(place - change) <= CONTEXT_LINES for change in near):
            continue
        if trimmed and place > last + 1:
            trimmed.append("...")
        trimmed.append(line)
        last = place
    return "\n".join(trimmed)


def count_changes(text: str) -> str:
    """Return how many lines a diff adds and removes, as "+3 −1"."""
    signs = [line[:1] for line in text.split("\n")]
    return f"+{signs.count('+')} −{signs.count('-')}"


def _mark_changes(old: str, new: str) -> tuple[StyledLine, StyledLine]:
    """Return a removed and an added line with the words marked in which they differ."""
    matches = [_LINE.match(line) for line in (old, new)]
    heads = [f"{match[1]}{match[2] or ''}" if match else "" for match in matches]
    texts = [match[3] if match else "" for match in matches]
    words = [_WORD.findall(text) for text in texts]
    styles = ("removed", "added")
    if max(map(len, texts)) <= _COMPARED_CHARS:
        matcher = SequenceMatcher(None, words[0], words[1], autojunk=False)
        if matcher.ratio() >= _SIMILAR:
            sides: tuple[list[StyledPart], list[StyledPart]] = (
                [StyledPart(INDENT + heads[0])],
                [StyledPart(INDENT + heads[1])],
            )
            for tag, start, end, new_start, new_end in matcher.get_opcodes():
                mark = "" if tag == "equal" else "changed"
                sides[0].append(StyledPart("".join(words[0][start:end]), mark))
                sides[1].append(StyledPart("".join(words[1][new_start:new_end]), mark))
            return join_parts(sides[0], styles[0]), join_parts(sides[1], styles[1])
    return StyledLine(INDENT + old, styles[0]), StyledLine(INDENT + new, styles[1])
