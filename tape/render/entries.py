"""Entries → text for people: one line, a paragraph, a whole conversation, plain or Markdown; pure.

Nothing in a tape reaches a terminal as a control character: `show_controls` makes it visible. In a
conversation no words of somebody pass for a heading of ours.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, assert_never

import msgspec
from msgspec.structs import replace

from ..clock import render_time
from ..model.entries import (
    NO_JSON,
    TODOS_KIND,
    AgentEnd,
    AgentStart,
    Anchor,
    Approval,
    Assistant,
    Audio,
    Block,
    Branch,
    Checkpoint,
    Context,
    Custom,
    Document,
    Error,
    Image,
    Meta,
    Model,
    Note,
    Opaque,
    Repair,
    Start,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolStart,
    Unknown,
    User,
    join_texts,
    select_tool_calls,
)
from ..model.line import Unread
from ..model.summary import render_summary
from ..text import (
    SHORT,
    format_count,
    measure_width,
    shorten_to_width,
    show_controls,
    to_single_line,
)
from .paint import leave_plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from msgspec import Raw

    from ..model.entries import Content, Payload
    from ..model.line import Entry
    from .calls import LoadBlob, RenderedCall
    from .paint import Paint


class RenderOptions(NamedTuple):
    """How entries are shown."""

    load: LoadBlob | None = None
    """Reads the bytes of changed files; without it each change is one line."""
    paint: Paint = leave_plain
    diff_lines: int | None = None
    """Lines of each diff that are shown; all if None."""
    with_bodies: bool = True
    """Whether an answer shows what its calls would do to files; else their results do."""


PLAIN = RenderOptions()


def name_reason(why: str) -> str:
    """Return why a branch began or moved (tape.md §4) as people read it."""
    return "continued" if why == "go-on" else why


def _name_anchor(anchor: Anchor) -> str:
    """Return what an anchor is: `Merged 'try-redis' (12 entries, 3 prompts)`, `handoff on main`."""
    other, covers = anchor.merged, anchor.covers
    if other is None:
        return f"{anchor.kind} on {anchor.branch}"
    if anchor.reason.startswith("merged "):
        text = f"M{anchor.reason[1:]}"
    else:
        count = f" ({format_count(covers.count, 'entry')})" if covers else ""
        text = f"{'Left' if other.reason == 'left' else 'Merged'} {other.branch!r}{count}"
    return f"{text}, {len(other.picks)} picked" if other.picks else text


def render_entry_line(entry: Entry, columns: int = 100) -> str:
    """Return an entry on one line: short id, type, and the beginning of its content."""
    start = show_controls(f"{entry.id[:SHORT]}  {entry.type:<11}  ")
    return start + shorten_to_width(
        _summarize_entry(entry.data), max(columns - measure_width(start), 20)
    )


def _summarize_entry(data: Payload) -> str:
    match data:
        case User(content=content):
            return _join_content(content)
        case Assistant():
            calls = "  ".join(map(_render_call_line, select_tool_calls(data.content)))
            return "  ".join(filter(None, (describe_stop(data), join_texts(data.content), calls)))
        case ToolResult():
            return f"{data.name}: {'error: ' * data.is_error}{_join_content(data.content)}"
        case Context():
            return f"{data.origin}: {_join_content(data.content)}"
        case _:
            return _describe_payload(data)


def _decode_raw_json(raw: msgspec.Raw) -> str:
    return bytes(raw).decode("utf-8", "replace")


def _describe_payload(data: Payload) -> str:
    """Return the content of an entry that is not part of the conversation, in a few words."""
    match data:
        case Start():
            return f"{data.program} in {data.cwd}"
        case Branch():
            return (
                f"{data.branch} from {data.base.entry[:SHORT]} ({name_reason(data.why or 'fork')})"
            )
        case Anchor():
            return f"{_name_anchor(data)}: {render_summary(data.summary)}"
        case Model():
            return f"{data.provider}/{data.model} {data.effort or ''}".rstrip()
        case Unread():
            return f"({data.why}) {_decode_raw_json(data.raw)}"
        case _:
            return _describe_minor_payload(data)


def _describe_minor_payload(data: Payload) -> str:
    match data:
        case ToolStart():
            where = "" if data.environment is None else f"in {data.environment.name}: "
            return f"{where}{data.name} {_decode_raw_json(data.args)}".rstrip()
        case Repair():
            return f"{data.kind}: {data.why}"
        case Error():
            return f"{data.kind}: {data.message}"
        case Approval():
            return f"{data.decision} by {data.by}" + (f": {data.reason}" if data.reason else "")
        case Note():
            return data.text
        case _:
            return _describe_folders_payload(data)


def _describe_todos(data: Custom) -> str:
    """Return a todo list in a few words; as it is where it is none."""
    from .own_calls import describe_own_call  # noqa: PLC0415 (few entries)

    raw = b'{"todos":%b}' % bytes(data.data)
    with suppress(ValueError, RecursionError):
        own = describe_own_call("todo", msgspec.json.decode(raw))
        if own is not None:
            return own.sentence[:1].lower() + own.sentence[1:]
    return msgspec.json.encode(data).decode("utf-8", "replace")


def _describe_folders_payload(data: Payload) -> str:
    match data:
        case Checkpoint():
            paths = ", ".join(state.path for state in data.files) or "no files"
            sentence = f"{'restored' if data.why == 'restore' else 'saved'} {paths}"
            return "; not covered: ".join((sentence, *filter(None, [", ".join(data.not_covered)])))
        case AgentStart():
            place = data.branch or (data.tape or "")[:SHORT]
            return f"{data.agent} ({data.kind}) on {place}: {to_single_line(data.task)}"
        case AgentEnd():
            return f"{data.agent} {data.status}: {to_single_line(data.result)}"
        case Custom(kind=kind) if kind == TODOS_KIND:
            return _describe_todos(data)
        case Meta(cwd=str(cwd), tags=None):
            return f"continued in {cwd}"
        case _:
            return msgspec.json.encode(data).decode("utf-8", "replace")


def _join_content(content: Content) -> str:
    return " ".join(line for block in content for line in render_block(block))


def describe_stop(answer: Assistant) -> str:
    """Return how an answer ended, "" if it ended normally."""
    if answer.error is not None:
        return f"({answer.stop_reason}: {answer.error.message})"
    return "" if answer.stop_reason in {"stop", "tool_calls"} else f"({answer.stop_reason})"


def _describe_rest(data: Payload, body: Sequence[str], shown_lines: int) -> str:
    """Return how much follows the lines shown; of a result that was cut, how much of the whole."""
    full = data.full if isinstance(data, ToolResult) else None
    if not isinstance(data, ToolResult) or full is None:
        return f"… {len(body) - shown_lines} more lines"
    if isinstance(full, str):
        part = "\n".join(_render_blocks(data.content))
        lines = max(text.rstrip("\n").count("\n") + 1 for text in (part, full))
        return f"… {max(lines - shown_lines, 0)} more lines"
    size = sum(len(line.encode("utf-8", "replace")) + 1 for line in body[:shown_lines])
    return f"… {max(full.bytes - size, 0)} more bytes"


def render_entry(
    entry: Entry,
    limit: int | None = None,
    options: RenderOptions = PLAIN,
    call: RenderedCall | None = None,
) -> list[str]:
    """Return an entry as lines: a heading, then its content, cut after `limit` lines if given.

    A result may be shown with its call. The files it changed come last: `limit` does not cut them.
    """
    body = [line for part in render_parts(entry.data, options, call) for line in part.split("\n")]
    if limit is not None and len(body) > limit:
        body = [*body[:limit], _describe_rest(entry.data, body, limit)]
    body += render_changes(entry.data, options)
    heading = f"{entry.type} {entry.id[:12]} · {entry.n} · {render_time(entry.time)}"
    heading += _describe_author(entry.data)
    return [to_single_line(heading), *(f"  {line}".rstrip() for line in body)]


def render_parts(
    data: Payload, options: RenderOptions = PLAIN, call: RenderedCall | None = None
) -> Iterator[str]:
    """Yield the content of an entry, made visible, in parts of whole lines."""
    match data:
        case User(content=content) | Context(content=content):
            yield from _render_blocks(content)
        case Assistant():
            yield from _render_blocks(data.content, options)
            yield from _show_text(describe_stop(data))
        case ToolResult():
            yield from _render_answered_call(data, call)
        case Anchor():
            if data.kind == "merge":
                yield from _show_text(f"{_name_anchor(data)}\n")
            yield from _show_text(render_summary(data.summary))
        case _:
            yield from _show_text(_describe_payload(data))


def _render_answered_call(result: ToolResult, call: RenderedCall | None) -> Iterator[str]:
    """Yield a call, where it is known, and what it returned."""
    if call is not None:
        yield from [call.place] if call.place else []
        yield "\n".join(call.head)
        is_shown_below = result.files and not result.is_error
        if call.body and not is_shown_below and not is_call_repeated(result, call):
            yield from call.body
    yield from _render_result(result)
    if result.whole is not None:
        yield "in full:"
        yield from _show_text(result.whole)


def render_changes(data: Payload, options: RenderOptions) -> Iterator[str]:
    """Yield what a result, or a restore, changed on disk."""
    match data:
        case ToolResult(files=files) | Checkpoint(files=files, why="restore"):
            if files:
                from .calls import render_changed_files  # noqa: PLC0415 (few entries have any)

                yield from render_changed_files(
                    files, options.load, options.paint, options.diff_lines
                )
        case _:
            pass


def render_content(content: Content) -> Iterator[str]:
    """Yield the lines of a message's blocks, made visible."""
    for part in _render_blocks(content):
        yield from part.split("\n")


