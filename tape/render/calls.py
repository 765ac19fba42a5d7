"""Tool calls and what they changed → text for people: commands as commands, patches as patches.

A call has a head, one line or a command, and a body: what it would do to files. A result has the
changes of files that it recorded, as patches made from their bytes. Whoever shows a call with its
result shows the head, the output, and the changes, or the body where none were recorded.

    bash {"command": "pytest -q"}             $ pytest -q
    read {"path": "a.py", "offset": 9}        → read a.py (offset: 9)
    edit {"path": "a.py", "old_text": …}      → edit a.py        body: -old +new
    apply_patch {"input": "*** Begin Patch…   → apply_patch      body: the patch
    another {"a": 1}                          → another {"a":1}
    ask_user {"questions": […]}               → Asked 2 questions     body: the questions

Everything is made visible here (`show_controls`), so that `paint` may colour it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from ..errors import NotFound
from ..files.calls import (
    TOLD_ARGUMENTS,
    FileCall,
    FileDelete,
    FileEdit,
    FileRead,
    FileWrite,
    PatchHunk,
    TextInsertion,
    find_command,
    parse_file_calls,
    parse_named_call,
)
from ..files.git_patch import REGULAR_MODE, PatchSide, build_patch
from ..model.entries import NO_JSON, BlobRef, ChangedFile, FileState
from ..text import show_controls, to_single_line
from .own_calls import describe_own_call
from .paint import leave_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..model.entries import SavedFile, ToolCall
    from .paint import Kind, Paint

    LoadBlob = Callable[[BlobRef], bytes]
    """Returns the bytes of a blob; raises NotFound."""


class RenderedCall(NamedTuple):
    """A call as people read it."""

    head: tuple[str, ...]
    """Its lines: a command may have several."""
    body: tuple[str, ...]
    """What it does to files, as lines of a patch; empty where the head says all."""
    is_patch: bool = True
    """Whether the body is that; else it is what a tool of an agent's own is about, as text."""
    is_markdown: bool = False
    """Whether that text is Markdown."""
    place: str = ""
    """Where it acted, as in "in docker:web:", where the call before acted elsewhere."""


def render_call(
    call: ToolCall, ran: msgspec.Raw = NO_JSON, paint: Paint = leave_plain
) -> RenderedCall:
    """Return a call as people read it; `ran` are the arguments it ran with if they differ."""
    arguments = _decode_arguments(call, ran)
    if arguments is None:
        return _render_free_call(call, to_single_line(call.name), paint)
    command = find_command(call.name, arguments)
    if command is not None:
        first, *more = show_controls(command).split("\n")
        lines = (f"$ {first}", *(f"> {line}" for line in more))
        details = _render_details(arguments, "command")
        painted = [paint("command", line) for line in lines]
        return RenderedCall((*painted, *([details] if details else [])), ())
    own = describe_own_call(call.name, arguments)
    if own is not None:
        body = tuple(line for text in own.lines for line in show_controls(text).split("\n"))
        head = (paint("call", f"→ {to_single_line(own.sentence)}"),)
        return RenderedCall(head, body, is_patch=False, is_markdown=own.is_markdown)
    name, calls = to_single_line(call.name), parse_named_call(call.name, arguments)
    if not calls:
        raw_arguments = show_controls(bytes(ran or call.args).decode("utf-8", "replace"))
        return RenderedCall(_split_head(f"→ {name} {raw_arguments}".rstrip(), paint), ())
    op = calls[0].op
    paths = "" if op == "patch" else f" {to_single_line(calls[0].path)}"
    details = _render_details(arguments, op)
    head = (paint("call", f"→ {name}{paths}{f' {details}' if details else ''}"),)
    if op == "patch":
        texts = (arguments[key] for key in TOLD_ARGUMENTS[op] if key in arguments)
        text = "\n".join(text for text in texts if isinstance(text, str))
        return RenderedCall(head, tuple(_paint_patch(text, paint)))
    return RenderedCall(head, tuple(_render_file_call(calls[0], paint)))


def _decode_arguments(call: ToolCall, ran: msgspec.Raw) -> dict[str, object] | None:
    if call.args_text is not None and not bytes(ran):
        return None
    try:
        arguments = msgspec.json.decode(bytes(ran) or bytes(call.args) or b"{}")
    except (ValueError, RecursionError):
        return None
    return arguments if isinstance(arguments, dict) else None


def _render_free_call(call: ToolCall, name: str, paint: Paint) -> RenderedCall:
    """Return a call whose arguments are a text, or broken."""
    text = call.args_text
    if text is None:
        text = bytes(call.args).decode("utf-8", "replace")
    if any(file_call.op == "patch" for file_call in parse_file_calls(call)):
        return RenderedCall((paint("call", f"→ {name}"),), tuple(_paint_patch(text, paint)))
    return RenderedCall(_split_head(f"→ {name} {show_controls(text)}".rstrip(), paint), ())


def _split_head(text: str, paint: Paint) -> tuple[str, ...]:
    return tuple(paint("call", line) for line in text.split("\n"))


def _render_details(arguments: dict[str, object], op: str) -> str:
    """Return the arguments that the head does not speak of, on one line; "" if there are none."""
    rest = {key: value for key, value in arguments.items() if key not in TOLD_ARGUMENTS[op]}
    values = (
        f"{key}: {value if isinstance(value, str) else msgspec.json.encode(value).decode()}"
        for key, value in rest.items()
    )
    return to_single_line(f"({', '.join(values)})") if rest else ""


