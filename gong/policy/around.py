"""What stands around a command: where it runs, what it may read, what its substitutions print.

Pure but for the variables that `resolved` gives to the state, for outputs it knows.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .command import Piece
from .cutting import expand_operator
from .effects import find_printed_line, list_printed_texts
from .expansion import ANY_PATH, Argument, expand_words
from .matching import has_any_option, list_operands
from .tables import load_tables
from .use import Invocation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .command import SimpleCommand, Word
    from .expansion import Arguments, ShellState
    from .places import PathContext

    Uses = Mapping[SimpleCommand, Sequence[Invocation]]
    """What each command runs, as far as it was judged."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a command stands."""

    command: SimpleCommand
    state: ShellState
    places: PathContext
    feeders: tuple[SimpleCommand, ...]


def build_invocation(arguments: Arguments, at: Scope, uses: Uses) -> Invocation:
    """Return a program with its arguments and what is around it."""
    first = arguments[0]
    name = first.text.rsplit("/", 1)[-1].lower().removesuffix(".exe") if first.known else ""
    inside = (one for arg in arguments for one in arg.inside)
    return Invocation(
        name,
        arguments[1:],
        at.places,
        before=_collect_invocations((*at.feeders, *_list_piped_commands(at.command)), uses),
        inside=_collect_invocations(inside, uses),
        given=tuple(list_given_texts(at, uses)),
        read=tuple(_list_read_files(at)),
    )


def _collect_invocations(
    commands: Iterator[SimpleCommand] | Sequence[SimpleCommand], uses: Uses
) -> tuple[Invocation, ...]:
    return tuple(use for one in commands for use in uses.get(one, ()))


def _list_piped_commands(command: SimpleCommand) -> tuple[SimpleCommand, ...]:
    """Return what `< <(…)` runs."""
    targets = (one.target for one in command.redirects if one.operator == "<")
    return tuple(inner for target in targets for piece in target for inner in piece.inside)


def list_given_texts(at: Scope, uses: Uses) -> Iterator[str]:
    """Yield the texts on standard input, as far as the command line holds them."""
    for one in (at.command, *at.feeders):
        for redirect in one.redirects:
            if redirect.operator == "<<":
                yield "".join(piece.text for piece in redirect.target)
    for use in _collect_invocations((*at.feeders, *_list_piped_commands(at.command)), uses):
        yield from list_printed_texts(use)


def _list_read_files(at: Scope) -> Iterator[Argument]:
    """Yield the files that are redirected into a command."""
    for redirect in (each for one in (at.command, *at.feeders) for each in one.redirects):
        if redirect.operator == "<":
            for arguments in expand_words((redirect.target,), at.state):
                yield from arguments


def resolve_substitutions(word: Word, state: ShellState, uses: Uses) -> Word:
    """Return the word with `$(echo …)` and `$(pwd)` as variables that hold what they print.

    `<(…)` is the name of a pipe.
    """
    first = word[0] if word and word[0].kind == "text" else None
    found = _WHERE.match(first.text) if first else None
    if first and found and (found.end() < len(first.text) or len(word) == 1):
        name = "PWD" if found[0] == "~+" else "OLDPWD"
        state.variables[found[0]] = (*state.values(name), None)
        rest = (first._replace(text=first.text[found.end() :]), *word[1:])
        word = (Piece("variable", found[0], in_quotes=True), *rest)
    return tuple(_resolve_output(piece, state, uses) for piece in word)


def _resolve_output(piece: Piece, state: ShellState, uses: Uses) -> Piece:
    if piece.kind == "unknown" and piece.text[:2] == "<(":
        return piece._replace(kind="quoted", text="/dev/fd/63")
    if piece.kind != "unknown" or piece.text[:1] not in "$`":
        return piece
    ran = _collect_invocations(piece.inside, uses)
    values = expand_operator(piece.text, state) or _find_printed_values(
        ran, len(piece.inside), state
    )
    reads = any(one.redirects and not one.words for one in piece.inside)  # `$(< file)`
    if not values and piece.text[:2] != "$((" and (reads or not _is_naming_parts(ran)):
        values = (ANY_PATH,)
    if not values:
        return piece
    state.variables[piece.text] = values
    return piece._replace(kind="variable")


def _is_naming_parts(ran: tuple[Invocation, ...]) -> bool:
    """Whether what is printed are names of files below a folder, or no paths at all."""
    others = [one for one in ran if one.name not in _MOVES]
    if not others:
        return True
    first, *rest = others
    if first.name in {"echo", "printf"}:
        return not rest
    return first.name in _LIST_PARTS and all(one.name in {*_PASSING, *_CHOOSE} for one in rest)


def _find_printed_values(
    ran: tuple[Invocation, ...], commands: int, state: ShellState
) -> tuple[str | None, ...]:
    """Return what the commands of a substitution may print; nothing where it cannot be told."""
    if not ran:
        return ()
    if ran[-1].name == "pwd" and all(one.name in {"pwd", *_MOVES} for one in ran):
        ends = (folder for one in ran if one.name == "pwd" for folder in one.places.folders)
        return tuple(dict.fromkeys(ends))
    if commands > 1:
        passed = all(one.name in _PASSING for one in ran[1:]) and ran[0].name in {"echo", "printf"}
        if passed:
            return (
                find_printed_line(ran[0]),
                ANY_PATH if any(one.name == "tr" for one in ran) else None,
            )
        if not all(one.name in _MOVES for one in ran):
            return ()
    if all(one.name in {"echo", "printf"} for one in ran):
        return tuple(find_printed_line(one) for one in ran)
    found = tuple(text for one in ran for text in _find_named_places(one, state))
    return (*found, None) if found else ()


def _find_named_places(use: Invocation, state: ShellState) -> Iterator[str]:
    """Yield places that a command is known to name, among others."""
    given = [one for one in list_operands(use.arguments) if one.known]
    words = [one.text for one in use.arguments]
    if use.name == "cat" and not use.arguments:
        yield from use.given
    elif use.name in {"realpath", "readlink"}:
        yield from (one.text for one in given)
    elif use.name == "dirname":
        yield from (posixpath.dirname(path) for one in given for path in use.places.paths(one))
    elif words == ["rev-parse", "--show-toplevel"] and use.name == "git":
        yield use.places.start
    elif (use.name == "ls" and not given) or (use.name == "git" and words == ["ls-files"]):
        yield from (f"{one}/*" for one in state.folders if one is not None)
    elif use.name == "find" and not (len(given) > 1 or {*words} & {*load_tables().words.narrowing}):
        yield from (one.text for one in given or (Argument("."),))
    elif use.name == "find":  # of a whole system any part is too much
        yield from (one.text for one in given[:1] if use.places.is_foreign(one))
    elif use.name == "ls" and has_any_option(use.arguments, ["-d"]):
        yield from (one.text for one in given)


_WHERE = re.compile(r"~[-+](?=/|$)")
_MOVES = {"cd", "pushd", "popd", "dirname", "readlink", "realpath", "basename"}
_LIST_PARTS = {"find", "fd", "ls", "git", "mktemp", "date", "uname", "whoami", "hostname", "id"}
_LIST_PARTS |= {"which", "command", "type", "wc", "seq", "nproc", "expr", "echo", "printf", "pwd"}
_CHOOSE = {"grep", "egrep", "fgrep", "rg", "xargs"}
_PASSING = {"cat", "tee", "sort", "head", "tail", "uniq", "tr"}
"""Programs that print what they read, all or in part."""
