"""Settings: one frozen value from defaults, the user's config.toml, the environment and flags.

Later sources win. A wrong setting raises an error here that names the key and its file.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import replace

from .env.variables import VariableRules
from .errors import ConfigurationError
from .private_files import locate_config_file, locate_home
from .project import expand_rule, locate_project
from .setting_values import (
    ERROR_PATH,
    MAX_TIMEOUT_MS,
    Amount,
    Count,
    PositiveCount,
    Share,
    Timeout,
    check_value,
)
from .tool_settings import (
    OutputForm,
    ToolSettings,
    TruncationSettings,
    WebSettings,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


class CompactionSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The table [compaction]: when older messages become a summary. All numbers are tokens."""

    auto: bool = True
    """Compact automatically when the context window is nearly full."""
    reserve: Count = 16_384
    """Tokens of the context window to keep free; at most a quarter of it."""
    keep: Count = 20_000
    """Tokens of the newest messages that are not summarised."""
    limit: PositiveCount | None = None
    """Compact above this many tokens, even if the context window is larger."""
    high_water: Share = 0.6
    """Context usage (0 to 1) above which older tool results become placeholders."""
    model: str | None = None
    """The model that writes summaries; None is the current model."""


class ProjectRules(Struct, frozen=True, forbid_unknown_fields=True):
    """The table [permissions.projects."FOLDER"]: your rules that hold in one project only."""

    allow: tuple[str, ...] = ()
    """As in [permissions]; so are the others."""
    deny: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()


class PermissionSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The table [permissions]: what may run; see docs/permissions.md."""

    mode: Literal["default", "plan", "accept_edits", "dont_ask", "bypass", "locked"] = "default"
    """What is allowed, asked about and refused where no rule says it."""
    allow: tuple[str, ...] = ()
    """Rules for what runs unasked, such as Bash(npm test:*)."""
    deny: tuple[str, ...] = ()
    """Rules for what never runs; they beat all others."""
    ask: tuple[str, ...] = ()
    """Rules for what is asked about, even where another rule allows it."""
    folders: tuple[str, ...] = ()
    """Further folders whose files may be read unasked, as with --add-dir."""
    projects: dict[str, ProjectRules] = field(default_factory=dict)
    """Rules for one project each, by its folder: what "always" saves in a session."""
    read_before_write: bool = True
    """Refuse to change a file that was not read in the session, or changed since."""


class CheckpointSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The table [checkpoints]: what is recorded of files; see docs/files.md."""

    commands: bool = True
    """Record what commands change in the working folder, not only what file tools change."""
    max_file_bytes: Count = 1 << 20
    """Largest file whose bytes are stored because a command may change it."""
    max_total_bytes: Count = 64 << 20
    """Bytes that are stored for one call; also the largest file of a file tool."""
    max_files: Count = 20_000
    """Files of a folder without git, or outside of its commits, that are looked at."""


class SkillSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The table [skills]; see docs/skills.md."""

    shipped: bool = True
    """Whether the skills that come with gong can be used: commit, review-pr, init, tape-recall."""


SandboxMode = Literal["off", "read-only", "workspace-write"]
"""off: no sandbox · read-only: nothing is written · workspace-write: the folders are."""


class LanguageServerSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The table [lsp.servers.NAME]: a language server; see docs/lsp.md."""

    command: tuple[str, ...] = ()
    """Its program and arguments; empty is that of the known server of this name."""
    files: dict[str, str] = field(default_factory=dict)
    """Patterns of file names, each with the language of such files: {"*.py" = "python"}."""
    options: dict[str, Any] = field(default_factory=dict)
    """Its initializationOptions."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Its configuration, by section."""
    enabled: bool = True
    """Whether it is used."""


class LspSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The table [lsp]: language servers; see docs/lsp.md."""

    enabled: bool = True
    """Whether language servers are used at all."""
    discover: bool | None = None
    """Whether known servers on the PATH are used without a table; None is inside a sandbox only, as
    some run code of the project."""
    servers: dict[str, LanguageServerSettings] = field(default_factory=dict)
    """Your servers, by name."""


class SandboxSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The table [sandbox]: a border around what commands do; see docs/sandbox.md."""

    mode: SandboxMode = "off"
    """Whether programs run inside a sandbox, and what they may write there."""
    fail_if_unavailable: bool = False
    """Stop where no sandbox works, instead of warning and running without one."""
    write: tuple[str, ...] = ()
    """Further folders that may be written, such as ~/.cache."""
    hide: tuple[str, ...] = ()
    """Further files and folders that cannot be read."""
    show: tuple[str, ...] = ()
    """What is usually hidden, such as ~/.npmrc, and can be read all the same."""
    domains: tuple[str, ...] = ()
    """Hosts that can be reached: example.org, *.example.org, or * for all public ones."""
    deny_domains: tuple[str, ...] = ()
    """Hosts that cannot, whatever allows them."""
    unix_sockets: bool = False
    """Whether programs may use sockets of this machine, such as those of Docker and D-Bus."""
    memory_mb: Count | None = None
    """Maximum memory in MB; None is four fifths of this machine's, 0 is no limit."""
    processes: Count | None = None
    """Maximum processes and threads; None is 1,024 or more by the number of cores, 0 no limit."""
    cpu_seconds: Count = 0
    """Maximum processor time of each process; 0 is no limit."""
    file_mb: Count = 0
    """Maximum size of each file in MB; 0 is no limit."""


class TerminalSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The table [terminal]: how `gong chat` behaves; see docs/terminal.md."""

    notify: Literal["bell", "osc9", "off"] = "bell"
    """What the terminal does when an answer is awaited, or a run of over 10 s has ended."""
    theme: Literal["terminal", "dark", "light", "plain"] = "terminal"
    """Colours: those of the terminal, of a dark or a light background, or none."""


class ReviewRule(Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of [[review.rules]]: lines that a pattern finds are findings."""

    id: str
    pattern: str
    """A regular expression that a line has."""
    text: str = ""
    """What is wrong with such a line."""
    severity: Literal["critical", "major", "minor", "info"] = "minor"
    files: tuple[str, ...] = ()
    """Patterns of paths, such as src/*.py; empty is every file."""


class ReviewSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The table [review]: what `gong review` reports."""

    strictness: Literal["strict", "normal", "loose"] = "normal"
    """How much is reported."""
    ignore: tuple[str, ...] = ()
    """Patterns of paths that are not reviewed."""
    rules: tuple[ReviewRule, ...] = ()
    """Rules of your own."""
    every: Count = 0
    """Review what changed in a session after so many answers; 0 is never."""


class PlaceSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The table [env.NAME]: a place where tools can act; see docs/places.md."""

    place: str
    """Its name: docker:NAME, ssh://USER@HOST:PORT/PATH, k8s:CONTEXT/NAMESPACE/POD and others."""
    folder: str = ""
    """Where work begins there; the default is that of the place."""
    program: tuple[str, ...] = ()
    """The program that leads there, with its first arguments; the default is found on PATH."""
    forward_agent: bool = False
    """Let ssh forward the agent that holds your keys."""


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """All settings: one field for each key of config.toml."""

    model: str | None = None
    """provider/model; None means the first provider with a key, else the offline model."""
    store: str | None = None
    """Folder of the tapes, or URL of a remote; None means $TAPE_HOME, else ~/.tape."""
    person: str | None = None
    """Who works, on new tapes: `Name <email>`, or `off`; None is $TAPE_PERSON, else git's user."""
    durability: Literal["entry", "barrier", "none"] = "barrier"
    """When entries are synced to disk."""
    max_turns: Count = 0
    """Maximum model calls of one session; 0 is no limit."""
    max_rounds: Count = 200
    """Maximum rounds of tool calls for one prompt; 0 is no limit."""
    max_cost: Amount = 0.0
    """Maximum cost of one session in USD; 0 is no limit."""
    max_seconds: Amount = 0.0
    """Maximum time for one prompt; 0 is no limit."""
    max_retries: Count | None = None
    """Maximum repetitions of a failed model call; None is 10, in five minutes, and 2 with -p."""
    max_subagent_depth: Count = 1
    """How deep sub-agents may start others; 0 lets nobody start one."""
    max_subagent_turns: Count = 50
    """Maximum model calls of a sub-agent; 0 is no limit."""
    max_subagents: PositiveCount = 4
    """Maximum sub-agents that run at once."""
    max_output_tokens: Count = 0
    """Maximum tokens of one answer; 0 is the model's own limit."""
    loop_detection: bool = True
    """Tell a model that repeats its calls so, and stop it if it continues."""
    review: ReviewSettings = ReviewSettings()
    """What `gong review` reports."""
    terminal: TerminalSettings = TerminalSettings()
    """How gong chat behaves in a terminal."""
    compaction: CompactionSettings = CompactionSettings()
    """When and how older messages are compacted."""
    title_model: str | None = None
    """The model that titles new sessions; None is the provider's small one where a person is there;
    off uses the first words of the first prompt."""
    command_prefix: str = ""
    """Lines that bash runs before every command."""
    bash_output: OutputForm = "merged"
    """Standard output and error of the tool bash: merged as they came, or split."""
    default_command_timeout_ms: Timeout | None = None
    """Timeout of a command that sets none; None is the tool's own default."""
    max_command_timeout_ms: Timeout = MAX_TIMEOUT_MS
    """Maximum timeout of a command, whatever it asks for."""
    tool_output_limits: dict[str, PositiveCount] = field(default_factory=dict)
    """Maximum characters of a result, by tool; bytes for read, bash, grep, find and ls."""
    tool_line_limits: dict[str, PositiveCount] = field(default_factory=dict)
    """Maximum lines of a result, by tool."""
    truncation: TruncationSettings = TruncationSettings()
    """Limits for results that their tool does not cut; [truncation.tools.NAME] for one tool."""
    tools: Annotated[tuple[str, ...], Meta(min_length=1)] | None = None
    """Tool names, or one profile or preset; None is the profile of the model's family."""
    python_tools: tuple[str, ...] = ()
    """Tools of Python packages: `module:object`, or entry points of the group gong.tools."""
    effort: Literal["none", "low", "medium", "high", "xhigh"] | None = None
    """How hard models think; none, and None, leave it to them. [models."NAME"] has its own."""
    foreign_thinking: Literal["text", "drop"] = "text"
    """Readable thinking of another model: sent as plain text before its answer, or left out."""
    context_window: PositiveCount | None = None
    """Context window in tokens of models whose own is not known."""
    instructions: bool = True
    """Whether AGENTS.md and its relatives are part of the system prompt."""
    permissions: PermissionSettings = PermissionSettings()
    """Mode and rules of permission."""
    checkpoints: CheckpointSettings = CheckpointSettings()
    """What is recorded of the files that calls change."""
    web: WebSettings = WebSettings()
    """What is fetched from the web."""
    lsp: LspSettings = LspSettings()
    """Which language servers are used."""
    skills: SkillSettings = SkillSettings()
    """Which skills there are."""
    sandbox: SandboxMode | SandboxSettings = "off"
    """A border around what commands do: a mode, or the table [sandbox]."""
    environment: Literal["filter", "inherit-all", "none", "core-only"] = "filter"
    """Variables that commands, hooks and MCP servers see; default: all but secrets."""
    env_vars: tuple[str, ...] = ()
    """Names, as patterns, of variables that they see although these look like secrets."""
    env: dict[str, PlaceSettings] = field(default_factory=dict)
    """Places for --env NAME, one table [env.NAME] each."""
    providers: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Your own providers, or changed fields of built-in ones: see gong.llm.models.Preset."""
    models: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Facts about models, by provider/id: see gong.llm.models.ModelInfo."""
    hooks: tuple[dict[str, Any], ...] = ()
    """Your hooks, one table [[hooks]] each: see docs/hooks.md."""
    block_images: bool = False
    """Send no pictures: neither those that a person attaches nor those that tools read."""
    max_image_size: PositiveCount = 1_000_000
    """Largest picture, in bytes: a larger one is not attached, and that of a tool made smaller."""
    keys: dict[str, str | tuple[str, ...]] = field(default_factory=dict)
    """Keys of the terminal, by action: see docs/terminal.md."""
    aliases: dict[str, str] = field(default_factory=dict)
    """Short names for models: alias to provider/id."""

    @property
    def variable_rules(self) -> VariableRules:
        """Return what commands, hooks and MCP servers inherit of the environment."""
        return VariableRules(self.environment, self.env_vars)

    @property
    def border(self) -> SandboxSettings:
        """Return the settings of the sandbox, also where only its mode is given."""
        sandbox = self.sandbox
        return sandbox if isinstance(sandbox, SandboxSettings) else SandboxSettings(mode=sandbox)

    @property
    def tuning(self) -> ToolSettings:
        """Return the settings of the built-in tools."""
        return ToolSettings(
            command_prefix=self.command_prefix,
            bash_output=self.bash_output,
            default_timeout_ms=self.default_command_timeout_ms,
            max_timeout_ms=self.max_command_timeout_ms,
            output_limits=self.tool_output_limits,
            line_limits=self.tool_line_limits,
            truncation=self.truncation,
            web=self.web,
            max_image_size=self.max_image_size,
        )


