"""API keys and logins: from the environment first, then those saved by `gong auth login`.

Saved ones are in the system keyring if there is one, else in `credentials.json` (0600) beside
config.toml. That file also lists the providers whose key is in the keyring. Processes that change
it wait for each other, so that none loses what another has saved. No `repr` shows a key.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, Self

import msgspec
from msgspec import Struct

from .errors import ConfigurationError
from .private_files import locate_config_file, write_private_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

SERVICE = "gong"
"""The service name of our keys in the keyring."""
_SHOWN_CHARS = 4
_MIN_SHOWN_LENGTH = 12


class Credential(Struct, frozen=True, omit_defaults=True):
    """One record of credentials.json; without `api_key` or tokens, they are in the keyring."""

    provider: str
    type: Literal["api_key", "oauth"] = "api_key"
    api_key: str = ""
    oauth_token: str = ""
    refresh_token: str = ""
    expires_at: str = ""
    """When the token expires; "" if that is not known."""
    updated_at: str = ""
    """UTC, RFC 3339, as is `expires_at`."""

    def __repr__(self) -> str:
        return f"Credential({self.provider!r})"


class SavedLogin(Struct, frozen=True, omit_defaults=True):
    """The tokens of a login; in the keyring as JSON."""

    oauth_token: str
    refresh_token: str = ""
    expires_at: str = ""
    """UTC, RFC 3339; "" if that is not known."""

    def __repr__(self) -> str:
        return f"SavedLogin(expires_at={self.expires_at!r})"


@dataclass(frozen=True, slots=True)
class ProviderKey:
    """A key and where it was found: a variable's name, "keyring" or "credentials.json"."""

    value: str = field(repr=False)
    source: str
    login: SavedLogin | None = None
    """The login whose token it is."""

    @property
    def ending(self) -> str:
        """The part that may be shown: the last four characters of a long key, else ""."""
        return f"…{self.value[-_SHOWN_CHARS:]}" if len(self.value) >= _MIN_SHOWN_LENGTH else "…"


class Credentials:
    """The saved keys of one config folder; variables in `environ` take precedence."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self.file = folder / "credentials.json"
        self._environ = environ

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Self:
        """Return the keys saved beside the user's config.toml."""
        return cls(locate_config_file(environ).parent, environ)

    def find(self, provider: str, variables: Sequence[str]) -> ProviderKey | None:
        """Return the key of a provider; an empty variable counts as not set."""
        for name in variables:
            if value := self._environ.get(name, "").strip():
                return ProviderKey(value, name)
        entry = self._read_saved().get(provider)
        if entry is None:
            return None
        if entry.type == "oauth":
            login = self._read_login(entry)
            place = self.file.name if entry.oauth_token else "keyring"
            return ProviderKey(login.oauth_token, place, login) if login else None
        if entry.api_key:
            return ProviderKey(entry.api_key, self.file.name)
        value = "".join(filter(None, _call_keyring("get_password", provider)))
        return ProviderKey(value, "keyring") if value else None

    def find_login(self, provider: str) -> SavedLogin | None:
        """Return the login at a provider; None if there is none, or none that can be read."""
        entry = self._read_saved().get(provider)
        return self._read_login(entry) if entry is not None and entry.type == "oauth" else None

    def has_login(self, provider: str) -> bool:
        """Return whether a login was saved, without a query to the keyring."""
        entry = self._read_saved().get(provider)
        return entry is not None and entry.type == "oauth"

    def key(self, provider: str, variables: Sequence[str]) -> str:
        """Return the key, "" if there is none."""
        key = self.find(provider, variables)
        return key.value if key else ""

    def name_source(self, provider: str, variables: Sequence[str]) -> str:
        """Return where the key was found, "" if there is none."""
        key = self.find(provider, variables)
        return key.source if key else ""

    def has_key(self, provider: str, variables: Sequence[str]) -> bool:
        """Return whether there is a key, without a query to the keyring."""
        set_ = any(self._environ.get(name, "").strip() for name in variables)
        return set_ or provider in self._read_saved()

    def list_saved(self) -> tuple[str, ...]:
        """Return the providers whose key or login is saved."""
        return tuple(self._read_saved())

    def list_records(self) -> tuple[Credential, ...]:
        """Return what is saved, as it is in the file."""
        return tuple(self._read_saved().values())

    def save(self, provider: str, key: str, now: str) -> str:
        """Save a key and return where: "keyring" or the file's path. `now` is RFC 3339."""
        in_keyring = bool(_call_keyring("set_password", provider, key))
        self._save_record(Credential(provider, api_key="" if in_keyring else key, updated_at=now))
        return "keyring" if in_keyring else str(self.file)

    def save_login(self, provider: str, login: SavedLogin, now: str) -> str:
        """Save the tokens of a login and return where, as `save` does."""
        text = msgspec.json.encode(login).decode()
        in_keyring = bool(_call_keyring("set_password", provider, text))
        tokens = ("", "") if in_keyring else (login.oauth_token, login.refresh_token)
        self._save_record(Credential(provider, "oauth", "", *tokens, login.expires_at, now))
        return "keyring" if in_keyring else str(self.file)

    def remove(self, provider: str) -> bool:
        """Remove a saved key or login; return False if there was none."""
        if provider not in self._read_saved():
            return False
        with self._hold_lock():
            saved = self._read_saved()
            entry = saved.pop(provider, None)
            if entry is None:
                return False
            self._write_saved(saved)
        if not (entry.api_key or entry.oauth_token):
            _call_keyring("delete_password", provider)
        return True

    def _save_record(self, record: Credential) -> None:
        with self._hold_lock():
            self._write_saved(self._read_saved() | {record.provider: record})

    @contextmanager
    def _hold_lock(self) -> Iterator[None]:
        """Hold the folder against other processes that change the file."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        folder = os.open(self.file.parent, os.O_RDONLY)
        try:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)

    def _read_login(self, entry: Credential) -> SavedLogin | None:
        if entry.oauth_token:
            return SavedLogin(entry.oauth_token, entry.refresh_token, entry.expires_at)
        text = "".join(filter(None, _call_keyring("get_password", entry.provider)))
        try:
            login = msgspec.json.decode(text, type=SavedLogin)
        except (msgspec.DecodeError, UnicodeError):
            return None
        return login if login.oauth_token else None

    def _read_saved(self) -> dict[str, Credential]:
        try:
            data = self.file.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ConfigurationError(f"{self.file} cannot be read: {error.strerror}") from error
        try:
            return {
                credential.provider: credential
                for credential in msgspec.json.decode(data, type=list[Credential])
            }
        except (msgspec.DecodeError, UnicodeError):
            # The decoder's error text could contain a key from the file.
            raise ConfigurationError(
                f"{self.file} is damaged: remove it and log in again with gong auth login"
            ) from None

    def _write_saved(self, saved: Mapping[str, Credential]) -> None:
        data = msgspec.json.encode(list(saved.values()))
        write_private_file(self.file, msgspec.json.format(data) + b"\n")


def _call_keyring(name: str, *arguments: str) -> list[Any]:
    """Return a function's result as a list; an empty list without a keyring or if it failed."""
    if find_spec("keyring") is None:
        return []
    ring = import_module("keyring")
    if ring.get_keyring().priority > 0:  # else it has no usable backend
        with suppress(ring.errors.KeyringError):
            return [getattr(ring, name)(SERVICE, *arguments)]
    return []
