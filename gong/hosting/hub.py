"""The sessions that one process holds, by id; each runs on its own, and one watcher sees all.

    not held   ──open_new, load──▶  idle       the tape is there from now on
    idle       ──prompt──▶          running    one prompt at a time; others are refused
    running    ──its end, cancel──▶ idle
    any        ──close──▶           not held   a tape without a prompt is removed again

A session's id is that of its tape. A person is at the other end: questions about calls, and those
of the model, are events that wait for `approve` and `answer`.
"""

from __future__ import annotations

from contextlib import aclosing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from tape.errors import NotFound, TapeError, UsageError
from tape.index.library import list_tapes
from tape.model.entries import Assistant, Usage, join_texts

from ..agent import events
from ..agent.front_end import FrontEnd
from ..agent.recorder import Recorder
from ..agent.short_answer import describe_short_answer
from ..assembly import opening
from ..config import is_weaker
from ..env.local import LocalEnvironment
from ..env.protocol import LOCAL
from ..errors import ConfigurationError, GongError
from ..policy.approval import ANSWERS
from ..project import check_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tape.index.library import Library

    from ..agent.session import Session
    from ..assembly.open_session import OpenSession
    from ..config import SandboxMode, Settings
    from ..policy.approval import Answer

DECISIONS: Mapping[str, Answer] = {
    **{answer: answer for answer in ANSWERS},
    "allow": "once",
    "deny": "no",
}
"""A decision about a call, by any of its names."""
MAX_LISTED = 50
"""Sessions on one page of a list."""


class UnknownSession(GongError):
    """No session of that id is open in this process."""

    exit_code = 3


class RunFailed(GongError):
    """A prompt was not answered to its end; the text is the model's or provider's error."""

    def __init__(self, failure: events.RunFailure) -> None:
        super().__init__(failure.message)
        self.error_class = failure.error_class
        self.exit_code = failure.exit_code


class PromptOutcome(NamedTuple):
    """How a prompt was answered."""

    text: str
    """The last answer."""
    stop_reason: str
    turns: int
    usage: Usage
    incomplete: str = ""
    """Why the answer is not a whole one: cut, empty, or only thought; empty if it is."""


class ListedSession(NamedTuple):
    """A session of the store."""

    session: str
    title: str
    cwd: str
    updated: str
    entries: int


class HostOffer(NamedTuple):
    """What a host has for one session."""

    servers: Mapping[str, Any] = {}
    """MCP servers, as in the table `mcpServers` of a file."""
    make_environment: Callable[..., LocalEnvironment] = LocalEnvironment
    """Makes the environment that tools act in."""
    folders: tuple[str, ...] = ()
    """Absolute paths of folders that the session works in, too."""
    place: str = LOCAL
    """Where its tools act: a place, or the name of one in the settings."""
    sandbox: SandboxMode | None = None
    """The border around its programs; None is that of the settings."""


_NO_OFFER = HostOffer()


class HostedSession:
    """One session of this process."""

    def __init__(self, opened: OpenSession) -> None:
        self.opened = opened
        self.failure: events.RunFailure | None = None
        """Why the newest run failed."""

    @property
    def session(self) -> Session:
        """The session itself."""
        return self.opened.session

    @property
    def id(self) -> str:
        """The id of its tape."""
        assert self.session.recorder is not None, "a hosted session has a tape"
        return self.session.recorder.tape.id

    def note_event(self, event: events.Event) -> None:
        """Take note of why a run failed."""
        if isinstance(event, events.RunFailure) and not event.agent:
            self.failure = event


