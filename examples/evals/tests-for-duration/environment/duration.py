"""Durations as people write them."""

import re

_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([dhms])", re.ASCII)


def read_duration(text):
    """Return the seconds of a duration, as a float.

    - Parts are a number and a unit: d, h, m or s; `1h30m`, `1h 30m` and `1 h 30 m` are the same.
    - Numbers may have decimals: `1.5h`.
    - Units are in upper or lower case, blanks at both ends do not matter.
    - Each unit occurs once at most, larger ones before smaller ones.
    - A number without a unit is seconds, if it is all there is.
    - A minus sign before everything makes the whole duration negative: `-1h 30m` is -5400.
    - Anything else raises ValueError, the empty text as well.
    """
    rest = text.strip().lower()
    sign = -1.0 if rest.startswith("-") else 1.0
    rest = rest.removeprefix("-").lstrip()
    if re.fullmatch(r"\d+(\.\d+)?", rest, re.ASCII):
        return sign * float(rest)
    total, order = 0.0, iter("dhms")
    if not rest:
        raise ValueError(f"{text!r} is no duration")
    while rest:
        match = _PART.match(rest)
        if match is None or match[2] not in order:
            raise ValueError(f"{text!r} is no duration")
        total += float(match[1]) * _UNITS[match[2]]
        rest = rest[match.end() :].lstrip()
    return sign * total