PROJECT_FILE = ".gong/config.toml"
"""The settings of a project, relative to its root."""


def load_settings(
    environ: Mapping[str, str], flags: Mapping[str, Any], folder: str | None = None
) -> Settings:
    """Return the settings; a flag that is None is not set. Raises ConfigurationError.

    The settings of the folder's project count where they are trusted; None is no project.
    """
    file = locate_config_file(environ)
    settings = parse_settings(file, read_settings_file(file))
    if folder is not None and settings.permissions.projects:
        settings = _add_project_rules(settings, str(locate_project(folder)))
    if folder is not None and (project := read_project_settings(folder, environ)):
        settings = merge_settings(settings, *project)
    if model := environ.get("GONG_MODEL"):
        settings = replace(settings, model=model)
    if mode := environ.get("GONG_PERMISSION"):
        settings = replace(settings, permissions=_replace_mode(settings.permissions, mode))
    if border := environ.get("GONG_SANDBOX"):
        mode = check_value("GONG_SANDBOX", border, SandboxMode)
        settings = replace(settings, sandbox=replace(settings.border, mode=mode))
    kinds = {field.name: field.type for field in msgspec.structs.fields(Settings)}
    kinds["tools"] = tuple[str, ...]  # a flag may ask for none at all, a file may not
    values = {
        name: value if isinstance(value, Struct) else check_value(name, value, kinds[name])
        for name, value in flags.items()
        if value is not None
    }
    if "sandbox" in values and not isinstance(values["sandbox"], Struct):
        values["sandbox"] = replace(settings.border, mode=values["sandbox"])
    return replace(settings, **values)


def _add_project_rules(settings: Settings, root: str) -> Settings:
    """Return the settings with the user's own rules for a project added to the others."""
    all_rules = settings.permissions
    if (mine := all_rules.projects.get(root)) is None:
        return settings
    added = replace(
        all_rules,
        allow=(*all_rules.allow, *(expand_rule(rule, root) for rule in mine.allow)),
        deny=(*all_rules.deny, *(expand_rule(rule, root) for rule in mine.deny)),
        ask=(*all_rules.ask, *(expand_rule(rule, root) for rule in mine.ask)),
    )
    return replace(settings, permissions=added)


def read_project_settings(folder: str, environ: Mapping[str, str]) -> tuple[Path, bytes] | None:
    """Return the file of the project's settings and its bytes; None where it may not count."""
    if not (locate_project(folder) / PROJECT_FILE).is_file():
        return None
    from .trust import read_project  # only for a project with settings

    project = read_project(folder, environ)
    for part in project.parts:
        if part.path == PROJECT_FILE and part.state == "trusted":
            return project.root / PROJECT_FILE, part.content
    return None


