"""The reward that a task's tests wrote: a number from 0 to 1. Pure.

`reward.json` is read where there is one: a number, or an object of numbers, of which `reward`
counts, or the lowest if there is none. What is no such number is a fault, and never
counts as solved.
"""

from __future__ import annotations

import json
import math
from typing import Any

MAX_BYTES = 1 << 16
"""A larger file is no reward."""


class RewardFault(Exception):
    """What was written is no reward; the text says why."""


def parse_reward_text(data: bytes) -> float:
    """Return the number in a reward.txt; raises RewardFault."""
    text = _decode_text(data)
    try:
        return _check_number(float(text))
    except ValueError:
        why = f"{text.strip()[:40]!r} is no number" if text.strip() else "it is empty"
        raise RewardFault(why) from None


def parse_reward_json(data: bytes) -> float:
    """Return the number that a reward.json says; raises RewardFault."""
    text = _decode_text(data)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise RewardFault("it is not JSON") from None
    if not isinstance(value, dict):
        return _check_number(value)
    numbers = {name: _check_number(number) for name, number in value.items()}
    if not numbers:
        raise RewardFault("it names no reward")
    return numbers.get("reward", min(numbers.values()))


def _decode_text(data: bytes) -> str:
    if len(data) > MAX_BYTES:
        raise RewardFault(f"it has more than {MAX_BYTES >> 10} kB")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise RewardFault("it is no text in UTF-8") from None


def _check_number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RewardFault("it is no number")
    try:
        number = float(value)
    except OverflowError:
        raise RewardFault("it is not from 0 to 1") from None
    if not math.isfinite(number):
        raise RewardFault(f"{number} is no number")
    if not 0 <= number <= 1:
        raise RewardFault(f"{number:g} is not from 0 to 1")
    return number
