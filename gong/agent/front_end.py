"""What a front end passes in to open sessions; `agent.open_session` is what it gets back."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace as replace_fields

from tape.folders import locate_repository
from tape.repository import WorkFacts, find_work_facts
from tape.store.store import Beginning

from ..checkpoints.file_recorder import FileRecorder
from ..context.instructions import Instructions, read_instructions
from ..context.system import (
    ModelFacts,
    PromptOverride,
    Surroundings,
    build_system_prompt,
)
from ..env.local import LocalEnvironment
from ..errors import AuthenticationError, ConfigurationError, UnknownModel
from ..llm.addresses import find_endpoint
from ..llm.models import is_usual_address, list_usual_efforts
from ..llm.types import StreamFailure
from ..private_files import locate_config_file, locate_home
from ..tools.profiles import PROFILES, apply_profile
from .model import AgentModel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence

    from tape.index.library import Library
    from tape.model.entries import Git

    from ..config import Settings
    from ..env.places.environment import PlaceEnvironment
    from ..llm.client import Client
    from ..llm.model_names import ModelNames
    from ..llm.models import Effort, EffortChoice, ModelInfo, ProfileName
    from ..llm.types import Provider, Request, StreamEvent
    from ..skills.session_skills import SessionSkills


_FAMILY = "family"
"""The value of --tools that means the profile of the model's family; it is the default."""


NO_MODEL = "off"
"""The value of `title_model` and `web.model` with which no model does that work."""


def is_profile_choice(tools: tuple[str, ...] | None) -> bool:
    """Return whether the setting of tools names a profile, and not tools or none."""
    return tools is None or (len(tools) == 1 and tools[0] in {_FAMILY, *PROFILES})


def choose_profile(names: ModelNames, model: str, settings: Settings) -> ProfileName:
    """Return the profile that is set, else that of a model's family; `model` is provider/model.

    Chosen tools change nothing: the instructions are still those of the model's family.
    """
    (chosen,) = settings.tools if settings.tools and len(settings.tools) == 1 else (_FAMILY,)
    own = next((profile for profile in PROFILES if profile == chosen), None)
    return own or names.choose_profile(model)


