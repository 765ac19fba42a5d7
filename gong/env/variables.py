"""Which variables of the environment commands, hooks and MCP servers inherit: one rule for all.

A variable that looks like a secret stays out, by its name or by what it holds:

    name or value                                                          inherited
    ---------------------------------------------------------------------  ------------------------
    PATH, HOME and the like (`CORE_VARIABLES`)                             yes
    named in the setting `env_vars`, which may hold wildcards              yes
    SECRET, TOKEN, PASSWORD, CREDENTIAL … in it; _KEY, _PAT, _AUTH …       no
    `scheme://user:password@host`, but for proxies; a private key          no
    SSH_AUTH_SOCK, GPG_AGENT_INFO: git could not push without them         yes
    TOKENIZERS_PARALLELISM, MAX_TOKENS, KEYBOARD_LAYOUT, PASSWORD_STORE_DIR  yes: no secrets
    everything else                                                        yes

That is a safe default, not a border: a command can still read what its user can read.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

VariablePolicy = Literal["filter", "inherit-all", "none", "core-only"]
"""filter: all but secrets · inherit-all: all · none: nothing · core-only: the names of CORE."""

CORE_VARIABLES = frozenset(
    (
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TERM"),
        *("TMPDIR", "TZ", "GOPATH", "GOROOT", "CARGO_HOME", "RUSTUP_HOME", "NVM_DIR"),
        *("PYENV_ROOT", "VIRTUAL_ENV", "JAVA_HOME", "RBENV_ROOT", "XDG_CONFIG_HOME"),
    )
)
"""Names a shell and the languages' tools need."""

_SECRET_NAME = re.compile(
    r"SECRET(?!ARY|S_DIR)|TOKEN(?!IZ|S(?![A-Z]))|PASSWORD(?!_STORE)|PASSWD|PASSPHRASE|CREDENTIAL"
    r"|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|AUTH_?KEY|SIGNING_?KEY|ENCRYPTION_?KEY|DEPLOY_?KEY"
    r"|(?:^|_)KEY(?:$|_(?!BOARD|MAP|RING|BINDING|REPEAT|TIMEOUT))|(?:^|_)KEYS$"
    r"|_PASS$|_PW$|_PWD$|_PAT$|_AUTH$|__AUTH|_AUTHTOKEN|_AUTHORIZATION$|_DSN$|_COOKIE$|_WEBHOOK|CONNECTION_?STRING|_JWT$"
    r"|^PGPASS|^NETRC$|_SAS$|_SALT$|_BEARER$|_OTP$|_PIN$"
)
"""What names of secrets hold, in capitals."""
_PUBLIC_NAME = re.compile(
    r"^SSH_AUTH_SOCK$|^GPG_AGENT_INFO$|PUBLIC_?KEY|_KEYRING|KEYBOARD|KEYMAP|^XAUTHORITY$"
    r"|^SSH_ASKPASS|^OLDPWD$|^PWD$|^GPG_KEY$|^GIT_CONFIG_KEY_\d+$"
)
_PASSWORD_IN_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s:@]*:[^/\s@]+@", re.IGNORECASE)
_PRIVATE_KEY = "-----BEGIN "
_PROXY = re.compile(r"(?:^|_)PROXY$")


class VariableRules(NamedTuple):
    """What of an environment programs inherit."""

    policy: VariablePolicy = "filter"
    listed: tuple[str, ...] = ()
    """Names, as patterns, that are inherited although they look like secrets."""

    def select_variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that programs inherit."""
        return {name: value for name, value in environ.items() if self._is_inherited(name, value)}

    def _is_inherited(self, name: str, value: str) -> bool:
        if any(fnmatchcase(name, one) for one in self.listed):
            return True
        if self.policy == "inherit-all":
            return True
        if self.policy == "none":
            return False
        if name in CORE_VARIABLES:
            return True
        return self.policy == "filter" and not is_secret_variable(name, value)


def is_secret_variable(name: str, value: str) -> bool:
    """Return whether a variable looks like a secret, by its name or by what it holds."""
    capitals = name.upper()
    if _PUBLIC_NAME.search(capitals):
        return False
    if _SECRET_NAME.search(capitals):
        return True
    if _PASSWORD_IN_ADDRESS.search(value):
        return not _PROXY.search(capitals)
    return value.startswith(_PRIVATE_KEY) and "PRIVATE KEY" in value
