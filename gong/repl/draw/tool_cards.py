"""Calls of tools and their results → lines; pure."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tape.render.own_calls import describe_own_call
from tape.text import format_count, measure_width, shorten_to_width

from .diff_view import count_changes, render_diff, trim_context
from .lines import INDENT, StyledLine, clip_line, escape_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tape.model.entries import ToolCall

RESULT_LINES = 5
_ESCAPE_SEQUENCES = r"\x1b\[[0-?]*[ -/]*[@-~]"
_TOOL_NOTICE = re.compile(
    r"\n+\[[^\n]*?\b(?:lines (?P<first>\d{1,9})-(?P<last>\d{1,9}) of (?P<all>\d{1,9})"
    r"|of line (?P<line>\d{1,9})|(?P<more>\d{1,9}) more (?:entries|lines)"
    r"|(?P<newest>\d{1,9}) newest of (?P<files>\d{1,9}) files"
    r"|limit reached(?!, \d+ more ))\b[^\n]*\]"
    r"(?P<ending>(?:\n\n[^\n]+)?)\s*\Z"
)
"""A tool's notice of omitted output, after the output; an error text may follow it."""
_OMITTED = r"(?m)^\[\.\.\. (\d{1,9}) lines omitted \.\.\.\]$"
"""Stands where the middle of a text was left out."""
_TRUNCATED = (
    r"(?:\n\n|\A)\.\.\.(?P<count>\d{1,9}) (?P<unit>lines|bytes) truncated\.\.\.\n\n"
    r"The tool call succeeded[^\n]*\n[^\n]*(?:\n\n|\Z)"
)
"""Stands where the truncation service left out the beginning or the end."""
_USUAL_ENDING = r"\n*\[exit code 0\b[^\n]*\]\s*\Z"
"""What says that nothing is wrong, and where the whole output is."""
_COUNTED_LINES = 100
"""From so many on it is said how many lines an output has."""
_NOTICE_CHARS = 4_000
"""Number of characters at the end in which the notice is searched."""


def split_output(text: str) -> list[str]:
    """Return a tool's output as lines: escape sequences are removed, other controls shown."""
    return (
        escape_text(re.sub(_ESCAPE_SEQUENCES, "", text).replace("\r\n", "\n"))
        .strip("\n")
        .split("\n")
    )


_READINGS = {
    **dict.fromkeys(("read", "read_file", "read_many_files", "notebook_read"), ("read", "files")),
    **dict.fromkeys(("ls", "list_dir", "list_directory"), ("list", "folders")),
    **dict.fromkeys(("grep", "grep_search", "search_file_content"), ("search", "patterns")),
    **dict.fromkeys(("find", "glob"), ("find", "patterns")),
    **dict.fromkeys(("tape_read", "tape_search"), ("", "entries")),
    **dict.fromkeys(("web_fetch", "webfetch"), ("fetch", "pages")),
    **dict.fromkeys(("web_search", "websearch"), ("search", "pages")),
}
"""Tools that only read → what they do, and to what, of several in one line."""
_SUBJECTS = (
    "command",
    "cmd",
    "path",
    "file_path",
    "paths",
    "notebook_path",
    "pattern",
    "query",
    "ref",
    "url",
)
"""Arguments that name what a call works on, the first that is there."""
_COMMANDS = {"bash", "shell"}
_PATCHES = {"apply_patch", "patch"}
DIFF_LINES = 30
DRAFT_LINES = 8
"""Lines of a patch or text that are shown while the model still writes them."""
_DRAFT_CHARS = 4_000


def read_arguments(args: bytes) -> dict[str, object]:
    """Return the arguments of a call; none where they are not a JSON object."""
    try:
        arguments = msgspec.json.decode(args) if args else {}
    except (ValueError, RecursionError):
        return {}
    return arguments if isinstance(arguments, dict) else {}


def describe_call(call: ToolCall, folder: str = "") -> str:
    """Return a short text for a call: its command, path (from `folder`), or arguments."""
    if call.args_text is not None:
        patch: dict[str, object] = {"input": call.args_text}
        if call.name in _PATCHES and _find_patched_files(patch):
            return describe_arguments(call.name, patch, folder)
        return f"{call.name} {call.args_text}"
    return describe_arguments(call.name, read_arguments(bytes(call.args)), folder)


