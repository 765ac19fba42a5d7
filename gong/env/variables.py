"""Which variables of the environment commands, hooks and MCP servers inherit: one rule for all.

A variable that looks like a secret stays out, by its name or by what it holds:

    name or value                                                         inherited
    --------------------------------------------------------------------  --------------------------
    PATH, HOME and the like (`CORE_VARIABLES`)                            yes
    named in the setting `env_vars`, which may hold wildcards             yes
    nothing, or `true`, `0` and the like: that gives nothing away         yes
    SECRET, TOKEN, PASSWORD, CREDENTIAL … in it; _KEY, _PAT, _AUTH …      no
    a key of a known form, a password in an address or in `password=`     no
    the address of a proxy with a password                                without the login
    SSH_AUTH_SOCK, GPG_AGENT_INFO: git could not push without them        yes
    TOKENIZERS_PARALLELISM, MAX_TOKENS, PUBLIC_KEY, PASSWORD_STORE_DIR …  yes: no secrets
    everything else                                                       yes

That is a safe default, not a border: a command can still read what its user can read.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

VariablePolicy = Literal["filter", "inherit-all", "none", "core-only"]
"""filter: all but secrets · inherit-all: all · none: nothing · core-only: the names of CORE."""

CORE_VARIABLES = frozenset((
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TERM",
    "TMPDIR", "TZ", "GOPATH", "GOROOT", "CARGO_HOME", "RUSTUP_HOME", "NVM_DIR",
    "PYENV_ROOT", "VIRTUAL_ENV", "JAVA_HOME", "RBENV_ROOT", "XDG_CONFIG_HOME",
))  # fmt: skip
"""Names a shell and the languages' tools need."""

_HARMLESS_PARTS = (
    r"SSH_AUTH_SOCK|GIT_CONFIG_KEY_[0-9]+|ASKPASS|PASSWORD_STORE|PASSCOMMAND|TOKENI[SZ]|SECRETARY"
    r"|PUBLI(?:C|SHABLE)_?KEYS?|KEY_?(?:RING|BOARD|MAP|BINDING|REPEAT|TIMEOUT|DELAY)S?|^GPG_KEY$"
    r"|MAX_(?:[A-Z]+_){0,3}TOKENS?(?![A-Z])|TOKENS?_(?:LIMIT|BUDGET|COUNT)"
)
"""Parts of names that only look like those of secrets; what is beside them still counts."""
_SENSITIVE_NAME = (
    r"SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|PASSCODE|CREDENTIAL|CONNECTION_?STRING"
    r"|(?:API|ACCESS|ACCOUNT|APP|AUTH|DEPLOY|ENCRYPTION|LICENSE|MASTER|PRIVATE|SIGNING|SSH)KEY"
    r"|_KEYS?[0-9]*(?:_|$)|^KEYS?$|(?:^|_)(?:DSN|JWT|BEARER)(?:_|$)|^PGPASS"
    r"|(?<!BY)(?<!COM)(?<!SUR)PASS[0-9]*$|_PWD[0-9]*$|(?:BIND|ROOT|_|^)PW[0-9]*$"
    r"|(?:^|_)(?:AUTH|AUTHORIZATION|COOKIES?|NETRC|OTP|PAT|PIN|SALT|SAS)$"
    r"|_AUTH_(?:BASE64|BASIC|B64|CONFIG|HEADERS?|IDENT|JSON)|WEBHOOKS?(?:_UR[IL]S?)?[0-9]*$"
    r"|(?:CUSTOM|IDENTITY|OTLP|OTLP_[A-Z]+)_HEADERS?$|KUBE_?CONFIG_(?:BASE64|B64|CONTENTS?|DATA)"
    r"|^OP_SESSION_|^(?:BW|FASTLANE)_SESSION$|CSC_LINK$|^BUNDLE_\w+__(?:CO|COM|DEV|IO|NET|ORG)$"
)
"""What names of secrets hold, in capitals and with `_` between their words."""
_COUNT = r"[0-9]{1,9}"
_NO_SECRETS = frozenset(("", "0", "1", "true", "false", "yes", "no", "on", "off", "none"))
_WORD_END = r"(?<=[a-z0-9])(?=[A-Z])|[^\w]+"
_LOGIN_IN_ADDRESS = r"(?i)[a-z][a-z0-9+.-]*://[^/\s:@]*:[^/\s@]+@"
_LOGIN_IN_SETTINGS = (
    r"(?i)(?:^|[\s;&?])(?:password|passwd|pwd|accountkey|sharedaccesskey)\s?=\s?[^\s;&$\"'(]"
)
"""As in a line of settings for a database: `host=db;password=x`."""
_MIN_KEY = 16
_PROXY = r"(?:^|_)PROXY$"
_LOGIN_OF_PROXY = r"(?i)^((?:[a-z][a-z0-9+.-]*://)?+)[^\s:]*:\S*@"
"""The user and the password, which may hold anything; programs take an address without scheme."""


class VariableRules(NamedTuple):
    """What of an environment programs inherit."""

    policy: VariablePolicy = "filter"
    listed: tuple[str, ...] = ()
    """Names, as patterns, that are inherited although they look like secrets."""

    def select_variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that programs inherit."""
        inherited = {
            name: value for name, value in environ.items() if self.is_inherited(name, value)
        }
        if self.policy == "inherit-all":
            return inherited
        return {
            name: value if self._is_listed(name) else _strip_login(name, value)
            for name, value in inherited.items()
        }

    def is_inherited(self, name: str, value: str) -> bool:
        """Return whether programs inherit a variable."""
        if self._is_listed(name):
            return True
        if self.policy == "inherit-all":
            return True
        if self.policy == "none":
            return False
        if name in CORE_VARIABLES:
            return True
        return self.policy == "filter" and not is_secret_variable(name, value)

    def is_secret(self, name: str, value: str) -> bool:
        """Return whether a variable looks like a secret, or holds one, and is not listed."""
        is_secret = is_secret_variable(name, value) or _strip_login(name, value) != value
        return is_secret and not self._is_listed(name)

    def _is_listed(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self.listed)


@lru_cache(maxsize=1024)  # it is asked with every command
def is_secret_variable(name: str, value: str) -> bool:
    """Return whether a variable looks like a secret, by its name or by what it holds."""
    if value.lower() in _NO_SECRETS:
        return False
    words = re.sub(_WORD_END, "_", name).upper()
    if re.search(_SENSITIVE_NAME, re.sub(_HARMLESS_PARTS, "", words)):
        return not (words.endswith("TOKENS") and re.fullmatch(_COUNT, value))
    return not re.search(_PROXY, words) and _has_secret(value)


def _strip_login(name: str, value: str) -> str:
    """Return the value of a variable; the address of a proxy without its user and password.

    Without the address a command would reach nothing where only a proxy leads out.
    """
    if "@" not in value or not re.search(_PROXY, re.sub(_WORD_END, "_", name).upper()):
        return value
    return re.sub(_LOGIN_OF_PROXY, r"\1", value)


def _has_secret(value: str) -> bool:
    if re.search(_LOGIN_IN_ADDRESS, value) or re.search(_LOGIN_IN_SETTINGS, value):
        return True
    if len(value) < _MIN_KEY:
        return False
    from tape.masking.secrets import mask_text  # a prompt stands first

    return mask_text(value).secrets > 0
