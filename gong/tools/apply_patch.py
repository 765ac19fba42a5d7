"""apply_patch: creates, changes, moves and deletes many files in one call, all or none.

The grammar is for models that can be held to one while they write.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from tape.model.entries import Text

from ..llm.types import Grammar
from .diff import build_file_diff
from .known_files import hash_bytes
from .patch.parse import (
    InvalidPatch,
    PatchCommand,
    cut_words_around,
    find_patch_in_command,
    parse_patch,
)
from .patch.plan import PatchFailures, plan_patch, resolve_patch_paths
from .paths import describe_os_error, explain_oversize, hold_locks
from .tool import AgentTool, ToolOutcome
from .truncation import keep_full_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..env.protocol import ChangeRefusal, ExecutionEnvironment, FileUpdate
    from .known_files import KnownFiles
    from .patch.parse import Hunk
    from .patch.plan import FileOperation, PatchPaths
    from .tool import ToolContext


PATCH_GRAMMAR = Grammar(
    "lark",
    r"""
start: FIRST change+ LAST

?change: added | deleted | updated

added: "*** Add File: " NAME LF new_line+
deleted: "*** Delete File: " NAME LF
updated: "*** Update File: " NAME LF moved? part*

moved: "*** Move to: " NAME LF
part: place+ line+ at_end? | line+ at_end?
place: "@@" (" " TEXT)? LF
line: (" " | "-" | "+") TEXT? LF
new_line: "+" TEXT? LF
at_end: "*** End of File" LF

FIRST: "*** Begin Patch" LF
LAST: "*** End Patch" LF?
NAME: /[^\r\n]+/
TEXT: /[^\r\n]+/

