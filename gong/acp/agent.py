"""`gong acp`: the agent side of the Agent Client Protocol, version 1, over the sessions of a hub.

client                         here
-----------------------------  -----------------------------------------------------------
session/new, load, resume      a session; `load` shows it again first, `resume` does not
session/prompt                 a run; its updates are sent before the answer
session/cancel                 stops it: the answer is `cancelled`
session/request_permission     asked for an `approval_request`, a plan, a question
session/set_mode, set_config_option   permission mode, model, effort
session/list, close, delete    sessions of the store, by pages; closing keeps the tape, deleting
                               moves it to the trash
session/fork                   a session on a tape of its own, that begins in another one
fs/read_text_file, write       asked for files with changes that are not saved, and to write
"""

from __future__ import annotations

import asyncio
import base64
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

from acp import PROTOCOL_VERSION, RequestError, schema

from tape.errors import TapeError
from tape.model.entries import Assistant, ToolResult

from ..agent import events
from ..agent.documents import AttachedDocument
from ..config import SandboxMode
from ..env.protocol import LOCAL
from ..env.wrappers import find_folder_here
from ..errors import ConfigurationError, GongError
from ..hosting.hub import MAX_LISTED, HostedSession, HostOffer, RunFailed, SessionHub
from ..policy.modes import MODE_NOTES, PermissionMode
from .call_files import CallFiles
from .editor_files import EditorFiles
from .updates import SessionUpdates, build_commands, build_history, build_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from acp.interfaces import Client

    from tape.model.entries import ChangedFile

_MODES = {str(mode): note for mode, note in MODE_NOTES.items() if mode != PermissionMode.LOCKED}
"""Permission modes that are offered, and what each does."""
_EFFORTS = ("none", "low", "medium", "high", "xhigh")
_STOPS: dict[str, Any] = {
    "aborted": "cancelled",
    "cancelled": "cancelled",
    "length": "max_tokens",
    "content_filter": "refusal",
    "round_limit": "max_turn_requests",
    "turn_limit": "max_turn_requests",
}
"""How a run stopped → the reason as the protocol has it; others are `end_turn`."""
_OPTIONS: tuple[tuple[str, str, Any], ...] = (
    ("once", "Allow once", "allow_once"),
    ("always", "Allow always in this project", "allow_always"),
    ("no", "Deny", "reject_once"),
)
_INTERNAL = -32603
_CODES = {
    "AuthenticationError": -32000,
    "UnknownSession": -32002,
    "NotFound": -32002,
    "UsageError": -32602,
    "UnknownModel": -32602,
    "ConfigurationError": -32602,
}
"""Error → its code in the protocol; others are internal."""
_NO_ANSWER = "The user gave no answer."
_MAX_DIGITS = 18
"""Digits of the cursor of a list."""