@dataclass(frozen=True, slots=True)
class ModelFactory:
    """Builds models for sessions in one folder."""

    names: ModelNames
    client: Client
    where: Surroundings
    environ: Mapping[str, str]
    settings: Settings
    override: PromptOverride = PromptOverride()
    load_skills: Callable[[], SessionSkills] | None = None
    """Returns the skills of sessions, always the same; None if there are none to use."""
    offers_skills: bool = False
    """Whether the system prompt names them."""
    place_files: Mapping[str, bytes] | None = None
    """The files of instructions of another place, by path; None on this machine."""
    _instructions: dict[ProfileName, Instructions] = field(default_factory=dict)
    """What was read, once for each profile."""

    def choose(self, name: str) -> AgentModel:
        """Return a model that can be called.

        Raises UnknownModel, AuthenticationError without a key, ConfigurationError.
        """
        provider, _ = self.client.resolve(name := self.names.resolve_name(name))
        stream = partial(self.client.stream, provider=provider)
        supports = getattr(provider, "supports_tool_choice", None)
        model = self._build_model(name, provider.api, provider.endpoint, stream)
        return replace(
            model,
            window=model.window or self._find_served_window(name),
            native_objects=getattr(provider, "native_objects", False),
            forces_calls=supports is None or supports("named"),
        )

    def move(
        self, folder: str, override: PromptOverride, *, reads_instructions: bool
    ) -> ModelFactory:
        """Return the same models for sessions in a folder, with another system prompt."""
        reads = self.settings.instructions and reads_instructions
        is_same = folder == self.where.folder and reads == self.settings.instructions
        return replace(
            self,
            where=self.where._replace(folder=folder),
            override=override,
            settings=replace_fields(self.settings, instructions=reads),
            _instructions=self._instructions if is_same else {},
        )

    def choose_or_failing(self, name: str) -> AgentModel:
        """Return a model that can be called, else one whose every call fails with the reason.

        Raises UnknownModel.
        """
        try:
            return self.choose(name)
        except UnknownModel:
            raise
        except (AuthenticationError, ConfigurationError) as error:
            model = self.describe(name)
            failure = AuthenticationError(str(error), provider=model.provider)

            async def stream(_request: Request) -> AsyncGenerator[StreamEvent, None]:
                yield StreamFailure(failure)

            return replace(model, stream=stream)

    def choose_namer(self, model: AgentModel, has_person: bool) -> AgentModel | None:
        """Return the model that titles a session with `model`; None for none.

        That is the one of the settings, else the small one of its provider: only where a person
        is there, and at that provider's own address, as what stands behind another one need not
        have it.
        """
        named = self.settings.title_model
        if named is None and has_person:
            named = self._name_small_model(model)
        return None if named is None or named == NO_MODEL else self.choose_or_failing(named)

    def choose_page_reader(self, model: AgentModel) -> AgentModel | None:
        """Return the model that answers about pages in a session with `model`; None for none.

        That is the one of the settings, else the small one of its provider, as for titles.
        """
        named = self.settings.web.model or self._name_small_model(model)
        return None if named is None or named == NO_MODEL else self.choose_or_failing(named)

    def _name_small_model(self, model: AgentModel) -> str | None:
        """Return the small model of a provider, at its own address; None where it has none."""
        preset = self.names.presets.get(model.provider)
        if preset is None or not preset.small_model:
            return None
        if not is_usual_address(preset, model.endpoint):
            return None
        return f"{model.provider}/{preset.small_model}"

    def describe(self, name: str) -> AgentModel:
        """Return a model without its key, for requests that are shown and never sent."""
        name = self.names.resolve_name(name)
        preset = self.names.presets.get(name.partition("/")[0])
        if preset is not None:
            preset = preset.choose_variant(name.partition("/")[2])
            return self._build_model(
                name, preset.api, find_endpoint(preset, self.environ), _refuse_stream
            )
        built_in: Provider = self.client.resolve(name)[0]
        return self._build_model(name, built_in.api, built_in.endpoint, _refuse_stream)

    def _list_efforts(self, provider: str, model: str) -> tuple[Effort, ...]:
        preset = self.names.presets.get(provider)
        return list_usual_efforts(preset.choose_variant(model)) if preset else ()

    def _find_served_window(self, name: str) -> int | None:
        """Return the context window that a server on this machine says a model has."""
        preset = self.names.presets.get(name.partition("/")[0])
        if preset is None or not preset.local:
            return None
        from ..llm.local_models import find_served_window  # only where a model is local

        return find_served_window(preset, name.partition("/")[2], self.environ)

    def _choose_effort(self, info: ModelInfo | None) -> EffortChoice | None:
        """Return how hard a model thinks unless the session says otherwise: its row's, the file's.

        Medium without any, for a model that needs a request to think.
        """
        own = (info.effort if info else None) or self.settings.effort
        return own or ("medium" if info is not None and info.thinks_when_told else None)

    def _build_model(
        self,
        name: str,
        api: str,
        endpoint: str,
        stream: Callable[[Request], AsyncGenerator[StreamEvent, None]],
    ) -> AgentModel:
        provider, _, model = name.partition("/")
        profile = choose_profile(self.names, name, self.settings)
        info = self.names.find_info(name)
        instructions, skills = self._read_instructions(profile), ""
        search_tool = self._choose_search_tool(provider, model)
        window = self.names.get_context_window(provider, model) or self.settings.context_window
        if self.offers_skills and self.load_skills is not None:
            skills = self.load_skills().list_for_model(window)
        return AgentModel(
            provider=provider,
            id=model,
            api=api,
            endpoint=endpoint,
            stream=stream,
            system=partial(
                build_system_prompt,
                self.where,
                ModelFacts(name, info.cutoff if info else None),
                instructions=instructions,
                override=self.override,
                skills=skills,
            ),
            cost=partial(self.names.compute_cost, provider, model),
            window=window,
            max_output=info.max_output if info else None,
            reasons=info.reasoning if info else None,
            efforts=(info.efforts if info else ()) or self._list_efforts(provider, model),
            effort=self._choose_effort(info),
            options=add_server_tool(self.names.get_options(name), search_tool),
            sees_images=self.names.sees_images(provider, model),
            blocks_images=self.settings.block_images,
            foreign_thinking=self.settings.foreign_thinking,
            profile=profile,
            instructions=instructions,
            equip=lambda tools, tuning: apply_profile(
                tools, profile, tuning, searches_itself=bool(search_tool)
            ),
        )

    def _choose_search_tool(self, provider: str, model: str) -> Mapping[str, Any]:
        """Return the tool with which a provider searches; empty where it may not or cannot."""
        preset = self.names.presets.get(provider)
        if preset is None or not self.settings.web.search.native:
            return {}
        return preset.choose_variant(model).search_tool

    def _read_instructions(self, profile: ProfileName) -> Instructions:
        """Return the instructions for a profile, as they were when they were first asked for."""
        if not self.settings.instructions:
            return Instructions()
        if profile not in self._instructions and self.place_files is not None:
            from ..context.place_instructions import read_place_instructions  # only in a place

            self._instructions[profile] = read_place_instructions(
                self.place_files,
                self.where.folder,
                home=str(locate_home(self.environ)),
                config_folder=str(locate_config_file(self.environ).parent),
                own_file=PROFILES[profile].instruction_file,
            )
        if profile not in self._instructions:
            self._instructions[profile] = read_instructions(
                self.where.folder,
                home=str(locate_home(self.environ)),
                config_folder=str(locate_config_file(self.environ).parent),
                own_file=PROFILES[profile].instruction_file,
            )
        return self._instructions[profile]


