"""Providers and models as data, read from `data/presets.toml` and `data/models.toml`.

A row of the user's `[providers.NAME]` or `[models."provider/id"]` has the same fields: it overrides
the built-in row of that name, or adds one. A model that is not in the catalogue can be used all the
same; its cost is unknown, which is None and never 0. Nothing here reads the environment.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self

import msgspec
from msgspec import Meta, Struct, field

from tape.model.entries import Cost, Usage

from ..errors import ConfigurationError
from ..logins.settings import LoginSettings
from .apis import Api, is_known_api, list_apis
from .prices import LongPrice, Price, count_prompt

if TYPE_CHECKING:
    from collections.abc import Mapping


Effort = Literal["low", "medium", "high", "xhigh"]
EffortChoice = Literal["none", "low", "medium", "high", "xhigh"]
"""An effort, or none: then the model decides."""
ProfileName = Literal["default", "anthropic", "openai", "gemini"]
"""Model families that know tools and instructions under names of their own."""

PlaceName = Literal[
    "region", "project", "location", "resource", "account", "gateway", "api_version"
]
"""What an address, a path or a query names in braces."""

_OWN_FIELDS: Mapping[Api, frozenset[str]] = {
    "anthropic-messages": frozenset(
        {"model", "messages", "system", "tool_choice", "stream", "max_tokens"}
    ),
    "openai-responses": frozenset(
        {"model", "input", "instructions", "tool_choice", "stream", "max_output_tokens"}
        | {"previous_response_id", "conversation", "background"}
    ),
    "openai-chat": frozenset(
        {"model", "messages", "tools", "tool_choice", "stream", "stream_options", "n"}
        | {"max_tokens", "max_completion_tokens"}
    ),
    "google-generate": frozenset({"contents", "systemInstruction", "toolConfig"}),
    "bedrock-converse": frozenset({"messages", "system", "toolConfig", "inferenceConfig"}),
}
"""Fields of each API's body that options may not set: the session, its model and its limits."""

_SHORT_FAMILY = 2
DATA = Path(__file__).parent / "data"
NO_KEY = "no-key-needed"
"""Used as key for an address on this machine that needs none."""


class Timeouts(Struct, frozen=True, forbid_unknown_fields=True):
    """Timeouts of a call in seconds."""

    connect: float = 10.0
    first_byte: float = 120.0
    """Until the answer begins."""
    idle: float = 30.0
    """Between two events of a stream."""
    quiet: float = 600.0
    """While a host only sends keep-alives."""
    whole: float = 7_200.0
    """Until the answer ends."""


