"""apply_patch: creates, changes, moves and deletes many files in one call, all or none."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from tape.blocks import Text

from .diff import diff_of
from .locks import held
from .match import Replacement
from .patch.command import Invocation, patch_of_command
from .patch.grammar import GRAMMAR
from .patch.hunks import Invalid
from .patch.parse import parse
from .patch.places import places
from .patch.plan import Failures, plan
from .text_files import failure, is_binary
from .tool import Tool, ToolResult
from .truncate import kept_whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..env.protocol import ExecutionEnvironment, Refused
    from .patch.hunks import Hunk
    from .patch.places import Places
    from .patch.plan import Operation, Plan
    from .tool import ToolContext

SHOWN_FAILURES = 10
UNCHANGED = "No file was changed."
_MEND = f"{UNCHANGED} Read those files again, correct the patch and send all of it."
_LETTERS = {"add": "A", "update": "M", "move": "M", "delete": "D"}


class Arguments(Struct, frozen=True):
    """The patch, under either name."""

    input: Annotated[
        str, Meta(description="The whole patch, from *** Begin Patch to *** End Patch")
    ] = ""
    patch: Annotated[str, Meta(description="Another name for input; give one of them")] = ""


class FileDetails(Struct, frozen=True):
    """What happened to one file, for people."""

    op: str
    """add, update, move or delete."""
    path: str
    dest: str | None
    """Where it was moved to."""
    diff: str
    """The changed lines; "" if none changed, or if they are not text."""
    first_changed_line: int | None


class Details(Struct, frozen=True):
    """What happened, hunk by hunk."""

    files: tuple[FileDetails, ...]


async def run(arguments: Arguments, context: ToolContext) -> ToolResult:
    """Apply the whole patch, or change no file and report all errors."""
    text, folder = arguments.input or arguments.patch, ""
    called = patch_of_command(text)
    if isinstance(called, Invocation):
        text, folder = called.patch, called.folder or ""
    hunks = parse(text)
    if isinstance(hunks, Invalid):
        return ToolResult.error(f"{hunks}. {UNCHANGED}")
    if not hunks:
        return ToolResult.error("No files were modified. The patch names no file.")
    found = await places(hunks, folder, context.env)
    if isinstance(found, Failures):
        return _failed(found.texts)
    async with held(found.real.values()):
        return await _applied(hunks, found, context.env)


async def _applied(hunks: Sequence[Hunk], found: Places, env: ExecutionEnvironment) -> ToolResult:
    files = {path: await _read(env, path, found.root) for path in found.real.values()}

    def read(path: str) -> bytes | None:
        data = files[path]
        if isinstance(data, OSError):
            raise data
        return data

    planned = await asyncio.to_thread(plan, hunks, read, found.real.__getitem__)
    if isinstance(planned, Failures):
        return _failed(planned.texts)
    try:
        refused = await env.change_files(planned.changes, found.root)
    except OSError as error:
        return ToolResult.error(f"{error}. {UNCHANGED}")
    if refused:
        return ToolResult.error(_refused(refused, found.real))
    details = Details(await asyncio.to_thread(_details, planned.operations))
    return ToolResult.from_text(_success(planned), details)


async def _read(env: ExecutionEnvironment, path: str, root: str) -> bytes | OSError | None:
    """Return the content of a file, None if there is none, or the error of reading it."""
    try:
        return await env.read_file(path, root)
    except FileNotFoundError:
        return None
    except OSError as error:
        return error


def _failed(texts: Sequence[str]) -> ToolResult:
    rest = len(texts) - SHOWN_FAILURES
    more = (f"... and {rest} more",) if rest > 0 else ()
    shown = "\n\n".join((*texts[:SHOWN_FAILURES], *more, _MEND))
    full = kept_whole("\n\n".join((*texts, _MEND))) if more else None
    return ToolResult((Text(shown),), is_error=True, full=full)


def _refused(refused: Refused, real: Mapping[str, str]) -> str:
    names = {place: path for path, place in real.items()}
    said = failure(refused.error, names.get(refused.path, refused.path))
    if not refused.left:
        return f"{said}. {UNCHANGED}"
    left = ", ".join(names.get(path, path) for path in refused.left)
    return f"{said}. Not all could be undone: look at {left}, and at *.old files beside it."


def _success(planned: Plan) -> str:
    lines = dict.fromkeys(
        f"{letter} {one.destination or one.path}"
        for letter in ("A", "M", "D")
        for one in planned.operations
        if _LETTERS[one.op] == letter
    )
    return "\n".join(("Success. Updated the following files:", *lines, *planned.notes))


def _details(operations: Sequence[Operation]) -> tuple[FileDetails, ...]:
    return tuple(map(_file_details, operations))


def _file_details(operation: Operation) -> FileDetails:
    op, path, destination, before, after = operation
    if before == after or is_binary(before + after):
        return FileDetails(op, path, destination, "", None)
    diff = diff_of(_replacement(before, after))
    return FileDetails(op, path, destination, "\n".join(diff.lines), diff.first_changed_line)


def _replacement(before: bytes, after: bytes) -> Replacement:
    """Return the lines that differ, from the first to the last, as one span."""
    old, new = before.split(b"\n"), after.split(b"\n")
    shorter = min(len(old), len(new))
    top = _alike(old, new, shorter)
    bottom = _alike(old[::-1], new[::-1], shorter - top)
    start = min(_size(old[:top]), len(before), len(after))
    below = _size(old[len(old) - bottom :])
    return Replacement(
        before, after, start, max(start, len(before) - below), max(start, len(after) - below)
    )


def _alike(one: Sequence[bytes], other: Sequence[bytes], most: int) -> int:
    return next((n for n in range(most) if one[n] != other[n]), most)


def _size(lines: Sequence[bytes]) -> int:
    return sum(map(len, lines)) + len(lines)


TOOL = Tool(
    name="apply_patch",
    description=(
        "Create, change, move and delete files with one patch; it is applied whole or not at all."
        " Form:\n"
        "*** Begin Patch\n"
        "*** Add File: new.txt\n"
        "+every line of the new file\n"
        "*** Delete File: old.txt\n"
        "*** Update File: src/a.py\n"
        "*** Move to: src/b.py\n"
        "@@ class Greeter\n"
        "@@     def greet(self):\n"
        '         name = "you"\n'
        '-        print("Hi", name)\n'
        '+        print("Hello", name)\n'
        "         return name\n"
        "*** End Patch\n"
        "Lines start with a space (kept), - (removed) or + (added). Give three unchanged lines"
        " around each change, as in the file; if those occur more than once, name the"
        " class or function above them in a line @@. Each change begins with a line @@, in the"
        " order of the file; leave out Move to if nothing moves, and *** End of File after"
        " a change says that it is at the end. Paths are relative to the working directory."
    ),
    arguments=Arguments,
    run=run,
    freeform=GRAMMAR,
)
