"""What a command sees of the environment: secrets dropped, nothing that asks or pages.

A safe default, not a border: a command can still read what its user can read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, assert_never

if TYPE_CHECKING:
    from collections.abc import Mapping

VariablePolicy = Literal["filter", "inherit-all", "none", "core-only"]
"""filter: all but secrets · inherit-all: all · none: nothing · core-only: the names of CORE."""

SECRET_ENDINGS = ("_API_KEY", "_SECRET", "_TOKEN", "_PASSWORD", "_CREDENTIAL")
"""Ends of names that hold secrets, whatever their case."""

CORE_VARIABLES = frozenset(
    (
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TERM"),
        *("TMPDIR", "TZ", "GOPATH", "GOROOT", "CARGO_HOME", "RUSTUP_HOME", "NVM_DIR"),
        *("PYENV_ROOT", "VIRTUAL_ENV", "JAVA_HOME", "RBENV_ROOT", "XDG_CONFIG_HOME"),
    )
)
"""Names a shell and the languages' tools need."""

QUIET_VARIABLES = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "EDITOR": "true",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
}
"""Nobody sits at the command's terminal: it must not ask, page or open an editor."""


def build_child_variables(
    environ: Mapping[str, str], policy: VariablePolicy, extra: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the variables of a command; `extra` wins over everything."""
    return {**_inherit_variables(environ, policy), **QUIET_VARIABLES, **(extra or {})}


def _inherit_variables(environ: Mapping[str, str], policy: VariablePolicy) -> dict[str, str]:
    match policy:
        case "inherit-all":
            return dict(environ)
        case "none":
            return {}
        case "core-only":
            return {name: value for name, value in environ.items() if name in CORE_VARIABLES}
        case "filter":
            return {name: value for name, value in environ.items() if not _is_secret_variable(name)}
        case _:
            assert_never(policy)


def _is_secret_variable(name: str) -> bool:
    return name not in CORE_VARIABLES and name.upper().endswith(SECRET_ENDINGS)
