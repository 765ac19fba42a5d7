"""edit: one place of a text file, found by its text; write: a whole file, there or not.

A path that names something in the working directory must end there, through all links; what is
written below it then follows no link, so that none put there meanwhile leads out.
"""

from __future__ import annotations

import asyncio
import posixpath
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import Meta, Struct, field

from ..env.protocol import FileUpdate, is_escaping_path, is_inside_folder
from .diff import build_diff, build_file_diff
from .known_files import hash_bytes
from .limits import encode_text
from .paths import (
    build_path_error,
    describe_refused_path,
    explain_oversize,
    hold_locks,
    locate_new_path,
    locate_path,
)
from .text_files import (
    decode_text_file,
    find_text,
    is_same_text,
    replace_spans,
    strip_byte_order_mark,
)
from .tool import AgentTool, ToolOutcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..env.protocol import ExecutionEnvironment
    from .text_files import FileReplacement
    from .tool import ToolContext


class WriteTarget(NamedTuple):
    """A file that may be written."""

    real: str
    """Where it is; no link is on the way."""
    root: str | None
    """The real working directory it is below; None for one that was named outside of it."""


async def find_write_target(
    env: ExecutionEnvironment, path: str, *, new: bool = False
) -> WriteTarget | str:
    """Return where `path` leads, or the words that refuse it; `new` of a file to be written.

    Raises ValueError and OSError as `locate_path`.
    """
    named = await (locate_new_path if new else locate_path)(env, path)
    if is_escaping_path(path, named, env.working_directory):
        return describe_refused_path(path)
    real, root = await env.real_path(named), await env.real_path(env.working_directory)
    if is_inside_folder(real, root):
        return WriteTarget(real, root)
    if is_inside_folder(named, posixpath.normpath(env.working_directory)):
        return (
            f"Path leaves the working directory through a link: {path}."
            f" It leads to {real}: name that file, if it is meant."
        )
    return WriteTarget(real, None)


async def find_edit_target(path: str, env: ExecutionEnvironment) -> Sequence[str]:
    """Return the file that an edit of `path` changes, none where the edit is refused."""
    return await _find_target(path, env, new=False)


async def find_new_target(path: str, env: ExecutionEnvironment) -> Sequence[str]:
    """Return the file that writing `path` creates or replaces, none where that is refused."""
    return await _find_target(path, env, new=True)


async def _find_target(path: str, env: ExecutionEnvironment, *, new: bool) -> Sequence[str]:
    try:
        place = await find_write_target(env, path, new=new)
    except (OSError, ValueError):
        return ()
    return () if isinstance(place, str) else (place.real,)


class ReplaceRequest(NamedTuple):
    """What is to be replaced."""

    path: str
    old: str
    new: str
    every: bool
    """All places, not the only one."""
    old_name: str
    """Name of the argument with the old text, for messages."""


class EditDetails(Struct, frozen=True):
    """What changed, for people."""

    path: str
    old_text: str
    new_text: str
    diff_lines: tuple[str, ...]
    diff: str
    """The same lines as one text."""
    first_changed_line: int
    replacements: int = 1
    exact: bool = True
    """False if the match differed in spaces, quotes or dashes."""


class TextChange(NamedTuple):
    """A change that can be made."""

    replacement: FileReplacement
    times: int
    exact: bool


async def replace_text(
    context: ToolContext, request: ReplaceRequest, *, is_tried: bool = False
) -> EditDetails | ToolOutcome:
    """Apply the change, or change nothing and return the error; tried, it changes nothing."""
    try:
        place = await find_write_target(context.env, request.path)
        if isinstance(place, str):
            return ToolOutcome.error(place, kind="PermissionDenied")
        async with hold_locks((place.real,)):
            change = await _apply_replacement(context, place, request, is_tried=is_tried)
    except (OSError, ValueError) as error:
        return build_path_error(error, request.path, "File not found")
    if isinstance(change, ToolOutcome):
        return change
    diff = await asyncio.to_thread(build_diff, change.replacement)
    return EditDetails(
        path=request.path,
        old_text=request.old,
        new_text=request.new,
        diff_lines=diff.lines,
        diff="\n".join(diff.lines),
        first_changed_line=diff.first_changed_line,
        replacements=change.times,
        exact=change.exact,
    )


async def preview_replacement(context: ToolContext, request: ReplaceRequest) -> ToolOutcome:
    """Return what a change would be, or why it cannot be made."""
    details = await replace_text(context, request, is_tried=True)
    return details if isinstance(details, ToolOutcome) else ToolOutcome((), details)


async def _apply_replacement(
    context: ToolContext, place: WriteTarget, request: ReplaceRequest, *, is_tried: bool
) -> TextChange | ToolOutcome:
    env = context.env
    # Read under the lock and compared with what the model has seen: an edit by a person since
    # then is not overwritten.
    if why := await explain_oversize(env, place.real, place.root):
        return ToolOutcome.error(f"Cannot edit {request.path}: {why}.", kind="EditConflict")
    data = await env.read_file(place.real, place.root)
    files = context.files
    digest = await asyncio.to_thread(hash_bytes, data) if files else None
    if files and (unknown := files.describe_refusal(place.real, digest, request.path)):
        return ToolOutcome.error(unknown, kind="EditConflict")
    change = await asyncio.to_thread(build_change, data, request)
    if isinstance(change, str):
        return ToolOutcome.error(change, kind="EditConflict")
    if is_tried:
        return change
    update = FileUpdate(place.real, data, change.replacement.after)
    if place.root is None:
        await env.write_file(place.real, change.replacement.after)
    # Inside the folder the write names the bytes it replaces, and fails if they are others now.
    elif refused := await env.change_files((update,), place.root):
        raise refused.error
    if files:
        await asyncio.to_thread(files.note_changes, (update,))
    return change


