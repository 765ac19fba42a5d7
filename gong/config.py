"""Settings: one frozen value from defaults, the user's config.toml, the environment and flags.

Later ones win. A wrong setting fails here, with the key's name and its file, and nowhere else.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import replace

from .errors import ConfigurationError
from .tools.settings import MAX_TIMEOUT_MS, Count, Truncation, Tuning

if TYPE_CHECKING:
    from collections.abc import Mapping


class Compaction(Struct, frozen=True, forbid_unknown_fields=True):
    """The table [compaction]: when older messages become a summary. All numbers are tokens."""

    auto: bool = True
    """Compact by itself when the window is nearly full."""
    reserve: int = 16_384
    """What must stay free of the window; never more than a quarter of it."""
    keep: int = 20_000
    """How much of the newest messages stays as it is."""
    limit: int | None = None
    """Compact above this, also where the window would take more."""
    high_water: float = 0.6
    """Share of the window from which on older tool results are put aside."""
    model: str | None = None
    """Who writes summaries; None is who answers."""


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """What can be set. Every key of config.toml has its field here."""

    model: str | None = None
    """provider/model; None means the first provider with a key, else the offline model."""
    store: str | None = None
    """Folder of the tapes; None means $TAPE_HOME, else ~/.tape."""
    durability: Literal["entry", "barrier", "none"] = "barrier"
    """When entries must be on the medium."""
    max_turns: int = 0
    """Most model calls for one prompt; 0 is no limit."""
    max_cost: float = 0.0
    """Most USD that one session may spend; 0 is no limit."""
    compaction: Compaction = Compaction()
    """When and how the window is made free."""
    title_model: str | None = None
    """A cheap model that names new sessions; None keeps the first words of the first prompt."""
    command_prefix: str = ""
    """Lines that bash reads before every command."""
    default_command_timeout_ms: Count | None = None
    """Time of a command that asks for none; None is what its tool is used to."""
    max_command_timeout_ms: Annotated[int, Meta(ge=1, le=MAX_TIMEOUT_MS)] = MAX_TIMEOUT_MS
    """Most time of a command, whatever it asks for."""
    tool_output_limits: dict[str, Count] = field(default_factory=dict)
    """Characters of a result, by tool; bytes for read, bash, grep, find and ls."""
    tool_line_limits: dict[str, Count] = field(default_factory=dict)
    """Lines of a result, by tool."""
    truncation: Truncation = Truncation()
    """Where results are cut that no tool cuts itself; [truncation.tools.NAME] for one tool."""
    tools: tuple[str, ...] | None = None
    """Names of tools, or of one preset; None is all of them."""
    environment: Literal["filter", "inherit-all", "none", "core-only"] = "filter"
    """Which variables commands see: by default all but keys, tokens, passwords and secrets."""
    providers: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Own providers, or fields of shipped ones: see gong.llm.presets.Preset."""
    models: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What is known of a model, by provider/id: see gong.llm.catalogue.ModelInfo."""
    aliases: dict[str, str] = field(default_factory=dict)
    """Own short names for models, each for a provider/id."""

    @property
    def tuning(self) -> Tuning:
        """How the tools that come with the agent are made."""
        return Tuning(
            command_prefix=self.command_prefix,
            default_timeout_ms=self.default_command_timeout_ms,
            max_timeout_ms=self.max_command_timeout_ms,
            output_limits=self.tool_output_limits,
            line_limits=self.tool_line_limits,
            truncation=self.truncation,
        )


def config_file(environ: Mapping[str, str]) -> Path:
    """Return the place of the user's config.toml, which need not exist."""
    if folder := environ.get("GONG_CONFIG_DIR"):
        return Path(folder) / "config.toml"
    base = environ.get("XDG_CONFIG_HOME") or _home(environ) / ".config"
    return Path(base) / "gong" / "config.toml"


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ["HOME"]) if environ.get("HOME") else Path.home()


