"""What a tool is: a Struct for its arguments, a text for the model, and `run`.

Two channels leave a tool: `content` for the model, `details` for people and programs. Only
`content` ever reaches a model. An error is a result like any other: the model can correct it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from tape.formats.wire import encode_json
from tape.model.entries import NO_JSON, BlobRef, Block, Content, Text
from tape.text import replace_surrogates

from .output_storage import TruncationContext
from .picture_resize import MAX_PICTURE_FILE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from tape.model.entries import ToolCall

    from ..env.protocol import ExecutionEnvironment
    from ..llm.types import Grammar
    from ..tool_settings import TruncationOverride
    from ..web.page_cache import PageCache
    from .agent_runs import AgentRunner
    from .dialogue import Dialogue
    from .known_files import KnownFiles
    from .limits import OutputLimits
    from .output_storage import FullOutput, OutputStorage
    from .truncation import TruncationEvent

ErrorKind = Literal[
    "FileNotFound",
    "EditConflict",
    "ShellExitError",
    "ShellTimeout",
    "PermissionDenied",
    "ValidationError",
    "UnknownTool",
]
"""The kind of an error, for programs; the model reads the text."""


class RemovedOutput(Struct, frozen=True, omit_defaults=True):
    """What the registry cut from a result, and where the full text is."""

    truncation_path: str
    truncation_removed_lines: int | None = None
    truncation_removed_bytes: int | None = None


@runtime_checkable
class MeasuredDetails(Protocol):
    """Details of a tool that looks at the length of its text itself; cut or not, it stays so."""

    truncated: bool


class ToolOutcome(Struct, frozen=True):
    """The result of a tool."""

    content: Content
    details: Struct | Mapping[str, Any] | None = None
    """Facts for people and programs; a hook may replace them by an object of its own."""
    is_error: bool = False
    full: str | None = None
    """The full output, if `content` shows a part of it (see `truncation.keep_full_text`)."""
    kept: BlobRef | None = None
    """The whole of it as a blob of the tape; an entry that names it keeps it from `tape gc`."""
    removed: RemovedOutput | None = None
    """Where a storage has the whole, and what the registry cut of it; None if nothing was cut, or
    the tool cut its own result and the tape alone has the whole."""
    truncated: bool | None = None
    """Whether the registry cut it; None where it did not look at it."""
    kind: ErrorKind | None = None
    """Which error it is, where it is one of the named kinds."""
    refused: tuple[str, ...] = ()
    """What a sandbox refused a command, as in "writing /etc/hosts"."""

    @property
    def is_measured(self) -> bool:
        """Whether it is cut already, or its tool says that it need not be."""
        cut = self.full is not None or self.removed is not None
        return cut or isinstance(self.details, MeasuredDetails)

    def add_full(self, full: FullOutput) -> ToolOutcome:
        """Return the result with the whole of which its text is a part."""
        removed = None if full.path is None else RemovedOutput(full.path)
        return replace(self, full=full.text, kept=full.blob, removed=removed)

    def replace_text(self, text: str, full: str) -> ToolOutcome:
        """Return the result with `text` in place of its texts, which `full` is the whole of."""
        others = tuple(block for block in self.content if not isinstance(block, Text))
        return replace(self, content=(Text(text), *others), full=full)

    @classmethod
    def from_text(cls, text: str, details: Struct | None = None) -> ToolOutcome:
        """Return a successful result with `text`."""
        return cls((Text(text),), details)

    @classmethod
    def error(
        cls, text: str, details: Struct | None = None, kind: ErrorKind | None = None
    ) -> ToolOutcome:
        """Return an error result that a model can act on."""
        return cls((Text(text),), details, is_error=True, kind=kind)


def check_outcome(name: str, result: object) -> ToolOutcome:
    """Return what a tool answered where it is a result; an error that names the tool where not.

    A text is a result; lone surrogates, which cannot be written, become U+FFFD, and a text of a
    class of its own, such as a member of an enumeration, a plain one.
    """
    if isinstance(result, str):
        result = ToolOutcome.from_text(result)
    if not isinstance(result, ToolOutcome):
        wrong = f"it returned {type(result).__name__}, not ToolOutcome"
        return ToolOutcome.error(f"Tool error ({name}): {wrong}")
    if isinstance(result.content, str):
        result = replace(result, content=(Text(result.content),))
    if wrong := _find_fault(result):
        return ToolOutcome.error(f"Tool error ({name}): {wrong}")
    content = tuple(
        replace(block, text=replace_surrogates(block.text)) if isinstance(block, Text) else block
        for block in result.content
    )
    full = None if result.full is None else replace_surrogates(result.full)
    return replace(result, content=content, full=full)


def build_failure(name: str, error: BaseException, what: str = "") -> ToolOutcome:
    """Return the result of a call whose tool raised, `what` before its words.

    Ctrl+C is raised again.
    """
    if isinstance(error, KeyboardInterrupt):
        raise error
    kinds: tuple[tuple[type[BaseException], ErrorKind], ...] = (
        (FileNotFoundError, "FileNotFound"),
        (PermissionError, "PermissionDenied"),
    )
    kind = next((kind for error_type, kind in kinds if isinstance(error, error_type)), None)
    try:
        words = str(error)
    except Exception:  # noqa: BLE001 - also the words of an error are code of others
        words = ""
    message = replace_surrogates(words or type(error).__name__)
    return ToolOutcome.error(f"Tool error ({name}): {what}{message}", kind=kind)


def _find_fault(result: ToolOutcome) -> str:
    """Return what of a result has a wrong type; "" where nothing has."""
    content: object = result.content
    if not isinstance(content, tuple | list):
        return f"its content is {type(content).__name__}, not blocks"
    wrong = next((block for block in content if not isinstance(block, Block)), None)
    if wrong is not None:
        return f"its content holds {type(wrong).__name__}, not blocks"
    texts: list[object] = [block.text for block in content if isinstance(block, Text)]
    if not all(isinstance(text, str) for text in texts):
        wrong = next(text for text in texts if not isinstance(text, str))
        return f"the text of a block is {type(wrong).__name__}, not text"
    full: object = result.full
    if full is not None and not isinstance(full, str):
        return f"its full output is {type(full).__name__}, not text"
    try:
        encode_details(result)
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        return f"its details cannot be written as JSON: {error}"
    return ""


def encode_details(result: ToolOutcome) -> Raw:
    """Return the JSON for people and programs: details, what was cut, the kind of error.

    NO_JSON when there is nothing of it.
    """
    merged: dict[str, Any] = {}
    if result.details is not None:
        merged.update(msgspec.to_builtins(result.details))
    if result.truncated is not None:
        merged["truncated"] = result.truncated
    if result.removed is not None:
        merged.update(truncated=True, **msgspec.to_builtins(result.removed))
    if result.kind is not None:
        merged["error_kind"] = result.kind
    return Raw(encode_json(merged)) if merged else NO_JSON


class RecallMatch(NamedTuple):
    """An entry of the tape that matches a search."""

    entry: str
    """Its id, 40 hex digits."""
    time: str
    type: str
    snippet: str
    """The text around the match, on one line."""


class Recall(Protocol):
    """Search and read the path of the session's branch. Called in a thread."""

    def search(self, query: str, limit: int) -> Sequence[RecallMatch]:
        """Return at most `limit` entries that fit the words of a query, best first.

        Raises UsageError (of the store) where the query has no word.
        """

    def read(self, entry: str, before: int = 0, after: int = 0, offset: int = 0) -> str:
        """Return an entry as readable text, with `before` and `after` others around it.

        `entry` is a prefix of its id; of its text the first `offset` characters are left out.
        Raises NotFound or Ambiguous (of the store).
        """