def may_cite(content: Content) -> bool:
    """Whether an answer may cite pages: few blocks have notes of their provider."""
    for block in content:  # a loop: any() of a generator takes twice as long
        if type(block) is Text:
            if block.wire is not NO_JSON and bytes(block.wire):
                return True
        elif type(block) is Opaque:
            return True
    return False


def _render_blocks(content: Content, options: RenderOptions = PLAIN) -> Iterator[str]:
    for block in content:
        if type(block) is Text:  # nearly all
            yield from _show_text(block.text)
        elif type(block) is ToolCall:
            call = _render_call(block, paint=options.paint)
            yield "\n".join(call.head)
            yield from call.body if options.with_bodies else ()
        else:
            for text in render_block(block):
                yield from _show_text(text)
    if may_cite(content):
        from .sources import render_sources  # noqa: PLC0415 (few answers cite)

        yield from map(show_controls, render_sources(content))


_TODO_RESULT = "The todo list is now:"
"""How the result of `todo` begins: the list, which its call shows."""


def is_call_repeated(result: ToolResult, call: RenderedCall) -> bool:
    """Whether the result of an agent's own tool says again what its call is about."""
    text = join_texts(result.content)
    return not call.is_patch and all(line in text for line in call.body)


def _render_result(result: ToolResult) -> Iterator[str]:
    """Yield what a call returned; an object of an agent's own tool as lines of its fields."""
    match result.content:
        case (Text(text=text),) if text.startswith(_TODO_RESULT) and result.name == "todo":
            return
        case (Text(text=text),) if text[:1] == "{":
            from .own_calls import describe_own_call, flatten_object  # noqa: PLC0415 (few results)

            fields = flatten_object(text.strip())
            if fields is not None and describe_own_call(result.name, {"prompt": "-"}) is not None:
                yield from (show_controls(field) for field in fields)
                return
        case _:
            pass
    yield from _render_blocks(result.content)


