"""Which files a tool call reads or changes, and how: one table for the tools of all agents; pure.

Names of tools and of their arguments are data, at the end of the module: an agent that names them
otherwise needs a line there and nothing else. A tool's name is looked up in small letters, without
its server's name: `mcp__files__Read` and `files.read` are both `read`.

Patches (`*** Begin Patch`) are read leniently, because they were applied already: a line of no
known kind is passed over, and a patch that breaks off counts as far as it goes.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ..model.entries import NO_JSON, ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterator


class FileRead(NamedTuple):
    """The file was read; `whole` if no part of it was selected."""

    whole: bool = True


class FileWrite(NamedTuple):
    """The file was written with this text; `created` if it surely did not exist before."""

    text: str
    created: bool = False


class FileDelete(NamedTuple):
    """The file was deleted."""


class TextReplacement(NamedTuple):
    """One occurrence of a text, or `every` one, was replaced by another text."""

    old: str
    new: str
    every: bool = False


class PatchHunk(NamedTuple):
    """Whole lines were replaced, after the lines in `contexts`; `at_end` of the file if set."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    contexts: tuple[str, ...] = ()
    at_end: bool = False


class TextInsertion(NamedTuple):
    """A text was inserted after line `line`, counted from 1: 0 is the top, None the end."""

    line: int | None
    text: str


class FileEdit(NamedTuple):
    """Parts of the file were changed, one after the other."""

    steps: tuple[TextReplacement | PatchHunk | TextInsertion, ...]


FileWork = FileRead | FileWrite | FileEdit | FileDelete
"""What a call does to one file."""


class FileCall(NamedTuple):
    """One file that a call reads or changes."""

    op: str
    """read, write, edit or patch."""
    path: str
    """As the model wrote it: absolute, or relative to the folder of the session."""
    work: FileWork
    source: str | None = None
    """The old path of the file, if it was moved here."""


_PATCH = re.compile(
    r"^[ \t]*\*\*\* Begin Patch(?: \*\*\*)?[ \t]*\n(.*?)(?:^[ \t]*\*\*\* End Patch|\Z)",
    re.DOTALL | re.MULTILINE,
)
_HEADER = re.compile(r"\*\*\* (Add|Delete|Update) File: (.+?)(?: \*\*\*)?\s*\Z")
_MOVE = re.compile(r"\*\*\* Move to: (.+?)(?: \*\*\*)?\s*\Z")
_AT_END = "*** End of File"


def parse_patches(text: str) -> tuple[FileCall, ...]:
    """Return what the patches in a text do to files; nothing where it holds none."""
    calls: list[FileCall] = []
    for body in _PATCH.findall(f"{text}\n".replace("\r\n", "\n")):
        sections: list[tuple[str, str, list[str]]] = []
        for line in body.split("\n")[:-1]:
            header = _HEADER.match(line)
            if header:
                sections.append((header[1], header[2], []))
            elif sections:
                sections[-1][2].append(line)
        for kind, path, lines in sections:
            calls += _convert_patch_section(kind, path, lines)
    return tuple(calls)


def _convert_patch_section(kind: str, path: str, lines: list[str]) -> Iterator[FileCall]:
    moved = _MOVE.match(lines[0]) if lines and kind == "Update" else None
    if kind == "Add":
        text = "".join(f"{line[1:]}\n" for line in lines if line.startswith("+"))
        yield FileCall("patch", path, FileWrite(text))
    elif kind == "Update":
        work = FileEdit(tuple(_split_hunks(lines[1:] if moved else lines)))
        yield FileCall("patch", moved[1] if moved else path, work, path if moved else None)
    if kind == "Delete" or moved:
        yield FileCall("patch", path, FileDelete())


def _split_hunks(lines: list[str]) -> Iterator[PatchHunk]:
    """Yield the hunks of an update; successive `@@` lines are contexts of one hunk."""
    contexts: list[str] = []
    body: list[str] = []
    for line in lines:
        if line.startswith("@@"):
            yield from _build_hunk(contexts, body)
            contexts, body = ([] if body else contexts) + [line[2:].strip()], []
        else:
            body.append(line)
    yield from _build_hunk(contexts, body)


def _build_hunk(contexts: list[str], body: list[str]) -> Iterator[PatchHunk]:
    at_end = _AT_END in (line.strip() for line in body)
    lines = [line for line in body if line[:1] in {"", " ", "+", "-"}]
    while lines and not lines[-1]:  # blank lines between hunks belong to no hunk
        lines.pop()
    if lines:
        old = tuple(line[1:] for line in lines if line[:1] != "+")
        new = tuple(line[1:] for line in lines if line[:1] != "-")
        yield PatchHunk(old, new, tuple(filter(None, contexts)), at_end)