class SessionHub:
    """Opens, holds and closes sessions; `emit` gets every event of each, with its session's id."""

    def __init__(
        self,
        library: Library,
        load_settings: Callable[[str], Settings],
        environ: Mapping[str, str],
        emit: Callable[[events.Event], None],
        *,
        program: str,
        model: str | None = None,
        warn: Callable[[str], None] = lambda _: None,
        answer_seconds: float | None = None,
        sandbox: SandboxMode | None = None,
    ) -> None:
        """`load_settings` returns those for a folder; `model` is for sessions that name none.

        No session has a weaker `sandbox` than that of the program, if there is one.

        A question waits `answer_seconds` for an answer: then a call is denied, and the model
        decides its own question. None waits for ever: a person sits there.
        """
        self.library = library
        self.sessions: dict[str, HostedSession] = {}
        self._load_settings, self._environ, self._emit = load_settings, environ, emit
        self.program, self._model, self._warn = program, model, warn
        self._answer_seconds, self._sandbox = answer_seconds, sandbox

    def find(self, session: str) -> HostedSession:
        """Return a session that is held here; raise UnknownSession."""
        hosted = self.sessions.get(session)
        if hosted is None:
            raise UnknownSession(f"no session {session!r} is open here: open or load it first")
        return hosted

    def _build_front(
        self,
        folder: str,
        model: str | None = None,
        permission: str | None = None,
        tools: Sequence[str] | None = None,
        offer: HostOffer = _NO_OFFER,
    ) -> FrontEnd:
        settings = self._load_settings(check_folder(folder))
        mode = offer.sandbox or self._sandbox
        if mode is not None:
            if self._sandbox is not None and is_weaker(mode, self._sandbox):
                raise ConfigurationError(
                    f"sandbox is {mode!r}: this program was started with --sandbox {self._sandbox},"
                    " and a session can only be stricter"
                )
            settings = replace(settings, sandbox=replace(settings.border, mode=mode))
        if offer.folders:
            folders = (*settings.permissions.folders, *map(check_folder, offer.folders))
            settings = replace(settings, permissions=replace(settings.permissions, folders=folders))
        if permission is not None:
            from ..policy.modes import parse_mode  # loads slowly

            asking: Any = parse_mode(permission).value
            settings = replace(settings, permissions=replace(settings.permissions, mode=asking))
        if tools is not None:
            settings = replace(settings, tools=tuple(tools))
        return FrontEnd(
            self.library,
            settings,
            self._environ,
            folder,
            self.program,
            model or self._model,
            self._warn,
            names_mode=permission is not None,
            servers=offer.servers,
            make_environment=offer.make_environment,
            place=offer.place,
        )

    async def open_new(
        self,
        folder: str,
        *,
        model: str | None = None,
        permission: str | None = None,
        tools: Sequence[str] | None = None,
        offer: HostOffer = _NO_OFFER,
    ) -> HostedSession:
        """Start a session in a folder. Raises GongError and TapeError."""
        front = self._build_front(folder, model, permission, tools, offer)
        opened = await opening.open_session(front)
        opened.session.open_recorder("")
        return self._hold(opened)

    async def load(
        self,
        ref: str,
        folder: str | None = None,
        *,
        model: str | None = None,
        offer: HostOffer = _NO_OFFER,
    ) -> HostedSession:
        """Continue a session of the store, in its own folder if none is given.

        One that is held here already is returned as it is. Raises GongError and TapeError.
        """
        if ref in self.sessions:
            return self.sessions[ref]
        if not ref:
            raise UsageError("name the session to load")
        if not folder:
            with opening.find_session(self._build_front("/"), ref).tape as tape:
                rows = list_tapes(*self.library)
                folder = next((row.cwd for row in rows if row.id == tape.id), "/")
        front = self._build_front(folder, model, offer=offer)
        hit = opening.find_session(front, ref)
        recorder = opening.resume_branch(front, hit, ref)
        opening.enter_folder(front, recorder)
        return self._hold(await opening.open_session(front, recorder))

    async def fork(self, ref: str, folder: str, *, offer: HostOffer = _NO_OFFER) -> HostedSession:
        """Start a session on a tape of its own that begins at an entry of another session.

        Raises GongError and TapeError.
        """
        front = self._build_front(folder, offer=offer)
        with (hit := opening.find_session(front, ref)).tape as tape:
            title = tape.refs().title
            beginning = front.build_beginning(folder, title=title, slug=title or "")
            tape_copy = self.library.store.create(beginning, origin=(tape, hit.head))
        recorder = Recorder.open(tape_copy, durability=front.settings.durability)
        return self._hold(await opening.open_session(front, recorder))

    async def delete(self, session: str) -> None:
        """Close a session and move its tape to the trash; one that is gone already is fine.

        Raises UnknownSession for what is not a whole id, UsageError while other tapes begin in it.
        """
        if session in self.sessions:
            await self.close(session)
        with suppress(NotFound), self.library.store.open(session) as tape:
            if tape.id != session:
                raise UnknownSession(f"{session!r} is not the id of a session")
            self.library.store.remove(tape)

    def _hold(self, opened: OpenSession) -> HostedSession:
        hosted = HostedSession(opened)
        session = opened.session
        session.ask_person(self._answer_seconds)
        session.subscribe(partial(self._take_event, hosted), agents=True)
        session.announce()
        self.sessions[hosted.id] = hosted
        return hosted

    def _take_event(self, hosted: HostedSession, event: events.Event) -> None:
        hosted.note_event(event)
        self._emit(event)

    def list_sessions(
        self, folder: str | None = None, *, skip: int = 0, limit: int = MAX_LISTED
    ) -> list[ListedSession]:
        """Return sessions of the store, newest first, of one folder if it is given."""
        rows = [row for row in list_tapes(*self.library) if folder in {None, row.cwd}]
        return [
            ListedSession(row.id, row.title or "", row.cwd, row.updated, row.entries)
            for row in rows[skip : skip + limit]
        ]

    async def prompt(self, session: str, text: str) -> PromptOutcome:
        """Answer a prompt to its end.

        Raises SessionBusy during another run, RunFailed, and what `Session.submit` raises.
        """
        hosted = self.find(session)
        end: events.RunEnd | None = None
        hosted.failure = None
        async with aclosing(hosted.session.submit(text)) as stream:
            async for event in stream:
                if isinstance(event, events.RunEnd) and not event.agent:
                    end = event
        if hosted.failure is not None:
            raise RunFailed(hosted.failure)
        recorder = hosted.session.recorder
        answers = (entry.data for entry in reversed(recorder.path if recorder else []))
        last = next((answer for answer in answers if isinstance(answer, Assistant)), None)
        answer_text = "" if last is None else join_texts(last.content)
        if end is None:
            return PromptOutcome(answer_text, "cancelled", 0, Usage())
        short = ""
        if last is not None and last.stop_reason == end.stop_reason:  # not ended by a limit
            short = describe_short_answer(last.content, last.stop_reason)
        return PromptOutcome(answer_text, end.stop_reason, end.turns, end.usage, short)

    def approve(
        self,
        session: str,
        call_id: str,
        decision: str,
        reason: str = "",
        arguments: Mapping[str, Any] | None = None,
        rule: str | None = None,
    ) -> None:
        """Decide about a call that waits; raise ConfigurationError as `Session.answer_approval`."""
        hosted = self.find(session)
        answer = DECISIONS.get(decision)
        if answer is None:
            known = ", ".join(DECISIONS)
            raise ConfigurationError(f"{decision!r} is not a decision about a call: {known}")
        hosted.session.answer_approval(call_id, answer, reason, arguments=arguments, rule=rule)

    def answer(
        self,
        session: str,
        question: str,
        answers: Any = (),
        *,
        approve: bool | None = None,
        reason: str = "",
    ) -> None:
        """Answer a question of the model, or approve its plan."""
        hosted = self.find(session)
        hosted.session.answer(question, answers, approve=approve, reason=reason)

    def change(
        self,
        session: str,
        *,
        model: str | None = None,
        effort: Any = None,
        permission: str | None = None,
        tools: Sequence[str] | None = None,
    ) -> None:
        """Change settings of a session from its next call on; what is None stays as it is."""
        chosen = self.find(session).session
        if model is not None:
            chosen.use_model(model)
        if effort is not None:
            chosen.use_effort(effort)
        if permission is not None:
            chosen.use_permission(permission)
        if tools is not None:
            chosen.use_tools(tools)

    def ask_nobody(self) -> None:
        """Deny what waits for a person, and what will: no user is present any more."""
        for hosted in self.sessions.values():
            hosted.session.ask_nobody(approve_plans=False)

    async def close(self, session: str) -> None:
        """Stop and close a session; a tape in which nobody said anything is removed."""
        hosted = self.find(session)
        del self.sessions[session]
        recorder = hosted.session.recorder
        tape = recorder.tape if recorder is not None else None
        is_empty = recorder is not None and len(recorder.path) == 1
        await hosted.opened.close()
        if is_empty and tape is not None:
            with suppress(TapeError, OSError), self.library.store.open(tape.id) as empty:
                self.library.store.remove(empty)

    async def close_all(self) -> None:
        """Close every session."""
        for session in [*self.sessions]:
            await self.close(session)
