"""Sessions inside another program: see docs/embedding.md."""

from __future__ import annotations

import os
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec.structs import replace as replace_fields

from tape import open_store
from tape.model.entries import Assistant, join_texts

from .agent.front_end import FrontEnd
from .assembly import opening
from .config import Settings, load_settings, locate_store
from .project import check_folder
from .tools.registry import TruncationMiddleware
from .tools.truncation_service import TruncationService

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence

    from .agent.session import Session
    from .policy.decision import Policy
    from .tool_settings import TruncationSettings
    from .tools.output_storage import OutputStorage
    from .tools.tool import AgentTool
    from .tools.truncation import TruncationStrategy


@asynccontextmanager
async def open_session(
    folder: str | os.PathLike[str] = ".",
    *,
    model: str | None = None,
    store: str | os.PathLike[str] | None = None,
    ref: str | None = None,
    fork: bool = False,
    tools: Iterable[AgentTool] = (),
    policy: Policy | None = None,
    hooks: Sequence[object] = (),
    settings: Settings | None = None,
    environ: Mapping[str, str] | None = None,
    program: str = "gong",
    truncation: TruncationSettings | None = None,
    strategy: TruncationStrategy | None = None,
    storage: OutputStorage | None = None,
) -> AsyncGenerator[Session]:
    """Open a session in a folder, and close it at the end of the block.

    `model` is provider/model or an alias; None is that of the settings. `store` is the folder of
    the tapes; None is the user's. `ref` continues a session, and with `fork` from any entry of it;
    None starts a new one. A session that worked in another folder continues in this one; its tape
    says so before the first entry here. `tools` are offered besides those of the settings, `policy`
    decides which calls may run, `hooks` are Python hooks. `settings` are those of the user's
    config.toml if None, and of the folder's project where they are trusted; `environ` the variables
    of this process.
    `program` is recorded on a new tape. `truncation` are the limits of results in place of those of
    the settings; a result that its tool does not cut is cut by `strategy`, and the whole of it kept
    in `storage`, in place of the session's tape.

    Files may be changed without being read before, until
    `session.configure(read_before_write=True)`.

    A refused key closes the session. Raises GongError and TapeError: a wrong setting, an unknown
    model, a folder that is gone, a reference that names nothing.
    """
    environ = os.environ if environ is None else environ
    where = os.path.abspath(check_folder(os.fspath(folder)))  # noqa: ASYNC240, PTH100 (a link stays one)
    settings = load_settings(environ, {}, where) if settings is None else settings
    if store is not None:
        settings = replace_fields(settings, store=os.fspath(store))
    if truncation is not None:
        settings = replace_fields(settings, truncation=truncation)
    with open_store(locate_store(settings, environ), person=settings.person) as library:
        front = FrontEnd(library, settings, environ, where, program, model, hooks=hooks)
        recorder = None
        if ref is not None:
            hit = opening.find_session(front, ref)
            resume = opening.fork_branch(front, hit) if fork else None
            recorder = resume or opening.resume_branch(front, hit, ref)
            opening.enter_folder(front, recorder)
        host = await opening.open_session(front, recorder)
        try:
            session = host.session
            for tool in tools:
                session.setup.tools.register(tool)
                session.setup.tools.activate((tool.name,))
            if strategy is not None:
                service = TruncationService(settings.truncation, strategy=strategy)
                session.setup.tools.truncation = TruncationMiddleware(service)
            session.setup = replace(session.setup, closes_without_key=True, output_storage=storage)
            session.configure(read_before_write=False)
            if policy is not None:
                session.use_policy(policy)
            yield session
        finally:
            await host.close()


async def answer_prompt(session: Session, prompt: str) -> str:
    """Answer a prompt to its end, and return the text of the last answer.

    Raises what `Session.submit` raises. What failed is in the session's events.
    """
    async with aclosing(session.submit(prompt)) as stream:
        async for _ in stream:
            pass
    path = session.recorder.path if session.recorder is not None else []
    answers = (entry.data for entry in reversed(path) if isinstance(entry.data, Assistant))
    newest = next(answers, None)
    return "" if newest is None else join_texts(newest.content)