def _render_file_call(call: FileCall, paint: Paint) -> Iterator[str]:
    """Yield what a call does to its file, as lines of a patch."""
    match call.work:
        case FileWrite(text=text):
            yield from _mark_text("+", text, paint)
        case FileEdit(steps=steps):
            for number, step in enumerate(steps):
                if isinstance(step, TextInsertion):
                    place = "at the end" if step.line is None else f"after line {step.line}"
                    yield paint("hunk", f"@@ {place} @@")
                    yield from _mark_text("+", step.text, paint)
                    continue
                if number:
                    yield paint("hunk", "@@")
                old, new = step.old, step.new
                if isinstance(step, PatchHunk):
                    old, new = "\n".join(step.old), "\n".join(step.new)
                yield from _mark_text("-", str(old), paint)
                yield from _mark_text("+", str(new), paint)
        case FileDelete() | FileRead():
            pass


def _mark_text(sign: Literal["+", "-"], text: str, paint: Paint) -> Iterator[str]:
    kind: Kind = "added" if sign == "+" else "removed"
    if text:
        for line in show_controls(text).removesuffix("\n").split("\n"):
            yield paint(kind, f"{sign}{line}")


def _paint_patch(text: str, paint: Paint) -> Iterator[str]:
    for line in show_controls(text).rstrip("\n").split("\n"):
        yield paint(_find_patch_kind(line), line) if line[:1] in "+-@*" else line


def _find_patch_kind(line: str) -> Kind:
    match line[:1]:
        case "+":
            return "added"
        case "-":
            return "removed"
        case "@":
            return "hunk"
        case _:
            return "header"


def render_changed_files(
    files: Iterable[ChangedFile | FileState],
    load: LoadBlob | None = None,
    paint: Paint = leave_plain,
    limit: int | None = None,
) -> Iterator[str]:
    """Yield the changes of files as patches, each cut after `limit` lines with a count if given.

    Without `load`, or where bytes are not stored, a change is one line.
    """
    for file in files:
        lines = _render_changed_file(file, load, paint)
        yield from lines[:limit]
        if limit is not None and len(lines) > limit:
            yield paint("note", f"… {len(lines) - limit} more lines of this diff")


def _render_changed_file(
    file: ChangedFile | FileState, load: LoadBlob | None, paint: Paint
) -> list[str]:
    if load is None:
        return [paint("header", describe_change(file))]
    try:
        before, after = _load_versions(file, load)
    except NotFound as error:
        return [paint("header", describe_change(file)), paint("note", to_single_line(f"({error})"))]
    except _NotStored as error:
        return [
            paint("header", describe_change(file)),
            paint("note", to_single_line(f"(no diff: {error})")),
        ]
    lines = build_patch(before, after)
    if not lines:  # permissions that a patch does not know, as 100600
        return [paint("header", describe_change(file))]
    return list(paint_patch_lines(lines, paint))


def paint_patch_lines(lines: Iterable[bytes], paint: Paint = leave_plain) -> Iterator[str]:
    """Yield the lines of a git patch made visible, in the colours of their kind."""
    in_hunk = False
    for line in lines:
        text = show_controls(line.removesuffix(b"\n").decode("utf-8", "replace"))
        for part in text.split("\n"):  # headers of several lines
            if part.startswith("diff --git "):
                in_hunk = False
            if part.startswith("@@"):
                in_hunk = True
            kind: Kind = _find_patch_kind(part) if in_hunk else "header"
            yield part if in_hunk and part[:1] in " \\" else paint(kind, part)


class _NotStored(Exception):
    """The bytes of a version are not on the tape."""


def _load_versions(
    file: ChangedFile | FileState, load: LoadBlob
) -> tuple[PatchSide | None, PatchSide | None]:
    """Return both versions of a file; raise NotFound or _NotStored where bytes are missing."""
    if isinstance(file, FileState):
        before = _load_saved(file.path, file.before, file.mode, load)
        after = None
        if file.after is not msgspec.UNSET:
            after = _load_saved(file.path, file.after, file.after_mode or file.mode, load)
        return before, after
    mode = file.mode or file.before_mode or REGULAR_MODE
    before = after = None
    if file.op == "mode" and file.before == file.after and file.before_mode:
        # the content does not matter: no hunk shows it
        known = PatchSide(file.path, b"", file.before_mode)
        return known, known._replace(mode=mode)
    if file.op != "created":
        data = _load_ref(file.before_blob, file.why, load)
        before = PatchSide(file.source or file.path, data, file.before_mode or mode)
    if file.op != "deleted":
        data = _load_ref(file.after_blob, file.why, load)
        after = PatchSide(file.path, data, mode)
    return before, after


def _load_ref(ref: BlobRef | None, why: str | None, load: LoadBlob) -> bytes:
    if ref is None:
        raise _NotStored(why or "the bytes are not on the tape")
    return load(ref)


def _load_saved(
    path: str, saved: SavedFile | None, mode: str | None, load: LoadBlob
) -> PatchSide | None:
    if saved is None:
        return None
    if not saved.blob:
        raise _NotStored(saved.why or "the bytes are not on the tape")
    data = load(BlobRef(saved.blob, saved.bytes))
    return PatchSide(path, data, mode or REGULAR_MODE)


OP_LETTERS = {"created": "A", "modified": "M", "deleted": "D", "renamed": "R", "mode": "M"}
"""The letter of each operation, as in `git status`."""


def describe_change(file: ChangedFile | FileState) -> str:
    """Return a change in one line, made visible: `M src/a.py`, `R old.py → new.py`."""
    if isinstance(file, FileState):
        gone = file.after is None
        letter = "D" if gone else "A" if file.before is None else "M"
        return f"{letter} {to_single_line(file.path)}"
    path = to_single_line(file.path)
    if file.source:
        path = f"{to_single_line(file.source)} → {path}"
    if file.op == "mode":
        path += to_single_line(f" (mode {file.before_mode or '?'} → {file.mode or '?'})")
    return f"{OP_LETTERS[file.op]} {path}"
