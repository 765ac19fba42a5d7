"""The variables of a command: the values it assigns, what programs obey, credentials it shows.

Two functions change the state they are given: `assign_values`, and `collect_values` by the outputs
that a value contains (`resolve_substitutions`).
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from ...shell.expansion import MAX_VALUE, FreshFolder, expand_word, limit_values
from .finding import DangerLevel
from .matching import list_operands
from .scope import list_printed_texts, resolve_substitutions
from .tables import has_pattern_match, load_tables

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from ...shell.expansion import Arguments, ShellState, SimpleCommand
    from .invocation import PathContext
    from .scope import Uses

DECLARING_BUILTINS = {"declare", "export", "local", "readonly", "typeset"}
"""Builtins whose assignments stay."""
SETTING_BUILTINS = {"set", "unset", "read", "mapfile", "readarray", *DECLARING_BUILTINS}
"""Builtins that may do no more than to set variables or options of the shell."""

_OPTION = re.compile(r"[-+][A-Za-z]+|--?|[A-Za-z_]\w*")
_SET = re.compile(
    r"[-+][euxfvEoC]+|errexit|nounset|pipefail|xtrace|verbose|noglob|noclobber|errtrace"
)
"""Harmless options of `set`: they only stop a script earlier, or show what it does."""
_HISTORY = {"HISTFILE": {"", "/dev/null"}, "HISTSIZE": {"0"}, "HISTFILESIZE": {"0"}}
_CREDENTIAL = re.compile(
    r"(?:\$\{)?((?:[A-Z0-9_]*_)?(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASS|CREDENTIALS?|PAT)"
    r"(?:_[A-Z0-9_]*)?)(?!\w)"
)
_MAX_ADDED = 64
"""Maximum values that one `x+=` may make."""
_NEW_FOLDER = "/tmp/tmp.XXXXXXXXXX"
_MKTEMP_OPTIONS = {"-d", "-q", "--directory", "--quiet"}
"""Options with which mktemp makes a folder in the default place."""


def judge_assignment(
    name: str, values: Iterable[str | None], *, exported: Collection[str], for_program: bool
) -> tuple[DangerLevel, str]:
    """Return how dangerous it is to give a variable these values, and why.

    It is a variable of the shell alone, unless it is set `for_program` or is one of the `exported`.
    """
    if any(value in _HISTORY.get(name, ()) for value in values):
        return DangerLevel.DANGEROUS, "turns the history of commands off"
    own = not for_program and name not in exported and not is_obeyed_variable(name)
    if own or is_harmless_variable(name):
        return DangerLevel.SAFE, ""
    return DangerLevel.ASK, f"sets {name}, which other programs may obey"


def is_harmless_variable(name: str) -> bool:
    """Whether a variable changes nothing about how programs are found and run."""
    return has_pattern_match(name, load_tables().words.harmless_variables)


def is_obeyed_variable(name: str) -> bool:
    """Whether a shell obeys a variable, or programs where it is in the environment."""
    return has_pattern_match(name, load_tables().words.obeyed_variables)


def is_only_setting(name: str, arguments: Arguments, exported: Collection[str]) -> bool:
    """Whether a builtin does no more than to set variables or options of the shell.

    What is set is the shell's own, unless it is one of the `exported` or the builtin exports it.
    """
    allowed = _SET if name == "set" else _OPTION
    if not all(argument.known and allowed.fullmatch(argument.text) for argument in arguments):
        return False
    if name == "set":  # alone, or with a bare -o, it prints every variable or option
        return arguments[-1:] != () and arguments[-1].text[-1:] != "o"
    names = [operand.text for operand in list_operands(arguments)]
    if name == "export" or any(
        "x" in argument.text for argument in arguments if argument.text[:1] == "-"
    ):
        return bool(names) and all(map(is_harmless_variable, names))
    obeyed = (name in exported or is_obeyed_variable(name) for name in names)
    return bool(names) and not any(obeyed)


def quote_obeyed_variable(
    name: str, values: Sequence[str | None], places: PathContext, *, for_program: bool
) -> str:
    """Return a variable that programs obey as a word; empty for others, and for several values."""
    level, _ = judge_assignment(name, values, exported=places.exported, for_program=for_program)
    if level is not DangerLevel.ASK or len(values) != 1 or values[0] is None:
        return ""
    return f"{name}={shlex.quote(values[0])}"


def collect_values(
    command: SimpleCommand, state: ShellState, uses: Uses
) -> dict[str, list[str | None]]:
    """Return what a command assigns: by name all values that are possible, None for unknown."""
    values: dict[str, list[str | None]] = {}
    for name, word in command.assignments:
        new = expand_word(resolve_substitutions(word, state, uses), state)
        before = state.values(name[:-1]) if name.endswith("+") else ()
        pairs = [(left, right) for left in before for right in new]
        joined = (
            None if left is None or right is None or len(left + right) > MAX_VALUE else left + right
            for left, right in pairs[: _MAX_ADDED + 1]
        )
        possible = values.setdefault(name.rstrip("+"), [])
        added = [None] if len(pairs) > _MAX_ADDED else joined
        possible[:] = limit_values((*possible, *added, *new))
    return values


def list_assigned_outputs(command: SimpleCommand, uses: Uses) -> Iterator[str]:
    """Yield what substitutions in the values of obeyed variables print: `BASH_ENV=<(echo …)`."""
    for name, word in command.assignments:
        if not is_harmless_variable(name.rstrip("+")):
            inside = (inner for piece in word for inner in piece.inside)
            ran = [use for inner in inside for use in uses.get(inner, ())]
            yield from [text for use in ran for text in list_printed_texts(use)]


def assign_values(
    command: SimpleCommand,
    values: Mapping[str, list[str | None]],
    state: ShellState,
    uses: Uses,
    loose: Collection[str],
) -> None:
    """Give the variables of the state the values they have after a command.

    `loose` are names that keep the values they had before.
    """
    first = read_first_word(command)
    stays = not first or first in DECLARING_BUILTINS
    for name, possible in values.items():
        if stays or name == "CDPATH":  # which `CDPATH=/ cd home` obeys at once
            keeps = name in loose and name in state.variables
            before = () if command.certain and not keeps else state.values(name)
            state.variables[name] = limit_values((*before, *possible))
    if name := _find_fresh_folder(command, uses):
        state.fresh = FreshFolder(command.chain, name, state.folders)
        state.variables[name] = (_NEW_FOLDER,)


def _find_fresh_folder(command: SimpleCommand, uses: Uses) -> str:
    """Return the name in `name=$(mktemp -d) &&`, after which there is a folder; else nothing."""
    assigned = command.assignments
    if not command.chain or command.words or len(assigned) != 1 or len(assigned[0][1]) != 1:
        return ""
    name, (value,) = assigned[0]
    ran = [use for inner in value.inside for use in uses.get(inner, ())]
    if (
        len(ran) != 1
        or ran[0].name != "mktemp"
        or not all(argument.known for argument in ran[0].arguments)
    ):
        return ""
    options = {argument.text for argument in ran[0].arguments}
    is_folder = options & {"-d", "--directory"} and options <= _MKTEMP_OPTIONS
    return name if is_folder else ""


def list_shown_credentials(command: SimpleCommand, state: ShellState) -> Iterator[str]:
    """Yield variables of the environment that may hold a credential, and are not only tested."""
    if read_first_word(command) in {"[", "test"}:
        return
    texts = (redirect.target for redirect in command.redirects if redirect.operator == "<<")
    for piece in (piece for word in (*command.words, *texts) for piece in word):
        match = piece.kind in {"variable", "unknown"} and _CREDENTIAL.match(piece.text)
        if match and match[1] not in state.variables:
            yield match[1]


def read_first_word(command: SimpleCommand) -> str:
    """Return the first word of a command as it was written; empty if it has none."""
    return "".join(piece.text for word in command.words[:1] for piece in word)
