"""What a person is asked about a call: all of it, why, and the answers; pure.

    ? $ npm test && rm -rf build                  the call, the parts marked that are asked about
      may change something: npm test · rm -rf build
    ▶ 1  yes, once (y) · e edit it first
      2  npm test …, rm -rf build: in this session   what is allowed, before the word "always"
      3  always in this project · 5 everywhere
      4  no – here you may type what to do instead (n)

Nothing is said twice: a reason leaves out what the call shows, and names parts only of several.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from tape.files.calls import find_command

from .choice_list import Choice, ChoiceList
from .lines import (
    INDENT,
    StyledLine,
    StyledPart,
    cut_styled_line,
    escape_text,
    join_parts,
    wrap_parts,
)
from .tool_cards import (
    describe_arguments,
    find_subject,
    read_arguments,
    render_body,
    render_diffs,
    shorten_path,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...agent.events import ApprovalRequested

_GENERAL = re.compile(
    r": \S+ (is not one of the commands that only read"
    r"|with these arguments may change something, or read elsewhere)\Z"
)
"""Reasons that say of a part only that it is not known to read."""
_FILE_REASON = re.compile(
    r"(?P<what>edits|reads) (?P<path>.+?)(?P<more>(?: \([^()]*\))?(?:[,:] .*)?)\Z"
)
_RULE = re.compile(r"(?P<tool>\w+)\((?P<pattern>.*)\)\Z", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_NO_REASON = "no – here you may type what to do instead"


def render_call(
    event: ApprovalRequested, columns: int, folder: str = "", *, whole: bool = True
) -> list[StyledLine]:
    """Return the call and why it is asked about, as rows of at most `columns`.

    A command is shown whole, its parts that are asked about marked; an edit as a diff; any other
    call with all its arguments. Without `whole` a diff or arguments are left out, which stand
    above. Paths are those from `folder`.
    """
    arguments = read_arguments(bytes(event.args))
    command = _find_command(event, arguments)
    reasons = event.reasons or (event.why,)
    if command is not None:
        # A reason names a part of the command before its first colon
        parts = [reason.partition(": ")[0].removesuffix("…") for reason in reasons]
        call = _render_command(command, parts, columns)
    else:
        call = _render_other_call(event, arguments, columns, folder) if whole else []
        call[:1] = [*_wrap_heading(_describe_call(event, arguments, folder), columns)]
    style = "error" if event.dangerous else "note"
    return [
        *call,
        *(
            join_parts(row, style)
            for reason in _describe_reasons(event, arguments, folder)
            for row in wrap_parts(
                [StyledPart(escape_text(reason).replace("\n", " "))],
                columns,
                first=[StyledPart(INDENT)],
                rest=[StyledPart(INDENT * 2)],
            )
        ),
    ]


def _find_command(event: ApprovalRequested, arguments: dict[str, object]) -> str | None:
    """Return the command of a call of a shell of ours; None for others, a server's too."""
    return None if "__" in event.name else find_command(event.name, arguments)


def _describe_call(event: ApprovalRequested, arguments: dict[str, object], folder: str) -> str:
    if render_diffs(read_arguments(bytes(event.details))) or render_body(event.name, arguments):
        return describe_arguments(event.name, arguments, folder)
    subject = find_subject(arguments, folder)
    return f"{event.name} {subject}".rstrip() if len(arguments) == 1 and subject else event.name


def _wrap_heading(text: str, columns: int) -> Iterator[StyledLine]:
    rows = wrap_parts(
        [StyledPart(escape_text(text).replace("\n", " "))],
        columns,
        first=[StyledPart("? ")],
        rest=[StyledPart(INDENT)],
    )
    return (line for row in rows for line in cut_styled_line(join_parts(row, "call"), columns))


def _render_other_call(
    event: ApprovalRequested, arguments: dict[str, object], columns: int, folder: str
) -> list[StyledLine]:
    """Return an empty row for the heading, and what the call would do."""
    body = render_diffs(read_arguments(bytes(event.details)), trimmed=True)
    body = body or render_body(event.name, arguments, whole=True)
    if not body:
        is_in_heading = len(arguments) == 1 and find_subject(arguments, folder)
        for key, value in () if is_in_heading else arguments.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            rows = escape_text(f"{key}: {shorten_path(text, folder)}").split("\n")
            body += [StyledLine(INDENT + row, "call") for row in rows]
        if not arguments and bytes(event.args).strip() not in {b"", b"{}"}:
            arguments_text = escape_text(bytes(event.args).decode("utf-8", "replace"))
            body = [StyledLine(INDENT + row, "call") for row in arguments_text.split("\n")]
    cut = (row for line in body for row in cut_styled_line(line, columns, INDENT * 2))
    return [StyledLine(""), *cut]


def _render_command(command: str, parts: Sequence[str], columns: int) -> list[StyledLine]:
    """Return a command as rows whose words and blanks are as they are."""
    rows = []
    for place, line in enumerate(mark_parts(command, parts)):
        pieces = line.parts or (StyledPart(line.text),)
        blank = line.text[: len(line.text) - len(line.text.lstrip(" "))]
        first = StyledPart((INDENT if place else "? $ ") + blank)
        wrapped = wrap_parts(
            _strip_blanks(pieces, len(blank)),
            columns,
            first=[first],
            rest=[StyledPart(INDENT * 2)],
            keep_blanks=True,
        )
        rows += [
            cut
            for row in wrapped
            for cut in cut_styled_line(join_parts(row, "call"), columns, INDENT * 2)
        ]
    return rows


