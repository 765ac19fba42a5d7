"""The methods of protocol 1: one table of names, parameters, results, and what they do.

    request    {"id": 1, "method": "prompt", "params": {"session": "…", "text": "…"}}
    answer     {"id": 1, "result": {…}}        or  {"id": 1, "error": {"code": …, "message": "…"}}
    event      {"type": "message_update", "session": "…", …}, a line without an id

`prompt` is answered when the run has ended; everything else at once. Codes of errors are those of
JSON-RPC; -32000 is an error of gong, with its class and exit code as `data`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args

import msgspec
from msgspec import Meta, Raw, Struct

from tape.formats.wire import encode_json

from ..agent.events import Event
from ..config import SandboxMode
from ..env.protocol import LOCAL
from ..env.wrappers import find_place_name
from ..errors import ConfigurationError
from ..hosting.hub import MAX_LISTED, HostOffer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ..hosting.hub import SessionHub

PROTOCOL = 1
PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602
INTERNAL_ERROR = -32603
FAILED = -32000


class Params(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The parameters of a method."""


class Initialize(Params, frozen=True):
    """Which protocol the client speaks."""

    protocol: int = PROTOCOL


class NewSession(Params, frozen=True):
    """A session in a folder."""

    cwd: str
    model: str | None = None
    permission: str | None = None
    tools: tuple[str, ...] | None = None
    env: str = LOCAL
    """Where its tools act: a place, or the name of one in the settings."""
    sandbox: SandboxMode | None = None
    """The border around its programs; None is that of the settings."""


class LoadSession(Params, frozen=True):
    """A session of the store, by its id or any REF."""

    session: str
    cwd: str | None = None
    """Where it is to work; None is where it did."""
    model: str | None = None
    env: str = LOCAL
    """Where its tools act: a place, or the name of one in the settings."""
    sandbox: SandboxMode | None = None
    """The border around its programs; None is that of the settings."""


class ListSessions(Params, frozen=True):
    """Sessions of the store, newest first."""

    cwd: str | None = None
    cursor: Annotated[int, Meta(ge=0)] = 0
    limit: Annotated[int, Meta(ge=1)] = MAX_LISTED


class Prompt(Params, frozen=True):
    """Words of the user."""

    session: str
    text: str


class Approve(Params, frozen=True):
    """A decision about a call: `once session always everywhere no edit`, or `allow`, `deny`."""

    session: str
    call_id: str
    decision: str
    reason: str = ""
    rule: str | None = None
    """The rule that a lasting decision is about, as it was offered; of several all, with ", "."""
    arguments: dict[str, Any] | None = None
    """Of an edit: the call's new arguments."""


class AnswerQuestion(Params, frozen=True):
    """An answer to a question of the model, or to its plan."""

    session: str
    question: str
    answers: Any = ()
    approve: bool | None = None
    reason: str = ""


class ChangeSettings(Params, frozen=True):
    """Settings that hold from the next call on."""

    session: str
    model: str | None = None
    effort: Literal["none", "low", "medium", "high", "xhigh"] | None = None
    permission: str | None = None
    tools: tuple[str, ...] | None = None


class OneSession(Params, frozen=True):
    """A session of this process."""

    session: str


class Method(NamedTuple):
    """A method: what it takes and does."""

    params: type[Params]
    run: Callable[[SessionHub, Any], Awaitable[dict[str, Any]]]
    help: str


async def _describe_program(hub: SessionHub, params: Initialize) -> dict[str, Any]:
    if params.protocol != PROTOCOL:
        raise ConfigurationError(f"protocol {params.protocol} is not supported; {PROTOCOL} is")
    program, _, version = hub.program.partition("/")
    return {
        "protocol": PROTOCOL,
        "program": program,
        "version": version,
        "methods": [*METHODS],
    }


def _describe_session(hub: SessionHub, session: str) -> dict[str, Any]:
    hosted = hub.find(session)
    recorder, chosen = hosted.session.recorder, hosted.session
    sandbox = getattr(chosen.setup.env, "sandbox", None)
    return {
        "session": session,
        "branch": recorder.branch if recorder else "",
        "cwd": chosen.setup.env.working_directory,
        "env": find_place_name(chosen.setup.env),
        "model": chosen.setup.model.name,
        "permission": chosen.permission,
        "sandbox": sandbox.mode if sandbox else "off",
        "tools": [spec.name for spec in chosen.setup.tools.specs()],
    }


async def _open_session(hub: SessionHub, params: NewSession) -> dict[str, Any]:
    hosted = await hub.open_new(
        params.cwd,
        model=params.model,
        permission=params.permission,
        tools=params.tools,
        offer=HostOffer(place=params.env, sandbox=params.sandbox),
    )
    return _describe_session(hub, hosted.id)


async def _load_session(hub: SessionHub, params: LoadSession) -> dict[str, Any]:
    offer = HostOffer(place=params.env, sandbox=params.sandbox)
    hosted = await hub.load(params.session, params.cwd, model=params.model, offer=offer)
    messages = [
        {"role": message.role, "content": Raw(encode_json(message.content))}
        for message in hosted.session.list_messages()
    ]
    return {**_describe_session(hub, hosted.id), "messages": messages}


