"""Creates the provider of a preset: address, key, and the adapter, imported on first use.

Reads only the environment passed in. A key is needed except for addresses of this machine: that of
a variable, else of the provider's `key_command`, else a saved one, else that of a cloud's login.
"""

from __future__ import annotations

import os
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from shutil import which
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec
from msgspec.structs import replace

from tape.formats.wire import decode_json, encode_json

from ..errors import AuthenticationError, ConfigurationError, InvalidRequest
from .addresses import fill_places, find_endpoint, find_place, is_loopback
from .apis import find_api
from .cloud_logins import describe_login
from .keys import FixedKey
from .models import NO_KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .keys import KeySource
    from .models import Preset
    from .types import Provider, Request

    FindKey = Callable[[str, Sequence[str]], str]
    FindSource = Callable[[], str]
    """From a provider's name and the variables of its key to the key, "" for none."""


class _WireAdapter(NamedTuple):
    """Where the classes of a wire are, and the packages it needs."""

    module: str
    """The one with `request` and `stream` in it."""
    encoder: str
    decoder: str
    extra: str
    """The extra that installs its packages."""
    sdk: str | None = None
    """The package for `transport = "sdk"`."""
    native_objects: bool = True


_ADAPTERS: dict[str, _WireAdapter] = {
    "anthropic-messages": _WireAdapter(
        *("anthropic", "AnthropicRequestEncoder", "AnthropicStreamDecoder"),
        *("anthropic", "anthropic", False),
    ),
    "openai-responses": _WireAdapter(
        *("openai_responses", "OpenAIResponsesRequestEncoder", "OpenAIResponsesStreamDecoder"),
        *("openai", "openai"),
    ),
    "openai-chat": _WireAdapter(
        *("openai_chat", "OpenAIChatRequestEncoder", "OpenAIChatStreamDecoder"),
        *("openai", "openai"),
    ),
    "google-generate": _WireAdapter(
        *("google", "GoogleRequestEncoder", "GoogleStreamDecoder"), "google"
    ),
    "bedrock-converse": _WireAdapter(
        *("bedrock_converse", "BedrockConverseRequestEncoder", "BedrockConverseStreamDecoder"),
        *("google", None, False),
    ),
}
_HTTP_PACKAGE = "httpcore2"


class ProviderSetup(NamedTuple):
    """An adapter's inputs: headers filled in, the key checked, no slash at the end."""

    preset: Preset
    key: str | KeySource
    endpoint: str

    def __repr__(self) -> str:
        return f"Ready({self.preset.name!r}, {self.endpoint!r})"


def create_provider(
    preset: Preset,
    environ: Mapping[str, str],
    find_key: FindKey,
    find_source: FindKey | None = None,
) -> Provider:
    """Return the provider of a preset.

    `find_source` says where a key was found, for the error of a host that refuses it. Raises
    AuthenticationError without a key, ConfigurationError for an unusable address or a missing
    package.
    """
    if preset.program:
        programs = import_module(".programs.provider", __package__)
        return cast("Provider", programs.ProgramProvider(preset, environ))
    setup = prepare_setup(preset, environ, find_key)
    if create := find_api(preset.api):
        return cast("Provider", create(*setup))
    require_package(preset)
    source = partial(find_source, preset.key_name, preset.keys) if find_source else None
    return create_wire_provider(*setup, source)


def create_wire_provider(
    preset: Preset,
    key: str | KeySource,
    endpoint: str,
    find_source: FindSource | None = None,
) -> Provider:
    """Return the provider that talks to an address without a final slash, with this key.

    `find_source` says where a fixed key is from, for the error of a host that refuses it.
    """
    source = FixedKey(key, find_source) if isinstance(key, str) else key
    adapter = _ADAPTERS[preset.api]
    transport = import_module(".wires.transport", __package__)
    wire = import_module(".wires.wire", __package__).Wire(
        _load_class(adapter, "request", adapter.encoder),
        _load_class(adapter, "stream", adapter.decoder),
        adapter.native_objects,
        adapter.sdk,
    )
    return cast("Provider", transport.WireProvider(wire, preset, source, endpoint))


def _load_class(adapter: _WireAdapter, module: str, name: str) -> Any:
    return getattr(import_module(f".wires.{adapter.module}.{module}", __package__), name)


def prepare_setup(preset: Preset, environ: Mapping[str, str], find_key: FindKey) -> ProviderSetup:
    """Return the inputs of the preset's adapter; raises as `create_provider` does."""
    if preset.later:
        raise ConfigurationError(preset.unserved)
    endpoint = find_endpoint(preset, environ)
    login = _find_login(preset, environ)
    key = login or _choose_key(preset, environ, find_key, endpoint)
    if login is not None:
        preset = replace(preset, auth="bearer")
    elif preset.auth == "aws" and not isinstance(key, str):
        fill_places(preset, "{region}", environ)  # a signature needs it
    places = {name: find_place(preset, name, environ) for name in preset.variables}
    variables = preset.header_variables.items()
    values = {header: environ.get(name, "").strip() for header, name in variables}
    set_ = {header: value for header, value in values.items() if value}
    query = {name: fill_places(preset, text, environ) for name, text in preset.query.items()}
    path = fill_places(preset, preset.path, environ)
    headers = {**preset.headers, **set_}
    preset = replace(preset, headers=headers, query=query, path=path, **places)
    return ProviderSetup(preset, key, endpoint)


