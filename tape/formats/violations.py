"""A broken rule, and the checks that all four APIs share: pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from ..model.line import JSON_ERRORS
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
    """Yield each repeated name, and its index."""
    seen: set[str] = set()
    for place, name in enumerate(names):
        if name in seen:
            yield place, name
        seen.add(name)


def is_blank(text: Any) -> bool:
    """Return whether providers refuse a text: not a string, or only white space."""
    return not isinstance(text, str) or not text.strip()


def is_object(text: Any) -> bool:
    """Return whether a text is a JSON object."""
    try:
        return isinstance(text, str) and isinstance(decode_json(text), dict)
    except JSON_ERRORS:
        return False


def check_objects(array: Sequence[Any], field: str) -> list[Violation]:
    """Return a violation for each element that is not an object."""
    return [
        Violation(f"{field}[{place}]", "not an object")
        for place, element in enumerate(array)
        if not isinstance(element, dict)
    ]