def describe_arguments(name: str, arguments: dict[str, object], folder: str = "") -> str:
    """Return a short text for a call; its arguments may be the beginning of them."""
    own = describe_own_call(name, arguments)
    if own is not None:
        return own.sentence
    if name in _COMMANDS and (command := arguments.get("command")):
        return f"$ {command}"
    if name in _PATCHES and any(isinstance(value, str) for value in arguments.values()):
        files = (shorten_path(one, folder) for one in _find_patched_files(arguments))
        return f"{name} {', '.join(files)}".rstrip()
    if subject := find_subject(arguments, folder):
        return f"{name} {subject}"
    return f"{name} {msgspec.json.encode(arguments).decode() if arguments else ''}"


def shorten_path(path: str, folder: str) -> str:
    """Return a path from a folder, where it is below it."""
    return path.removeprefix(f"{folder.rstrip('/')}/") if folder else path


def find_subject(arguments: dict[str, object], folder: str = "") -> str:
    """Return what a call works on, a path from `folder`; empty if no argument names it."""
    for key in _SUBJECTS:
        match arguments.get(key):
            case str() as text if text:
                return shorten_path(text, folder)
            case list() as texts if texts:
                return ", ".join(shorten_path(str(one), folder) for one in texts)
            case _:
                pass
    return ""


def is_reading(name: str) -> bool:
    """Return whether a tool only reads, so that one line says enough."""
    return name.lower() in _READINGS


class Reading(NamedTuple):
    """A call that only read."""

    title: str
    """The call in a few words."""
    name: str
    """Its tool; of a command the program."""
    what: str
    """What it read, of several: files, folders, patterns or entries."""
    subject: str


def read_reading(name: str, arguments: dict[str, object], folder: str = "") -> Reading | None:
    """Return a call of a tool, or a command, that only read; None for any other."""
    if is_reading(name):
        _, what = _READINGS[name.lower()]
        title = describe_arguments(name, arguments, folder) if arguments else name
        return Reading(title, name, what, find_subject(arguments, folder))
    command = arguments.get("command")
    if name not in _COMMANDS or not isinstance(command, str):
        return None
    words = split_reading_command(command)
    if not words:
        return None
    names = [word for word in words[1:] if word[:1] != "-"]
    what = _READING_PROGRAMS[words[0]]
    subject = " ".join(names[:1] if what == "patterns" else names) or "."
    return Reading(f"$ {command}", words[0], what, subject)


_READING_PROGRAMS = {
    **dict.fromkeys(("cat", "head", "tail", "nl"), "files"),
    **dict.fromkeys(("ls", "tree"), "folders"),
    **dict.fromkeys(("rg", "grep", "find", "fd"), "patterns"),
}
"""Programs whose output a person seldom needs → what they read."""
_SHORTENING = {"head", "tail", "sort", "uniq", "wc", "nl", "cat", "grep"}
"""Programs that pass on a part of what they get."""
_ACTING_WORDS = ("-exec", "-ok", "-delete", "-fprint", "-fls", "-x", "--exec", "--pre")


def split_reading_command(command: str) -> list[str]:
    """Return the words of a command that only shows files; none of any other.

    It says how a call is drawn, not whether it may run.
    """
    if set(command) & set("\n;&<>`$(){}"):
        return []
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars="|")
        lexer.whitespace_split = True
        words = [*lexer]
    except ValueError:
        return []
    parts = [[*part] for is_pipe, part in groupby(words, lambda word: word == "|") if not is_pipe]
    if not parts or parts[0][0] not in _READING_PROGRAMS:
        return []
    acts = any(word.startswith(_ACTING_WORDS) for word in parts[0] if parts[0][0] in {"find", "fd"})
    if acts or any(word.startswith("--pre") for word in parts[0]):
        return []
    return [] if any(part[0] not in _SHORTENING for part in parts[1:]) else parts[0]


_COUNTED = {"files": "file", "folders": "folder", "patterns": "search", "entries": "entry"}