NO_BACKGROUND = "Commands cannot run in the background here: run it without run_in_background."


class BackgroundRunner(Protocol):
    """Runs commands in the background of a session; see `background`."""

    def start(
        self, command: str, full_command: str, timeout_ms: int | None, context: ToolContext
    ) -> ToolOutcome:
        """Start a command and return its id at once."""
        ...

    async def read(self, shell_id: str, seconds: float) -> ToolOutcome:
        """Return what a command wrote since the last reading; wait so long for its end."""
        ...

    async def kill(self, shell_id: str) -> ToolOutcome:
        """End a command."""
        ...


class SkillText(Protocol):
    """A skill as the model gets it."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def path(self) -> str:
        """Its file."""
        ...

    @property
    def text(self) -> str:
        """Its text, with all that belongs to it."""
        ...


class PageAnswer(NamedTuple):
    """What a small model answered about a page."""

    text: str
    model: str
    """provider/model."""
    error: str = ""
    """Why there is no answer; empty where there is one."""


class PageReader(Protocol):
    """A small model that answers questions about pages."""

    async def __call__(self, page: str, question: str) -> PageAnswer | None:
        """Return its answer about the text of a page; None where there is no such model."""
        ...


class CommandTimeouts(NamedTuple):
    """Timeouts of commands in milliseconds."""

    default: int | None
    """Where a call sets none; None is the tool's own."""
    most: int
    """Whatever a call asks for."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The context of a running tool."""

    env: ExecutionEnvironment
    """The environment."""
    call_id: str
    """The call it answers."""
    update: Callable[[str], None]
    """Receives output as it arrives, for screens; never stored."""
    storage: OutputStorage | None = None
    """The session's tape, for pictures and long output; None is among temporary files."""
    output_storage: OutputStorage | None = None
    """Where a host keeps long output, in place of the tape."""
    tool: str = ""
    """Name of the tool that runs."""
    on_truncation: Callable[[TruncationEvent], None] = lambda _: None
    """Called with what became of a text that the registry may cut."""
    session: str | None = None
    """Tape id."""
    tape: Recall | None = None
    """Search over the tape; None if nothing is recorded."""
    request_compaction: Callable[[str], None] | None = None
    """Requests a compaction before the next step, with a focus or ""."""
    background: BackgroundRunner | None = None
    """The session's commands in the background; None where there can be none."""
    timeouts: CommandTimeouts | None = None
    """The session's timeouts of commands; None is those the tools were built with."""
    dialogue: Dialogue | None = None
    """The person at the session; None where there is no session."""
    files: KnownFiles | None = None
    """The files that may be changed; None where a file need not be read before."""
    find_agents: Callable[[], AgentRunner | None] | None = None
    """Returns the session's sub-agents, made at the first use; None where there can be none."""
    load_skill: Callable[[str, str], Awaitable[SkillText]] | None = None
    """Loads a skill by its name and arguments; None where there is no session."""
    pages: PageCache | None = None
    """The pages of the web that the session has fetched; None where nothing is kept."""
    ask_about_page: PageReader | None = None
    """Asks a small model about a page; None where there is no session."""
    max_picture_bytes: int = MAX_PICTURE_FILE
    """Largest picture that is shown as it is; a larger one is made smaller."""

    def describe_output(self) -> TruncationContext:
        """Return whose output is kept, for a storage."""
        storage = self.output_storage or self.storage
        return TruncationContext(self.tool, self.session, self.call_id, storage=storage)