ToolArguments = Mapping[str, object]
"""The arguments of a call, as decoded JSON."""

_PATH = (
    "path", "file_path", "filePath", "absolute_path", "absolutePath", "target_file",
    "filename", "file_name", "file", "notebook_path",
)  # fmt: skip
_CONTENT = ("content", "contents", "file_text", "text", "new_content", "code_edit")
_OLD = ("old_string", "oldText", "old_text", "old_str", "oldString", "search", "old")
_NEW = ("new_string", "newText", "new_text", "new_str", "newString", "replace", "new")
_EVERY = ("replace_all", "replaceAll", "allow_multiple")
_EDITS = ("edits", "edit", "replacements")
_PART = ("offset", "limit", "start_line", "end_line", "view_range", "lines")
_FOLDER = ("workdir", "cwd", "dir_path", "directory")
_COMMAND = ("command", "cmd", "script")
_SCRIPT_FLAGS = (["-c"], ["-lc"])
_WHOLE: tuple[object, ...] = (None, 0, 1, [])
"""Values of an offset that read the file from its beginning."""


def parse_file_calls(call: ToolCall, ran: msgspec.Raw = NO_JSON) -> tuple[FileCall, ...]:
    """Return what a call does to files, in order; empty for an unknown tool.

    `ran` are the arguments it ran with if they differ from those of the call.
    """
    if _find_tool_parser(call.name) is None:
        return ()
    if call.args_text is not None and not bytes(ran):
        return parse_named_call(call.name, {"input": call.args_text})
    try:
        arguments = msgspec.json.decode(bytes(ran) or bytes(call.args) or b"{}")
    except (ValueError, RecursionError):
        arguments = {}
    return parse_named_call(
        call.name, arguments if isinstance(arguments, dict) else {"input": arguments}
    )


def find_command(name: str, arguments: ToolArguments) -> str | None:
    """Return the command that a call runs; None for tools that are no shell.

    A list of words is quoted; of `bash -c COMMAND` it is the command.
    """
    if _find_tool_parser(name) is not _parse_shell:
        return None
    for value in map(arguments.get, _COMMAND):
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            return str(value[-1]) if value[1:-1] in _SCRIPT_FLAGS else shlex.join(value)
    return None


def find_command_folder(arguments: ToolArguments) -> str:
    """Return the folder that a call of a shell asks to work in; "" where it asks for none."""
    return _find_text_argument(arguments, _FOLDER) or ""


def parse_named_call(name: str, arguments: ToolArguments) -> tuple[FileCall, ...]:
    """Return what a call of the tool `name` does to files, in order; nothing for other tools."""
    known = _find_tool_parser(name)
    return () if known is None else tuple(known(arguments))


def _find_tool_parser(name: str) -> _ToolParser | None:
    """Return the shape of a tool, ignoring the prefix of its server."""
    return _TOOLS.get(name.rpartition("__")[2].rpartition(".")[2].lower())


def _find_text_argument(arguments: ToolArguments, names: tuple[str, ...]) -> str | None:
    """Return the first of the named arguments that is a string."""
    return next((v for v in map(arguments.get, names) if isinstance(v, str)), None)


def _parse_read(arguments: ToolArguments) -> Iterator[FileCall]:
    path = _find_text_argument(arguments, _PATH)
    if path:
        whole = all(arguments.get(name) in _WHOLE for name in _PART)
        yield FileCall("read", path, FileRead(whole and not arguments.get("limit")))


def _parse_write(arguments: ToolArguments) -> Iterator[FileCall]:
    path, text = _find_text_argument(arguments, _PATH), _find_text_argument(arguments, _CONTENT)
    if path and text is not None:
        adds = arguments.get("mode") == "append"
        work = FileEdit((TextInsertion(None, text),)) if adds else FileWrite(text)
        yield FileCall("write", path, work)


def _parse_edit(arguments: ToolArguments) -> Iterator[FileCall]:
    path, steps = _find_text_argument(arguments, _PATH), tuple(_parse_replacements(arguments))
    if path and steps:
        first = steps[0]
        work = FileEdit(steps) if first.old else FileWrite(first.new, created=True)
        yield FileCall("edit", path, work)


