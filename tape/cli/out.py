"""What a command says: text or one JSON document on standard output, warnings on standard error."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
import msgspec

from .plain import say, table, warn
from .terminal import columns, progress, style

if TYPE_CHECKING:
    from collections.abc import Iterable

    from click.shell_completion import CompletionItem

__all__ = [
    "array",
    "as_json",
    "columns",
    "counted",
    "document",
    "examples",
    "places",
    "progress",
    "raw",
    "ref",
    "say",
    "size",
    "style",
    "table",
    "warn",
]

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


def places(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return how a REF can go on, for a shell: the `shell_complete` of arguments that are one."""
    from .completion import places  # noqa: PLC0415 (only a shell asks)

    return places(ctx, param, incomplete)


ref = click.argument("ref", default="", metavar="[REF]", shell_complete=places)


def examples(*lines: str) -> str:
    """Return the end of a help page."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


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
