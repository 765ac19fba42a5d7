"""What stands around a command: where it runs, what it may read, what its substitutions print.

Pure but for the variables that `resolved` gives to the state, for outputs it knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .effects import line, printed
from .expansion import readings
from .use import Use

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .command import Command, Piece, Word
    from .expansion import Argument, Arguments, State
    from .places import Places

    Uses = Mapping[Command, Sequence[Use]]
    """What each command runs, as far as it was judged."""


@dataclass(frozen=True, slots=True)
class At:
    """Where a command stands."""

    command: Command
    state: State
    places: Places
    feeders: tuple[Command, ...]


def use_of(arguments: Arguments, at: At, uses: Uses) -> Use:
    """Return a program with its arguments and what is around it."""
    first = arguments[0]
    name = first.text.rsplit("/", 1)[-1].lower().removesuffix(".exe") if first.known else ""
    inside = (one for arg in arguments for one in arg.inside)
    return Use(
        name,
        arguments[1:],
        at.places,
        before=_all((*at.feeders, *_piped(at.command)), uses),
        inside=_all(inside, uses),
        given=tuple(given(at, uses)),
        read=tuple(_read(at)),
    )


def _all(commands: Iterator[Command] | Sequence[Command], uses: Uses) -> tuple[Use, ...]:
    return tuple(use for one in commands for use in uses.get(one, ()))


def _piped(command: Command) -> tuple[Command, ...]:
    """Return what `< <(…)` runs."""
    targets = (one.target for one in command.redirects if one.operator == "<")
    return tuple(inner for target in targets for piece in target for inner in piece.inside)


def given(at: At, uses: Uses) -> Iterator[str]:
    """Yield the texts on standard input, as far as the command line holds them."""
    for one in (at.command, *at.feeders):
        for redirect in one.redirects:
            if redirect.operator == "<<":
                yield "".join(piece.text for piece in redirect.target)
    for use in _all((*at.feeders, *_piped(at.command)), uses):
        yield from printed(use)


def _read(at: At) -> Iterator[Argument]:
    """Yield the files that are redirected into a command."""
    for redirect in (each for one in (at.command, *at.feeders) for each in one.redirects):
        if redirect.operator == "<":
            for arguments in readings((redirect.target,), at.state):
                yield from arguments


def resolved(word: Word, state: State, uses: Uses) -> Word:
    """Return the word with `$(echo …)` and `$(pwd)` as variables that hold what they print.

    `<(…)` is the name of a pipe.
    """
    return tuple(_output(piece, state, uses) for piece in word)


def _output(piece: Piece, state: State, uses: Uses) -> Piece:
    if piece.kind == "unknown" and piece.text[:2] == "<(":
        return piece._replace(kind="quoted", text="/dev/fd/63")
    ran = _all(piece.inside, uses)
    if piece.kind != "unknown" or piece.text[:1] not in "$`" or not ran or len(piece.inside) > 1:
        return piece
    if all(one.name == "pwd" and not one.arguments for one in ran):
        values: tuple[str | None, ...] = state.folders
    elif all(one.name in {"echo", "printf"} for one in ran):
        values = tuple(line(one) for one in ran)
    else:
        return piece
    state.variables[piece.text] = values
    return piece._replace(kind="variable")
