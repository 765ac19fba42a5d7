"""Keys of AWS, found where its own programs find them.

1. the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, unless a profile is configured
2. the profile: `aws_profile` of the provider, else AWS_PROFILE, else `default`; its key in
   ~/.aws/credentials or ~/.aws/config, or what its `credential_process` prints
3. botocore, if it is installed: logins by SSO, roles, machines

The first that there is counts. AWS_BEARER_TOKEN_BEDROCK goes before all of them; it is a key like
that of any provider.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ..errors import AuthenticationError
from .cloud_logins import get_aws_profile, has_botocore, locate_profile_files
from .key_command import format_end, parse_key_output, run_key_program, split_command
from .keys import SigningKey, is_fresh, is_same_key

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from .keys import AnyKey

_ENDS = ("x_security_token_expires", "aws_expiration", "expiration")
"""Where programs that log in say until when a key of a profile holds."""
_LOGINS = ("role_arn", "sso_session", "sso_start_url", "login_session", "credential_source")
"""Fields of profiles that botocore has to log in for."""


class AwsKeys:
    """The keys of one profile, or of the variables."""

    def __init__(self, provider: str, environ: Mapping[str, str], profile: str = "") -> None:
        self._provider, self._environ, self._profile = provider, environ, profile
        self._key: SigningKey | None = None
        self._session: Any = None

    def describe(self) -> str:
        """Return where the key is from."""
        if self._key is not None:
            return self._key.source
        return f"profile {get_aws_profile(self._profile, self._environ)} of AWS"

    async def get_key(self) -> SigningKey:
        """Return the key; raises AuthenticationError."""
        if self._key is None or not is_fresh(self._key, time.time()):
            self._key = await self._find_key()
        return self._key

    async def replace_key(self, refused: AnyKey) -> SigningKey | None:
        """Return the key that a new login has left meanwhile; None if it is the same."""
        self._session = None
        self._key = await self._find_key()
        return None if is_same_key(self._key, refused) else self._key

    async def _find_key(self) -> SigningKey:
        if not self._profile and (key := self._read_variables()) is not None:
            return key
        name = get_aws_profile(self._profile, self._environ)
        rows = read_profiles(self._environ, self._provider)
        fields = {**rows.config.get(name, {}), **rows.credentials.get(name, {})}
        if not any(field in fields for field in _LOGINS):
            if fields.get("aws_access_key_id"):
                return self._parse_profile(name, fields)
            if command := fields.get("credential_process"):
                return await self._run_process(name, command)
        if not fields and name != "default":
            raise self._build_unknown_error(name, rows)
        if not has_botocore():
            raise self._build_missing_error(name, fields)
        return await asyncio.to_thread(self._ask_botocore, name)

    def _read_variables(self) -> SigningKey | None:
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
        key_id, secret, token = (self._environ.get(name, "").strip() for name in names)
        if not key_id:
            return None
        if not secret:
            raise AuthenticationError(
                "AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not: set both, or neither",
                provider=self._provider,
            )
        return SigningKey(key_id, secret, token, names[0])

    def _parse_profile(self, name: str, fields: Mapping[str, str]) -> SigningKey:
        source = f"profile {name} of AWS"
        secret = fields.get("aws_secret_access_key", "")
        if not secret:
            raise AuthenticationError(
                f"{source} has an aws_access_key_id without aws_secret_access_key: "
                f"run aws configure --profile {name}",
                provider=self._provider,
            )
        ends = next(filter(None, (_read_end(fields.get(field, "")) for field in _ENDS)), None)
        if ends is not None and ends <= time.time():
            raise AuthenticationError(
                f"the key of {source} expired at {format_end(ends)}: log in again",
                provider=self._provider,
            )
        token = fields.get("aws_session_token", "")
        return SigningKey(fields["aws_access_key_id"], secret, token, source, ends)

    async def _run_process(self, name: str, command: str) -> SigningKey:
        source = f"credential_process of profile {name}"
        argv = split_command(self._provider, command)
        output = await run_key_program(source, argv, self._environ, self._provider)
        key = parse_key_output(output, source, self._provider)
        if not isinstance(key, SigningKey):
            raise AuthenticationError(
                f"{source} printed no AccessKeyId and SecretAccessKey", provider=self._provider
            )
        if key.expires is not None and key.expires <= time.time():
            raise AuthenticationError(
                f"{source} printed a key that expired at {format_end(key.expires)}: log in again",
                provider=self._provider,
            )
        return key

    def _ask_botocore(self, name: str) -> SigningKey:
        """Return what botocore finds; it blocks, as it may ask a server."""
        import botocore.exceptions
        import botocore.session

        source = f"profile {name} of AWS"
        try:
            if self._session is None:
                chosen = name if name != "default" or self._profile else None
                self._session = botocore.session.Session(profile=chosen)
            credentials = self._session.get_credentials()
            frozen = credentials.get_frozen_credentials() if credentials is not None else None
        except botocore.exceptions.BotoCoreError as error:
            # its words may be those of a server, which was sent a token
            kind = type(error).__name__
            raise AuthenticationError(
                f"no key of AWS for {self._provider}: {source}: {kind}: run aws sso login "
                f"--profile {name}, or aws login",
                provider=self._provider,
            ) from None
        if frozen is None:
            raise self._build_missing_error(name, {})
        ends = getattr(credentials, "_expiry_time", None)
        return SigningKey(
            *(frozen.access_key, frozen.secret_key, frozen.token or "", source),
            ends.timestamp() if ends is not None else None,
        )

    def _build_unknown_error(self, name: str, rows: Profiles) -> AuthenticationError:
        known = ", ".join(dict.fromkeys((*rows.config, *rows.credentials))) or "none"
        return AuthenticationError(
            f"no key for {self._provider}: AWS has no profile {name!r} here, but {known}: set "
            f"AWS_PROFILE, or run aws configure --profile {name}",
            provider=self._provider,
        )

    def _build_missing_error(self, name: str, fields: Mapping[str, str]) -> AuthenticationError:
        if any(field in fields for field in _LOGINS):
            text = (
                f"profile {name} of AWS logs in by SSO or a role, which needs botocore: "
                f"pip install 'gong[bedrock]', or set key_command in [providers.{self._provider}] "
                f'to "aws configure export-credentials --profile {name}"'
            )
        else:
            text = (
                f"no key for {self._provider}: set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID "
                f"and AWS_SECRET_ACCESS_KEY, or run aws configure --profile {name}"
            )
        return AuthenticationError(text, provider=self._provider)


class Profiles:
    """The profiles of both files of AWS, by name."""

    def __init__(
        self, credentials: Mapping[str, dict[str, str]], config: Mapping[str, dict[str, str]]
    ) -> None:
        self.credentials, self.config = credentials, config


def read_profiles(environ: Mapping[str, str], provider: str) -> Profiles:
    """Return the profiles; raises AuthenticationError for a file that is damaged."""
    credentials, config = locate_profile_files(environ)
    prefix = "profile "
    named = {
        (name.removeprefix(prefix).strip() if name.startswith(prefix) else name): fields
        for name, fields in _read_sections(config, provider).items()
        if name == "default" or name.startswith(prefix)
    }
    return Profiles(_read_sections(credentials, provider), named)


def find_profile_region(environ: Mapping[str, str], provider: str, profile: str = "") -> str:
    """Return the region of the profile; "" if it has none."""
    name = get_aws_profile(profile, environ)
    rows = read_profiles(environ, provider)
    return rows.config.get(name, {}).get("region", "") or rows.credentials.get(name, {}).get(
        "region", ""
    )


def _read_sections(file: Path, provider: str) -> dict[str, dict[str, str]]:
    from configparser import Error, RawConfigParser  # only for keys of AWS

    parser = RawConfigParser(default_section="", strict=False)
    try:
        parser.read_string(file.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, Error) as error:
        # the parser's words are the file's lines
        line = getattr(error, "lineno", None) or next(
            (number for number, _ in getattr(error, "errors", ())), None
        )
        where = f" at line {line}" if line else ""
        reason = error.strerror if isinstance(error, OSError) else f"it is damaged{where}"
        raise AuthenticationError(
            f"{file} cannot be read: {reason}: correct it, or run aws configure", provider=provider
        ) from None
    return {name: dict(parser[name]) for name in parser.sections()}


def _read_end(text: str) -> float | None:
    with suppress(ValueError, OverflowError):
        return datetime.fromisoformat(text).timestamp()
    return None
