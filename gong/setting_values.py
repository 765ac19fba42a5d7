"""Types that the values of settings share, and checks of one value.

Settings come from config.toml, flags, and callers of the library; each is checked where it is set.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, get_args

import msgspec
from msgspec import Meta

from .errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PositiveCount = Annotated[int, Meta(ge=1)]
"""At least one."""
Count = Annotated[int, Meta(ge=0)]
"""A number of things, often with 0 for no limit."""
Amount = Annotated[float, Meta(ge=0, le=1e9)]
"""Seconds or US dollars; no amount is infinite."""
Share = Annotated[float, Meta(ge=0, le=1)]
"""A part of a whole."""
MAX_TIMEOUT_MS = 600_000
"""Maximum timeout of any command in milliseconds."""
Timeout = Annotated[int, Meta(ge=1, le=MAX_TIMEOUT_MS)]
"""A timeout of a command in milliseconds."""
ERROR_PATH = re.compile(r" - at `\$\.?(.*)`$")
"""The end of msgspec's message for a wrong value: where it is."""


def check_value(name: str, value: object, kind: Any) -> Any:
    """Return a value of a setting as its type has it.

    Raises ConfigurationError, which names the setting, its value and what is allowed.
    """
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        allowed = ERROR_PATH.sub("", str(error)).lower()
        if allowed.startswith("invalid enum value"):
            choices = [choice for part in get_args(kind) for choice in get_args(part) or (part,)]
            names = (choice for choice in choices if isinstance(choice, str))
            allowed = f"choose one of {', '.join(names)}"
        raise ConfigurationError(f"{name} is {value!r}: {allowed}") from error


def check_names(value: Iterable[str], known: Sequence[str]) -> None:
    """Check that settings are known; raises ConfigurationError with those that are near."""
    from difflib import get_close_matches  # only needed for an error

    for name in value:
        if name not in known:
            near = get_close_matches(name, known, n=3)
            meant = f"did you mean {' or '.join(near)}?" if near else f"use {', '.join(known)}"
            raise ConfigurationError(f"unknown setting {name}: {meant}")
