"""Names of tools and of their arguments in the agents there are, and what such a call does."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from ..blocks import NO_JSON, ToolCall
from .patch import patched
from .steps import Edit, FileCall, Insertion, Read, Replacement, Write

if TYPE_CHECKING:
    from collections.abc import Iterator

Arguments = Mapping[str, object]
"""The arguments of a call, as JSON says them."""

_PATH = (
    *("path", "file_path", "filePath", "absolute_path", "absolutePath", "target_file"),
    *("filename", "file_name", "file"),
)
_CONTENT = ("content", "contents", "file_text", "text", "new_content", "code_edit")
_OLD = ("old_string", "oldText", "old_text", "old_str", "oldString", "search", "old")
_NEW = ("new_string", "newText", "new_text", "new_str", "newString", "replace", "new")
_EVERY = ("replace_all", "replaceAll", "allow_multiple")
_EDITS = ("edits", "edit", "replacements")
_PART = ("offset", "limit", "start_line", "end_line", "view_range", "lines")
_FOLDER = ("workdir", "cwd", "dir_path")
_WHOLE: tuple[object, ...] = (None, 0, 1, [])
"""Values of an offset that leave nothing out."""

_UNREADABLE = (ValueError, RecursionError)


def file_calls(call: ToolCall, ran: msgspec.Raw = NO_JSON) -> tuple[FileCall, ...]:
    """Return what a call does to files, in order; nothing for a tool that is not known to.

    `ran` are the arguments it ran with when they were not those of the call.
    """
    return calls_of(call.name, _arguments(call, ran)) if _tool(call.name) else ()


def calls_of(name: str, arguments: Arguments) -> tuple[FileCall, ...]:
    """Return the same for a tool's name and arguments."""
    known = _tool(name)
    return () if known is None else tuple(known(arguments))


def _tool(name: str) -> _Shape | None:
    """Return what a tool does, whatever server it stands behind."""
    return _TOOLS.get(name.rpartition("__")[2].rpartition(".")[2].lower())


def _arguments(call: ToolCall, ran: msgspec.Raw) -> Arguments:
    raw = bytes(ran) or bytes(call.args)
    if call.args_text is not None and not bytes(ran):
        return {"input": call.args_text}
    try:
        given = msgspec.json.decode(raw or b"{}")
    except _UNREADABLE:
        return {}
    return given if isinstance(given, dict) else {"input": given}


def _said(arguments: Arguments, names: tuple[str, ...]) -> str | None:
    """Return the first of these arguments that is a text."""
    return next((v for v in map(arguments.get, names) if isinstance(v, str)), None)


def _read(arguments: Arguments) -> Iterator[FileCall]:
    path = _said(arguments, _PATH)
    if path:
        whole = all(arguments.get(name) in _WHOLE for name in _PART)
        yield FileCall("read", path, Read(whole and not arguments.get("limit")))


def _write(arguments: Arguments) -> Iterator[FileCall]:
    path, text = _said(arguments, _PATH), _said(arguments, _CONTENT)
    if path and text is not None:
        adds = arguments.get("mode") == "append"
        work = Edit((Insertion(None, text),)) if adds else Write(text)
        yield FileCall("write", path, work)


def _edit(arguments: Arguments) -> Iterator[FileCall]:
    path, steps = _said(arguments, _PATH), tuple(_replacements(arguments))
    if path and steps:
        first = steps[0]
        work = Edit(steps) if first.old else Write(first.new, created=True)
        yield FileCall("edit", path, work)


def _replacements(arguments: Arguments) -> Iterator[Replacement]:
    """Yield the replacements of a call, the one it names itself and those in a list."""
    old, new = _said(arguments, _OLD), _said(arguments, _NEW)
    if old is not None and new is not None:
        count = arguments.get("expected_replacements")
        many = isinstance(count, int) and count > 1
        yield Replacement(old, new, many or any(arguments.get(name) is True for name in _EVERY))
    for given in map(arguments.get, _EDITS):
        for part in given if isinstance(given, list) else [given]:
            if isinstance(part, dict):
                yield from _replacements(part)


def _insert(arguments: Arguments) -> Iterator[FileCall]:
    path, line = _said(arguments, _PATH), arguments.get("insert_line")
    text = _said(arguments, ("insert_text", *_NEW))
    if path and text is not None and isinstance(line, int):
        yield FileCall("edit", path, Edit((Insertion(line, text),)))


def _patch(arguments: Arguments) -> Iterator[FileCall]:
    folder = _said(arguments, _FOLDER) or ""
    for text in filter(None, (_said({"": value}, ("",)) for value in arguments.values())):
        for call in patched(text):
            source = call.source and posixpath.join(folder, call.source)
            yield call._replace(path=posixpath.join(folder, call.path), source=source)


def _shell(arguments: Arguments) -> Iterator[FileCall]:
    """Yield what a patch does that a shell was given."""
    for name in ("command", "cmd", "script"):
        given = arguments.get(name)
        words = given if isinstance(given, list) else [given]
        command = "\n".join(word for word in words if isinstance(word, str))
        if "apply_patch" in command or "applypatch" in command:
            yield from _patch({"input": command, "workdir": _said(arguments, _FOLDER)})


def _by_command(arguments: Arguments) -> Iterator[FileCall]:
    """Yield what a tool does that is several in one."""
    known = _COMMANDS.get(str(arguments.get("command")))
    yield from known(arguments) if known else ()


_Shape = Callable[[Arguments], "Iterator[FileCall]"]
_COMMANDS: dict[str, _Shape] = {
    "view": _read,
    "create": _write,
    "str_replace": _edit,
    "insert": _insert,
}
_NAMES: tuple[tuple[_Shape, tuple[str, ...]], ...] = (
    (_read, ("read", "read_file", "readfile", "view", "view_file", "open_file", "cat_file")),
    (
        _write,
        (
            *("write", "write_file", "writefile", "write_to_file", "create_file", "create"),
            *("save_file", "fs_write"),
        ),
    ),
    (
        _edit,
        (
            *("edit", "edit_file", "editfile", "multiedit", "multi_edit", "replace"),
            *("str_replace", "strreplacefile", "search_replace", "replace_in_file"),
        ),
    ),
    (_insert, ("insert", "insert_text")),
    (_patch, ("apply_patch", "applypatch", "patch")),
    (_shell, ("bash", "shell", "exec_command", "local_shell", "run_shell_command")),
    (_by_command, ("str_replace_based_edit_tool", "str_replace_editor", "text_editor")),
)
_TOOLS: dict[str, _Shape] = {name: shape for shape, names in _NAMES for name in names}
"""What each tool does with its arguments, by its name in small letters, without a server's name."""