def _strip_blanks(pieces: Sequence[StyledPart], count: int) -> list[StyledPart]:
    """Return pieces without `count` characters at the beginning."""
    left = []
    for text, style in pieces:
        left.append(StyledPart(text[count:], style))
        count = max(count - len(text), 0)
    return left


def _describe_reasons(
    event: ApprovalRequested, arguments: dict[str, object], folder: str
) -> Iterator[str]:
    """Yield why a call is asked about, without what the call itself shows."""
    command, subject = _find_command(event, arguments), find_subject(arguments, folder)
    warning = "DANGEROUS: " if event.dangerous else ""
    general = []
    for full_reason in event.reasons or (event.why,):
        reason = _shorten_paths(full_reason, folder)
        if command is not None:
            part, _, why = reason.partition(": ")
            is_whole = part == command.strip()
            if _GENERAL.search(reason):
                general += [] if is_whole else [part]
            else:
                yield f"{warning}{why if is_whole and why else reason}"
        elif (file := _FILE_REASON.match(reason)) and file["path"] == subject:
            if more := file["more"].lstrip(",: "):
                yield f"{warning}{more}"
        elif file is None or file["more"] or file["what"] == "reads":
            yield f"{warning}{reason.removeprefix(f'{subject}: ')}"
    if general:
        yield f"may change something: {' · '.join(general)}"


def _shorten_paths(text: str, folder: str) -> str:
    """Return a text in which the paths below a folder begin there."""
    if not folder:
        return text
    return re.sub(rf"(?<![\w/.~-]){re.escape(folder.rstrip('/'))}/", "", text)


ANSWER_DIGITS, ANSWER_LETTERS = "12345", "yne"
"""The keys that choose an answer."""


def build_answers(event: ApprovalRequested, folder: str = "") -> ChoiceList:
    """Return the answers to a question; those that last only where rules are offered.

    Each keeps its number, so that a habit never means another answer.
    """
    lasting = []
    if event.offered:
        allowed = _describe_rules(event, folder)
        lasting = [
            Choice("session", f"{allowed}: in this session", "2"),
            Choice("always", "always in this project", "3"),
            Choice("everywhere", "everywhere", "5", is_beside=True),
        ]
    return ChoiceList(
        (
            Choice("once", "yes, once", "1", "y"),
            Choice("edit", "edit it first", "e", is_beside=True),
            *lasting,
            Choice("no", _NO_REASON, "4", "n"),
        )
    )


def _describe_rules(event: ApprovalRequested, folder: str) -> str:
    """Return what the offered rules allow, in words."""
    arguments = read_arguments(bytes(event.args))
    command, subject = _find_command(event, arguments), find_subject(arguments, folder)
    words = []
    for rule in event.offered:
        match = _RULE.match(rule)
        tool = match["tool"].lower() if match else ""
        pattern = _ESCAPED.sub(r"\1", match["pattern"]) if match else ""
        match tool:
            case "bash" if command is not None and pattern == command.strip():
                words.append("exactly this command")
            case "bash":
                words.append(f"{pattern.removesuffix(':*')} …" if ":*" in pattern else pattern)
            case "edit" | "read":
                what = "edits" if tool == "edit" else "reading"
                path = _shorten_paths(pattern, folder)
                is_same_file = command is None and path == subject
                words.append(f"{what} of this file" if is_same_file else f"{what} of {path}")
            case "websearch":
                words.append("searches of the web")
            case "webfetch":
                words.append(f"fetching from {pattern.removeprefix('domain:')}")
            case _:
                words.append("every call of it" if rule.endswith(event.name) else rule)
    return ", ".join(dict.fromkeys(words))


def describe_answer(
    event: ApprovalRequested, decision: str, reason: str = "", folder: str = ""
) -> str:
    """Return what a person decided, in a few words, for the record of the call."""
    rules = ", ".join(_shorten_paths(rule, folder) for rule in event.offered)
    match decision:
        case "once":
            return "allowed once"
        case "session":
            return f"allowed in this session: {rules}"
        case "always":
            return f"allowed in this project from now on: {rules}"
        case "everywhere":
            return f"allowed everywhere from now on: {rules}"
        case "edit":
            return "edited"
        case _:
            return f"refused: {' '.join(reason.split())}" if reason.strip() else "refused"


def format_editable(event: ApprovalRequested) -> str:
    """Return what a person edits of a call: its command, else all its arguments as JSON."""
    command = read_arguments(bytes(event.args)).get("command")
    return command if isinstance(command, str) else bytes(event.args).decode("utf-8", "replace")


def parse_edited(event: ApprovalRequested, text: str) -> dict[str, Any]:
    """Return the arguments that an edited text means; raises ValueError unless it is an object."""
    arguments = read_arguments(bytes(event.args))
    if isinstance(arguments.get("command"), str):
        return {**arguments, "command": text}
    edited = json.loads(text)
    if not isinstance(edited, dict):
        raise ValueError("the arguments have to be a JSON object")  # noqa: TRY004 (of the text)
    return edited


def mark_parts(command: str, parts: Sequence[str]) -> list[StyledLine]:
    """Return a command as lines, with the places marked where its parts stand."""
    marked = bytearray(len(command))
    for part in parts:
        start = command.find(part) if part else -1
        while start >= 0:
            marked[start : start + len(part)] = b"\1" * len(part)
            start = command.find(part, start + len(part))
    lines: list[StyledLine] = []
    at = 0
    for line in command.split("\n"):
        pieces = [
            StyledPart(escape_text(char), "risky" if marked[at + place] else "")
            for place, char in enumerate(line)
        ]
        lines.append(join_parts(pieces, "call"))
        at += len(line) + 1
    return lines