def describe_readings(readings: Sequence[Reading]) -> str:
    """Return calls that only read in one line: `read 2 files: a.py, b.py`, `Explored: …`."""
    first = readings[0]
    if len(readings) == 1:
        return first.title
    subjects = ", ".join(dict.fromkeys(reading.subject for reading in readings))
    if {reading.name for reading in readings} == {first.name} and is_reading(first.name):
        action, what = _READINGS[first.name.lower()]
        return f"{action or first.name} {len(readings)} {what}: {subjects}"
    counts = Counter(_COUNTED[reading.what] for reading in readings)
    listed = (format_count(count, unit) for unit, count in counts.items())
    return f"Explored: {', '.join(listed)}: {subjects}"


def _find_patched_files(arguments: dict[str, object]) -> list[str]:
    texts = [value for value in arguments.values() if isinstance(value, str)]
    return re.findall(
        r"^\*\*\* (?:Add|Update|Delete) File: (.+?) *$", "\n".join(texts), re.MULTILINE
    )


def render_draft(name: str, arguments: dict[str, object], columns: int) -> list[StyledLine]:
    """Return a call that the model still writes: what it works on, and the last lines of it."""
    title = shorten_to_width(describe_arguments(name, arguments), max(columns - 2, 8))
    lines = render_body(name, arguments)
    last_lines = [_clip_styled(line, columns) for line in lines[-DRAFT_LINES:]]
    return [StyledLine(f"○ {title}", "call"), *last_lines]


def render_body(
    name: str, arguments: dict[str, object], *, whole: bool = False
) -> list[StyledLine]:
    """Return what a call would do to files, as lines of a diff; only the end of a long text."""
    start = 0 if whole else -_DRAFT_CHARS
    if name in _PATCHES:
        texts = [value for value in arguments.values() if isinstance(value, str)]
        return render_diff("\n".join(texts)[start:]) if texts else []
    signs = {
        "-": ("oldText", "old_string", "old_text"),
        "+": ("newText", "new_string", "new_text", "content"),
    }
    lines = [
        f"{sign} {line}"
        for sign, keys in signs.items()
        for key in keys
        if isinstance(text := arguments.get(key), str)
        for line in text[start:].removesuffix("\n").split("\n")
    ]
    return render_diff("\n".join(lines)) if lines else []


def _clip_styled(line: StyledLine, columns: int) -> StyledLine:
    if measure_width(line.text) <= columns:
        return line
    return StyledLine(clip_line(line.text, columns), line.style)


def render_change(
    details: dict[str, object], arguments: dict[str, object], columns: int
) -> tuple[str, list[StyledLine]] | None:
    """Return what a call changed: a count for its heading, and the diff; None if unknown."""
    if diffs := render_diffs(details, trimmed=True):
        return count_changes(_join_diffs(details)), fold_lines(diffs, columns)
    text = arguments.get("content")
    if isinstance(details.get("created"), bool) and isinstance(text, str):
        count = format_count(len(text.removesuffix("\n").split("\n")) if text else 0, "line")
        return f"{'new file, ' if details['created'] else ''}{count}", []
    return None


def render_diffs(details: dict[str, object], *, trimmed: bool = False) -> list[StyledLine]:
    """Return the diffs that a result holds, each of several files under its name.

    They are whole, or have little around their changes.
    """
    lines: list[StyledLine] = []
    diffs = [*_list_diffs(details)]
    for op, path, diff in diffs:
        if path and (len(diffs) > 1 or op != "update"):
            lines.append(StyledLine(INDENT + escape_text(f"{op} {path}")))
        lines += render_diff(trim_context(diff) if trimmed else diff) if diff else []
    return lines


def _join_diffs(details: dict[str, object]) -> str:
    return "\n".join(diff for _, _, diff in _list_diffs(details))


def _list_diffs(details: dict[str, object]) -> Iterator[tuple[str, str, str]]:
    """Yield operation, path and diff of each file; without a path where there is only one."""
    if isinstance(diff := details.get("diff"), str):
        yield "", "", diff
    files = details.get("files")
    for row in files if isinstance(files, list) else ():
        if isinstance(row, dict) and isinstance(row.get("diff"), str):
            moved = f" → {row['dest']}" if row.get("dest") else ""
            yield str(row.get("op")), f"{row.get('path')}{moved}", row["diff"]