async def _list_sessions(hub: SessionHub, params: ListSessions) -> dict[str, Any]:
    listed = hub.list_sessions(params.cwd, skip=params.cursor, limit=params.limit + 1)
    page = [session._asdict() for session in listed[: params.limit]]
    more = params.cursor + params.limit if len(listed) > params.limit else None
    return {"sessions": page, "cursor": more}


async def _answer_prompt(hub: SessionHub, params: Prompt) -> dict[str, Any]:
    done = await hub.prompt(params.session, params.text)
    return {**done._asdict(), "usage": msgspec.to_builtins(done.usage)}


async def _queue_steering(hub: SessionHub, params: Prompt) -> dict[str, Any]:
    return {"message": hub.find(params.session).session.steer(params.text).id}


async def _follow_up(hub: SessionHub, params: Prompt) -> dict[str, Any]:
    return {"message": hub.find(params.session).session.follow_up(params.text).id}


async def _answer_call(hub: SessionHub, params: Approve) -> dict[str, Any]:
    approval = params
    hub.approve(
        approval.session,
        approval.call_id,
        approval.decision,
        approval.reason,
        approval.arguments,
        approval.rule,
    )
    return {}


async def _answer_question(hub: SessionHub, params: AnswerQuestion) -> dict[str, Any]:
    answers = params.answers
    hub.answer(
        params.session, params.question, answers, approve=params.approve, reason=params.reason
    )
    return {}


async def _change_settings(hub: SessionHub, params: ChangeSettings) -> dict[str, Any]:
    hub.change(
        params.session,
        model=params.model,
        effort=params.effort,
        permission=params.permission,
        tools=params.tools,
    )
    return _describe_session(hub, params.session)


async def _stop_run(hub: SessionHub, params: OneSession) -> dict[str, Any]:
    hub.find(params.session).session.abort()
    return {}


async def _close_session(hub: SessionHub, params: OneSession) -> dict[str, Any]:
    await hub.close(params.session)
    return {}


METHODS = {
    "initialize": Method(
        Initialize, _describe_program, "Agree on the protocol; returns what is supported."
    ),
    "session/new": Method(NewSession, _open_session, "Start a session in a folder."),
    "session/load": Method(LoadSession, _load_session, "Continue a session; returns its messages."),
    "session/list": Method(ListSessions, _list_sessions, "List the sessions of the store."),
    "prompt": Method(Prompt, _answer_prompt, "Answer a prompt to its end."),
    "steer": Method(Prompt, _queue_steering, "Tell the model something after its current step."),
    "follow_up": Method(Prompt, _follow_up, "Queue a prompt for the end of the run."),
    "approve": Method(Approve, _answer_call, "Decide about a call of an `approval_request`."),
    "answer": Method(AnswerQuestion, _answer_question, "Answer `question` or `plan_proposed`."),
    "set": Method(ChangeSettings, _change_settings, "Change model, effort, permission or tools."),
    "cancel": Method(OneSession, _stop_run, "Stop the run."),
    "close": Method(OneSession, _close_session, "Close the session; its tape stays."),
}
"""Every method by its name."""


def build_json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a request, an answer and an event."""
    schemas, components = msgspec.json.schema_components(
        [method.params for method in METHODS.values()], ref_template="#/$defs/{name}"
    )
    requests = [
        {
            "description": method.help,
            "type": "object",
            "properties": {"id": _ID, "method": {"const": name}, "params": schema},
            "required": ["id", "method"],
        }
        for (name, method), schema in zip(METHODS.items(), schemas, strict=True)
    ]
    error = {
        "type": "object",
        "properties": {"code": {"type": "integer"}, "message": {"type": "string"}, "data": {}},
        "required": ["code", "message"],
    }
    answer = {
        "type": "object",
        "properties": {
            "id": {"type": ["string", "integer", "null"]},
            "result": {"type": "object"},
            "error": error,
        },
        "required": ["id"],
        "oneOf": [{"required": ["result"]}, {"required": ["error"]}],
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"gong rpc, protocol {PROTOCOL}",
        "$defs": {
            **components,
            "Request": {"oneOf": requests},
            "Response": answer,
            "EventLine": {"oneOf": [_describe_event(kind) for kind in get_args(Event)]},
        },
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in ("Request", "Response", "EventLine")],
    }


def _describe_event(kind: Any) -> dict[str, Any]:
    """Return the schema of a kind of event: its fields, those of plain types with their type."""
    fields = msgspec.structs.fields(kind)
    name = kind.__struct_config__.tag
    plain = {str: "string", int: "integer", bool: "boolean", float: "number"}
    types = {
        field.encode_name: {"type": plain[field.type]} if field.type in plain else {}
        for field in fields
    }
    return {
        "type": "object",
        "description": (kind.__doc__ or "").partition("\n")[0],
        "properties": {"type": {"const": name}, "kind": {"const": name}, **types},
        "required": ["kind", *(field.encode_name for field in fields if field.required)],
    }


_ID = {"type": ["string", "integer"]}
