"""Opening a session: find its tape, open its branch, choose its model, put its parts together.

Every front end comes through here: `open_session` to go on, `read_session` to look only. All it
needs comes in as values; nothing here reads the environment or the terminal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tape import reference
from tape.clock import now, stamp
from tape.errors import NotFound, UsageError
from tape.find import find
from tape.store import Beginning

from ..config import config_file
from ..context.git import find_repository
from ..context.system import Surroundings
from ..credentials import Credentials
from ..env.local import LocalEnvironment
from ..errors import AuthenticationError, ConfigurationError
from ..llm.client import Client, default_model
from ..llm.names import BUILT_IN, Names
from ..policy import allow_all
from ..policy.floor import Floor
from ..tools.builtin import PAST, builtin
from ..tools.registry import PRESETS, Registry
from .models import Models
from .outgoing import outgoing
from .record import Recorder, last_model, past
from .session import Session, Setup

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tape.index import Library
    from tape.line import Entry
    from tape.tape import Hit

    from ..config import Settings
    from ..context.git import Repository
    from .outgoing import Outgoing
    from .parts import Model
    from .record import Past


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """What a front end brings along to open sessions."""

    library: Library
    settings: Settings
    environ: Mapping[str, str]
    folder: str
    """Where sessions work."""
    program: str
    """Stands on a new tape as what wrote it."""
    model: str | None = None
    """The model a person names for this session, as `-m` does."""
    warn: Callable[[str], None] = lambda _: None
    """Is told what a person should know before the first prompt."""


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


@dataclass(frozen=True, slots=True)
class Reading:
    """An existing branch that is only looked at, with the models it could go on with."""

    hit: Hit
    past: Past
    models: Models
    tools: Registry

    def next_request(self, model: Model) -> Outgoing:
        """Return what the next call to a model would send."""
        tape = self.hit.tape
        return outgoing(model, self.tools.specs(), *self.past, session=tape.id, load=tape.load)


def find_session(front: FrontEnd, ref: str) -> Hit:
    """Return the entry a REF means, with its tape, which the caller closes.

    An empty REF means the folder's newest session.
    Raises UsageError, NotFound, Ambiguous, and Damaged or NewerFormat of the tape that is meant.
    """
    try:
        return find(front.library.store, front.library.index, ref, front.folder)
    except NotFound as error:
        if ref:
            raise
        raise NotFound("no session of this folder yet: begin one with gong chat") from error


def resume_branch(front: FrontEnd, hit: Hit, ref: str) -> Recorder:
    """Open the branch a REF names; without a branch, the current one or one of its own beside it.

    Raises UsageError for a REF that ends at an earlier entry, which is a fork, and Locked for a
    branch that is named and written by somebody else.
    """
    parsed = reference.parse(ref)
    earlier = parsed.is_bare and hit.head.entry != hit.tape.head().entry
    if earlier or parsed.entry or parsed.moves_ago is not None or parsed.back:
        raise UsageError(f"{ref} is an earlier entry: use --fork {ref} to go on from there")
    return Recorder.open(hit.tape, parsed.branch, durability=front.settings.durability)


def fork_branch(front: FrontEnd, hit: Hit) -> Recorder:
    """Begin a branch at the entry that was found, make it the current one, and open it."""
    branch = hit.tape.fork(hit.head, switch=True)
    return Recorder.open(hit.tape, branch, durability=front.settings.durability)


async def open_session(
    front: FrontEnd, recorder: Recorder | None = None, *, must_answer: bool = True
) -> Host:
    """Return a session on an open branch, or a new one whose tape is made at its first prompt.

    `choose_model` says who answers. A model without a key is an error, unless `must_answer` is
    False: then its calls fail. The recorder is closed where no session can be opened.
    Raises ConfigurationError, UnknownModel, AuthenticationError or FolderGone.
    """
    try:
        if recorder is not None:
            _warn_of_branch(recorder, front.warn)
        return await _assemble(front, recorder, must_answer=must_answer)
    except BaseException:
        if recorder is not None:
            recorder.close()
        raise


async def _assemble(front: FrontEnd, recorder: Recorder | None, *, must_answer: bool) -> Host:
    settings, environ, folder = front.settings, front.environ, front.folder
    tools = session_tools(settings)
    env = LocalEnvironment(folder, environ, policy=settings.environment)
    await env.initialize()
    repository = await find_repository(env)
    models = _known_models(front, env, repository)
    name = choose_model(front, models, recorder.path if recorder else ())

    def begin_tape(prompt: str) -> Recorder:
        git = repository.recorded if repository else None
        beginning = Beginning(cwd=folder, program=front.program, slug=prompt, git=git)
        tape = front.library.store.create(beginning)
        return Recorder.open(tape, durability=settings.durability)

    summariser = settings.compaction.model
    setup = Setup(
        model=models.choose(name) if must_answer else models.at_hand(name),
        tools=tools,
        env=env,
        policy=Floor(allow_all, folder, environ.get("HOME", "/")),
        open=begin_tape,
        room=settings.compaction,
        summariser=models.at_hand(summariser) if summariser else None,
        namer=models.at_hand(settings.title_model) if settings.title_model else None,
        max_cost=settings.max_cost,
    )
    by_default = not (front.model or settings.model) and name.startswith("offline/")
    return Host(Session(setup, recorder), models, name, by_default)


def _warn_of_branch(recorder: Recorder, warn: Callable[[str], None]) -> None:
    """Say that a branch is not the one that was asked for, or was torn."""
    writer = recorder.writer
    if writer.instead_of is not None:
        warn(
            f"branch {writer.instead_of} is being written by another program: "
            f"this session goes on in a branch of its own, {recorder.branch}"
        )
    if writer.torn is not None:
        warn(f"the end of the tape was torn by a crash; it was moved to quarantine/{writer.torn}")


async def read_session(front: FrontEnd, hit: Hit) -> Reading:
    """Return what stands before a model at a head, without writing anything.

    Lines that do not verify are left out with a warning. The caller closes the models' client.
    Raises ConfigurationError, FolderGone, Damaged or NewerFormat.
    """
    read = past(hit.tape, hit.head, front.warn)
    env = LocalEnvironment(front.folder, front.environ, policy=front.settings.environment)
    await env.initialize()
    try:
        models = _known_models(front, env, await find_repository(env))
    finally:
        await env.cleanup()
    return Reading(hit, read, models, session_tools(front.settings))


def choose_model(front: FrontEnd, models: Models, path: Sequence[Entry]) -> str:
    """Return provider/model of who answers next on a path; the rule stands in docs/models.md.

    First comes the model that is named now, then the path's last one, then that of the settings,
    then the one used where none is set. A last model that is part of the program says nothing about
    what a person wants, and one that cannot be asked is passed over with a warning.
    Raises UnknownModel, and ConfigurationError for a provider that is not served.
    """
    if front.model:
        return models.names.full(front.model)
    last = last_model(path)
    if last is None or last.partition("/")[0] in BUILT_IN:
        return _model_of_settings(front, models)
    try:
        models.choose(last)
    except (AuthenticationError, ConfigurationError) as error:
        name = _model_of_settings(front, models)
        if name != last:
            front.warn(f"{last} answered so far and cannot now: {error}")
        return name
    return last


def _model_of_settings(front: FrontEnd, models: Models) -> str:
    """Return provider/model that the settings name, or of the one used where they name none."""
    if front.settings.model:
        return models.names.full(front.settings.model)
    knows = Credentials(config_file(front.environ).parent, front.environ).knows
    return default_model(front.environ, models.names.presets, knows)


def _known_models(front: FrontEnd, env: LocalEnvironment, repository: Repository | None) -> Models:
    """Return the models that may be talked to in the folder of an environment."""
    names = Names.of(front.settings)
    keys = Credentials(config_file(front.environ).parent, front.environ)
    client = Client.from_env(front.environ, presets=names.presets, find_key=keys.key)
    today = stamp(now())[:10]
    where = Surroundings(env.working_directory, env.platform, env.os_version, today, repository)
    return Models(names, client, where, front.environ, front.settings.max_turns)


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