def _show_text(text: str) -> tuple[str, ...]:
    """Return a text made visible, without the newlines at its end; nothing for an empty one."""
    return (show_controls(text).rstrip("\n"),) if text else ()


def split_visible_lines(text: str) -> list[str]:
    """Return the lines of a text made visible, without those at its end that are empty."""
    return [line for part in _show_text(text) for line in part.split("\n")]


def render_block(block: Block) -> Iterator[str]:
    """Yield a block as text; blocks other than text are named."""
    match block:
        case Text(text=text):
            yield text
        case Thinking(text=text):
            yield f"(thinking) {text}" if text else "(thinking, not shown by its provider)"
        case ToolCall():
            yield _render_call_line(block)
        case Image(blob=blob, mime=mime) | Audio(blob=blob, mime=mime):
            yield f"[{mime}, {blob.bytes} bytes, blob {blob.hash[:12]}]"
        case Document(blob=blob, mime=mime, name=name):
            yield f"[{name or mime}, {blob.bytes} bytes, blob {blob.hash[:12]}]"
        case Opaque(raw=raw):
            from .sources import describe_server_block  # noqa: PLC0415 (few answers have any)

            lines = describe_server_block(raw)
            yield from lines or (f"[provider's own block] {_decode_raw_json(raw)}",)
        case Unknown(raw=raw):
            yield f"[unknown block] {_decode_raw_json(raw)}"
        case _:
            assert_never(block)