class AcpAgent:
    """The agent of one connection."""

    def __init__(self, version: str, models: Callable[[str], Iterable[str]]) -> None:
        """`models` returns the names of the models that can be chosen in a folder."""
        self.hub: SessionHub
        """Set before the connection begins."""
        self._version, self._models = version, models
        self._client: Client
        self._updates: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        self._sender: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._shown: dict[str, SessionUpdates] = {}
        """What was sent of each session."""
        self._files = schema.FileSystemCapabilities()

    def on_connect(self, conn: Client) -> None:
        """Take the client that is at the other end."""
        self._client = conn
        self._sender = asyncio.create_task(self._send_updates())

    async def _send_updates(self) -> None:
        """Send updates in their order."""
        while True:
            session, update = await self._updates.get()
            try:
                await self._client.session_update(session_id=session, update=update)
            except Exception:  # noqa: BLE001 (a client that is gone costs only what it would see)
                await asyncio.sleep(0)
            finally:
                self._updates.task_done()

    def take_event(self, event: events.Event) -> None:
        """Pass on an event of a session: as updates, or as a question."""
        hosted = self.hub.sessions.get(event.session)
        if hosted is None:
            return
        if not event.agent:
            updates, window = self._find_shown(hosted), hosted.session.setup.model.window or 0
            for update in updates.take_event(event, window, partial(_find_files, hosted)):
                self._updates.put_nowait((event.session, update))
        match event:
            case events.ApprovalRequested():
                self._start_task(self._ask_about_call(event, hosted))
            case events.PlanProposed() if event.waits:
                self._start_task(self._ask_about_plan(event))
            case events.QuestionAsked() if event.waits:
                self._start_task(self._ask_questions(event))

    def _find_shown(self, hosted: HostedSession) -> SessionUpdates:
        if hosted.id not in self._shown:
            self._shown[hosted.id] = SessionUpdates(_build_files(hosted))
        return self._shown[hosted.id]

    def _start_task(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _choose(
        self, session: str, call: schema.ToolCallUpdate, options: list[schema.PermissionOption]
    ) -> str | None:
        """Return the option that the user chooses; None where they choose none."""
        await self._updates.join()
        try:
            answer = await self._client.request_permission(
                session_id=session, tool_call=call, options=options
            )
        except RequestError:
            return None
        chosen = getattr(answer.outcome, "option_id", None)
        return chosen if chosen in {option.option_id for option in options} else None

    async def _ask_about_call(self, event: events.ApprovalRequested, hosted: HostedSession) -> None:
        updates = self._find_shown(hosted)
        call = updates.build_question(event.call_id, event.name, event.args, event.details)
        options = [
            schema.PermissionOption(option_id=option_id, name=name, kind=kind)
            for option_id, name, kind in _OPTIONS
            if option_id != "always" or event.offered
        ]
        chosen = await self._choose(event.session, call, options)
        with suppress(GongError):
            self.hub.approve(event.session, event.call_id, chosen or "no")

    async def _ask_about_plan(self, event: events.PlanProposed) -> None:
        call = schema.ToolCallUpdate(
            tool_call_id=event.question_id, title="Approve the plan", kind="switch_mode",
            status="pending", raw_input={"plan": event.plan},
        )  # fmt: skip
        options = [
            schema.PermissionOption(option_id="yes", name="Approve", kind="allow_once"),
            schema.PermissionOption(option_id="no", name="Keep planning", kind="reject_once"),
        ]
        chosen = await self._choose(event.session, call, options)
        with suppress(GongError):
            self.hub.answer(event.session, event.question_id, approve=chosen == "yes")

    async def _ask_questions(self, event: events.QuestionAsked) -> None:
        answers = []
        for question in event.questions:
            call = schema.ToolCallUpdate(
                tool_call_id=event.question_id, title=question.question, status="pending"
            )
            options = [
                schema.PermissionOption(
                    option_id=option.label, name=option.label, kind="allow_once"
                )
                for option in question.options
            ]
            chosen = await self._choose(event.session, call, options) if options else None
            answers.append(chosen or _NO_ANSWER)
        with suppress(GongError):
            self.hub.answer(event.session, event.question_id, answers)

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: schema.ClientCapabilities | None = None,
        **_: Any,
    ) -> schema.InitializeResponse:
        """Say what is spoken here: version 1, whatever the client asks for."""
        if client_capabilities is not None and client_capabilities.fs is not None:
            self._files = client_capabilities.fs
        capabilities = schema.AgentCapabilities(
            load_session=True,
            prompt_capabilities=schema.PromptCapabilities(image=True, embedded_context=True),
            session_capabilities=schema.SessionCapabilities(
                list=schema.SessionListCapabilities(),
                resume=schema.SessionResumeCapabilities(),
                close=schema.SessionCloseCapabilities(),
                delete=schema.SessionDeleteCapabilities(),
                fork=schema.SessionForkCapabilities(),
                additional_directories=schema.SessionAdditionalDirectoriesCapabilities(),
            ),
            mcp_capabilities=schema.McpCapabilities(http=True, sse=True),
        )
        return schema.InitializeResponse(
            protocol_version=min(protocol_version, PROTOCOL_VERSION) or PROTOCOL_VERSION,
            agent_capabilities=capabilities,
            agent_info=schema.Implementation(name="gong", title="gong", version=self._version),
            auth_methods=[
                schema.AuthMethodAgent(
                    id="gong",
                    name="Keys of gong",
                    description="The keys of the environment, or of `gong auth login`",
                )
            ],
        )

    async def authenticate(self, method_id: str, **_: Any) -> schema.AuthenticateResponse:
        """Agree: keys are those of gong, and a session says which one is missing."""
        if method_id != "gong":
            raise RequestError.invalid_params({"methodId": method_id})
        return schema.AuthenticateResponse()

    def _offer(
        self,
        mcp_servers: Sequence[Any] | None,
        folders: Sequence[str] | None,
        meta: Mapping[str, Any],
    ) -> tuple[HostOffer, EditorFiles]:
        """Return what the editor has for a session that is about to be opened."""
        if any(not folder.startswith("/") for folder in folders or ()):
            raise RequestError.invalid_params({"additionalDirectories": "absolute paths only"})
        files = EditorFiles(
            self._client,
            reads=bool(self._files.read_text_file),
            writes=bool(self._files.write_text_file),
        )
        servers = build_servers(mcp_servers or ())
        own = meta.get("gong")
        place = own.get("env", LOCAL) if isinstance(own, dict) else LOCAL
        if not isinstance(place, str):
            raise RequestError.invalid_params({"_meta.gong.env": "the name of a place"})
        sandbox = own.get("sandbox") if isinstance(own, dict) else None
        if sandbox not in (None, *get_args(SandboxMode)):
            known = ", ".join(get_args(SandboxMode))
            raise RequestError.invalid_params({"_meta.gong.sandbox": f"one of {known}"})
        offered = servers, files.build_environment, tuple(folders or ()), place, sandbox
        return HostOffer(*offered), files

    def _begin(self, hosted: HostedSession, files: EditorFiles) -> dict[str, Any]:
        """Return how a session is set, and tell the editor what can be typed in it."""
        files.session = hosted.id
        load_skills = hosted.session.setup.load_skills
        skills = load_skills().list_for_user() if load_skills is not None else []
        self._updates.put_nowait((hosted.id, build_commands(skills)))
        current = hosted.session.permission
        texts = dict.fromkeys((current,), "") | _MODES
        modes = schema.SessionModeState(
            current_mode_id=current,
            available_modes=[
                schema.SessionMode(id=mode, name=mode.replace("_", " "), description=text or None)
                for mode, text in texts.items()
            ],
        )
        options = self._build_options(hosted)
        return {"modes": modes, "config_options": options, "field_meta": _name_model(hosted)}

    async def new_session(
        self,
        cwd: str,
        mcp_servers: Sequence[Any] | None = None,
        additional_directories: Sequence[str] | None = None,
        **meta: Any,
    ) -> schema.NewSessionResponse:
        """Start a session in a folder."""
        offer, files = self._offer(mcp_servers, additional_directories, meta)
        with _translate_errors():
            hosted = await self.hub.open_new(cwd, offer=offer)
        return schema.NewSessionResponse(session_id=hosted.id, **self._begin(hosted, files))

    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: Sequence[Any] | None = None,
        additional_directories: Sequence[str] | None = None,
        **meta: Any,
    ) -> schema.LoadSessionResponse:
        """Continue a session, and show it again before this answers."""
        offer, files = self._offer(mcp_servers, additional_directories, meta)
        with _translate_errors():
            hosted = await self.hub.load(session_id, cwd, offer=offer)
        recorder, todos = hosted.session.recorder, hosted.session.todos
        assert recorder is not None, "a hosted session has a tape"
        past = _build_files(hosted)._replace(is_live=False)
        for update in build_history(recorder.path, past):
            self._updates.put_nowait((hosted.id, update))
        if todos:
            self._updates.put_nowait((hosted.id, build_plan(todos)))
        answer = schema.LoadSessionResponse(**self._begin(hosted, files))
        await self._updates.join()
        return answer

    async def resume_session(
        self,
        session_id: str,
        cwd: str,
        mcp_servers: Sequence[Any] | None = None,
        additional_directories: Sequence[str] | None = None,
        **meta: Any,
    ) -> schema.ResumeSessionResponse:
        """Continue a session without showing it."""
        offer, files = self._offer(mcp_servers, additional_directories, meta)
        with _translate_errors():
            hosted = await self.hub.load(session_id, cwd, offer=offer)
        return schema.ResumeSessionResponse(**self._begin(hosted, files))

    async def fork_session(
        self,
        session_id: str,
        cwd: str,
        mcp_servers: Sequence[Any] | None = None,
        additional_directories: Sequence[str] | None = None,
        **meta: Any,
    ) -> schema.ForkSessionResponse:
        """Start a session that begins where another one is, or at `_meta.tape.at`, an entry."""
        offer, files = self._offer(mcp_servers, additional_directories, meta)
        place = meta.get("tape")
        at = place.get("at") if isinstance(place, dict) else None
        with _translate_errors():
            hosted = await self.hub.fork(
                f"{session_id}@{at}" if at else session_id, cwd, offer=offer
            )
        return schema.ForkSessionResponse(session_id=hosted.id, **self._begin(hosted, files))

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_: Any
    ) -> schema.ListSessionsResponse:
        """Return a page of the sessions of the store, newest first."""
        if cursor is not None and not (cursor.isdecimal() and len(cursor) <= _MAX_DIGITS):
            raise RequestError.invalid_params({"cursor": cursor})
        skip = int(cursor or 0)
        listed = self.hub.list_sessions(cwd, skip=skip, limit=MAX_LISTED + 1)
        sessions = [
            schema.SessionInfo(
                session_id=session.session,
                cwd=session.cwd,
                title=session.title or None,
                updated_at=session.updated,
                field_meta={"tape": {"entries": session.entries}},
            )
            for session in listed[:MAX_LISTED]
        ]
        more = str(skip + MAX_LISTED) if len(listed) > MAX_LISTED else None
        return schema.ListSessionsResponse(sessions=sessions, next_cursor=more)

    async def close_session(self, session_id: str, **_: Any) -> schema.CloseSessionResponse:
        """Stop and close a session; its tape stays."""
        with _translate_errors():
            await self.hub.close(session_id)
        self._shown.pop(session_id, None)
        return schema.CloseSessionResponse()

    async def set_session_mode(
        self, session_id: str, mode_id: str, **_: Any
    ) -> schema.SetSessionModeResponse:
        """Change the permission mode."""
        with _translate_errors():
            self.hub.change(session_id, permission=mode_id)
        return schema.SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> schema.SetSessionConfigOptionResponse:
        """Change mode, model or effort."""
        field = {"mode": "permission", "model": "model", "effort": "effort"}.get(config_id)
        if field is None or not isinstance(value, str):
            raise RequestError.invalid_params({"configId": config_id})
        with _translate_errors():
            self.hub.change(session_id, **{field: value})
            hosted = self.hub.find(session_id)
        return schema.SetSessionConfigOptionResponse(config_options=self._build_options(hosted))

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> schema.PromptResponse:
        """Answer a prompt; its updates have been sent when this answers."""
        with _translate_errors():
            hosted = self.hub.find(session_id)
            text = _attach_blocks(hosted, prompt)
            try:
                done = await self.hub.prompt(session_id, text)
            finally:
                await self._updates.join()
        usage = done.usage
        meta = _name_model(hosted)
        if done.incomplete:
            meta["gong"]["incomplete"] = done.incomplete
        return schema.PromptResponse(
            field_meta=meta,
            stop_reason=_STOPS.get(done.stop_reason, "end_turn"),
            usage=schema.Usage(
                total_tokens=usage.total,
                input_tokens=usage.input,
                output_tokens=usage.output,
                thought_tokens=usage.reasoning,
                cached_read_tokens=usage.cache_read,
                cached_write_tokens=usage.cache_write,
            ),
        )

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Stop the run of a session."""
        with suppress(GongError):
            self.hub.find(session_id).session.abort()

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Delete a session, its tape to the trash; refuse methods of others."""
        session = params.get("sessionId")
        if method != "session/delete" or not isinstance(session, str):
            raise RequestError.method_not_found(method)
        with _translate_errors():
            await self.hub.delete(session)
        self._shown.pop(session, None)
        return {}

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        """Ignore notifications of others."""

    def end_runs(self) -> None:
        """Stop every run: the editor is gone."""
        self.hub.ask_nobody()
        for hosted in self.hub.sessions.values():
            hosted.session.abort()

    async def close(self) -> None:
        """Close all sessions, and stop asking."""
        self.hub.ask_nobody()
        for task in self._tasks:
            task.cancel()
        await self.hub.close_all()
        if self._sender is not None:
            self._sender.cancel()

    def _build_options(self, hosted: HostedSession) -> list[Any]:
        session = hosted.session
        current = session.setup.model.name
        offered = self._models(find_folder_here(session.setup.env))
        names = list(dict.fromkeys((current, *offered)))
        effort = session.setup.config.effort or "none"
        return [
            _build_select("mode", "Permission mode", "mode", session.permission, _MODES),
            _build_select("model", "Model", "model", current, names),
            _build_select("effort", "Effort", "thought_level", effort, _EFFORTS),
        ]