def add_server_tool(options: Raw, tool: Mapping[str, Any]) -> Raw:
    """Return options of a provider with one more tool that it runs itself, unless they have it."""
    if not tool:
        return options
    named = msgspec.json.decode(bytes(options) or b"{}")
    tools = named.get("tools", [])
    if tool in tools:
        return options
    return Raw(msgspec.json.encode({**named, "tools": [*tools, tool]}))


def _refuse_stream(_request: Request) -> AsyncGenerator[StreamEvent, None]:
    raise ConfigurationError("this model has no connection: nothing is sent to it")


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """What a front end passes in to open sessions."""

    library: Library
    settings: Settings
    environ: Mapping[str, str]
    folder: str
    """The working folder of sessions."""
    program: str
    """Recorded on a new tape as the program that wrote it."""
    model: str | None = None
    """The model named for this session, as by `-m`; None if none."""
    warn: Callable[[str], None] = lambda _: None
    """Receives warnings to show before the first prompt."""
    hooks: Sequence[object] = ()
    """Python hooks of the host, asked before those of files."""
    override: PromptOverride = PromptOverride()
    """What the user has set of the system prompt."""
    effort: EffortChoice | None = None
    """How hard models think in this session, as by `-e`; None if not named."""
    is_kept: bool = True
    """Whether the store is there after the session."""
    names_mode: bool = False
    """Whether the settings' permission mode was named for this session: then the tape's is not
    restored."""
    servers: Mapping[str, Any] = field(default_factory=dict)
    """MCP servers that the host names, as in the table `mcpServers` of a file."""
    place: str = "local"
    """Where tools act: a place, or the name of one in the settings."""
    open_place: Callable[[], Awaitable[PlaceEnvironment]] | None = None
    """Opens the place where its name alone does not lead there; None where it does."""
    make_environment: Callable[..., LocalEnvironment] = LocalEnvironment
    """Makes the environment that tools act in."""

    def find_facts(self, project: str | None) -> WorkFacts:
        """Return repository and person of a session in the repository at `project`, if any."""
        return find_work_facts(project, self.environ, self.settings.person)

    def find_repository(self) -> str | None:
        """Return the name of the folder's repository; None if it has none."""
        return self.find_facts(locate_repository(self.folder)).repository

    def build_beginning(
        self, folder: str, *, title: str | None = None, slug: str = "", git: Git | None = None
    ) -> Beginning:
        """Return the facts of a new tape for a session in a folder; git is asked for some."""
        project = locate_repository(folder)
        facts = self.find_facts(project)
        return Beginning(
            *(folder, self.program, title, slug, project, git),
            repository=facts.repository,
            person=facts.person,
        )

    def build_file_recorder(self) -> FileRecorder:
        """Return what records changes of one session; not those of the store and the settings."""
        store = str(self.library.store.tapes.parent)
        own = (store, str(locate_config_file(self.environ).parent))
        return FileRecorder(self.settings.checkpoints, own)
