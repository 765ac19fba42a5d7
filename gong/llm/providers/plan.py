"""From the steps of a request to tool calls, and from their results to sentences: pure.

Invariant: which step a result belongs to follows from its place alone, because every step that
has a tool makes exactly one call, in order.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, assert_never

from msgspec import Struct

from tape.blocks import text_of

from .memory import HELP_BEGINS, SEARCHER, from_search, nothing
from .steps import (
    List,
    Puzzle,
    Read,
    Recall,
    Remember,
    Replace,
    Run,
    Search,
    Step,
    Summarised,
    Think,
    Write,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tape.view import Message

HELP = (
    f"{HELP_BEGINS}: I follow rules and need no network and no key. I understand:\n"
    "- read FILE\n"
    "- list DIR\n"
    "- search TEXT in DIR\n"
    "- run COMMAND, or a line that begins with $\n"
    "- write FILE with TEXT, or with a fenced block\n"
    "- replace A with B in FILE\n"
    "- think about TEXT\n"
    "- remember that TEXT, and later a question about it\n"
    "and several of them joined by “then”, one step each.\n"
    "For a real model set ANTHROPIC_API_KEY and start "
    "`gong chat -m anthropic/claude-sonnet-5-5`."
)
"""What the offline model says when it understands nothing."""

_SHORT = 100
_LONG = 300
_SHOWN_ENTRIES = 8
_NOTICE = re.compile(
    r"\n\n\[[^\n]*?\b(?:lines (?P<first>\d+)-\d+ of (?P<all>\d+)|of line (?P<last>\d+)"
    r"|(?P<more>\d+) more (?:entries|lines))\b[^\n]*\]\s*\Z"
)
_NOTHING = re.compile(
    r"\s*(?:\((?:no output|empty directory|empty file)\)|no matches found\.?)?\s*\Z", re.IGNORECASE
)
_NO_MATCH = re.compile(r"[^\n:]*(?:\n+[^\n:]*)?\bexit\w*\b[^\n:]*\b1\b[^\n:]*\s*\Z", re.IGNORECASE)


class _Output(Struct, frozen=True):
    """What a tool showed: `count` lines in all, of which it gave `lines`, in one piece."""

    lines: list[str]
    count: int
    from_start: bool = True
    """Whether `lines` begin with its first."""


class Call(Struct, frozen=True):
    """A tool and the arguments it is to get."""

    name: str
    args: dict[str, str]


def call_for(step: Step, tools: frozenset[str]) -> Call | None:
    """Return the call that does `step` with these tools; None where none of them can."""
    call = _wanted(step, tools)
    return call if call and call.name in tools else None


def next_move(
    steps: Iterable[Step], tools: frozenset[str], done: int
) -> tuple[tuple[Think, ...], Call | None]:
    """Return what to think of now and which call comes after `done` calls; None at the end."""
    thoughts: tuple[Think, ...] = ()
    for step in steps:
        if isinstance(step, Think):
            thoughts += (step,)
        elif call := call_for(step, tools):
            if not done:
                return thoughts, call
            thoughts, done = (), done - 1
    return thoughts, None


def left(steps: Sequence[Step], tools: frozenset[str], made: Sequence[Call]) -> tuple[Step, ...]:
    """Return the steps from the first of the calls that were made on; none where they do not fit.

    So a request is gone on with whose first results a summary has replaced.
    """
    calls = [(place, call_for(step, tools)) for place, step in enumerate(steps)]
    wanted = [(place, call) for place, call in calls if call]
    for begin, (place, _) in enumerate(wanted):
        if made and [call for _, call in wanted[begin : begin + len(made)]] == [*made]:
            return tuple(steps[place:])
    return ()


def report(steps: Sequence[Step], tools: frozenset[str], results: Iterable[Message]) -> str:
    """Return what came back, a sentence or two for each step; HELP when nothing was understood."""
    if all(isinstance(step, Puzzle) for step in steps):
        return HELP
    return "\n".join(_sentences(steps, tools, iter(results)))


def _wanted(step: Step, tools: frozenset[str]) -> Call | None:
    call: Call | None
    match step:
        case Read():
            call = Call("read", {"path": step.path})
        case List():
            call = Call("ls", {"path": step.path})
        case Search():
            call = _search(step, tools)
        case Run():
            call = Call("bash", {"command": step.command})
        case Write():
            call = Call("write", {"path": step.path, "content": step.content})
        case Replace():
            args = {"path": step.path, "oldText": step.old, "newText": step.new}
            call = Call("edit", args)
        case Recall(answer=None):
            call = Call(SEARCHER, {"query": step.words})
        case Think() | Puzzle() | Remember() | Recall() | Summarised():
            call = None
        case _:
            assert_never(step)
    return call


def _search(step: Search, tools: frozenset[str]) -> Call:
    if "grep" in tools:
        return Call("grep", {"pattern": step.pattern, "path": step.path})
    words = ("grep", "-rnI", "--", step.pattern, step.path)
    return Call("bash", {"command": shlex.join(words)})


def _sentences(
    steps: Iterable[Step], tools: frozenset[str], results: Iterator[Message]
) -> Iterator[str]:
    for step in steps:
        if isinstance(step, Think):
            yield f"I thought about {step.about}." if step.about else "I thought."
        elif isinstance(step, Summarised):
            yield "I go on from the summary: what is left of the request is to be asked anew."
        elif isinstance(step, Remember):
            yield f"Noted: {_clipped(step.fact, _LONG)}"
        elif isinstance(step, Recall) and not (SEARCHER in tools and step.answer is None):
            yield step.answer or nothing(step.question)
        elif isinstance(step, Puzzle):
            yield f"I did not understand “{_clipped(step.text, _SHORT)}”."
        elif call := call_for(step, tools):
            yield _outcome(step, call, next(results, None))
        else:
            yield _missing_tool(step)


def _missing_tool(step: Step) -> str:
    wanted = _wanted(step, frozenset())
    assert wanted is not None, "only steps that need a tool can lack one"
    words = " ".join(wanted.args.values())
    return (
        f"I could not call {wanted.name} ({_clipped(words, _SHORT)}): there is no such tool here."
    )


def _outcome(step: Step, call: Call, result: Message | None) -> str:
    if result is None:
        return f"{call.name} gave no result."
    text = text_of(result.content)
    if isinstance(step, Search) and _NO_MATCH.match(text):
        text = ""  # grep answers 1 when nothing matches, which is no failure
    elif result.is_error:
        return f"{call.name} failed: {_clipped(text, _LONG) or 'it did not say why'}"
    return _success(step, text)


def _success(step: Step, text: str) -> str:
    shown = _output(text)
    said = ""
    match step:
        case Read():
            said = _contents(step.path, shown)
        case List():
            said = _entries(step.path, shown)
        case Search():
            said = _matches(step, shown)
        case Run():
            said = _printed(step.command, shown)
        case Write():
            said = f"{step.path} is written."
        case Replace():
            said = f"{step.path} is changed: {_quoted(step.old)} is now {_quoted(step.new)}."
        case Recall():
            said = from_search(step.question, text)
        case Think() | Puzzle() | Remember() | Summarised():
            pass
        case _:
            assert_never(step)
    return said


def _output(text: str) -> _Output:
    """Return the lines of a tool's text, without a notice at its end that there are more."""
    if _NOTHING.match(text):
        return _Output([], 0)
    notice = _NOTICE.search(text)
    lines = (text[: notice.start()] if notice else text).rstrip("\n").split("\n")
    if notice is None:
        return _Output(lines, len(lines))
    if notice["more"]:
        return _Output(lines, len(lines) + int(notice["more"]))
    count = notice["all"] or notice["last"]
    return _Output(lines, int(count), from_start=notice["first"] == "1")