def fold_lines(lines: list[StyledLine], columns: int) -> list[StyledLine]:
    """Return at most `DIFF_LINES`, each cut to the width, with the number of the others."""
    first_lines = [_clip_styled(line, columns) for line in lines[:DIFF_LINES]]
    rest = len(lines) - len(first_lines)
    return (
        [
            *first_lines,
            StyledLine(_describe_fold(format_count(rest, "more line"), columns), "result"),
        ]
        if rest
        else first_lines
    )


def _describe_fold(words: str, columns: int) -> str:
    """Return how much is left out, and the key that shows it, in one row."""
    text = f"{INDENT}… {words} (Ctrl+O shows all)"
    return text if len(text) <= columns else clip_line(text.replace(" shows all)", ")"), columns)


def render_full_result(text: str) -> list[StyledLine]:
    """Return all lines of a result, of a huge one the first."""
    lines = split_output(text)
    rest = len(lines) - FULL_LINES
    more = [StyledLine(f"{INDENT}… {format_count(rest, 'more line')}: see tape show", "note")]
    styled = [StyledLine(INDENT + line, "result") for line in lines[:FULL_LINES]]
    return [*styled, *(more if rest > 0 else [])]


FULL_LINES = 5_000
"""Lines of one result that Ctrl+O prints at most."""


class _ResultOutput(NamedTuple):
    """The shown lines of a tool's output, and the number of omitted ones."""

    lines: list[str]
    before: int = 0
    after: int = 0
    whole: bool = True
    """Whether the numbers are exact; if not, more lines were omitted."""


def render_result(text: str, columns: int, *, is_error: bool) -> list[StyledLine]:
    """Return a result in a few lines, with the number of lines not shown.

    Shows the beginning; for a failure, and if the tool gave only the end, the end.
    """
    if not is_error:
        text = re.sub(_USUAL_ENDING, "", text)
        if text.strip() in {"", "(no output)"}:
            return []
    output = _parse_result_output(text)
    lines, at_end = output.lines, is_error or output.before > 0
    rest = max(len(lines) - RESULT_LINES, 0) + output.before + output.after
    visible = lines[-RESULT_LINES:] if at_end else lines[:RESULT_LINES]
    style = "error" if is_error else "result"
    result = [StyledLine(clip_line(INDENT + line, columns).rstrip(), style) for line in visible]
    if not rest and output.whole:
        return result
    words, total = format_count(rest, "more line"), rest + len(visible)
    if not output.whole:
        words = f"at least {words}"
    elif total >= _COUNTED_LINES:
        words = f"{words} of {total}"
    more = StyledLine(_describe_fold(words if rest else "more", columns), style)
    return [more, *result] if at_end else [*result, more]


def _parse_result_output(text: str) -> _ResultOutput:
    """Return the lines of a result without the tool's notice, whose numbers are counted."""
    notice = _TOOL_NOTICE.search(text, max(len(text) - _NOTICE_CHARS, 0))
    if notice is None:
        return _parse_cut_output(text)
    lines = split_output(text[: notice.start()] + notice["ending"])
    if notice["more"]:
        return _ResultOutput(lines, after=int(notice["more"]))
    if notice["newest"]:
        return _ResultOutput(lines, after=int(notice["files"]) - int(notice["newest"]))
    if notice["line"]:
        return _ResultOutput(lines, before=int(notice["line"]) - 1)
    if not notice["all"]:
        return _ResultOutput(lines, whole=False)
    first, last, count = (int(notice[name]) for name in ("first", "last", "all"))
    at_end = last == count
    return _ResultOutput(lines, first - 1 if at_end else 0, 0 if at_end else count - last)


def _parse_cut_output(text: str) -> _ResultOutput:
    """Return the lines of a result that was cut where it stands, or not at all."""
    if omitted := re.search(_OMITTED, text):
        return _ResultOutput(split_output(text), after=int(omitted[1]) - 1)
    cut = re.search(_TRUNCATED, text)
    if cut is None:
        return _ResultOutput(split_output(text))
    lines = split_output(text[: cut.start()] or text[cut.end() :])
    if cut["unit"] == "bytes":
        return _ResultOutput(lines, whole=False)
    count = int(cut["count"])
    return _ResultOutput(lines, after=count) if cut.start() else _ResultOutput(lines, before=count)
