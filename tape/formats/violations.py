"""A broken rule, and the few tests that the rules of all four APIs share: pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from ..model.payload import JSON_ERRORS
from .wire import decode_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class Violation(NamedTuple):
    """A rule that an array breaks: where, such as messages[2].content[0], and what is wrong."""

    where: str
    why: str

    def __str__(self) -> str:
        return f"{self.where}: {self.why}"


TOOL_NAME = re.compile(r"[a-zA-Z0-9_.:-]{1,128}")


def find_repeated(names: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield each name that stood before, and its place."""
    seen: set[str] = set()
    for place, name in enumerate(names):
        if name in seen:
            yield place, name
        seen.add(name)


def is_blank(text: Any) -> bool:
    """Tell whether a text is one that providers refuse: no string, or nothing but white space."""
    return not isinstance(text, str) or not text.strip()


def is_object(text: Any) -> bool:
    """Tell whether a text is a JSON object."""
    try:
        return isinstance(text, str) and isinstance(decode_json(text), dict)
    except JSON_ERRORS:
        return False


def check_objects(array: Sequence[Any], field: str) -> list[Violation]:
    """Return a violation for each element that is no object."""
    return [
        Violation(f"{field}[{place}]", "not an object")
        for place, element in enumerate(array)
        if not isinstance(element, dict)
    ]