def _parse_notebook_edit(arguments: ToolArguments) -> Iterator[FileCall]:
    """Yield the notebook: what becomes of its bytes no argument says."""
    path = _find_text_argument(arguments, _PATH)
    if path:
        yield FileCall("edit", path, FileEdit(()))


def _parse_replacements(arguments: ToolArguments) -> Iterator[TextReplacement]:
    """Yield the replacements of a call: the one in its own arguments and those in a list."""
    old, new = _find_text_argument(arguments, _OLD), _find_text_argument(arguments, _NEW)
    if old is not None and new is not None:
        count = arguments.get("expected_replacements")
        many = isinstance(count, int) and count > 1
        yield TextReplacement(old, new, many or any(arguments.get(name) is True for name in _EVERY))
    for value in map(arguments.get, _EDITS):
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, dict):
                yield from _parse_replacements(part)


def _parse_insert(arguments: ToolArguments) -> Iterator[FileCall]:
    path, line = _find_text_argument(arguments, _PATH), arguments.get("insert_line")
    text = _find_text_argument(arguments, ("insert_text", *_NEW))
    if path and text is not None and isinstance(line, int):
        yield FileCall("edit", path, FileEdit((TextInsertion(line, text),)))


def _parse_patch_call(arguments: ToolArguments) -> Iterator[FileCall]:
    folder = _find_text_argument(arguments, _FOLDER) or ""
    for text in filter(
        None, (_find_text_argument({"": value}, ("",)) for value in arguments.values())
    ):
        for call in parse_patches(text):
            source = call.source and posixpath.join(folder, call.source)
            yield call._replace(path=posixpath.join(folder, call.path), source=source)


def _parse_shell(arguments: ToolArguments) -> Iterator[FileCall]:
    """Yield what a patch in a shell command does."""
    for name in _COMMAND:
        value = arguments.get(name)
        words = value if isinstance(value, list) else [value]
        command = "\n".join(word for word in words if isinstance(word, str))
        if "apply_patch" in command or "applypatch" in command:
            yield from _parse_patch_call(
                {"input": command, "workdir": _find_text_argument(arguments, _FOLDER)}
            )


def _parse_command(arguments: ToolArguments) -> Iterator[FileCall]:
    """Yield what a tool with sub-commands does."""
    known = _COMMANDS.get(str(arguments.get("command")))
    yield from known(arguments) if known else ()


_ToolParser = Callable[[ToolArguments], "Iterator[FileCall]"]
_COMMANDS: dict[str, _ToolParser] = {
    "view": _parse_read,
    "create": _parse_write,
    "str_replace": _parse_edit,
    "insert": _parse_insert,
}
_NAMES: tuple[tuple[_ToolParser, tuple[str, ...]], ...] = (
    (
        _parse_read,
        (
            "read", "read_file", "readfile", "view", "view_file", "open_file", "cat_file",
            "notebook_read", "notebookread",
        ),
    ),
    (
        _parse_write,
        (
            "write", "write_file", "writefile", "write_to_file", "create_file", "create",
            "save_file", "fs_write",
        ),
    ),
    (
        _parse_edit,
        (
            "edit", "edit_file", "editfile", "multiedit", "multi_edit", "replace",
            "str_replace", "strreplacefile", "search_replace", "replace_in_file",
        ),
    ),
    (_parse_insert, ("insert", "insert_text")),
    (_parse_notebook_edit, ("notebookedit", "notebook_edit", "notebook_edit_cell")),
    (_parse_patch_call, ("apply_patch", "applypatch", "patch")),
    (
        _parse_shell,
        (
            "bash", "shell", "exec_command", "local_shell", "run_shell_command", "shell_command",
            "execute_bash", "run_terminal_cmd", "run_in_terminal",
        ),
    ),
    (_parse_command, ("str_replace_based_edit_tool", "str_replace_editor", "text_editor")),
)  # fmt: skip
_TOOLS: dict[str, _ToolParser] = {name: shape for shape, names in _NAMES for name in names}
"""What each tool does with its arguments, by its lower-case name without the server's name."""
TOLD_ARGUMENTS = {
    "command": frozenset(_COMMAND),
    "read": frozenset(_PATH),
    "write": frozenset((*_PATH, *_CONTENT)),
    "edit": frozenset((*_PATH, *_OLD, *_NEW, *_EDITS, "insert_text")),
    "patch": frozenset(("input", "patch", "patchText", "patch_text")),
}
"""The arguments that say what is done, for a command and for each `op`; all others are details."""