TargetFinder = Callable[[Any, "ExecutionEnvironment"], "Awaitable[Sequence[str]]"]
"""Given arguments and environment: the real paths of all files that a call may change."""


class TargetsUnknown(Exception):
    """A tool cannot say which files a call may change; `outcome` names it."""

    def __init__(self, outcome: ToolOutcome) -> None:
        super().__init__(outcome)
        self.outcome = outcome


async def find_call_targets(
    prepared: PreparedCall, env: ExecutionEnvironment
) -> Sequence[str] | None:
    """Return what a tool's `find_targets` finds; None where it has none. Raises TargetsUnknown."""
    tool = prepared.tool
    if tool.find_targets is None:
        return None
    try:
        targets: object = await tool.find_targets(prepared.arguments, env)
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        raise TargetsUnknown(
            build_failure(tool.name, error, "its find_targets failed: ")
        ) from error
    if not isinstance(targets, list | tuple) or not all(
        isinstance(target, str) for target in targets
    ):
        text = f"Tool error ({tool.name}): its find_targets returned no list of paths"
        raise TargetsUnknown(ToolOutcome.error(text))
    return targets


async def find_no_targets(_arguments: Struct, _env: ExecutionEnvironment) -> Sequence[str]:
    """Return no files: those of a tool that changes the session, or nothing."""
    return ()