def _contents(path: str, shown: _Output) -> str:
    if not shown.count:
        return f"{path} is empty."
    return f"{path} has {_counted(shown.count, 'line')}; it begins: {_first(shown.lines)}"


def _entries(path: str, shown: _Output) -> str:
    folder = "This folder" if path == "." else path
    if not shown.count:
        return f"{folder} is empty."
    names = shown.lines[:_SHOWN_ENTRIES]
    rest = shown.count - len(names)
    more = f" and {rest} more" if rest else ""
    return f"{folder} holds {_counted(shown.count, 'entry', 'entries')}: {', '.join(names)}{more}."


def _matches(step: Search, shown: _Output) -> str:
    pattern = _quoted(step.pattern)
    if not shown.count:
        folder = "this folder" if step.path == "." else step.path
        return f"{pattern} was not found in {folder}."
    found = _counted(shown.count, "line")
    which = "the first" if shown.from_start else "one of them"
    return f"{pattern} was found in {found}; {which}: {_first(shown.lines)}"


def _printed(command: str, shown: _Output) -> str:
    said = f"`{_clipped(command, _SHORT)}` printed"
    if not shown.count:
        return f"{said} nothing."
    if shown.count == 1:
        return f"{said}: {_clipped(shown.lines[0], _LONG)}"
    first = f"the first: {_first(shown.lines)}; " if shown.from_start else ""
    return f"{said} {shown.count} lines; {first}the last: {_clipped(shown.lines[-1], _SHORT)}"


def _first(lines: list[str]) -> str:
    return _clipped(next((line for line in lines if line.strip()), ""), _SHORT)


def _quoted(text: str) -> str:
    return f"“{_clipped(text, _SHORT)}”"


def _counted(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def _clipped(text: str, longest: int) -> str:
    """Return `text` as one line of at most `longest` characters, cut in the middle."""
    line = " ".join(text.split())
    if len(line) <= longest:
        return line
    return f"{line[: longest // 2]} … {line[-longest // 2 :]}"
