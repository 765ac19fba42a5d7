"""What a language server says is wrong with a file, compared and in words; pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from .positions import to_spot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .positions import Encoding, Spot

_SEVERITIES = {1: "error", 2: "warning", 3: "info", 4: "hint"}
_WORST_SHOWN = 2
_MAX_SHOWN = 20
_MAX_MESSAGE = 600


class _Position(Struct, frozen=True):
    line: int
    character: int


class _Range(Struct, frozen=True):
    start: _Position


class Diagnostic(Struct, frozen=True):
    """Something that is wrong in a file, as a server says it."""

    range: _Range
    message: str
    severity: int = 1
    code: Any = None
    """A text or a number, where it has one."""
    source: str | None = None

    @property
    def subject(self) -> tuple[int, str, str]:
        """What it says, wherever: lines move when a file changes."""
        return self.severity, self.message, str(self.code)

    def find_spot(self, lines: list[str], encoding: Encoding) -> Spot:
        """Return where it is, as people count."""
        return to_spot(lines, msgspec.to_builtins(self.range.start), encoding)


def parse_diagnostics(items: object) -> tuple[Diagnostic, ...]:
    """Return those that can be read, of what a server sent."""
    diagnostics = []
    for item in items if isinstance(items, list) else ():
        try:
            diagnostics.append(msgspec.convert(item, Diagnostic, strict=False))
        except msgspec.ValidationError:
            continue
    return tuple(diagnostics)


def select_new(
    before: Sequence[Diagnostic] | None, after: Sequence[Diagnostic]
) -> list[Diagnostic]:
    """Return the errors and warnings that were not there before; only errors where that is unknown.

    Equal ones at other places count: one more of them is new.
    """
    if before is None:
        return [each for each in after if each.severity == 1]
    left = Counter(each.subject for each in before)
    new = []
    for each in after:
        if left[each.subject]:
            left[each.subject] -= 1
        elif each.severity <= _WORST_SHOWN:
            new.append(each)
    return new


def format_diagnostics(
    path: str, diagnostics: Sequence[Diagnostic], lines: list[str], encoding: Encoding
) -> list[str]:
    """Return a line for each, the first twenty."""
    texts = []
    for each in sorted(diagnostics, key=lambda each: (each.severity, each.range.start.line))[
        :_MAX_SHOWN
    ]:
        spot = each.find_spot(lines, encoding)
        kind = _SEVERITIES.get(each.severity, "error")
        code = f" [{each.code}]" if each.code is not None else ""
        message = " ".join(each.message.split())[:_MAX_MESSAGE]
        texts.append(f"{path}:{spot.line}:{spot.column}: {kind}: {message}{code}")
    if len(diagnostics) > _MAX_SHOWN:
        texts.append(f"… and {len(diagnostics) - _MAX_SHOWN} more")
    return texts
