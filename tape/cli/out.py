"""What a command says: text or one JSON document on standard output, warnings on standard error."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click
import msgspec

from ..render import single, width

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PLAIN = 100
"""Columns of a line that is cut, where no terminal says how many there are."""

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
ref = click.argument("ref", default="", metavar="[REF]")


def examples(*lines: str) -> str:
    """Return the end of a help page."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def say(lines: Iterable[str]) -> None:
    """Print lines of text."""
    for line in lines:
        text = f"{line}\n"
        try:
            sys.stdout.write(text)
        except UnicodeEncodeError:  # a terminal that does not speak UTF-8
            encoding = sys.stdout.encoding
            sys.stdout.write(text.encode(encoding, "replace").decode(encoding))


def document(value: object) -> None:
    """Print one JSON document."""
    raw(msgspec.json.encode(value) + b"\n")


def raw(data: bytes) -> None:
    """Print bytes as they are."""
    sys.stdout.buffer.write(data)


def array(items: Iterable[bytes]) -> None:
    """Print a JSON array, an item a line, as the items come."""
    start = b"[\n"
    for item in items:
        raw(start + item)
        start = b",\n"
    raw(b"[]\n" if start == b"[\n" else b"\n]\n")


def warn(text: str, program: str = "tape") -> None:
    """Say something on standard error, in one line."""
    click.echo(f"{program}: {single(text)}", err=True)


def columns() -> int:
    """Return how many columns a line may take."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or PLAIN
    except (OSError, ValueError):  # no terminal
        return PLAIN


def table(rows: Sequence[Sequence[str]], right: Iterable[int] = ()) -> list[str]:
    """Return rows as aligned columns; those in `right` are set to the right."""
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    sided = set(right)
    return [
        "  ".join(
            _set(cell, wide, at in sided)
            for at, (cell, wide) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _set(cell: str, wide: int, right: bool) -> str:
    room = " " * (wide - width(cell))
    return room + cell if right else cell + room


def size(count: int) -> str:
    """Return bytes as people read them."""
    amount = float(count)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:  # noqa: PLR2004
            return f"{amount:.{0 if unit == 'B' else 1}f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def counted(count: int, one: str) -> str:
    """Return a number and its noun."""
    plural = (
        f"{one[:-1]}ies" if one.endswith("y") else f"{one}es" if one.endswith("ch") else f"{one}s"
    )
    return f"{count} {one if count == 1 else plural}"