def load(environ: Mapping[str, str], flags: Mapping[str, Any]) -> Settings:
    """Return the settings; a flag that is None was not given. Raises ConfigurationError."""
    settings = _from_file(config_file(environ))
    if model := environ.get("GONG_MODEL"):
        settings = replace(settings, model=model)
    given = {name: value for name, value in flags.items() if value is not None}
    return replace(settings, **given)


def _from_file(file: Path) -> Settings:
    try:
        text = file.read_bytes()
    except FileNotFoundError:
        return Settings()
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}") from error
    try:
        return _checked(msgspec.convert(tomllib.loads(text.decode()), Settings))
    except ConfigurationError as error:
        raise ConfigurationError(f"{file}: {error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} is not TOML: {error}") from error
    except msgspec.ValidationError as error:
        raise ConfigurationError(_explained(file, text.decode(), str(error))) from error


_ANY = "*"
"""Stands for a name that an error does not say."""
_AT = re.compile(r" - at `\$\.?(.*)`$")
_UNKNOWN = re.compile(r"unknown field `(.*?)`")
_TABLE = re.compile(r"\s*\[\[?([^\[\]]+)\]")
_KEY = re.compile(r"""\s*([\w.\-"']+)\s*=""")


def _explained(file: Path, text: str, error: str) -> str:
    """Return what is wrong with a setting: the file and line, and the key that was meant."""
    from difflib import get_close_matches  # noqa: PLC0415 (only where something is wrong)

    found = _AT.search(error)
    table = tuple(found[1].replace("[...]", f".{_ANY}").split(".")) if found and found[1] else ()
    unknown = _UNKNOWN.search(error)
    key = (*table, unknown[1]) if unknown else table
    line, key = _place_of(text, key)
    where = f"{file}:{line}" if line else f"{file}"
    if not unknown:
        return f"{where}: {_AT.sub('', error)} for {'.'.join(key)}" if key else f"{where}: {error}"
    near = get_close_matches(unknown[1], _names_in(table), n=1)
    meant = f": did you mean {near[0]}?" if near else ""
    return f"{where}: unknown setting {'.'.join(key)}{meant}"


def _place_of(text: str, key: tuple[str, ...]) -> tuple[int | None, tuple[str, ...]]:
    """Return the number of the line that sets a key, or begins its table, and the whole key."""
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.split("\n"), 1):
        if begins := _TABLE.match(line):
            table = _parts(begins[1])
            at = table
        elif sets := _KEY.match(line):
            at = (*table, *_parts(sets[1]))
        else:
            continue
        fits = all(one in {_ANY, name} for one, name in zip(key, at, strict=False))
        if key and fits and len(at) >= len(key):
            return number, at[: len(key)]
    return None, key


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def _names_in(table: tuple[str, ...]) -> list[str]:
    """Return the settings that a table may have."""
    from msgspec import inspect  # noqa: PLC0415 (only where something is wrong)

    at: Any = inspect.type_info(Settings)
    for name in table:
        if isinstance(at, inspect.DictType):
            at = at.value_type
        else:
            fields = getattr(at, "fields", ())
            at = next((one.type for one in fields if one.encode_name == name), None)
        if isinstance(at, inspect.UnionType):
            at = next((one for one in at.types if isinstance(one, inspect.StructType)), None)
    return [one.encode_name for one in getattr(at, "fields", ())]


def _checked(settings: Settings) -> Settings:
    """Return the settings when their tables of providers and models can be used."""
    if settings.providers:
        from .llm.presets import merged  # noqa: PLC0415 (only where somebody has own providers)

        merged(settings.providers)
    if settings.models:
        from .llm.catalogue import Catalogue  # noqa: PLC0415 (only where somebody has own models)

        Catalogue.merged(settings.models)
    return settings


def store_path(settings: Settings, environ: Mapping[str, str]) -> Path:
    """Return the folder of the tapes."""
    if settings.store:
        return Path(settings.store).expanduser()
    return Path(environ.get("TAPE_HOME") or _home(environ) / ".tape")
