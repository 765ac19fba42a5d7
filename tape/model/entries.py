"""What an entry holds: content blocks, and one frozen Struct for each entry type (tape.md §3).

Blocks are what a message is made of, one tagged union for all providers. `wire` holds a provider's
own data as raw JSON (signature, item id, thought signature). It is stored byte for byte and sent
back only to the same endpoint, api and model.

A field of a payload with a plain default is optional and is left out if it has that value. A field
with `keep_default(…)` is always written, but may be missing in what another program wrote. A type
that is not in `PAYLOADS` is kept as raw JSON (`line.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

if TYPE_CHECKING:
    from collections.abc import Iterable

ENTRY_TYPE = "[a-z][a-z0-9._-]{0,63}"
"""Pattern of the name of an entry type."""
NO_JSON = Raw(b"")
"""Default of every raw JSON field: empty, and not written."""


class BlobRef(Struct, frozen=True, gc=False):
    """A payload in `blobs/`: SHA-256 as 64 hex digits, size in bytes, first 2 000 characters."""

    hash: str = field(name="$blob")
    bytes: int
    head: str = ""


class _BlockBase(Struct, frozen=True, tag_field="type", omit_defaults=True, gc=False, kw_only=True):
    """The optional fields of every block."""

    wire: Raw = NO_JSON


class Text(_BlockBase, frozen=True, tag="text", gc=False):
    """Plain text."""

    text: str


class Thinking(_BlockBase, frozen=True, tag="thinking", gc=False):
    """A model's reasoning; `redacted` if only its encrypted form is known (in `wire`)."""

    text: str
    redacted: bool = False


class Image(_BlockBase, frozen=True, tag="image", gc=False):
    """A picture; `mime` such as image/png."""

    blob: BlobRef
    mime: str


class Document(_BlockBase, frozen=True, tag="document", gc=False):
    """A file given to the model as a file, for example a PDF."""

    blob: BlobRef
    mime: str
    name: str | None = None


class Audio(_BlockBase, frozen=True, tag="audio", gc=False):
    """An audio recording."""

    blob: BlobRef
    mime: str


class ToolCall(_BlockBase, frozen=True, tag="tool_call", gc=False):
    """A model's request to run a tool: `args` is the JSON object exactly as the model wrote it.

    `args_text` is used instead if that text is not valid JSON or the tool is freeform.
    """

    id: str
    name: str
    args: Raw = NO_JSON
    args_text: str | None = None


class Opaque(_BlockBase, frozen=True, tag="opaque", gc=False):
    """A provider's own block, stored unchanged."""

    raw: Raw


class Unknown(_BlockBase, frozen=True, tag="unknown", gc=False):
    """A block of a type that this version does not know, created on reading: shown, never sent."""

    raw: Raw


Block = Text | Thinking | Image | Document | Audio | ToolCall | Opaque | Unknown
"""Every block that a message may contain."""

Content = tuple[Block, ...]
"""The content of one message, in order."""


def join_texts(content: Iterable[Block]) -> str:
    """Return the text blocks, concatenated; "" if there are none."""
    return "".join(block.text for block in content if isinstance(block, Text))


def is_wordless(content: Iterable[Block]) -> bool:
    """Return whether an answer says nothing and calls nothing: it is empty, or only thought."""
    return all(
        isinstance(block, Thinking) or (isinstance(block, Text) and not block.text.strip())
        for block in content
    )


def select_tool_calls(content: Iterable[Block]) -> tuple[ToolCall, ...]:
    """Return the tool calls in order."""
    return tuple([block for block in content if type(block) is ToolCall])  # isinstance is slow


def read_arguments(call: ToolCall) -> str:
    """Return the arguments of a call as the model wrote them."""
    if call.args_text is not None:
        return call.args_text
    return bytes(call.args).decode("utf-8", "replace")


def decode_arguments(call: ToolCall) -> Any:
    """Return the arguments of a call; None if it has none, or if they are not JSON."""
    try:
        return msgspec.json.decode(call.args) if call.args_text is None else None
    except (ValueError, RecursionError):
        return None


