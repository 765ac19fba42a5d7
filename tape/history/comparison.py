"""How two branches differ: where they part, and what each did since.

Invariant: `tape diff` and the web view show the same report.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from ..model.entries import Assistant, Checkpoint, Meta, Start, ToolResult, ToolStart, User
from ..model.line import decode_line, describe_blob_head, read_type
from ..text import format_count
from .activity import Activity, summarize_activity
from .entry_lines import decode_legible, iter_lines
from .merge_base import find_merge_base, read_path_to

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..model.line import Entry
    from ..store.path import Segment
    from ..store.tape import Hit

_FOLDER_TYPES = frozenset({"start", "meta"})
"""Entry types that give the working folder from there on."""


_CALL_TYPES = frozenset(kind.entry_type for kind in (Assistant, ToolStart, Checkpoint, ToolResult))
"""Entry types that request a tool call, start it, save its files and answer it."""


_CALL_OPS = frozenset({"write", "edit", "patch"})
"""Operations that are named after what a call does, not after what became of the file."""


class CommonEntry(Struct, frozen=True):
    """The newest common entry."""

    tape: str
    phase: str
    entry: str
    n: int
    time: str
    type: str


class BranchSide(Struct, frozen=True):
    """A branch, and what it did since the common entry; `n` is the depth of its head."""

    tape: str
    branch: str
    entry: str
    n: int
    since: Activity


class DiffReport(Struct, frozen=True):
    """How two branches differ, as `diff --json` prints it."""

    base: CommonEntry | None
    a: BranchSide
    b: BranchSide
    both: tuple[str, ...]
    """Files that both sides changed."""


class BranchComparison(NamedTuple):
    """How two branches differ, and their common entry."""

    report: DiffReport
    common: Entry | None


def compare_places(first: Hit, two: Hit, skipped: Callable[[str], None]) -> BranchComparison:
    """Return how two entries' paths differ; damaged entries are left out with a warning.

    What cannot be compared is reported to `skipped`.
    """
    parted = find_merge_base(read_path_to(*first), read_path_to(*two))
    for text in parted.broken:
        skipped(f"{text}; what lies before it is not compared")
    cwd = ""
    for step in decode_legible(iter_lines(parted.common), describe_blob_head, _FOLDER_TYPES):
        if isinstance(step.entry.data, Start | Meta):
            cwd = step.entry.data.cwd or cwd
    open_calls = _find_open_calls(parted.common)
    a, b = (
        _build_side(hit, since, cwd, open_calls)
        for hit, since in ((first, parted.a), (two, parted.b))
    )
    both = sorted({file.path for file in a.since.files} & {file.path for file in b.since.files})
    head, source = parted.base, parted.source
    if head is None or source is None:
        return BranchComparison(DiffReport(None, a, b, tuple(both)), None)
    with source.phases.open(head.phase) as file:
        common = decode_line(file.line_at(head.offset), describe_blob_head)
    at = head.header
    base = CommonEntry(source.tape, head.phase, at.id, at.n, at.time, at.type)
    return BranchComparison(DiffReport(base, a, b, tuple(both)), common)


def _build_side(hit: Hit, since: Sequence[Segment], cwd: str, before: list[Entry]) -> BranchSide:
    """Return one side; `before` has the calls from before the fork that it may answer."""
    tape, head = hit
    read = (step.entry for step in decode_legible(iter_lines(since), describe_blob_head))
    return BranchSide(
        tape.id, head.branch, head.entry, head.header.n, summarize_activity(read, cwd, before)
    )


def _find_open_calls(common: Sequence[Segment]) -> list[Entry]:
    """Return the newest answer of a path and the results of its calls."""
    calls: list[Entry] = []
    for line in iter_lines(common, back=True):
        kind = read_type(line.line)
        if kind in _CALL_TYPES:
            calls[:0] = [step.entry for step in decode_legible([line], describe_blob_head)]
        if kind in {Assistant.entry_type, User.entry_type}:
            break
    return calls


def format_span(seconds: int) -> str:
    """Return a duration in its two largest units."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (rest, "s")]
    largest = next((at for at, (count, _) in enumerate(parts) if count), len(parts) - 1)
    return " ".join(f"{count} {unit}" for count, unit in parts[largest : largest + 2])


def describe_ops(ops: dict[str, int]) -> str:
    """Return what was done to a file, as `2 edits, 1 deleted`."""
    return ", ".join(
        format_count(count, op) if op in _CALL_OPS else f"{count} {op}" for op, count in ops.items()
    )