def _render_call_line(call: ToolCall) -> str:
    """Return a call without what it would do to files: `$ pytest -q`, `→ edit a.py`."""
    return " ".join(_render_call(call).head)


def _render_call(call: ToolCall, ran: Raw = NO_JSON, paint: Paint = leave_plain) -> RenderedCall:
    """Return a call as people read it; what that takes is imported with the first one."""
    from .calls import render_call  # noqa: PLC0415 (a third of the time of `tape status`)

    return render_call(call, ran, paint)


def _describe_author(data: Payload) -> str:
    """Return the author or origin of an entry, if its type does not imply it."""
    if type(data) is User:  # compared, as ToolResult comes first: `match` is slow with Structs
        return ""
    match data:
        case ToolResult():
            return f" · {data.name}" + " · error" * data.is_error
        case Assistant():
            return f" · {data.provider}/{data.model}" if data.model else ""
        case Context():
            return f" · {data.role}, {data.origin}"
        case Anchor():
            return f" · {data.kind}"
        case _:
            return ""


SPOKEN = frozenset({User, Assistant, ToolResult, Context, Anchor})


class Conversation:
    """Shows entries one after the other, oldest first; each call once, with its result.

    Where a call acted in another place than the call before, that place is named.

    entry            what is shown                         calls that wait
    user, assistant  the calls that wait, then its texts   its own calls
    tool.start       nothing                               its call has the arguments it ran with
    tool.result      its call, its output, its changes     all but its call
    (the end)        the calls that wait                   none
    """

    def __init__(self, options: RenderOptions = PLAIN) -> None:
        self.options = options
        self._waiting: dict[str, tuple[ToolCall, Raw]] = {}
        self._places: dict[str, str] = {}
        """Where calls that wait were started; "" for this machine."""
        self._place = ""
        """Where the call acted that was shown last."""

    def render_turn(self, entry: Entry) -> list[str]:
        """Return what an entry adds to the conversation, in parts of whole lines.

        The last one is blank; there are none where the entry adds nothing. They are not joined:
        most text is ASCII, and with a heading in it takes twice the memory, and time to encode.
        """
        data: Any = entry.data
        kind = type(data)  # compared: isinstance and match take several times as long with Structs
        if kind is ToolResult:
            parts = [*_render_answered_call(data, self.take_call(data))]
            if data.files:
                parts += render_changes(data, self.options)
            return [f"── {describe_turn(entry)}", *map(_indent_headings, parts), ""]
        if kind in SPOKEN:
            before = self.end() if self._waiting and kind in {User, Assistant} else []
            if kind is Assistant:
                parts = [*_render_blocks(self._note_calls(data)), *_show_text(describe_stop(data))]
            else:
                parts = [*render_parts(data)]
            return [*before, f"── {describe_turn(entry)}", *map(_indent_headings, parts), ""]
        if self.note_start(data) or is_silent(data):
            return []
        first, *more = split_visible_lines(describe_event(entry))
        more += render_changes(data, self.options)
        return [f"· {first}", *map(_indent_headings, more), ""]

    def note_calls(self, data: Payload) -> Payload:
        """Note the calls of an answer, and return it without them; anything else as it is."""
        if type(data) is not Assistant:
            return data
        rest = self._note_calls(data)
        return data if rest is data.content else replace(data, content=rest)

    def _note_calls(self, answer: Assistant) -> Content:
        """Note the calls of an answer, and return its other blocks."""
        self._waiting = {call.id: (call, NO_JSON) for call in select_tool_calls(answer.content)}
        if not self._waiting:
            return answer.content
        return tuple([block for block in answer.content if type(block) is not ToolCall])

    def note_start(self, data: Payload) -> bool:
        """Return whether an entry only says that a call started, and with what."""
        if type(data) is not ToolStart:
            return False
        self._places[data.call_id] = "" if data.environment is None else data.environment.name
        if data.args is not NO_JSON and bytes(data.args) and data.call_id in self._waiting:
            self._waiting[data.call_id] = self._waiting[data.call_id][0], data.args
        return True

    def take_call(self, result: ToolResult) -> RenderedCall | None:
        """Return the call that a result answers; None where it is not known any more."""
        call = self._waiting.pop(result.call_id, None)
        place = self._places.pop(result.call_id, self._place)
        if call is None:
            return None
        rendered = _render_call(*call, self.options.paint)
        if place == self._place:
            return rendered
        self._place = place
        where = f"in {to_single_line(place)}:" if place else "on the machine of the session:"
        return rendered._replace(place=where)

    def take_waiting(self) -> list[RenderedCall]:
        """Return the calls that got no result."""
        calls = [_render_call(*call, self.options.paint) for call in self._waiting.values()]
        self._waiting = {}
        return calls

    def end(self) -> list[str]:
        """Return the calls that got no result, as `render_turn` does; empty if there are none."""
        lines = [
            line for call in self.take_waiting() for part in (call.head, call.body) for line in part
        ]
        return [*map(_indent_headings, lines), ""] if lines else []


def is_silent(data: Payload) -> bool:
    """Return whether an entry adds nothing to a conversation: its call, or its result, says it."""
    if type(data) is Custom:
        return data.kind == TODOS_KIND
    if type(data) is Checkpoint:
        return data.why == "tool" and not data.not_covered
    return type(data) is ToolStart


def describe_turn(entry: Entry) -> str:
    """Return who spoke, and when, on one line."""
    author = _show_author(f"{entry.type}{_describe_author(entry.data)}")
    return f"{author} · {to_single_line(render_time(entry.time))}"


_show_author = lru_cache(maxsize=256)(to_single_line)
"""A conversation has few authors."""


def describe_event(entry: Entry) -> str:
    """Return what an entry that nobody speaks says: its type, then its facts."""
    return f"{entry.type}: {_describe_payload(entry.data)}"


def _indent_headings(text: str) -> str:
    """Return content with each line indented that looks like a heading of this page."""
    if text.isascii():  # as nearly always; of others, single characters are found fastest
        return text
    inside = ("─" in text and "\n── " in text) or ("·" in text and "\n· " in text)
    if inside or text.startswith(("── ", "· ")):
        return re.sub(r"^(?=── |· )", " ", text, flags=re.MULTILINE)
    return text