def encode_request_body(preset: Preset, request: Request) -> bytes:
    """Return the JSON body of a call to the preset's provider; needs no key, SDK or network.

    Raises InvalidRequest for what its API does not support.
    """
    preset = preset.choose_variant(request.model)
    if preset.api not in _ADAPTERS:
        return encode_neutral_body(request)
    adapter = _ADAPTERS[preset.api]
    encoder = _load_class(adapter, "request", adapter.encoder)(preset)
    try:
        body: bytes = encoder.encode_request(request).body
    except msgspec.MsgspecError as error:
        raise InvalidRequest(
            f"the request is not valid JSON: {error}", provider=preset.name
        ) from error
    return body


def encode_neutral_body(request: Request) -> bytes:
    """Return a request as neutral JSON, for providers without a wire."""
    fields = {
        "model": request.model,
        "system": request.system,
        "messages": tuple(request.messages),
        "tools": request.tools,
    }
    return encode_json(msgspec.to_builtins(fields, enc_hook=lambda raw: decode_json(bytes(raw))))


def is_configured(preset: Preset, environ: Mapping[str, str], *, has_key: bool) -> bool:
    """Return whether the provider is ready: it has a key, or is configured on this machine."""
    if preset.later:
        return False
    if preset.program:
        return which(preset.program, path=environ.get("PATH", os.defpath)) is not None
    addresses = (environ.get(variable, "").strip() for variable in preset.base_url_variables)
    is_local = is_loopback(next(filter(None, addresses), ""))
    return has_key or is_local or bool(describe_login(preset, environ))


def is_valid_key(text: str) -> bool:
    """Return whether a text can be a key: printable ASCII without spaces."""
    return bool(text) and text.isascii() and text.isprintable() and " " not in text


def _find_login(preset: Preset, environ: Mapping[str, str]) -> KeySource | None:
    """Return what gives the token of a saved login; None where something else gives the key."""
    has_variable = any(environ.get(name, "").strip() for name in preset.keys)
    if preset.login is None or preset.key_command or has_variable:
        return None
    from .login_key import LoginKey, has_saved_login  # loaded when used

    if not has_saved_login(preset, environ):
        return None
    preset.login.check_addresses(preset.name)
    return LoginKey(preset, environ)


def _choose_key(
    preset: Preset, environ: Mapping[str, str], find_key: FindKey, endpoint: str
) -> str | KeySource:
    """Return the key, or what gives it once it is needed; raises AuthenticationError."""
    has_variable = any(environ.get(name, "").strip() for name in preset.keys)
    if preset.key_command and not has_variable:
        from .key_command import CommandKey  # loaded when used

        return CommandKey(preset.key_name, preset.key_command, environ)
    key = find_key(preset.key_name, preset.keys)
    if key or preset.auth not in {"aws", "google"}:
        return _check_key(preset, key, endpoint)
    if not describe_login(preset, environ) and is_loopback(endpoint):
        return NO_KEY
    if preset.auth == "aws":
        from .aws_keys import AwsKeys  # loaded when used

        return AwsKeys(preset.name, environ, preset.aws_profile)
    from .google_keys import GoogleKeys  # loaded when used

    return GoogleKeys(preset.name, environ)


def _check_key(preset: Preset, key: str, endpoint: str) -> str:
    if not key and is_loopback(endpoint):
        return NO_KEY
    if not key:
        variable = f"set {' or '.join(preset.keys)}, " if preset.keys else ""
        raise AuthenticationError(
            f"no key for {preset.name}: {variable}run gong auth login {preset.key_name}, "
            "or use -m offline/rules",
            provider=preset.name,
        )
    if not is_valid_key(key):
        raise AuthenticationError(
            f"the key for {preset.name} contains characters that no key has: copy it again"
            + (f" to {preset.keys[0]}" if preset.keys else ""),
            provider=preset.name,
        )
    return key


def require_package(preset: Preset) -> None:
    """Raise ConfigurationError if a package that the preset needs is missing, or there is none."""
    adapter = _ADAPTERS[preset.api]
    wants_sdk = preset.transport == "sdk"
    if wants_sdk and adapter.sdk is None:
        raise ConfigurationError(
            f'providers.{preset.name}: {preset.api} has no SDK: remove transport = "sdk"'
        )
    for package in filter(None, (_HTTP_PACKAGE, adapter.sdk if wants_sdk else None)):
        if find_spec(package) is None:
            raise ConfigurationError(
                f"the {package} package is not installed: pip install 'gong[{adapter.extra}]'"
            )