%import common.LF
""".lstrip(),
)
"""The patches that `apply_patch` describes to models; what it reads besides is not asked for."""


SHOWN_FAILURES = 10
UNCHANGED_TEXT = "No file was changed."
_RETRY_TEXT = f"{UNCHANGED_TEXT} Read those files again, correct the patch and send all of it."
_LETTERS = {"add": "A", "update": "M", "move": "M", "delete": "D"}


class ApplyPatchArguments(Struct, frozen=True):
    """The patch, under either name."""

    input: Annotated[
        str, Meta(description="The whole patch, from *** Begin Patch to *** End Patch")
    ] = ""
    patch: Annotated[str, Meta(description="Another name for input; give one of them")] = ""


class PatchedFileDetails(Struct, frozen=True):
    """What happened to one file, for people."""

    op: str
    """add, update, move or delete."""
    path: str
    dest: str | None
    """Where it was moved to."""
    diff: str
    """The changed lines; "" if none changed, or if they are not text."""
    first_changed_line: int | None


class ApplyPatchDetails(Struct, frozen=True):
    """What happened, hunk by hunk."""

    files: tuple[PatchedFileDetails, ...]


async def run_apply_patch(
    arguments: ApplyPatchArguments, context: ToolContext, *, is_tried: bool = False
) -> ToolOutcome:
    """Apply the whole patch, or change no file and report all errors; tried, it changes nothing."""
    hunks, folder = _parse_arguments(arguments)
    if isinstance(hunks, InvalidPatch):
        return ToolOutcome.error(f"{hunks}. {UNCHANGED_TEXT}")
    if not hunks:
        return ToolOutcome.error("No files were modified. The patch names no file.")
    paths = await resolve_patch_paths(hunks, folder, context.env)
    if isinstance(paths, PatchFailures):
        return _build_patch_error(paths.texts)
    async with hold_locks(paths.real.values()):
        return await _apply_hunks(hunks, paths, context, is_tried=is_tried)


def _parse_arguments(
    arguments: ApplyPatchArguments,
) -> tuple[Sequence[Hunk] | InvalidPatch, str]:
    """Return the hunks, and the folder that their paths start from."""
    text, folder = arguments.input or arguments.patch, ""
    called = find_patch_in_command(text)
    if isinstance(called, PatchCommand):
        text, folder = called.patch, called.folder or ""
    return parse_patch(cut_words_around(text)), folder


async def find_patch_targets(
    arguments: ApplyPatchArguments, env: ExecutionEnvironment
) -> Sequence[str]:
    """Return the files that a patch names, none where it is refused."""
    hunks, folder = _parse_arguments(arguments)
    if isinstance(hunks, InvalidPatch):
        return ()
    paths = await resolve_patch_paths(hunks, folder, env)
    return () if isinstance(paths, PatchFailures) else tuple(dict.fromkeys(paths.real.values()))


async def _apply_hunks(
    hunks: Sequence[Hunk], paths: PatchPaths, context: ToolContext, *, is_tried: bool
) -> ToolOutcome:
    env = context.env
    files = await _read_files(paths, env)

    def read(path: str) -> bytes | None:
        data = files[path]
        if isinstance(data, OSError):
            raise data
        return data

    planned = await asyncio.to_thread(plan_patch, hunks, read, paths.real.__getitem__)
    if isinstance(planned, PatchFailures):
        return _build_patch_error(planned.texts)
    if context.files and (unknown := await _find_unknown(planned.changes, paths, context.files)):
        return _build_patch_error(unknown)
    details = await asyncio.to_thread(
        lambda: ApplyPatchDetails(tuple(map(_build_file_details, planned.operations)))
    )
    if is_tried:
        return ToolOutcome((), details)
    try:
        refused = await env.change_files(planned.changes, paths.root)
    except OSError as error:
        return ToolOutcome.error(f"{error}. {UNCHANGED_TEXT}")
    if refused:
        return ToolOutcome.error(_describe_change_refusal(refused, paths.real))
    if context.files:
        await asyncio.to_thread(context.files.note_changes, planned.changes)
    lines = dict.fromkeys(
        f"{letter} {operation.destination or operation.path}"
        for letter in ("A", "M", "D")
        for operation in planned.operations
        if _LETTERS[operation.op] == letter
    )
    return ToolOutcome.from_text(
        "\n".join(("Success. Updated the following files:", *lines, *planned.notes)), details
    )


async def _read_files(
    paths: PatchPaths, env: ExecutionEnvironment
) -> dict[str, bytes | OSError | None]:
    """Return what is in each file now; None where there is none."""
    files: dict[str, bytes | OSError | None] = {}
    for path in paths.real.values():
        try:
            why = await explain_oversize(env, path, paths.root)
            files[path] = OSError(why) if why else await env.read_file(path, paths.root)
        except FileNotFoundError:
            files[path] = None
        except OSError as error:
            files[path] = error
    return files


async def _find_unknown(
    changes: Sequence[FileUpdate], paths: PatchPaths, known: KnownFiles
) -> tuple[str, ...]:
    """Return a refusal for each change of a file that the model does not know."""
    names = {place: path for path, place in paths.real.items()}
    old_states = [change.before for change in changes]
    digests = await asyncio.to_thread(
        lambda: [None if before is None else hash_bytes(before) for before in old_states]
    )
    refusals = (
        known.describe_refusal(change.path, digest, names[change.path])
        for change, digest in zip(changes, digests, strict=True)
    )
    return tuple(filter(None, refusals))


def _build_patch_error(texts: Sequence[str]) -> ToolOutcome:
    rest = len(texts) - SHOWN_FAILURES
    more = (f"... and {rest} more",) if rest > 0 else ()
    text = "\n\n".join((*texts[:SHOWN_FAILURES], *more, _RETRY_TEXT))
    full = keep_full_text("\n\n".join((*texts, _RETRY_TEXT))) if more else None
    return ToolOutcome((Text(text),), is_error=True, full=full)


def _describe_change_refusal(refused: ChangeRefusal, real: Mapping[str, str]) -> str:
    names = {place: path for path, place in real.items()}
    error = describe_os_error(refused.error, names.get(refused.path, refused.path))
    if not refused.left:
        return f"{error}. {UNCHANGED_TEXT}"
    left = ", ".join(names.get(path, path) for path in refused.left)
    return f"{error}. Not all could be undone: look at {left}, and at *.old files beside it."


def _build_file_details(operation: FileOperation) -> PatchedFileDetails:
    op, path, destination, before, after = operation
    diff = build_file_diff(before, after)
    if diff is None:
        return PatchedFileDetails(op, path, destination, "", None)
    return PatchedFileDetails(op, path, destination, "\n".join(diff.lines), diff.first_changed_line)


APPLY_PATCH_TOOL = AgentTool(
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
    arguments=ApplyPatchArguments,
    run=run_apply_patch,
    freeform=PATCH_GRAMMAR,
    find_targets=find_patch_targets,
    preview=partial(run_apply_patch, is_tried=True),
)