def merge_settings(settings: Settings, file: Path, data: bytes) -> Settings:
    """Return the settings with those of a project over them; raises ConfigurationError.

    Tables are merged key by key. The rules and folders of [permissions] are added to the user's: a
    project takes no refusal away, and names no program that gives a key. Its hooks are read by
    `gong.hooks.sources`.
    """
    project = parse_settings(file, data)  # a wrong setting is named with this file
    theirs = tomllib.loads(data.decode())
    theirs.pop("hooks", None)
    theirs.get("permissions", {}).pop("projects", None)  # the user's alone
    for name in ("private_hosts", "search"):  # as well
        theirs.get("web", {}).pop(name, None)
    for row in theirs.get("providers", {}).values():
        row.pop("key_command", None)
    ours = msgspec.to_builtins(settings)
    for name in ("allow", "deny", "ask", "folders"):
        if added := theirs.get("permissions", {}).get(name):
            theirs["permissions"][name] = [*ours["permissions"][name], *added]
    theirs["sandbox"] = msgspec.to_builtins(_restrict_border(settings.border, project.border))
    return msgspec.convert(_merge_tables(ours, theirs), Settings)


_BORDERS: tuple[SandboxMode, ...] = ("off", "workspace-write", "read-only")
"""The modes of the sandbox, the strictest last."""


def is_weaker(mode: SandboxMode, other: SandboxMode) -> bool:
    """Return whether a mode of the sandbox lets programs do more than another one."""
    return _BORDERS.index(mode) < _BORDERS.index(other)


def _restrict_border(ours: SandboxSettings, theirs: SandboxSettings) -> SandboxSettings:
    """Return the sandbox of a user in a project, which can only make it stricter.

    All that the project says counts where the user has no sandbox.
    """
    if ours.mode == "off":
        return theirs if theirs.mode != "off" else ours
    return replace(
        ours,
        mode=max(ours.mode, theirs.mode, key=_BORDERS.index),
        hide=(*ours.hide, *theirs.hide),
        deny_domains=(*ours.deny_domains, *theirs.deny_domains),
        fail_if_unavailable=ours.fail_if_unavailable or theirs.fail_if_unavailable,
    )


def _merge_tables(ours: Any, theirs: Any) -> Any:
    if not (isinstance(ours, dict) and isinstance(theirs, dict)):
        return theirs
    return {**ours, **{key: _merge_tables(ours.get(key), value) for key, value in theirs.items()}}


def _replace_mode(permissions: PermissionSettings, mode: str) -> PermissionSettings:
    """Return the settings with the mode of the environment; raises ConfigurationError."""
    try:
        return msgspec.convert(
            {**msgspec.structs.asdict(permissions), "mode": mode}, PermissionSettings
        )
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"GONG_PERMISSION={mode}: {error}") from error


