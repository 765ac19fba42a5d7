"""One line → what the index holds of it: its words, what it cost, its tool call and files; pure.

Invariant: the data of each line is decoded once. What is redacted or of an unknown shape gives
nothing, and does not hide the rest.

    type                 gives
    user, context        words said
    assistant            words said and called, usage, the files its calls are about
    tool.result          the first words answered (more of a whole result that is kept beside it),
                         the outcome of the call, the files it changed
    checkpoint           the files of a restore
    usage                usage
    start, meta          the folder it works in, the project; a start also the branch of git
    branch, anchor       the branch, and the place it continues from; an anchor also mode and todos
    mode                 the permission mode
    custom               todos
    redact               the ids of the entries that are redacted
"""

from __future__ import annotations

from posixpath import isabs, join, normpath
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import fields

from ..files.calls import parse_named_call
from ..ids import is_id_prefix
from ..model.entries import NO_JSON, TODOS_KIND, BlobRef
from ..model.line import JSON_ERRORS
from .full_text import LARGE_RESULT_CHARS, RESULT_CHARS, iter_argument_texts

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..model.line import Header


_WHOLE, _BLOB = b'"full":', b'"$blob":'
"""In the line of every result that is kept beside it."""
ASKED_OPS = frozenset({"write", "edit", "patch"})
"""What a call would do to a file; what its result says of the file replaces it."""


class TouchedFile(NamedTuple):
    """One file that a call is about, or that its result says it changed."""

    call: str
    """Id of the call; "" of a restore."""
    path: str
    """As the model wrote it; `resolve_path` makes it absolute."""
    op: str
    """Of a call read, write, edit or patch; of its result created, modified, deleted, renamed,
    mode, or moved: the old path of a renamed file; of an undo or redo restored."""


def list_touched_files(call: str, name: str, args: object) -> list[TouchedFile]:
    """Return the files a call reads or changes, each once; a blob is parsed by its head."""
    arguments = args if isinstance(args, dict) else {"input": args}
    heads = {
        key: value.get("head") if isinstance(value, dict) and "$blob" in value else value
        for key, value in arguments.items()
    }
    return list(
        dict.fromkeys(
            TouchedFile(call, call_file.path, call_file.op)
            for call_file in parse_named_call(name, heads)
        )
    )


def resolve_path(path: str, cwd: str | None) -> str:
    """Return a path from the root, without `.` and `..`; unchanged if `cwd` is unknown."""
    if path.startswith("~") or not (isabs(path) or cwd):
        return path
    return normpath(join(cwd or "/", path)).replace("//", "/", 1)


_ENTRY_ID_DIGITS = 40
ANSWER_PURPOSE = "answer"
"""The purpose of usage that an assistant entry tells of."""


class EntryWords(NamedTuple):
    """The text of one entry, by origin."""

    said: str = ""
    """Text by people and models, and context for the model."""
    called: str = ""
    """Names and arguments of tools."""
    answered: str = ""
    """The beginning of a tool's result."""


class CallUsage(NamedTuple):
    """The usage of one model call; None where unknown."""

    purpose: str
    provider: str
    model: str
    input: int
    output: int
    reasoning: int | None
    cache_read: int | None
    cache_write: int | None
    total: int
    cost: float | None
    duration_ms: int | None


class CallOutcome(NamedTuple):
    """How one tool call ended."""

    name: str
    is_error: bool
    duration_ms: int


class LineContents(NamedTuple):
    """All that one line says."""

    words: EntryWords | None = None
    spent: CallUsage | None = None
    done: CallOutcome | None = None
    touched: tuple[TouchedFile, ...] = ()
    cwd: str | None = None
    project: str | None = None
    branch: str | None = None
    git_branch: str | None = None
    mode: str | None = None
    """The permission mode."""
    todos: str | None = None
    """A todo list as JSON."""
    base: tuple[str, int] | None = None
    """Phase and offset of the entry that a phase started by a fork or an anchor continues from."""
    targets: tuple[str, ...] = ()
    """Ids of the entries that a redaction names."""
    repository: str | None = None
    person: str | None = None
    machine: str | None = None


NO_CONTENTS = LineContents()


_BoundedCount = Annotated[int, msgspec.Meta(ge=0, le=10**12)]
"""Tokens or milliseconds that one call can have taken; any other number is ignored."""
_BoundedAmount = Annotated[float, msgspec.Meta(ge=0, le=10**9)]
"""Largest cost that one call can have; any other number is ignored."""


class CostAmount(Struct, gc=False):
    """The part of a cost that is summed."""

    amount: _BoundedAmount
    currency: Literal["USD"] = "USD"
    """Amounts in another currency cannot be added up."""