class ConnectionLimits(Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of the connections to a provider."""

    idle: Annotated[int, Meta(ge=0)] = 10
    """How many are kept open between calls."""
    idle_seconds: Annotated[float, Meta(ge=0)] = 90.0
    """How long each of them is kept: tools run between two calls."""
    most: Annotated[int, Meta(ge=0)] = 0
    """How many there may be at once; further calls wait. 0 is no limit."""


class SizeLimits(Struct, frozen=True, forbid_unknown_fields=True):
    """Size limits of an answer: several times what any model sends, and little memory."""

    event: int = 8_388_608
    """Bytes of one event, and of one line."""
    text: int = 4_000_000
    """Characters of text, thinking and arguments of calls in one answer."""
    data: int = 16_777_216
    """Bytes of everything else in one answer: pictures, signatures, provider-specific blocks."""
    blocks: int = 10_000
    """Blocks in one answer."""
    events: int = 1_000_000
    """Events in one answer."""
    error: int = 262_144
    """Bytes that are read of an error."""


DEFAULT_SIZE_LIMITS = SizeLimits()


class Quirks(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Switches for hosts that speak a wire in their own way; the defaults fit a plain host."""

    call_ids: Literal["anthropic", "openai", "responses", "mistral", "google", "any"] = "openai"
    """Which ids of tool calls the provider takes."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    system_role: Literal["system", "developer"] = "system"
    usage_in_stream: bool = True
    """A stream may be asked for usage with `stream_options`."""
    store: bool = False
    """`store: false` may be sent."""
    reasoning_effort: bool = True
    """`reasoning_effort` may be sent."""
    effort_models: tuple[str, ...] = ()
    """Parts of the names of models that accept an effort; empty if all do."""
    effort_names: dict[Effort, str] = field(default_factory=dict)
    """The host's names of efforts, if they differ from ours."""
    thinking: Literal["effort", "openrouter", "zai", "qwen", "template", "none"] = "effort"
    """How a model is asked to think."""
    think_tags: bool = False
    """Thinking may come as text between `<think>` tags before the answer."""
    replay_reasoning: bool = False
    """Earlier `reasoning_content` is sent back even if it is empty."""
    thinking_as_text: bool = False
    """Earlier thinking is sent back as tagged text."""
    tool_result_name: bool = False
    """A tool's result carries the tool's name."""
    filler_after_tools: bool = False
    """An assistant message is required between tool results and the next user message."""
    empty_tools: bool = False
    """`tools: []` must be sent when the history has calls and the request has no tools."""
    strict_tools: bool = False
    """Tools may be marked `strict`."""
    images: bool = True
    """Images may be sent."""
    json_schema: bool = True
    """Answers may be constrained to a JSON Schema."""
    freeform: bool = False
    """Tools may take free text; the newer models of the host know how to use them."""
    tool_choices: tuple[Literal["auto", "none", "required", "named"], ...] = (
        "auto", "none", "required", "named",
    )  # fmt: skip
    """The tool choices that the provider supports."""
    cache_marks: bool = False
    """`cache_control` marks pass through to models that know them."""
    aws_frames: bool = False
    """The address asks for a stream in place of the body, which names betas; it comes in frames."""


class Preset(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One provider: its address, its API, and where its key is found."""

    name: str
    """The part of a model name before the slash."""
    label: str = ""
    """The name for people."""
    api: str
    """One of `Api`, a registered one, or the Python object `module:name` that makes a provider."""
    base_url: str
    keys: tuple[str, ...] = ()
    """Variables that may hold the key, first one first."""
    login: LoginSettings | None = None
    """How to log in there by OAuth 2, in place of a key."""
    key_of: str = ""
    """Another provider whose key this one uses."""
    auth: Literal["bearer", "x-api-key", "x-goog-api-key", "api-key", "aws", "google"] = "bearer"
    """How the key is sent; `api-key` sends a token of Entra as a bearer's.

    `aws` signs calls with a key of AWS, and `google` sends a token of a login there, where no
    variable holds a key and none is saved: both send such a one as a bearer's.
    """
    key_command: str | tuple[str, ...] = ()
    """A program that prints the key where no variable holds one; run without a shell."""
    aws_profile: str = ""
    """The profile whose key signs, in place of AWS_PROFILE."""
    aws_service: str = "bedrock"
    """The service in a signature."""
    transport: Literal["http", "sdk"] = "http"
    """What sends the calls: our own HTTP client, or the official SDK of the API above it."""
    sdk_client: str = ""
    """The class of the SDK that knows this cloud; it makes address and body by itself."""
    base_url_aliases: tuple[str, ...] = ()
    """Variables that override the address as well, where its own is not set."""
    base_urls: dict[str, str] = field(default_factory=dict)
    """A location → the address there, where it differs from `base_url`."""
    base_path: str = ""
    """The path of an address that has none."""
    host_variable: str = ""
    """A variable that names host and port, with or without a scheme, such as OLLAMA_HOST."""
    path: str = ""
    """The path of a call below the address, with `{model}`; empty for the API's own."""
    model_in_path: bool = False
    """The path names the model, the body does not."""
    query: dict[str, str] = field(default_factory=dict)
    """Fields of the address of each call, after its question mark."""
    body_version: str = ""
    """The version of the API, if the body has to name it in place of a header."""
    deployments: dict[str, str] = field(default_factory=dict)
    """A model → the name that it was deployed under."""
    region: str = ""
    project: str = ""
    location: str = ""
    resource: str = ""
    account: str = ""
    gateway: str = ""
    api_version: str = ""
    """What an address, a path or a query names in braces, such as `{region}`."""
    variables: dict[PlaceName, tuple[str, ...]] = field(default_factory=dict)
    """One of these seven → the variables that hold it where it is not given, first one first."""
    usual: dict[PlaceName, str] = field(default_factory=dict)
    """One of these seven → its value if nothing else says it."""
    variants: tuple[dict[str, Any], ...] = ()
    """Other fields for some models: those whose name the pattern `models` finds."""
    headers: dict[str, str] = field(default_factory=dict)
    header_variables: dict[str, str] = field(default_factory=dict)
    """Header → variable it is taken from, sent only when that is set."""
    body: dict[str, Any] = field(default_factory=dict)
    """JSON merged into every request, such as a router's own choices."""
    default_model: str = ""
    """Default model if none is configured and this provider has a key."""
    small_model: str = ""
    """A cheap model for words beside the conversation, such as the title of a session."""
    search_tool: dict[str, Any] = field(default_factory=dict)
    """The provider's own tool that searches the web, as its API names it; empty for none."""
    price_list: str = ""
    """The host in `data/prices.json` whose prices it charges; empty is the one of its own name."""
    families: tuple[str, ...] = ()
    """Words in a model's name that select this provider, if only a name is given."""
    profile: ProfileName | None = None
    """The profile of these families, and of this provider's other models."""
    local: bool = False
    """Runs on the user's own machine: costs nothing and starts slowly."""
    program: Literal["", "claude", "codex", "gemini"] = ""
    """A program of others that answers, of the API `program`."""
    later: str = ""
    """If not empty: listed but not yet served, and what to use instead."""
    timeouts: Timeouts = Timeouts()
    connections: ConnectionLimits = ConnectionLimits()
    sizes: SizeLimits = DEFAULT_SIZE_LIMITS
    quirks: Quirks = Quirks()

    @property
    def unserved(self) -> str:
        """Why the provider cannot be used, and what to use instead; empty if it can."""
        return f"{self.name} is not served yet: {self.later}" if self.later else ""

    @property
    def key_name(self) -> str:
        """The provider under whose name the key is saved."""
        return self.key_of or self.name

    def choose_variant(self, model: str) -> Preset:
        """Return the preset with the fields that apply to a model of it."""
        rows = (row for row in self.variants if re.search(row["models"], model))
        row = next(rows, None)
        return self if row is None else self.apply_variant(row)

    def apply_variant(self, row: Mapping[str, Any]) -> Preset:
        """Return the preset with the fields of a variant over its own.

        Raises ConfigurationError for a field that there is not.
        """
        changes = {name: value for name, value in row.items() if name != "models"}
        plain = msgspec.structs.replace(self, variants=())
        return _parse_preset(self.name, overlay_row(plain, changes))

    def get_deployment(self, model: str) -> str:
        """Return the name of a model at the provider."""
        return self.deployments.get(model, model)

    @property
    def base_url_variables(self) -> tuple[str, ...]:
        """The variables that override the address, first one first."""
        own = f"{self.name.upper().replace('-', '_')}_BASE_URL"
        return (own, *self.base_url_aliases)

    def has_family(self, model: str) -> bool:
        """Return whether a model's name says that it is of this provider's families.

        A short family, such as o1, must begin the name.
        """
        name = model.lower().rpartition("/")[2]
        return any(
            family in name if len(family) > _SHORT_FAMILY else name.startswith(family)
            for family in self.families
        )


def load_presets(
    rows: Mapping[str, Mapping[str, Any]], environ: Mapping[str, str] | None = None
) -> dict[str, Preset]:
    """Return all providers by name, the shipped ones first, with the user's `rows` over them.

    One that waits for an address is served where a variable in `environ` has it. Raises
    ConfigurationError that names the row and what is wrong with it.
    """
    presets = _load_rows(rows)
    for name, preset in presets.items():
        is_set = any(
            (environ or {}).get(variable, "").strip() for variable in preset.base_url_variables
        )
        if preset.later and not preset.base_url and is_set:
            presets[name] = msgspec.structs.replace(preset, later="")
    return presets


def _load_rows(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Preset]:
    shipped = _load_shipped_presets()
    if not rows:
        return {**shipped}
    own = {
        # a row with an address can be asked, though its provider is not as shipped
        name: _check_variants(
            _parse_preset(
                name,
                _overlay_preset(
                    shipped.get(name), {"later": "", **row} if row.get("base_url") else row
                ),
            )
        )
        for name, row in rows.items()
    }
    return shipped | own


def _overlay_preset(below: Preset | None, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `below` and of its variants with those of `row` over them."""
    fields = overlay_row(below, row)
    if below is not None and "variants" not in row:
        fields["variants"] = [_overlay_variant(variant, row) for variant in below.variants]
    return fields


def _overlay_variant(variant: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    merged = {}
    for name, value in variant.items():
        own = row.get(name)
        if isinstance(value, dict) and isinstance(own, dict):
            merged[name] = {**value, **own}
        elif name not in row:
            merged[name] = value
    return merged


def overlay_row(below: Struct | None, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `below` with those of `row` over them, tables field by field."""
    if below is None:
        return dict(row)
    fields: dict[str, Any] = msgspec.to_builtins(below)
    tables = {
        name: {**fields[name], **value}
        for name, value in row.items()
        if isinstance(value, dict) and isinstance(fields.get(name), dict)
    }
    return {**fields, **row, **tables}


def _parse_preset(name: str, row: Mapping[str, Any]) -> Preset:
    if not name or "/" in name:
        raise ConfigurationError(f"providers.{name!r}: a name must not be empty or contain a slash")
    if "name" in row and row["name"] != name:
        raise ConfigurationError(
            f"providers.{name}: the name is given by the table's heading; remove it"
        )
    try:
        preset = msgspec.convert({**row, "name": name}, Preset)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"providers.{name}: {error}") from error
    if not is_known_api(preset.api):
        raise ConfigurationError(
            f"providers.{name}: there is no api {preset.api!r}: it is one of "
            f"{', '.join(list_apis())}, or module:name of a Python object (docs/models.md)"
        )
    return preset


def _check_variants(preset: Preset) -> Preset:
    for row in preset.variants:
        try:
            re.compile(row["models"])
        except (KeyError, TypeError, re.error):
            raise ConfigurationError(
                f"providers.{preset.name}: each of its variants needs models, a pattern of names"
            ) from None
        preset.apply_variant(row)
    return preset


def load_tables(name: str) -> dict[str, Any]:
    """Return what is in `data/NAME.toml`."""
    return tomllib.loads((DATA / f"{name}.toml").read_text("utf-8"))


@cache
def _load_shipped_presets() -> dict[str, Preset]:
    rows = load_tables("presets")
    return {name: _parse_preset(name, row) for name, row in rows.items()}


def is_usual_address(preset: Preset, endpoint: str) -> bool:
    """Return whether an address is that which a provider has unless the user sets another."""
    usual = _load_shipped_presets().get(preset.name, preset)
    return endpoint.rstrip("/") == usual.base_url.rstrip("/")


def check_options(options: Mapping[str, Any], api: str, where: str) -> None:
    """Raise ConfigurationError where options of a provider set what gong sets itself."""
    for name in options:
        if any(name in fields for known, fields in _OWN_FIELDS.items() if known == api):
            raise ConfigurationError(f"{where}: provider_options may not set {name}: gong does")
    tools = options.get("tools", [])
    if not isinstance(tools, list) or not all(map(_is_server_tool, tools)):
        raise ConfigurationError(
            f"{where}: provider_options.tools lists what the provider runs itself, one table each,"
            ' such as {type = "web_search"}'
        )


def _is_server_tool(tool: object) -> bool:
    """Whether an entry of `tools` is a tool that the provider runs, and no function of a caller."""
    if not isinstance(tool, dict) or not tool:
        return False
    own = {"functionDeclarations", "function_declarations", "input_schema", "function"}
    return own.isdisjoint(tool) and tool.get("type") not in {"function", "custom"}


Ability = Literal["tools", "vision", "reasoning"]

CATALOGUE_DATE = "2026-11-22"
"""The date of the built-in data."""
_CLOUD_PREFIX = re.compile(
    r"^(?:(?:us|us-gov|eu|apac|au|ca|jp|global)\.)?[a-z][a-z0-9-]*\.(?=[a-z])"
)
"""What Bedrock puts before an id: where it runs, and its maker."""
_EDITION_SUFFIX = re.compile(
    r"(?:-v\d+(?::\d+)?|[-@]20\d{6}|-20\d\d-\d\d-\d\d|[-@]latest|@default)$"
)
"""Which edition of a model it is."""
_DOT_IN_NUMBER = re.compile(r"(?<=\d)\.(?=\d)")


class ModelInfo(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One model; `id` is provider/model, None means it is not known."""

    id: str
    name: str = ""
    """The name for people."""
    aliases: tuple[str, ...] = ()
    """Short names that mean this model."""
    context_window: int | None = None
    """Tokens of prompt and answer together."""
    max_output: int | None = None
    """Maximum tokens of one answer."""
    tools: bool | None = None
    vision: bool | None = None
    reasoning: bool | None = None
    efforts: tuple[Effort, ...] = ()
    """The efforts that it accepts, lowest first; empty if that is not known."""
    effort: EffortChoice | None = None
    """How hard it thinks unless the session says otherwise."""
    thinks_when_told: bool = False
    """A request has to ask for thinking; medium is the usual effort then."""
    profile: ProfileName | None = None
    """Which tools it is offered; None is by its name."""
    cutoff: str | None = None
    """The month that its knowledge ends with, as YYYY-MM."""
    price: Price | None = None
    long: LongPrice | None = None
    provider_options: dict[str, Any] = field(default_factory=dict)
    """Fields for the body of each request that only the provider knows; they have the last word."""

    @property
    def provider(self) -> str:
        """What stands before the first slash."""
        return self.id.partition("/")[0]

    @property
    def model(self) -> str:
        """The provider's own id."""
        return self.id.partition("/")[2]

    def check_options(self, presets: Mapping[str, Preset]) -> None:
        """Raise ConfigurationError where `provider_options` set what gong sets itself."""
        if self.provider_options and (preset := presets.get(self.provider)) is not None:
            api = preset.choose_variant(self.model).api
            check_options(self.provider_options, api, f"models.{self.id!r}")

    def can(self, ability: Ability) -> bool:
        """Return whether the model is known to have an ability."""
        return bool(getattr(self, ability))


def cost(usage: Usage, model: ModelInfo | None) -> Cost | None:
    """Return the cost of one call in USD, None if price or usage is unknown."""
    if model is None or model.price is None or usage == Usage():
        return None
    is_long = model.long is not None and count_prompt(usage) > model.long.above
    price = model.long if model.long is not None and is_long else model.price
    return Cost("USD", price.compute_cost(usage))


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Models by id, newest first for each provider."""

    models: Mapping[str, ModelInfo]

    @classmethod
    def from_rows(cls, rows: Mapping[str, Mapping[str, Any]]) -> Self:
        """Return the shipped models with the user's `rows` over them.

        Raises ConfigurationError that names the row and what is wrong with it.
        """
        shipped = _load_shipped_models()
        own = {
            name: _parse_model(name, overlay_row(shipped.get(name), row))
            for name, row in rows.items()
        }
        return cls(shipped | own)

    def find_info(self, name: str) -> ModelInfo | None:
        """Return the first model of this `provider/id`, this alias, or this id alone.

        Aliases and ids alone count in any case.
        """
        models, plain = self.models.values(), name.lower()
        return (
            self.models.get(name)
            or next((model for model in models if plain in model.aliases), None)
            or next((model for model in models if name == model.model), None)
            or next((model for model in models if plain == model.model.lower()), None)
        )

    def find_same_model(self, name: str) -> ModelInfo | None:
        """Return the first model that `provider/id` is too, told by its id: the provider's first.

        Dates, `latest`, a router's prefixes and a cloud's regions and versions are no part of it.
        """
        provider, plain_id = name.partition("/")[0], normalize_model_id(name)
        same = [model for model in self.models.values() if normalize_model_id(model.id) == plain_id]
        own = (model for model in same if model.provider == provider)
        return next(own, same[0] if same else None)

    def list_models(self, provider: str | None = None) -> tuple[ModelInfo, ...]:
        """Return all models, or those of one provider."""
        models = self.models.values()
        return tuple(model for model in models if provider in {None, model.provider})

    def find_latest(self, provider: str, ability: Ability | None = None) -> ModelInfo | None:
        """Return the provider's first model with the ability asked for."""
        models = self.list_models(provider)
        return next((model for model in models if ability is None or model.can(ability)), None)


def strip_model_id(name: str) -> str:
    """Return a model's id without what a router or a cloud puts before it."""
    return _CLOUD_PREFIX.sub("", name.lower().rpartition("/")[2])


def normalize_model_id(name: str) -> str:
    """Return what is the same in all names of one model: claude-sonnet-4-5, gpt-4o.

    A word of a router after a colon, such as `:free`, makes it a model of its own.
    """
    model = strip_model_id(name)
    while (shorter := _EDITION_SUFFIX.sub("", model)) != model:
        model = shorter
    return _DOT_IN_NUMBER.sub("-", model)


def _parse_model(name: str, row: Mapping[str, Any]) -> ModelInfo:
    provider, _, model = name.partition("/")
    if not (provider and model):
        raise ConfigurationError(f"models.{name!r}: write a model as provider/model")
    try:
        return msgspec.convert({**row, "id": name}, ModelInfo)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"models.{name!r}: {error}") from error


@cache
def _load_shipped_models() -> dict[str, ModelInfo]:
    rows = load_tables("models")
    return {name: _parse_model(name, {"tools": True, **row}) for name, row in rows.items()}


class ModelLimits(NamedTuple):
    """Tokens of prompt and answer together, and of one answer; None if not known."""

    window: int | None
    output: int | None


def find_limits(name: str) -> ModelLimits:
    """Return the shipped limits of `provider/id`, under whatever name the model is known.

    They are those of its row in models.toml, else those in limits.toml.
    """
    info = Catalogue(_load_shipped_models()).find_same_model(name)
    own = ModelLimits(info.context_window, info.max_output) if info else ModelLimits(None, None)
    if own.window and own.output:
        return own
    windows, outputs = _load_shipped_limits()
    model = normalize_model_id(name)
    return ModelLimits(own.window or windows.get(model), own.output or outputs.get(model))


@cache
def _load_shipped_limits() -> tuple[dict[str, int], dict[str, int]]:
    tables = load_tables("limits")
    windows, outputs = (
        {model: int(limit) for limit, models in tables[name].items() for model in models}
        for name in ("windows", "outputs")
    )
    return windows, outputs


class FittedEffort(NamedTuple):
    """An effort that a model accepts, and why it is not the one that was asked for."""

    effort: Effort | None
    remark: str | None = None


_USUAL_EFFORTS: tuple[Effort, ...] = ("low", "medium", "high")


def list_usual_efforts(preset: Preset) -> tuple[Effort, ...]:
    """Return the efforts of a provider's model of which nothing is known; empty for any.

    `xhigh` is known to the newest models only, and an OpenAI API refuses a word it does not know;
    the other APIs get it in words of their own.
    """
    is_plain = preset.api.startswith("openai-") and preset.quirks.thinking == "effort"
    return _USUAL_EFFORTS if is_plain and "xhigh" not in preset.quirks.effort_names else ()


_EFFORTS: tuple[Effort, ...] = ("low", "medium", "high", "xhigh")


def fit_effort(
    effort: EffortChoice | None, model: str, *, efforts: tuple[Effort, ...], reasons: bool | None
) -> FittedEffort:
    """Return the effort to send to a model, None for none.

    `efforts` are those that it accepts, empty if unknown; `reasons` is False for one that has none.

        wanted  efforts             sent
        none    any                 nothing: the model decides
        xhigh   low, medium, high   high, the nearest, with a remark
        high    (unknown)           high
        high    any, no reasoning   nothing, with a remark
    """
    if effort is None or effort == "none":
        return FittedEffort(None)
    if reasons is False:
        return FittedEffort(None, f"{model} takes no effort: {effort} is left out")
    if not efforts or effort in efforts:
        return FittedEffort(effort)
    place = _EFFORTS.index(effort)
    nearest = min(efforts, key=lambda other: abs(_EFFORTS.index(other) - place))
    return FittedEffort(nearest, f"{model} has no effort {effort}: {nearest} is used")
