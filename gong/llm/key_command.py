"""The key of a provider from a program: `key_command` in `[providers.NAME]`.

It is run without a shell, in the home folder, and gets nothing to read. What it prints is one line
that is the key, or JSON with a token in it as `az`, `gcloud`, `aws` and `kubectl` print it. Nothing
of that is ever shown.

A key is kept in a file that only its user can read, until it expires or is refused: all programs of
the user share it, and one at a time runs the command. Of one that does not say when it expires, the
file is used for an hour.
"""

from __future__ import annotations

import os
import shlex
import time
from base64 import urlsafe_b64decode
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from shutil import which
from typing import TYPE_CHECKING, Any

import msgspec

from ..child_programs import OutputTooLong, run_for_output
from ..errors import AuthenticationError, ConfigurationError
from ..private_files import (
    hold_private_lock,
    locate_home,
    locate_state_folder,
    write_private_file,
)
from .keys import AnyKey, Key, SigningKey, is_fresh, is_same_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_MAX_OUTPUT = 65_536
_SECONDS = 60.0
"""Most seconds that a command may take: it may ask a browser."""
_SAVED_SECONDS = 3600.0
"""Seconds that a key is used by other programs if it does not say when it expires."""
_TOKENS = (
    *("token", "access_token", "accessToken", "api_key", "apiKey", "key", "secret", "id_token"),
)
_ACCOUNT_VARIABLES = ("AWS_", "AZURE_", "ARM_", "CLOUDSDK_", "GOOGLE_", "OP_", "VAULT_")
_PARTS = ("credential", "status", "data", "auth")
"""Objects in which some programs put the token."""
_MOMENTS = (
    *("expires_on", "expiresOn", "expires_at", "expiresAt", "expiry", "token_expiry"),
    *("expiration", "Expiration", "expirationTimestamp"),
)


class _SavedKey(msgspec.Struct, frozen=True):
    """A key in its file."""

    value: str
    id: str = ""
    """Of a key that signs; `value` is its secret then."""
    session_token: str = ""
    expires: float | None = None
    saved_at: float = 0.0


class CommandKey:
    """The key that a program prints."""

    def __init__(
        self,
        provider: str,
        command: str | Sequence[str],
        environ: Mapping[str, str],
        seconds: float = _SECONDS,
    ) -> None:
        self._provider, self._environ, self._seconds = provider, environ, seconds
        self._argv = split_command(provider, command)
        self._file = _locate_key_file(provider, self._argv, environ)
        self._key: AnyKey | None = None

    def describe(self) -> str:
        """Return where the key is from."""
        return f"key_command of {self._provider}"

    async def get_key(self) -> AnyKey:
        """Return the key; raises AuthenticationError."""
        if self._key is not None and is_fresh(self._key, time.time()):
            return self._key
        async with hold_private_lock(self._file):
            self._key = self._read_saved() or await self._fetch_key()
        return self._key

    async def replace_key(self, refused: AnyKey) -> AnyKey | None:
        """Return the key that another program has got meanwhile, or the command prints now."""
        async with hold_private_lock(self._file):
            saved = self._read_saved()
            if saved is None or is_same_key(saved, refused):
                saved = await self._fetch_key()
        self._key = saved
        return None if is_same_key(saved, refused) else saved

    async def _fetch_key(self) -> AnyKey:
        output = await run_key_program(
            self.describe(), self._argv, self._environ, self._provider, self._seconds
        )
        key = parse_key_output(output, self.describe(), self._provider)
        saved = (
            _SavedKey(key.secret, key.id, key.session_token, key.expires, time.time())
            if isinstance(key, SigningKey)
            else _SavedKey(key.value, expires=key.expires, saved_at=time.time())
        )
        with suppress(OSError):  # then each program runs the command
            write_private_file(self._file, msgspec.json.encode(saved))
        return key

    def _read_saved(self) -> AnyKey | None:
        """Return the key in the file; None if it has expired or cannot be read."""
        try:
            saved = msgspec.json.decode(self._file.read_bytes(), type=_SavedKey)
        except (OSError, msgspec.DecodeError, UnicodeError):
            return None
        now = time.time()
        if saved.expires is None and not 0 <= now - saved.saved_at < _SAVED_SECONDS:
            return None
        key = (
            SigningKey(saved.id, saved.value, saved.session_token, self.describe(), saved.expires)
            if saved.id
            else Key(saved.value, self.describe(), saved.expires)
        )
        return key if is_fresh(key, now) else None


def _locate_key_file(provider: str, argv: Sequence[str], environ: Mapping[str, str]) -> Path:
    """Return the file of what a command prints in an environment.

    The variables of the programs that log in say which account the key is of.
    """
    names = sorted(name for name in environ if name.startswith(_ACCOUNT_VARIABLES))
    account = [f"{name}={environ[name]}" for name in names]
    digest = sha256("\0".join((provider, *argv, *account)).encode("utf-8", "surrogateescape"))
    return locate_state_folder(environ) / "keys" / f"{digest.hexdigest()[:32]}.json"


