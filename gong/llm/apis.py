"""The APIs that providers speak, by name: those that are built in, and those of other programs.

A program registers its own before it opens a session or a client; one that only configures gong
names the Python object that makes the provider, `module:name`, in place of a name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

from ..errors import ConfigurationError
from ..python_objects import load_object

CreateProvider = Callable[..., Any]
"""From a preset, its key (a text, or a KeySource) and its address without a final slash to a
Provider."""
Api = Literal[
    "anthropic-messages", "openai-responses", "openai-chat", "google-generate", "bedrock-converse",
    "program",
]  # fmt: skip
"""The APIs that are built in."""
_OBJECT_MARK = ":"
_registered: dict[str, CreateProvider] = {}


def register_api(name: str, create: CreateProvider) -> Callable[[], None]:
    """Add an API that presets may name in `api`, and return what takes it away again.

    `create` is called once for each provider of it, with the preset, the key and the address.
    Raises ConfigurationError for a name that is taken, or that is none.
    """
    if not name or _OBJECT_MARK in name or "/" in name:
        raise ConfigurationError(f"{name!r} is no name of an API: it has no colon and no slash")
    if name in list_apis():
        raise ConfigurationError(f"there is an API {name!r} already: choose another name")
    _registered[name] = create

    def remove() -> None:
        if _registered.get(name) is create:
            del _registered[name]

    return remove


def list_apis() -> tuple[str, ...]:
    """Return the names of all APIs."""
    return (*get_args(Api), *_registered)


def is_known_api(name: str) -> bool:
    """Return whether presets may name an API; whether a Python object is there is not looked at."""
    return name in list_apis() or _OBJECT_MARK in name


def find_api(name: str) -> CreateProvider | None:
    """Return what makes the providers of an API; None for one that is built in.

    Raises ConfigurationError where the object cannot be loaded.
    """
    if _OBJECT_MARK in name:
        try:
            create: CreateProvider = load_object(name, "")
        except (ImportError, AttributeError, ValueError) as error:
            raise ConfigurationError(f"the API {name} cannot be loaded: {error}") from error
        if not callable(create):
            raise ConfigurationError(f"the API {name} is no function that makes a provider")
        return create
    return _registered.get(name)
