"""The table `login` of a provider: the client and the addresses of a login by OAuth 2. Pure.

No client of another vendor comes with the program: its id is the user's own.
"""

from __future__ import annotations

from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct, field

from ..errors import ConfigurationError

LoginFlow = Literal["browser", "device"]
_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})


class LoginSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How to log in at a provider."""

    client_id: str
    """The client that is registered there for you."""
    client_secret: str = ""
    """Its secret, if it has one; programs on the machine of a person usually have none."""
    token_url: str
    """Where tokens are got and refreshed."""
    authorize_url: str = ""
    """The page that a browser opens; needed for the flow `browser`."""
    device_url: str = ""
    """Where a code for another device is got; needed for the flow `device`."""
    revoke_url: str = ""
    """Where a login is withdrawn; without one, `gong auth logout` only forgets it."""
    scopes: tuple[str, ...] = ()
    """What the login is to allow."""
    parameters: dict[str, str] = field(default_factory=dict)
    """Further fields of the first request, such as `audience`."""
    port: int = 0
    """The port that the browser comes back to; 0 is any."""

    def check_addresses(self, provider: str) -> None:
        """Raise ConfigurationError for an address that tokens may not be sent to, or a missing one.

        They go to https addresses and to this machine only.
        """
        for name in ("token_url", "authorize_url", "device_url", "revoke_url"):
            _check_address(getattr(self, name), f"login.{name} of providers.{provider}")
        for name in ("client_id", "token_url"):
            if not getattr(self, name):
                raise ConfigurationError(f"login.{name} of providers.{provider} is empty")

    def choose_flow(self, flow: LoginFlow | None, provider: str) -> LoginFlow:
        """Return the flow that is asked for, or the first that has an address.

        Raises ConfigurationError without its address, and as `check_addresses` does.
        """
        self.check_addresses(provider)
        chosen: LoginFlow = flow or ("browser" if self.authorize_url else "device")
        field_name = "authorize_url" if chosen == "browser" else "device_url"
        if not getattr(self, field_name):
            raise ConfigurationError(
                f"providers.{provider} has no login.{field_name}: set it, or use the other way"
            )
        return chosen


def _check_address(url: str, where: str) -> None:
    if not url:
        return
    try:
        parts = urlsplit(url)
        is_near = parts.scheme == "http" and parts.hostname in _THIS_MACHINE
        is_valid = bool(parts.hostname) and (parts.scheme == "https" or is_near)
    except ValueError:
        is_valid = False
    if not is_valid:
        raise ConfigurationError(f"{where} is {url!r}, which is not an https address")