def keep_default(value: Any) -> Any:
    """Return a field default that replaces a missing value on reading, but is always written."""
    return field(default_factory=lambda: value)


class Usage(Struct, frozen=True, omit_defaults=True, gc=False):
    """Tokens of one model call: `input` without cached tokens, `total` of all.

    `cache_write_hour` is the part of `cache_write` that the provider keeps for an hour,
    `server_tools` how often its own tools ran (`web_search`, `file_search`, …), and `service` what
    it was asked to do otherwise than usually: `flex`, `priority`, `batch`, `fast`.
    """

    input: int = keep_default(0)
    output: int = keep_default(0)
    reasoning: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    total: int = keep_default(0)
    cache_write_hour: int | None = None
    server_tools: dict[str, int] | None = None
    service: str | None = None

    def __add__(self, other: Usage) -> Usage:
        """Add field by field; None + None is None, otherwise None counts as 0.

        The sum has a service only where both have the same.
        """
        return Usage(
            self.input + other.input,
            self.output + other.output,
            _add_counts(self.reasoning, other.reasoning),
            _add_counts(self.cache_read, other.cache_read),
            _add_counts(self.cache_write, other.cache_write),
            self.total + other.total,
            _add_counts(self.cache_write_hour, other.cache_write_hour),
            _add_tools(self.server_tools, other.server_tools),
            self.service if self.service == other.service else None,
        )


def _add_counts(first: int | None, other: int | None) -> int | None:
    return None if first is None and other is None else (first or 0) + (other or 0)


def _add_tools(first: dict[str, int] | None, other: dict[str, int] | None) -> dict[str, int] | None:
    if first is None or other is None:
        return first or other
    return {name: first.get(name, 0) + other.get(name, 0) for name in {**first, **other}}


class Cost(Struct, frozen=True, gc=False):
    """The cost of a call: `amount` in `currency`, which is always USD so far."""

    currency: str
    amount: float


