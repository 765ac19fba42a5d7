"""A session put together from settings: model, tools, environment, and the branch to write.

Everything it needs comes in as values; nothing here reads the environment or the terminal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tape import reference
from tape.clock import now, stamp
from tape.errors import UsageError
from tape.store import Beginning

from ..config import config_file
from ..context.git import working_copy
from ..context.system import Surroundings
from ..credentials import Credentials
from ..env.local import LocalEnvironment
from ..llm.client import Client, default_model
from ..llm.names import Names
from ..policy import allow_all
from ..policy.floor import Floor
from ..tools.builtin import PAST, builtin
from ..tools.registry import PRESETS, Registry
from .models import Models
from .record import Recorder
from .session import Session, Setup

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tape.entries import Git
    from tape.store import Store
    from tape.tape import Hit

    from ..config import Settings


@dataclass(frozen=True, slots=True)
class Host:
    """A session and what a front end needs beside it."""

    session: Session
    models: Models
    model_name: str
    """provider/model as it was chosen."""
    by_default: bool
    """True when nobody chose the model and the offline one answers."""

    async def close(self) -> None:
        """Stop what runs and let go of the branch and of every connection."""
        await self.session.close()
        await self.models.client.close()


async def assemble(
    settings: Settings,
    environ: Mapping[str, str],
    folder: str,
    open_recorder: Callable[[Beginning], Recorder],
    *,
    program: str,
    recorder: Recorder | None = None,
    must_answer: bool = True,
) -> Host:
    """Return a session that works in `folder`.

    `open_recorder` makes the tape at the first prompt, where `program` stands as what wrote it;
    `recorder` is an open branch to go on with. A model without a key is an error, unless
    `must_answer` is False: then its calls fail.
    Raises ConfigurationError, UnknownModel, AuthenticationError or FolderGone.
    """
    tools = session_tools(settings)
    env = LocalEnvironment(folder, environ, policy=settings.environment)
    await env.initialize()
    git = await working_copy(env)
    models = known_models(settings, environ, env, git)
    name = model_name(settings, environ, models)

    def opened(prompt: str) -> Recorder:
        return open_recorder(Beginning(cwd=folder, program=program, slug=prompt, git=git))

    summariser = settings.compaction.model
    setup = Setup(
        model=models.choose(name) if must_answer else models.at_hand(name),
        tools=tools,
        env=env,
        policy=Floor(allow_all, folder, environ.get("HOME", "/")),
        open=opened,
        room=settings.compaction,
        summariser=models.at_hand(summariser) if summariser else None,
        namer=models.at_hand(settings.title_model) if settings.title_model else None,
        max_cost=settings.max_cost,
    )
    by_default = settings.model is None and name.startswith("offline/")
    return Host(Session(setup, recorder), models, name, by_default)


async def models_of(settings: Settings, environ: Mapping[str, str], folder: str) -> Models:
    """Return the models a session in `folder` could talk to; raises FolderGone."""
    env = LocalEnvironment(folder, environ, policy=settings.environment)
    await env.initialize()
    return known_models(settings, environ, env, await working_copy(env))


def model_name(settings: Settings, environ: Mapping[str, str], models: Models) -> str:
    """Return provider/model of the chosen model, or of the one used where none is chosen."""
    if settings.model:
        return models.names.full(settings.model)
    knows = Credentials(config_file(environ).parent, environ).knows
    return default_model(environ, models.names.presets, knows)


def known_models(
    settings: Settings, environ: Mapping[str, str], env: LocalEnvironment, git: Git | None
) -> Models:
    """Return the models that may be talked to in the folder of an environment."""
    names = Names.of(settings)
    keys = Credentials(config_file(environ).parent, environ)
    client = Client.from_env(environ, presets=names.presets, find_key=keys.key)
    today = stamp(now())[:10]
    branch = git.branch if git else None
    where = Surroundings(env.working_directory, env.platform, env.os_version, today, branch)
    return Models(names, client, where, environ, settings.max_turns)


def session_tools(settings: Settings) -> Registry:
    """Return the chosen tools: all of a session's, those named, a preset's, or none."""
    names, tools = settings.tools, builtin(settings.tuning)
    if names is None:
        tools.set_active((*tools.active, *PAST))
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