def read_settings_file(file: Path) -> bytes:
    """Return the bytes of a config.toml, none where there is none; raises ConfigurationError."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}") from error


def parse_settings(file: Path, text: bytes) -> Settings:
    """Return the settings that a file holds; raises ConfigurationError, which names the line."""
    try:
        settings = msgspec.convert(tomllib.loads(text.decode()), Settings)
        if settings.providers or settings.models:
            # only if providers or models are configured
            from .llm.models import Catalogue, load_presets

            presets = load_presets(settings.providers)
            models = Catalogue.from_rows(settings.models).models
            for name in settings.models:
                models[name].check_options(presets)
    except ConfigurationError as error:
        raise ConfigurationError(f"{file}: {error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} is not TOML: {error}") from error
    except msgspec.ValidationError as error:
        raise ConfigurationError(_explain_error(file, text.decode(), str(error))) from error
    return settings


_ANY_NAME = "*"
"""Used where an error gives no name."""
_UNKNOWN_FIELD = re.compile(r"unknown field `(.*?)`")
_LIST_PLACE = re.compile(r"\[\d+\]$")
_TABLE_LINE = re.compile(r"\s*\[\[?([^\[\]]+)\]")
_KEY_LINE = re.compile(r"""\s*([\w.\-"']+)\s*=""")


def _explain_error(file: Path, text: str, error: str) -> str:
    """Return the message for a wrong setting: file, line, key, and the nearest valid key."""
    from difflib import get_close_matches  # only needed for an error

    match = ERROR_PATH.search(error)
    table = (
        tuple(match[1].replace("[...]", f".{_ANY_NAME}").split(".")) if match and match[1] else ()
    )
    unknown = _UNKNOWN_FIELD.search(error)
    key = (*table, unknown[1]) if unknown else table
    line, key = _find_setting(text, key)
    around = key
    while line is None and len(around) > 1:  # it is written inside the value of one above
        around = around[:-1]
        line, _ = _find_setting(text, around)
    where = f"{file}:{line}" if line else f"{file}"
    if not unknown:
        if not key:
            return f"{where}: {error}"
        choices = ", ".join(map(repr, list_choices(key)))
        hint = f": choose one of {choices}" if choices else ""
        return f"{where}: {ERROR_PATH.sub('', error)} for {'.'.join(key)}{hint}"
    near = get_close_matches(unknown[1], list_settings(table), n=1)
    meant = f": did you mean {near[0]}?" if near else ""
    return f"{where}: unknown setting {'.'.join(key)}{meant}"


def _find_setting(text: str, key: tuple[str, ...]) -> tuple[int | None, tuple[str, ...]]:
    """Return the number of the line that sets a key, or starts its table, and the full key."""
    table: tuple[str, ...] = ()
    full, key = key, tuple(_LIST_PLACE.sub("", part) for part in key)
    for number, line in enumerate(text.split("\n"), 1):
        if begins := _TABLE_LINE.match(line):
            table = _split_key(begins[1])
            at = table
        elif sets := _KEY_LINE.match(line):
            at = (*table, *_split_key(sets[1]))
        else:
            continue
        fits = all(pattern in {_ANY_NAME, name} for pattern, name in zip(key, at, strict=False))
        if key and fits and len(at) >= len(key):
            return number, at[: len(key)]
    return None, full


def _split_key(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def list_settings(table: tuple[str, ...]) -> list[str]:
    """Return the names of the settings that a table may contain."""
    return [field.encode_name for field in getattr(_find_type(table), "fields", ())]


def list_choices(key: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the words that a setting may have; none where other values are allowed, too."""
    kind = _find_type(key[:-1])
    types = (field.type for field in getattr(kind, "fields", ()) if field.encode_name == key[-1])
    return tuple(
        value
        for each in types
        for part in getattr(each, "types", (each,))
        for value in getattr(part, "values", ())
    )


def _find_type(key: tuple[str, ...]) -> Any:
    """Return the type of a setting, or of a table of them, as msgspec describes it."""
    from msgspec import inspect  # only needed for an error

    at: Any = inspect.type_info(Settings)
    for name in key:
        if isinstance(at, inspect.DictType):
            at = at.value_type
        else:
            fields = getattr(at, "fields", ())
            at = next((field.type for field in fields if field.encode_name == name), None)
        if isinstance(at, inspect.UnionType):
            at = next((kind for kind in at.types if isinstance(kind, inspect.StructType)), None)
    return at


def locate_store(settings: Settings, environ: Mapping[str, str]) -> Path:
    """Return the folder of the tapes; for an address, that of the copy here, brought up to date.

    Raises tape.RemoteUnavailable where there is no copy and the remote does not answer.
    """
    place = settings.store or environ.get("TAPE_HOME") or str(locate_home(environ) / ".tape")
    if "://" in place:
        from tape.damage import warn_of_damage
        from tape.remote.local_copy import open_local_copy  # only for a store elsewhere

        return Path(open_local_copy(place, environ, warn_of_damage))
    return Path(place).expanduser() if settings.store else Path(place)
