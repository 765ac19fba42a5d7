"""Output of a command: text or one JSON document on standard output, warnings on standard error."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ..locks import PATIENT, patience
from ..text import well_formed
from .plain import say, table, warn
from .terminal import columns, progress, style

if TYPE_CHECKING:
    from collections.abc import Iterable

    from click.shell_completion import CompletionItem

__all__ = [
    "Count",
    "array",
    "as_json",
    "columns",
    "counted",
    "document",
    "exact",
    "examples",
    "places",
    "progress",
    "raw",
    "ref",
    "say",
    "size",
    "style",
    "table",
    "wait",
    "warn",
]

MOST = 10**12
"""An upper bound for any count."""
SECONDS = 1e6
"""The longest wait that may be given, in seconds."""

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


def _be_patient(ctx: click.Context, _: click.Parameter, seconds: float | None) -> None:
    if seconds is not None:
        ctx.with_resource(patience(seconds, warn))


wait = click.option(
    "--wait",
    type=click.FloatRange(min=0, max=SECONDS),
    metavar="SECONDS",
    help=f"How long to wait while another process updates the branches. Default: {PATIENT:g}.",
    expose_value=False,
    callback=_be_patient,
)


def places(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return completions of a REF: the `shell_complete` of arguments that are REFs."""
    from .completion import places  # noqa: PLC0415 (only a shell asks)

    return places(ctx, param, incomplete)


ref = click.argument("ref", default="", metavar="[REF]", shell_complete=places)


def examples(*lines: str) -> str:
    """Return the examples that end a help page."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


class Count(click.IntRange):
    """A count of at least `min`; a number above the upper bound means all."""

    def __init__(self, min: int = 0, most: int = MOST) -> None:  # noqa: A002 (as click calls it)
        super().__init__(min=min)
        self._most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number, or the upper bound if it is larger."""
        return min(int(super().convert(value, param, ctx)), self._most)


def document(value: object) -> None:
    """Print one JSON document; bytes of a file name that are not UTF-8 become U+FFFD."""
    try:
        data = msgspec.json.encode(value)
    except UnicodeEncodeError:
        data = msgspec.json.encode(_well_formed(msgspec.to_builtins(value)))
    raw(data + b"\n")


def _well_formed(value: Any) -> Any:
    match value:
        case str():
            return well_formed(value)
        case dict():
            return {_well_formed(key): _well_formed(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_well_formed(inner) for inner in value]
        case _:
            return value


def raw(data: bytes) -> None:
    """Print bytes as they are; on a terminal control characters become JSON escapes."""
    sys.stdout.buffer.write(data)


def exact(data: bytes) -> None:
    """Print UTF-8 text as it is; on a terminal its control characters are made visible."""
    if sys.stdout.isatty():
        sys.stdout.write(data.decode("utf-8", "replace"))
    else:
        raw(data)


def array(items: Iterable[bytes]) -> None:
    """Print a JSON array, one item per line, as the items come."""
    start = b"[\n"
    for item in items:
        raw(start + item)
        start = b",\n"
    raw(b"[]\n" if start == b"[\n" else b"\n]\n")


def size(count: int) -> str:
    """Return a number of bytes with its unit (B, kB, MB, GB)."""
    amount = float(count)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:  # noqa: PLR2004
            return f"{amount:.{0 if unit == 'B' else 1}f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def counted(count: int, one: str) -> str:
    """Return a number with its noun, in the plural unless it is 1."""
    plural = (
        f"{one[:-1]}ies" if one.endswith("y") else f"{one}es" if one.endswith("ch") else f"{one}s"
    )
    return f"{count} {one if count == 1 else plural}"