def build_change(data: bytes, request: ReplaceRequest) -> TextChange | str:
    """Return the changed file, or why there is none (pure)."""
    path, file = request.path, decode_text_file(data)
    if file is None:
        return f"Cannot edit {path}: it is a binary file. Use bash to change it."
    if not strip_byte_order_mark(request.old):
        return (
            f"{request.old_name} is empty: name the text to replace in {path},"
            " or use write for all of it."
        )
    places = find_text(file.text, request.old)
    if not places.spans:
        return (
            f"Could not find the exact text in {path}."
            " The old text must match exactly including all whitespace and newlines."
        )
    if places.total > 1 and not request.every:
        return (
            f"Found {places.total} occurrences of the text in {path}. The text must be unique."
            " Please provide more context to make it unique."
        )
    replacement = replace_spans(file, places.spans, request.new, data)
    # The file keeps its own line ends: texts that differ in nothing else change nothing.
    if is_same_text(request.old, request.new) or replacement.after == data:
        return f"No changes made to {path}. The replacement produced identical content."
    return TextChange(replacement, len(places.spans), places.exact)


class EditArguments(Struct, frozen=True):
    """Arguments of edit."""

    path: Annotated[str, Meta(description="Path of the file, relative or absolute")]
    old_text: Annotated[
        str, Meta(description="Text to replace, exactly as in the file; it must occur there once")
    ] = field(name="oldText")
    new_text: Annotated[str, Meta(description="The new text")] = field(name="newText")


def _build_request(arguments: EditArguments) -> ReplaceRequest:
    return ReplaceRequest(
        arguments.path, arguments.old_text, arguments.new_text, every=False, old_name="oldText"
    )


async def run_edit(arguments: EditArguments, context: ToolContext) -> ToolOutcome:
    """Replace the only occurrence of `old_text`, or return an error and change nothing."""
    details = await replace_text(context, _build_request(arguments))
    if not isinstance(details, EditDetails):
        return details
    return ToolOutcome.from_text(f"Successfully replaced text in {arguments.path}.", details)


EDIT_TOOL = AgentTool(
    name="edit",
    description=(
        "Replace text in a file. oldText must match the file exactly, whitespace included, and"
        " occur once: give a few lines around the change. Line endings are kept."
    ),
    arguments=EditArguments,
    run=run_edit,
    find_targets=lambda arguments, env: find_edit_target(arguments.path, env),
    preview=lambda arguments, context: preview_replacement(context, _build_request(arguments)),
)


class WriteArguments(Struct, frozen=True):
    """What to write, and where."""

    path: Annotated[str, Meta(description="Path of the file, relative or absolute")]
    content: Annotated[str, Meta(description="The whole new content of the file")]


class WriteDetails(Struct, frozen=True):
    """What was written."""

    path: str
    byte_size: int
    created: bool
    """Whether there was no such file before."""


async def _hash_file(env: ExecutionEnvironment, place: WriteTarget) -> bytes:
    """Return the SHA-256 of a file, of a large one without holding it."""
    read_page = getattr(env, "read_page", None)  # an environment of others may not have it
    page = read_page and await read_page(place.real, 0, 1, 0, place.root)
    if page is not None:
        digest: bytes = page.digest
        return digest
    data = await env.read_file(place.real, place.root)
    return await asyncio.to_thread(hash_bytes, data)


class NewTextDetails(Struct, frozen=True):
    """What writing a file would change."""

    path: str
    diff: str
    """Empty for what is not text."""


async def preview_write(arguments: WriteArguments, context: ToolContext) -> ToolOutcome:
    """Return what writing the file would change, or why it cannot be written."""
    path, env = arguments.path, context.env
    data = encode_text(arguments.content)
    try:
        place = await find_write_target(env, path, new=True)
        if isinstance(place, str):
            return ToolOutcome.error(place, kind="PermissionDenied")
        before = b""
        if await env.file_exists(place.real):
            digest = await _hash_file(env, place)
            if context.files and (why := context.files.describe_refusal(place.real, digest, path)):
                return ToolOutcome.error(why, kind="EditConflict")
            if not await explain_oversize(env, place.real, place.root):
                before = await env.read_file(place.real, place.root)
    except (OSError, ValueError) as error:
        return build_path_error(error, path)
    diff = await asyncio.to_thread(build_file_diff, before, data)
    return ToolOutcome((), NewTextDetails(path, "" if diff is None else "\n".join(diff.lines)))


async def run_write(arguments: WriteArguments, context: ToolContext) -> ToolOutcome:
    """Write the file and say how long it is now."""
    path, env = arguments.path, context.env
    data = encode_text(arguments.content)
    try:
        place = await find_write_target(env, path, new=True)
        if isinstance(place, str):
            return ToolOutcome.error(place, kind="PermissionDenied")
        async with hold_locks((place.real,)):
            created = not await env.file_exists(place.real)
            if context.files and not created:
                digest = await _hash_file(env, place)
                if unknown := context.files.describe_refusal(place.real, digest, path):
                    return ToolOutcome.error(unknown, kind="EditConflict")
            await env.write_file(place.real, data, place.root)
            if context.files:
                context.files.note(place.real, data)
    except (OSError, ValueError) as error:
        return build_path_error(error, path)
    return ToolOutcome.from_text(
        f"Successfully wrote {len(data)} bytes to {path}", WriteDetails(path, len(data), created)
    )


WRITE_TOOL = AgentTool(
    name="write",
    description=(
        "Write a file: creates it with the folders it needs, or replaces all of its content."
        " To change a part of a file use edit."
    ),
    arguments=WriteArguments,
    run=run_write,
    find_targets=lambda arguments, env: find_new_target(arguments.path, env),
    preview=preview_write,
)