class Place(Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """The place of an entry line: phase folder, byte offset of its first byte, its id.

    `tape` (32 hex digits) only if it is in another tape.
    """

    tape: str | None = None
    phase: str
    offset: int
    entry: str


class Git(Struct, frozen=True, gc=False):
    """The git working copy a session started in."""

    branch: str | None
    commit: str | None
    dirty: bool


class Failure(Struct, frozen=True, gc=False):
    """Why a model call failed: class of the error, and its text."""

    kind: str = field(name="class")
    message: str


class ImportedSession(Struct, frozen=True, omit_defaults=True, gc=False):
    """The session of another agent that a tape was made from; `sha256` of its file at that time."""

    tool: str
    format: str
    source: str
    """Path of the file."""
    session: str
    """The agent's own id of the session."""
    sha256: str
    forked_from: tuple[str, ...] = ()
    """Ids of the sessions whose history the file says that it begins with."""


class Payload(Struct, frozen=True, omit_defaults=True, gc=False):
    """The `data` of an entry; `entry_type` is the `type` of its line."""

    entry_type: ClassVar[str]


class Start(Payload, frozen=True, gc=False):
    """The first entry of a tape."""

    entry_type = "start"
    tape: str
    phase: str
    branch: str
    cwd: str
    program: str
    project: str | None = None
    git: Git | None = None
    origin: Place | None = None
    imported: ImportedSession | None = None
    repository: str | None = None
    """The repository of `cwd`, as `host/owner/name`, wherever it is checked out."""
    person: str | None = None
    """Who works: `Name <email>`."""
    machine: str | None = None
    """The name of the machine it was begun on."""
    replica: str | None = None
    """The copy of the store that writes this phase (tape.md §4)."""


class Meta(Payload, frozen=True, gc=False):
    """Later facts about the tape: it continues in another folder, tags."""

    entry_type = "meta"
    cwd: str | None = None
    """The folder it works in from here on: relative paths of later entries are relative to it."""
    project: str | None = None
    """The root of the repository of `cwd`."""
    repository: str | None = None
    """That repository, as in `start`."""
    person: str | None = None
    """Who works from here on, if that is another one."""
    machine: str | None = None
    """The machine from here on, if that is another one."""
    tags: tuple[str, ...] | None = None


class Branch(Payload, frozen=True, gc=False):
    """The first entry of a phase started by a fork or by continuing from an earlier entry."""

    entry_type = "branch"
    phase: str
    branch: str
    base: Place
    why: str | None = None
    replica: str | None = None
    """The copy of the store that writes this phase."""


class Summary(Struct, frozen=True, gc=False):
    """An anchor's summary of the history it covers (tape.md §6)."""

    goal: str = ""
    constraints: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    in_progress: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    next_steps: tuple[str, ...] = ()
    critical_context: tuple[str, ...] = ()
    files_read: tuple[str, ...] = ()
    files_changed: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()


class KeptRange(Struct, frozen=True, omit_defaults=True, gc=False):
    """A run of entries that stays in view after an anchor: ids of its first and last.

    `tape` (32 hex digits) only if it is in another tape, the origin of a fork.
    """

    phase: str
    offset: int
    count: int
    first: str
    last: str
    tape: str | None = None


class CoveredRange(Struct, frozen=True, gc=False):
    """The entries a summary replaces: ids of the first and the last, and how many."""

    first: str = field(name="from")
    last: str = field(name="to")
    count: int


class MergedBranch(Struct, frozen=True, omit_defaults=True, gc=False):
    """The branch that the anchor of a merge tells of, up to its entry `entry`.

    `picks` are the ids of the entries that were asked for by name; `reason` is "left" if the branch
    was not joined, but left for another one.
    """

    tape: str = keep_default("")
    branch: str = keep_default("")
    entry: str = keep_default("")
    picks: tuple[str, ...] = keep_default(())
    reason: Literal["merge", "left"] = keep_default("merge")


class Tokens(Struct, frozen=True, gc=False):
    """Size of the view before and after an anchor, in tokens."""

    before: int
    after: int


class SummaryAuthor(Struct, frozen=True, gc=False):
    """Who wrote a summary."""

    provider: str
    model: str
    usage: Usage


class State(Struct, frozen=True, omit_defaults=True, gc=False):
    """The session state at an anchor, so that a session can resume from the anchor alone."""

    model: str | None = None
    effort: str | None = None
    mode: str | None = None
    tools: tuple[str, ...] | None = None
    cwd: str | None = None
    todos: Raw = NO_JSON
    system: str | None = None


NOWHERE = Place(phase="", offset=0, entry="")


class Anchor(Payload, frozen=True, kw_only=True, gc=False):
    """The first entry of a phase started by a compaction, a handoff or a merge.

    `phase`, `branch` and `base` are filled in by `Writer.anchor`.
    """

    entry_type = "anchor"
    phase: str = keep_default("")
    branch: str = keep_default("")
    base: Place = keep_default(NOWHERE)
    kind: Literal["compaction", "handoff", "merge"]
    summary: Summary | str
    kept: tuple[KeptRange, ...] = keep_default(())
    covers: CoveredRange | None = keep_default(None)
    tokens: Tokens | None = keep_default(None)
    by: SummaryAuthor | None = keep_default(None)
    reason: str = keep_default("")
    state: State = field(default_factory=State)
    other: Raw = NO_JSON
    replica: str | None = None
    """The copy of the store that writes this phase."""

    @property
    def merged(self) -> MergedBranch | None:
        """The branch that a merge tells of; None for other kinds, or if it cannot be read."""
        if self.kind != "merge" or not bytes(self.other):
            return None
        try:
            return msgspec.json.decode(self.other, type=MergedBranch)
        except msgspec.DecodeError:  # written by another program, in another shape
            return None


class User(Payload, frozen=True, gc=False):
    """A prompt of the user."""

    entry_type = "user"
    content: Content


class Assistant(Payload, frozen=True, gc=False):
    """One answer of a model, whole or `partial`; `duration_ms` from request to last byte."""

    entry_type = "assistant"
    content: Content
    provider: str = keep_default("")
    api: str = keep_default("")
    endpoint: str = keep_default("")
    model: str = keep_default("")
    stop_reason: str = keep_default("stop")
    raw_stop: str | None = None
    usage: Usage = field(default_factory=Usage)
    cost: Cost | None = None
    response_id: str | None = None
    duration_ms: int = keep_default(0)
    partial: bool = False
    error: Failure | None = None


class OtherEnvironment(Struct, frozen=True, gc=False):
    """Another place than the machine of the session, in which a call acts."""

    name: str
    """What it is called: container, ssh."""
    folder: str
    """Its absolute path there from which relative ones start."""


class ToolStart(Payload, frozen=True, gc=False):
    """A tool body is about to run; `args` only if they differ from the call's."""

    entry_type = "tool.start"
    call_id: str
    name: str
    args: Raw = NO_JSON
    replay: str = keep_default("unsafe")
    environment: OtherEnvironment | None = None
    """Where it acts, and its files are; None for the machine of the session."""


class ChangedFile(Struct, frozen=True, omit_defaults=True, gc=False):
    """What a call did to one file; digests are SHA-256 as 64 hex digits."""

    path: str
    op: Literal["created", "modified", "deleted", "renamed", "mode"]
    source: str | None = field(name="from", default=None)
    """The old path of a renamed file."""
    before: str | None = keep_default(None)
    """None where it did not exist, or was not read (see `why`)."""
    after: str | None = keep_default(None)
    """None where it is gone, or was not read (see `why`)."""
    mode: str | None = None
    """Kind and permissions now, as six octal digits: 100644, 100755, 120777."""
    before_mode: str | None = None
    """Those before."""
    before_blob: BlobRef | None = None
    """The bytes before, where they are stored."""
    after_blob: BlobRef | None = None
    """The bytes now, where they are stored."""
    why: str | None = None
    """Why bytes are missing: too large, not a regular file, not read in time."""


class ToolResult(Payload, frozen=True, gc=False):
    """The result of a tool call: `content` is for the model, `details` for people."""

    entry_type = "tool.result"
    call_id: str
    name: str
    content: Content
    is_error: bool = keep_default(False)
    details: Raw = NO_JSON
    duration_ms: int = keep_default(0)
    full: str | BlobRef | None = None
    """Written, a reference names an existing blob; read, it is a text too long to load."""
    files: tuple[ChangedFile, ...] = ()
    """What the call changed on disk."""

    @property
    def whole(self) -> str | None:
        """The full output as text; for a blob that was not loaded, its beginning."""
        full = self.full
        if not isinstance(full, BlobRef):
            return full
        return f"{full.head}\n[{full.bytes} bytes in all, in the blob {full.hash}]"


class Context(Payload, frozen=True, gc=False):
    """Text for the model that is not a prompt of the user, and its origin."""

    entry_type = "context"
    role: str
    origin: str
    content: Content


class Model(Payload, frozen=True, gc=False):
    """From here on this model is used."""

    entry_type = "model"
    provider: str
    model: str
    effort: str | None = None


class Mode(Payload, frozen=True, gc=False):
    """From here on these permissions and tools apply; `schemas` is what the model was given."""

    entry_type = "mode"
    permission: str
    tools: tuple[str, ...]
    schemas: BlobRef | None = None


class Approval(Payload, frozen=True, gc=False):
    """A decision on a tool call, and who made it."""

    entry_type = "approval"
    call_id: str
    decision: str
    by: str
    rule: str | None = None
    reason: str | None = None


class InjectedResult(Struct, frozen=True, gc=False):
    """A placeholder result that repair injected for a call without one."""

    call_id: str
    text: str


class Repair(Payload, frozen=True, gc=False):
    """What was repaired before a model call, or when a torn file was opened."""

    entry_type = "repair"
    kind: Literal["torn", "results", "undo"]
    injected: tuple[InjectedResult, ...] = keep_default(())
    dropped: tuple[str, ...] = keep_default(())
    quarantine: str | None = None
    why: str = keep_default("")


class SideUsage(Payload, frozen=True, gc=False):
    """Tokens of a model call outside the conversation, such as a summary or a title."""

    entry_type = "usage"
    purpose: str
    provider: str
    model: str
    usage: Usage
    cost: Cost | None = None


class Error(Payload, frozen=True, gc=False):
    """A failure to show to people; `kind` is the class of the error."""

    entry_type = "error"
    kind: str = field(name="class")
    message: str
    retryable: bool = keep_default(False)
    status: int | None = None


class SavedFile(Struct, frozen=True, omit_defaults=True, gc=False, kw_only=True):
    """The bytes of a file (of a link: its target): a blob, or why they are not stored.

    {"$blob":"…","bytes":12,"head":""}   or   {"hash":"…","bytes":9000000,"stored":false,"why":"…"}
    """

    blob: str | UnsetType = field(name="$blob", default=UNSET)
    hash: str | UnsetType | None = UNSET
    """SHA-256 of bytes that are not stored; None if they were not read either."""
    bytes: int
    head: str | UnsetType = UNSET
    stored: bool | UnsetType = UNSET
    why: str | UnsetType = UNSET

    @classmethod
    def from_blob(cls, ref: BlobRef) -> SavedFile:
        """Return the reference of a stored blob as the bytes of a file."""
        return cls(blob=ref.hash, bytes=ref.bytes, head=ref.head)

    @classmethod
    def from_skipped(cls, digest: str | None, size: int, why: str) -> SavedFile:
        """Return a file of `size` bytes whose content is not in the tape."""
        return cls(hash=digest, bytes=size, stored=False, why=why)

    @property
    def digest(self) -> str | None:
        """SHA-256 of the bytes, stored or not; None if it is not known."""
        return self.blob or self.hash or None


class FileState(Struct, frozen=True, omit_defaults=True, gc=False):
    """A file as it was before a call; before a restore also as it is to be then."""

    path: str
    before: SavedFile | None = keep_default(None)
    """None where it did not exist."""
    mode: str | None = None
    """Kind and permissions as six octal digits, as git writes them: 100644, 100600, 120777."""
    after: SavedFile | UnsetType | None = UNSET
    """What a restore puts there; None where it deletes. Only with `why` restore."""
    after_mode: str | None = None


class Checkpoint(Payload, frozen=True, gc=False):
    """Files as they were before a call or a restore, so that it can be undone."""

    entry_type = "checkpoint"
    files: tuple[FileState, ...]
    why: str = keep_default("tool")
    """tool or restore."""
    call_id: str | None = None
    reason: str | None = None
    """Of a restore: undo, redo or rewind."""
    target: str | None = None
    """Of a restore: id of the entry after which the files were so."""
    moves_talk: bool = False
    """Of a restore: the branch moves to that entry right after it."""
    not_covered: tuple[str, ...] = ()
    """What the call may change without a record of it, one sentence each."""
    environment: OtherEnvironment | None = None
    """Of a restore: where these files are; None for the machine of the session."""


class AgentStart(Payload, frozen=True, gc=False):
    """A sub-agent begins, on a branch or on a tape of its own."""

    entry_type = "agent.start"
    agent: str
    kind: str
    task: str
    branch: str | None = None
    tape: str | None = None


class AgentEnd(Payload, frozen=True, gc=False):
    """A sub-agent ended."""

    entry_type = "agent.end"
    agent: str
    result: str
    status: str
    usage: Usage = field(default_factory=Usage)


class Redact(Payload, frozen=True, gc=False):
    """The data of these entries was overwritten on purpose."""

    entry_type = "redact"
    targets: tuple[str, ...]
    why: str


class Custom(Payload, frozen=True, gc=False):
    """An extension's own record."""

    entry_type = "custom"
    kind: str
    data: Raw


TODOS_KIND = "gong.todos"
"""The kind of the `custom` entries with a todo list: a JSON array."""


class Note(Payload, frozen=True, gc=False):
    """A remark for people."""

    entry_type = "note"
    text: str


PAYLOADS: dict[str, type[Payload]] = {kind.entry_type: kind for kind in Payload.__subclasses__()}
"""Every known entry type and its payload."""

RESERVED = frozenset({"start", "branch", "anchor", "repair", "redact"})
"""Types that only the store itself writes; `tape append` refuses them."""