class _Tokens(Struct, gc=False):
    input: _BoundedCount = 0
    output: _BoundedCount = 0
    reasoning: _BoundedCount | None = None
    cache_read: _BoundedCount | None = None
    cache_write: _BoundedCount | None = None
    total: _BoundedCount = 0


class _Block(Struct, gc=False):
    type: str = ""
    text: str | BlobRef = ""
    id: str = ""
    name: str = ""
    args: Raw = NO_JSON
    args_text: str | BlobRef | None = None


class _Message(Struct, gc=False):
    content: list[_Block] | str | BlobRef = ""


class _Answer(Struct, gc=False):
    content: list[_Block] | str | BlobRef = ""
    provider: str = ""
    model: str = ""
    usage: _Tokens | None = None
    cost: CostAmount | None = None
    duration_ms: _BoundedCount | None = None


class _ChangedFile(Struct, gc=False):
    path: str
    op: str
    source: str | None = msgspec.field(name="from", default=None)


class _Result(Struct, gc=False):
    content: list[_Block] | str | BlobRef = ""
    full: str | BlobRef | None = None
    call_id: str = ""
    name: str = ""
    is_error: bool = False
    duration_ms: _BoundedCount = 0
    files: tuple[_ChangedFile, ...] = ()


class _SavedState(Struct, gc=False):
    path: str


class _Restore(Struct, gc=False):
    why: str = ""
    files: tuple[_SavedState, ...] = ()


class _UsageData(Struct, gc=False):
    purpose: str = ""
    provider: str = ""
    model: str = ""
    usage: _Tokens | None = None
    cost: CostAmount | None = None


class _Base(Struct, gc=False):
    phase: str
    offset: int
    tape: str | None = None


class _Git(Struct, gc=False):
    branch: str | None = None


class _State(Struct, gc=False):
    mode: str | None = None
    todos: Raw = NO_JSON


class _Opening(Struct, gc=False):
    branch: str | None = None
    cwd: str | None = None
    project: str | None = None
    git: _Git | None = None
    base: _Base | None = None
    state: _State | None = None
    repository: str | None = None
    person: str | None = None
    machine: str | None = None


class _Permission(Struct, gc=False):
    permission: str | None = None


class _Record(Struct, gc=False):
    kind: str = ""
    data: Raw = NO_JSON


class _Redaction(Struct, gc=False):
    targets: tuple[str, ...] = ()


_DATA_TYPES: dict[str, type[Struct]] = {
    "user": _Message,
    "context": _Message,
    "assistant": _Answer,
    "tool.result": _Result,
    "checkpoint": _Restore,
    "usage": _UsageData,
    "start": _Opening,
    "meta": _Opening,
    "branch": _Opening,
    "anchor": _Opening,
    "mode": _Permission,
    "custom": _Record,
    "redact": _Redaction,
}
_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {
    name: msgspec.json.Decoder(kind) for name, kind in _DATA_TYPES.items()
}


def extract_contents(
    header: Header, line: bytes, load: Callable[[str, int], str] | None = None
) -> LineContents:
    """Return the content of a line (without its newline).

    `load` returns the beginning of a blob, by hash and number of characters; without it, only what
    the line itself has is returned.
    """
    decoder = _DECODERS.get(header.type)
    if decoder is None:
        return NO_CONTENTS
    data = line[header.data : -1]
    try:
        payload = decoder.decode(data)
    except JSON_ERRORS:
        payload = _decode_by_field(_DATA_TYPES[header.type], data)
    contents = _to_contents(payload) if payload is not None else NO_CONTENTS
    if (
        (_WHOLE in line or _BLOB in line)
        and isinstance(payload, _Result)
        and (whole := _collect_whole_result(payload, load))
    ):
        first = contents.words.answered if contents.words else ""
        answered = f"{first}\n{whole}" if first else whole
        return contents._replace(words=EntryWords(answered=answered))
    return contents


def _decode_by_field(kind: type[Struct], data: bytes | Raw) -> Struct | None:
    """Return the valid members of the data; None if it is not an object."""
    try:
        members = msgspec.json.decode(data, type=dict[str, Raw])
    except JSON_ERRORS:
        return None
    fit = {}
    for field in fields(kind):
        raw = members.get(field.encode_name)
        if raw is None:
            continue
        try:
            fit[field.name] = msgspec.json.decode(raw, type=field.type)
        except JSON_ERRORS:
            if _Tokens in get_args(field.type):  # one invalid count does not affect the others
                fit[field.name] = _decode_by_field(_Tokens, raw)
    return kind(**fit)