class AnyObject(Struct, frozen=True):
    """The arguments of a tool with a schema of its own, which it checks itself."""

    value: dict[str, Any]


@dataclass(frozen=True, slots=True)
class AgentTool:
    """One tool."""

    name: str
    """Its name for the model."""
    description: str
    """Its description for the model."""
    arguments: type[Struct]
    """Type of its arguments; docstrings of fields are in the JSON Schema."""
    run: Callable[[Any, ToolContext], Awaitable[ToolOutcome]]
    """The body: takes an instance of `arguments`; cancelling it stops it."""
    replay: Literal["safe", "unsafe"] = "unsafe"
    """Safe when running it twice changes nothing (tape.md §3)."""
    truncation: TruncationOverride | None = None
    """How the registry cuts its results, where that is not as for all tools."""
    limits: OutputLimits | None = None
    """Cuts its results by characters and lines instead, as the model family expects."""
    freeform: Grammar | None = None
    """Takes text in place of JSON: it becomes the argument `input`."""
    stopped: str = "Operation aborted"
    """Its result text if it is cancelled while it runs."""
    divert: Callable[[Any], Diversion | ToolOutcome | None] | None = None
    """Given the arguments: another tool that is meant by them, or why nothing may run."""
    schema: dict[str, Any] | None = None
    """A JSON Schema of an object, shown instead of that of `arguments`, which is `AnyObject`."""
    find_targets: TargetFinder | None = None
    """Returns the files that a call may change; None where they are not known before it."""
    preview: Callable[[Any, ToolContext], Awaitable[ToolOutcome]] | None = None
    """Returns what a call would change, in details as `run`'s, or its error; changes nothing."""
    parallel: bool = False
    """Whether adjacent calls of it run side by side although they may change something."""
    remark: str = ""
    """What whoever offers it says of it, for questions about its calls; it allows nothing."""


class Diversion(NamedTuple):
    """A call that is redirected to another tool."""

    tool: AgentTool
    arguments: Struct


@dataclass(slots=True)
class PreparedCall:
    """A call that may run."""

    tool: AgentTool
    """The tool to run."""
    call: ToolCall
    """The model's call."""
    arguments: Struct
    """An instance of `tool.arguments`."""
    wish: Literal["", "allow", "ask"] = ""
    """What a hook wants: that nobody is asked, or that somebody is; rules of denial go first."""
    wish_reason: str = ""
    preview: Callable[[], Awaitable[ToolOutcome]] | None = None
    """Returns what it would change, or why it cannot; for who asks a person about it."""
    only_reads: bool | None = None
    """Whether its command line is known to change nothing; None where no policy analysed one."""

    @property
    def values(self) -> dict[str, Any]:
        """The arguments as JSON, with the defaults of a tool that has a Struct for them."""
        if isinstance(self.arguments, AnyObject):
            return self.arguments.value
        values: dict[str, Any] = msgspec.to_builtins(self.arguments)
        return values