def _name_model(hosted: HostedSession) -> dict[str, Any]:
    """Return which model a session has, as `_meta` of an answer."""
    return {"gong": {"model": hosted.session.setup.model.name}}


def _build_files(hosted: HostedSession) -> CallFiles:
    """Return the files that the calls of a session are about."""
    session = hosted.session
    recorder = session.recorder
    assert recorder is not None, "a hosted session has a tape"
    return CallFiles(partial(session.setup.env.resolve, exact=True), recorder.tape.load)


def _find_files(hosted: HostedSession, call_id: str) -> Sequence[ChangedFile]:
    """Return what was recorded of the files of a call that has just ended."""
    recorder = hosted.session.recorder
    for entry in reversed(recorder.path if recorder is not None else ()):
        if isinstance(entry.data, ToolResult) and entry.data.call_id == call_id:
            return entry.data.files
        if isinstance(entry.data, Assistant):
            break
    return ()


class _translate_errors:  # noqa: N801 (used like a function)
    """Turns errors of gong into those of the protocol."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, GongError | TapeError):
            kind = error.error_class if isinstance(error, RunFailed) else type(error).__name__
            data = {"class": kind, "exitCode": error.exit_code}
            raise RequestError(_CODES.get(kind, _INTERNAL), str(error), data) from error


def build_servers(named: Sequence[Any]) -> dict[str, Any]:
    """Return the servers that an editor names, as in the table `mcpServers` of a file."""
    table: dict[str, Any] = {}
    for server in named:
        if isinstance(server, schema.McpServerStdio):
            env = {pair.name: pair.value for pair in server.env}
            table[server.name] = {"command": server.command, "args": server.args, "env": env}
        elif isinstance(server, schema.HttpMcpServer | schema.SseMcpServer):
            headers = {pair.name: pair.value for pair in server.headers}
            table[server.name] = {"type": server.type, "url": server.url, "headers": headers}
    return table


def _build_select(
    identity: str, name: str, category: Any, current: str, values: Iterable[str]
) -> schema.SessionConfigOptionSelect:
    options = [schema.SessionConfigSelectOption(value=value, name=value) for value in values]
    if current not in values:
        options.insert(0, schema.SessionConfigSelectOption(value=current, name=current))
    return schema.SessionConfigOptionSelect(
        id=identity, name=name, category=category, type="select",
        current_value=current, options=options,
    )  # fmt: skip


def _attach_blocks(hosted: HostedSession, prompt: list[Any]) -> str:
    """Return the words of a prompt; its files and pictures go along with them."""
    words: list[str] = []
    documents: list[AttachedDocument] = []
    for block in prompt:
        match block:
            case schema.TextContentBlock(text=text):
                words.append(text)
            case schema.ImageContentBlock(data=data, mime_type=mime):
                documents.append(AttachedDocument("[a picture]", _read_picture(data), mime))
            case schema.ResourceContentBlock(uri=uri):
                words.append(f"@{uri.removeprefix('file://')}")
            case schema.EmbeddedResourceContentBlock(resource=resource):
                content = getattr(resource, "text", None)
                if isinstance(content, str):
                    documents.append(AttachedDocument(f"{resource.uri}:\n{content}"))
                words.append(f"@{resource.uri.removeprefix('file://')}")
    for document in documents:
        hosted.session.attach(document)
    return "\n".join(words)


def _read_picture(data: str) -> bytes:
    try:
        return base64.b64decode(data)
    except ValueError as error:
        raise ConfigurationError(f"the data of the picture is not base64: {error}") from error