def _to_contents(payload: Struct) -> LineContents:
    contents = NO_CONTENTS
    match payload:
        case _Answer():
            called, places = _extract_calls(payload.content)
            words = EntryWords(_collect_message_text(payload.content), called)
            spent = _to_call_usage(ANSWER_PURPOSE, payload.duration_ms, payload)
            contents = LineContents(words if any(words) else None, spent, touched=places)
        case _Message():
            text = _collect_message_text(payload.content)
            contents = LineContents(EntryWords(said=text)) if text else NO_CONTENTS
        case _Result():
            done = CallOutcome(payload.name, payload.is_error, payload.duration_ms)
            text = _collect_message_text(payload.content, RESULT_CHARS)
            touched = _list_changed_files(payload)
            contents = LineContents(
                EntryWords(answered=text) if text else None, None, done, touched
            )
        case _Restore(why="restore", files=states):
            paths = dict.fromkeys(state.path for state in states)
            contents = LineContents(
                touched=tuple(TouchedFile("", path, "restored") for path in paths)
            )
        case _UsageData():
            contents = LineContents(spent=_to_call_usage(payload.purpose, None, payload))
        case _Opening(git=git, base=base, state=state):
            here = base is not None and base.tape is None
            contents = LineContents(
                cwd=payload.cwd,
                project=payload.project,
                branch=payload.branch,
                git_branch=git.branch if git else None,
                mode=state.mode if state else None,
                todos=_extract_todos(state.todos) if state else None,
                base=(base.phase, base.offset) if base and here else None,
                repository=payload.repository,
                person=payload.person,
                machine=payload.machine,
            )
        case _Permission(permission=mode):
            contents = LineContents(mode=mode) if mode is not None else NO_CONTENTS
        case _Record(kind=kind, data=todos):
            listed = _extract_todos(todos) if kind == TODOS_KIND else None
            contents = LineContents(todos=listed) if listed is not None else NO_CONTENTS
        case _Redaction():
            contents = LineContents(
                targets=tuple(
                    [t for t in payload.targets if len(t) == _ENTRY_ID_DIGITS and is_id_prefix(t)]
                )
            )
    return contents


def _extract_todos(todos: Raw) -> str | None:
    """Return a todo list as JSON; None without one, and of a blob."""
    data = bytes(todos)
    return data.decode("utf-8", "replace") if data[:1] == b"[" else None


def _list_changed_files(result: _Result) -> tuple[TouchedFile, ...]:
    """Return the files that a result says its call changed, each path once for each op."""
    touched = [TouchedFile(result.call_id, file.path, file.op) for file in result.files]
    touched += [
        TouchedFile(result.call_id, file.source, "moved") for file in result.files if file.source
    ]
    return tuple(dict.fromkeys(touched))


def _to_call_usage(
    purpose: str, duration_ms: int | None, payload: _Answer | _UsageData
) -> CallUsage:
    tokens = payload.usage or _Tokens()
    return CallUsage(
        purpose,
        payload.provider,
        payload.model,
        tokens.input,
        tokens.output,
        tokens.reasoning,
        tokens.cache_read,
        tokens.cache_write,
        tokens.total,
        payload.cost.amount if payload.cost else None,
        duration_ms,
    )


def _collect_message_text(content: list[_Block] | str | BlobRef, limit: int | None = None) -> str:
    """Return the text of a message without thinking; for a blob that in its head."""
    if not isinstance(content, list):
        return _get_text_or_blob_head(content)[:limit]
    return "\n".join(
        [_get_text_or_blob_head(b.text)[:limit] for b in content if b.text and b.type != "thinking"]
    )


def _collect_whole_result(result: _Result, load: Callable[[str, int], str] | None) -> str:
    """Return the text of a result that is kept beside it: whole outputs, and texts in blobs."""
    content = result.content
    texts = [block.text for block in content] if isinstance(content, list) else [content]
    full_texts, room = list[str](), LARGE_RESULT_CHARS
    for text in (*[text for text in texts if isinstance(text, BlobRef)], result.full):
        whole = text if isinstance(text, str) else load(text.hash, room) if text and load else ""
        if room and whole:
            full_texts.append(whole[:room])
            room -= len(full_texts[-1])
    return "\n".join(full_texts)


def _get_text_or_blob_head(text: str | BlobRef) -> str:
    return text if isinstance(text, str) else text.head


def _extract_calls(content: list[_Block] | str | BlobRef) -> tuple[str, tuple[TouchedFile, ...]]:
    """Return the names and arguments of an answer's calls, and the files they are about."""
    words: list[str] = []
    places: list[TouchedFile] = []
    for block in content if isinstance(content, list) else ():
        if block.type == "tool_call":
            args = _decode_call_arguments(block)
            words += (block.name, *iter_argument_texts(args))
            places += list_touched_files(block.id, block.name, args)
    return "\n".join(words), tuple(places)


def _decode_call_arguments(block: _Block) -> object:
    if block.args_text is not None:
        return _get_text_or_blob_head(block.args_text)
    try:
        return msgspec.json.decode(block.args) if block.args else None
    except JSON_ERRORS:
        return bytes(block.args).decode(errors="replace")