def split_command(provider: str, command: str | Sequence[str]) -> tuple[str, ...]:
    """Return the words of a command as a shell would; raises ConfigurationError."""
    try:
        argv = tuple(shlex.split(command) if isinstance(command, str) else command)
    except ValueError as error:
        raise ConfigurationError(f"key_command of providers.{provider}: {error}") from None
    if not argv:
        raise ConfigurationError(f"key_command of providers.{provider} is empty")
    return argv


async def run_key_program(
    name: str,
    argv: Sequence[str],
    environ: Mapping[str, str],
    provider: str,
    seconds: float = _SECONDS,
) -> str:
    """Return what a program prints; raises AuthenticationError.

    Neither that nor the program's arguments, which may be secret, are in the error. `name` says
    what the program is.
    """

    def build_error(what: str) -> AuthenticationError:
        return AuthenticationError(
            f"{name} {what}; its output is not shown: run {argv[0]} yourself to see it",
            provider=provider,
        )

    program = _find_program(argv[0], environ)
    if program is None:
        raise AuthenticationError(
            f"{name}: there is no program {argv[0]!r}: install it, or write its whole path",
            provider=provider,
        )
    try:
        run = await run_for_output(
            (program, *argv[1:]),
            environ,
            max_bytes=_MAX_OUTPUT,
            seconds=seconds,
            folder=locate_home(environ),
        )
    except TimeoutError:
        raise build_error(f"took longer than {seconds:g} s") from None
    except OutputTooLong:
        raise build_error(f"printed more than {_MAX_OUTPUT // 1024} KiB") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "a zero byte in it"
        raise AuthenticationError(
            f"{name} cannot be run: {argv[0]}: {reason}", provider=provider
        ) from None
    if run.exit_code:
        raise build_error(f"ended with exit code {run.exit_code}")
    try:
        return run.output.decode()
    except UnicodeDecodeError:
        raise build_error("printed bytes that are no text") from None


def _find_program(name: str, environ: Mapping[str, str]) -> str | None:
    """Return the path of a program; a path is never below the current folder, but home's."""
    if "/" in name:
        name = str(locate_home(environ) / name.removeprefix("~/"))
    return which(name, path=environ.get("PATH", os.defpath))


def parse_key_output(output: str, source: str, provider: str) -> AnyKey:
    """Return the key in what a program printed; raises AuthenticationError without any of it."""

    def build_error(what: str) -> AuthenticationError:
        return AuthenticationError(
            f"{source} printed {what}: a key is one line, or JSON with a token in it",
            provider=provider,
        )

    text = output.strip()
    if not text:
        raise build_error("nothing")
    if text.startswith("{"):
        try:
            fields = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            raise build_error("JSON that is cut or damaged") from None
        key = _parse_fields(fields, source)
        if key is None:
            raise build_error("JSON without a token")
    else:
        count = len(text.split("\n"))
        if count > 1:
            raise build_error(f"{count} lines")
        key = Key(text, source)
    secrets = (key.secret, key.id) if isinstance(key, SigningKey) else (key.value,)
    for secret in secrets:
        if not (secret and secret.isascii() and secret.isprintable() and " " not in secret):
            raise build_error("a text that is no key")
    if key.expires is None and isinstance(key, Key):
        key = replace(key, expires=_read_web_token_end(key))
    return key


def _parse_fields(fields: dict[str, Any], source: str) -> AnyKey | None:
    ends = _find_end(fields)
    if isinstance(secret := fields.get("SecretAccessKey"), str):
        key_id, session_token = (fields.get(name) for name in ("AccessKeyId", "SessionToken"))
        return SigningKey(str(key_id or ""), secret, str(session_token or ""), source, ends)
    tokens = (fields.get(name) for name in _TOKENS)
    token = next((token for token in tokens if isinstance(token, str) and token), None)
    if token is not None:
        return Key(token, source, ends)
    parts = (fields.get(name) for name in _PARTS)
    inner = (_parse_fields(part, source) for part in parts if isinstance(part, dict))
    return next((key for key in inner if key is not None), None)


def _find_end(fields: Mapping[str, Any]) -> float | None:
    """Return when a token expires: a number, a number as text, or a date; else from its seconds."""
    for name in _MOMENTS:
        moment = _read_moment(fields.get(name))
        if moment is not None:
            return moment
    seconds = fields.get("expires_in", fields.get("expiresIn"))
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    return time.time() + seconds if is_number else None


def _read_moment(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    with suppress(ValueError, OverflowError):
        return float(value)
    assert isinstance(value, str), "every number is a float"
    with suppress(ValueError, OverflowError):
        # without a zone, as az prints one, it is the time here
        return datetime.fromisoformat(value).timestamp()
    return None


def _read_web_token_end(key: Key) -> float | None:
    """Return the `exp` of a JSON Web Token."""
    if not key.is_web_token:
        return None
    body = key.value.split(".")[1]
    with suppress(ValueError, msgspec.DecodeError, RecursionError):
        claims = msgspec.json.decode(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        if isinstance(claims, dict):
            return _read_moment(claims.get("exp"))
    return None


def format_end(expires: float) -> str:
    """Return a moment for people, in UTC."""
    return datetime.fromtimestamp(expires, UTC).strftime("%Y-%m-%d %H:%M UTC")
