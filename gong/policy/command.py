"""The parsed view of a command line: words, redirections and simple commands, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple


class CommandTooLong(Exception):
    """A command line holds more than is looked at."""


class Piece(NamedTuple):
    """A run of a word that is decided in one way."""

    kind: Literal["text", "quoted", "variable", "unknown"]
    text: str
    """The characters; the name of a variable; the source of what is unknown."""
    in_quotes: bool = False
    """Whether a variable or an unknown part stands in double quotes: no blank splits it."""
    default: str | None = None
    """What stands for a variable that is empty: `${name:-default}`; other names follow a dollar."""
    filled: bool = False
    """Whether the shell stops where the variable is empty: `${name:?}`."""
    inside: tuple[SimpleCommand, ...] = ()
    """The commands a substitution runs."""


Word = tuple[Piece, ...]


class Redirect(NamedTuple):
    """One redirection."""

    operator: str
    """`>`, `>>`, `<`, `>&` and so on; `<<` for text that stands in the command."""
    target: Word
    """The file or descriptor; the text itself after `<<`."""
    source: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class SimpleCommand:
    """One simple command; without words, what a compound statement assigns or redirects."""

    source: str
    words: tuple[Word, ...] = ()
    assignments: tuple[tuple[str, Word], ...] = ()
    """Names and values; a name ends in `+` where the value is added to the one before.

    Of a name that comes several times, each value is possible.
    """
    redirects: tuple[Redirect, ...] = ()
    feeders: tuple[SimpleCommand, ...] = ()
    """What stands before it in its pipelines."""
    scope: tuple[int, ...] = ()
    """The subshells around it, outermost first: what they assign ends with them."""
    certain: bool = True
    """False inside a branch or loop: it may run or not."""
    chain: int = 0
    """Which commands run only after one another's success: those joined by `&&`; 0 for none."""


@dataclass(frozen=True, slots=True)
class ParsedCommandLine:
    """A command line, taken apart."""

    commands: tuple[SimpleCommand, ...]
    """In the order of the source, what a substitution runs before the command it stands in."""
    functions: frozenset[str]
    """The functions it defines; their bodies are among the commands."""
    bombs: tuple[str, ...]
    """Source of the functions that start themselves twice or in the background."""
    whole: bool
    """Whether every part of the text is in view."""
