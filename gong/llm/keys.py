"""Keys of providers while a program runs: what one is, and what gives one.

| source | gives |
|---|---|
| `FixedKey` | what a variable or `gong auth login` holds |
| `key_command.CommandKey` | what a program prints, until it expires or is refused |
| `aws_keys.AwsKeys` | a key that signs, of a profile of AWS |
| `google_keys.GoogleKeys` | a token of the user's login at Google |

No `repr` shows a key.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

_EARLY = 60.0
"""Seconds before its end that a key is replaced: a call takes a while to arrive."""
_CLAIMS_FORM = r"eyJ[\w-]+\.[\w-]+\.[\w-]*"


@dataclass(frozen=True, slots=True)
class Key:
    """A key or token that is sent with each call."""

    value: str = field(repr=False)
    source: str = ""
    """A variable, a file or a program, as a person knows it."""
    expires: float | None = None
    """Seconds since 1970; None if that is not known."""

    @property
    def is_web_token(self) -> bool:
        """Whether it is a JSON Web Token, which no API key looks like."""
        return re.fullmatch(_CLAIMS_FORM, self.value) is not None


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key of AWS, which signs calls; only its session token is sent."""

    id: str
    secret: str = field(repr=False)
    session_token: str = field(default="", repr=False)
    source: str = ""
    expires: float | None = None

    @property
    def value(self) -> str:
        """What is sent of it that is secret."""
        return self.session_token


AnyKey = Key | SigningKey


class KeySource(Protocol):
    """Gives the key of a provider, and another one in place of one that is refused."""

    def describe(self) -> str:
        """Return where the key is from; "" if that is not known."""
        ...

    async def get_key(self) -> AnyKey:
        """Return the key, the same until it expires; raises AuthenticationError."""
        ...

    async def replace_key(self, refused: AnyKey) -> AnyKey | None:
        """Return another key than one that a host refused; None if there is no other."""
        ...


class FixedKey:
    """A key that stays as it is."""

    def __init__(self, value: str, find_source: Callable[[], str] | None = None) -> None:
        self._value, self._find_source = value, find_source

    def describe(self) -> str:
        """Return where the key is from."""
        return self._find_source() if self._find_source is not None else ""

    async def get_key(self) -> Key:
        """Return the key."""
        return Key(self._value)

    async def replace_key(self, refused: AnyKey) -> None:
        """Return None: there is no other."""


def is_same_key(key: AnyKey, other: AnyKey) -> bool:
    """Return whether two keys are one to a host, wherever they are from."""
    if isinstance(key, SigningKey) and isinstance(other, SigningKey):
        mine = (key.id, key.secret, key.session_token)
        return mine == (other.id, other.secret, other.session_token)
    return isinstance(key, Key) and isinstance(other, Key) and key.value == other.value


def is_fresh(key: AnyKey, now: float) -> bool:
    """Return whether a key will hold for a while, as far as is known."""
    return key.expires is None or key.expires - _EARLY > now
