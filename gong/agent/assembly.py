"""A session put together from settings: model, tools, environment, and the branch to write.

Everything it needs comes in as values; nothing here reads the environment or the terminal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tape import reference
from tape.clock import now, stamp
from tape.errors import UsageError
from tape.store import Beginning

from ..config import config_file
from ..context.git import working_copy
from ..context.system import Surroundings, system_prompt
from ..credentials import Credentials
from ..env.local import LocalEnvironment
from ..llm.client import Client, default_model
from ..llm.names import Names
from ..policy import allow_all
from ..policy.floor import Floor
from ..tools.builtin import builtin
from ..tools.registry import PRESETS, Registry
from .parts import Model
from .record import Recorder
from .session import Session, Setup

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tape.store import Store
    from tape.tape import Hit

    from ..config import Settings


@dataclass(frozen=True, slots=True)
class Host:
    """A session and what a front end needs beside it."""

    session: Session
    choose_model: Callable[[str], Model]
    """Returns the model of a name such as offline/rules; raises UnknownModel."""
    model_name: str
    """provider/model as it was chosen."""
    by_default: bool
    """True when nobody chose the model and the offline one answers."""
    client: Client

    async def close(self) -> None:
        """Stop what runs and let go of the branch and of every connection."""
        await self.session.close()
        await self.client.close()


async def assemble(
    settings: Settings,
    environ: Mapping[str, str],
    folder: str,
    open_recorder: Callable[[Beginning], Recorder],
    *,
    program: str,
    recorder: Recorder | None = None,
) -> Host:
    """Return a session that works in `folder`.

    `open_recorder` makes the tape at the first prompt, where `program` stands as what wrote it;
    `recorder` is an open branch to go on with.
    Raises ConfigurationError, UnknownModel, AuthenticationError or FolderGone.
    """
    tools = _tools(settings)
    env = LocalEnvironment(folder, environ, policy=settings.environment)
    await env.initialize()
    names = Names.of(settings)
    keys = Credentials(config_file(environ).parent, environ)
    client = Client.from_env(environ, presets=names.presets, find_key=keys.key)
    git = await working_copy(env)
    chosen = names.full(settings.model) if settings.model else None
    name = chosen or default_model(environ, names.presets, keys.knows)

    def choose_model(name: str) -> Model:
        provider, model_id = client.resolve(name := names.full(name))
        where = Surroundings(
            folder, env.platform, env.os_version, stamp(now())[:10], git.branch if git else None
        )
        return Model(
            provider=provider.name,
            id=model_id,
            api=provider.api,
            endpoint=provider.endpoint,
            stream=partial(client.stream, provider=provider),
            system=system_prompt(where, name),
            max_turns=settings.max_turns,
            cost=partial(names.cost, provider.name, model_id),
            window=names.window(provider.name, model_id),
            sees_images=names.sees_images(provider.name, model_id),
        )

    def opened(prompt: str) -> Recorder:
        return open_recorder(Beginning(cwd=folder, program=program, slug=prompt, git=git))

    floor = Floor(allow_all, folder, environ.get("HOME", "/"))
    setup = Setup(model=choose_model(name), tools=tools, env=env, policy=floor, open=opened)
    by_default = settings.model is None and name.startswith("offline/")
    return Host(Session(setup, recorder), choose_model, name, by_default, client)


def _tools(settings: Settings) -> Registry:
    """Return the chosen tools: all of them, those named, a preset's, or none."""
    names, tools = settings.tools, builtin()
    if names is None:
        return tools
    if not names:
        return Registry()
    if len(names) == 1 and names[0] in PRESETS:
        names = tools.preset(names[0])
    tools.set_active(names)
    return tools


def new_tape(store: Store, settings: Settings) -> Callable[[Beginning], Recorder]:
    """Return what makes a tape and opens it for writing."""

    def make(beginning: Beginning) -> Recorder:
        return Recorder.open(store.create(beginning), durability=settings.durability)

    return make


def resumed(hit: Hit, ref: str, settings: Settings) -> Recorder:
    """Open the branch a REF names; without a branch, the current one or one of its own beside it.

    Raises UsageError for a REF that ends at an earlier entry: that is a fork.
    """
    parsed = reference.parse(ref)
    earlier = parsed.is_bare and hit.head.entry != hit.tape.head().entry
    if earlier or parsed.entry or parsed.moves_ago is not None or parsed.back:
        raise UsageError(f"{ref} is an earlier entry: use --fork {ref} to go on from there")
    return Recorder.open(hit.tape, parsed.branch, durability=settings.durability)


def forked(hit: Hit, settings: Settings) -> Recorder:
    """Begin a branch at the entry a REF names, make it the current one, and open it."""
    branch = hit.tape.fork(hit.head, switch=True)
    return Recorder.open(hit.tape, branch, durability=settings.durability)
