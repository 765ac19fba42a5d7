"""The walk through a command line: each command judged by what stands before and around it.

A judge is used for one command line; what it finds gathers in `found`, and nothing is taken back.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from .effects import (
    DECLARE,
    SETTERS,
    appended,
    assigned,
    line,
    only_sets,
    printed,
    redirected,
    remember,
)
from .expansion import State, complete, readings, texts
from .handing import NAME, lists, only_hands, without_harmless
from .hazards import Use, dangers, embedded
from .level import Judgement, Level, judgement
from .matching import only_reads
from .shell import parsed
from .tables import table
from .wrapping import inner

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .command import Command, Parsed, Piece, Redirect, Word
    from .expansion import Argument, Arguments
    from .places import Places
    from .wrapping import Inner

_DEEPEST = 8  # so many commands inside of commands are looked at
_SYSTEM_FOLDERS = {"", "/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"}
_SYSTEM_FOLDERS |= {"/opt/homebrew/bin"}
_SHREDS = re.compile(r"[;&|\n(){}`]+")
_MOST_SHREDS = 64
_READ_SCRIPTS = {"source", ".", "ssh", "su"}


@dataclass(frozen=True, slots=True)
class _At:
    """Where a command stands."""

    command: Command
    state: State
    places: Places
    feeders: tuple[Command, ...]


@dataclass(slots=True)
class Judge:
    """Goes through one command line; what is found gathers in `found`."""

    places: Places
    depth: int = 0
    found: list[Judgement] = field(default_factory=list)
    uses: dict[Command, list[Use]] = field(default_factory=dict)
    """What each command runs, as far as it was judged."""
    functions: set[str] = field(default_factory=set)
    loose: set[str] = field(default_factory=set)
    """Names set in loops and branches: they keep every value they ever may have."""

    def text(self, text: str, state: State, feeders: tuple[Command, ...]) -> None:
        """Judge a text of shell."""
        view = parsed(text)
        self.functions |= view.functions
        if not view.whole:
            self._add(Level.ASK, "cannot be taken apart", text)
            self._shreds(text, state)
        for bomb in view.bombs:
            self._add(Level.DANGEROUS, "starts itself without end", bomb)
        self.loose |= {
            name.rstrip("+")
            for one in view.commands
            for name, _ in one.assignments
            if not one.certain
        }
        first = state.folders
        self._commands(view, state, feeders)
        if not all(one.certain for one in view.commands):
            last = state.folders
            state.folders = tuple(dict.fromkeys((*first, *last)))
            self._commands(view, state, feeders)  # a loop's start sees what its end has set

    def _shreds(self, text: str, state: State) -> None:
        """Look for danger in the shreds of a text that cannot be taken apart."""
        shreds = [one for one in _SHREDS.split(text) if one.strip() and one != text]
        if self.depth >= _DEEPEST or len(shreds) > _MOST_SHREDS:
            return
        self.depth += 1
        for one in shreds:
            with self._only_dangers():
                self.text(one, state.copy(), ())
        self.depth -= 1

    @contextmanager
    def _only_dangers(self) -> Iterator[None]:
        """Forget what is found meanwhile, but for dangers."""
        before = len(self.found)
        yield
        self.found[before:] = [one for one in self.found[before:] if one.level > Level.ASK]

    def _commands(self, view: Parsed, state: State, feeders: tuple[Command, ...]) -> None:
        states: dict[tuple[int, ...], State] = {(): state}
        self._calls(view, state)
        for command in view.commands:
            scope = command.scope
            known = next(scope[:n] for n in range(len(scope), -1, -1) if scope[:n] in states)
            here = states[scope] if scope == known else states[known].copy()
            states[scope] = here
            self._command(command, here, (*feeders, *command.feeders))

    def _calls(self, view: Parsed, state: State) -> None:
        """Take what functions are called with for what their numbered variables may hold."""
        for command in view.commands:
            name, *given = command.words or ((),)
            if "".join(piece.text for piece in name) in view.functions:
                values = [texts(one, state) for one in given]
                for number, possible in enumerate(values, 1):
                    before = state.variables.get(str(number), ())
                    state.variables[str(number)] = (*before, *possible)
                every = tuple(text for possible in values for text in possible)
                for name_of_all in ("@", "*"):
                    before = state.variables.get(name_of_all, ())
                    state.variables[name_of_all] = (*before, *every)

    def _add(self, level: Level, reason: str, part: str) -> None:
        self.found.append(judgement(level, reason, part))

    def _command(self, command: Command, state: State, feeders: tuple[Command, ...]) -> None:
        at = _At(command, state, replace(self.places, folders=state.folders), feeders)
        for redirect in command.redirects:
            self._redirect(redirect, at)
        self._assignments(at)
        words = tuple(self._resolved(word, state) for word in command.words)
        read = [one for one in readings(words, state) if one]
        for arguments in read:
            self._arguments(arguments, at)
            remember(arguments, state, certain=command.certain and len(read) == 1)
        if not complete(words, state):
            self._add(Level.ASK, "may stand for too many commands", command.source)

    def _resolved(self, word: Word, state: State) -> Word:
        """Return the word with `$(echo …)` and `$(pwd)` as variables that hold what they print.

        `<(…)` is the name of a pipe.
        """
        return tuple(self._output(piece, state) for piece in word)

    def _output(self, piece: Piece, state: State) -> Piece:
        if piece.kind == "unknown" and piece.text[:2] == "<(":
            return piece._replace(kind="quoted", text="/dev/fd/63")
        ran = [use for one in piece.inside for use in self.uses.get(one, ())]
        if (
            piece.kind != "unknown"
            or piece.text[:1] not in "$`"
            or not ran
            or len(piece.inside) > 1
        ):
            return piece
        if all(one.name == "pwd" and not one.arguments for one in ran):
            values: tuple[str | None, ...] = state.folders
        elif all(one.name in {"echo", "printf"} for one in ran):
            values = tuple(line(one) for one in ran)
        else:
            return piece
        state.variables[piece.text] = values
        return piece._replace(kind="variable")

    def _redirect(self, redirect: Redirect, at: _At) -> None:
        if redirect.operator == "<<":
            return
        for arguments in readings((self._resolved(redirect.target, at.state),), at.state):
            for target in arguments:
                level, reason = redirected(redirect.operator, target, at.places)
                if level:
                    self._add(level, reason, redirect.source)

    def _assignments(self, at: _At) -> None:
        values: dict[str, list[str | None]] = {}
        for name, word in at.command.assignments:
            given = texts(self._resolved(word, at.state), at.state)
            before = at.state.values(name[:-1]) if name.endswith("+") else ()
            added = [_added(one, other) for one in before for other in given]
            values.setdefault(name.rstrip("+"), []).extend((*added, *given))
        first = "".join(piece.text for word in at.command.words[:1] for piece in word)
        for name, possible in values.items():
            if (name, first) != ("IFS", "read"):  # there it parts what is read and nothing else
                self._assigned(name, possible, at.command.source)
        if not first or first in DECLARE:
            for name, possible in values.items():
                loose = name in self.loose and name in at.state.variables
                before = () if at.command.certain and not loose else at.state.values(name)
                at.state.variables[name] = tuple(dict.fromkeys((*before, *possible)))

    def _assigned(self, name: str, values: Iterable[str | None], source: str) -> None:
        level, reason = assigned(name, values)
        if level:
            self._add(level, reason, source)

    def _arguments(self, arguments: Arguments, at: _At) -> None:
        """Judge one program with its arguments, and what it runs."""
        use = self._use(arguments, at)
        uses = self.uses.setdefault(at.command, [])
        if use not in uses:  # what may or may not run is judged for both
            uses.append(use)
        reasons = list(dangers(use))
        for reason in reasons:
            self._add(Level.DANGEROUS, reason, at.command.source)
        clear = self._inner(use, at)
        self._scripts(use, at)
        if not clear and not reasons and not self._reads(arguments[0], use):
            self._add(Level.ASK, _unknown(use), at.command.source)

    def _use(self, arguments: Arguments, at: _At) -> Use:
        first = arguments[0]
        name = first.text.rsplit("/", 1)[-1].lower().removesuffix(".exe") if first.known else ""
        return Use(
            name,
            arguments[1:],
            at.places,
            before=tuple(use for one in at.feeders for use in self.uses.get(one, ())),
            inside=tuple(
                use for arg in arguments for one in arg.inside for use in self.uses.get(one, ())
            ),
            given=tuple(self._given(at)),
            read=tuple(_read(at)),
        )

    def _given(self, at: _At) -> Iterator[str]:
        """Yield the texts on standard input, as far as the command line holds them."""
        for one in (at.command, *at.feeders):
            for redirect in one.redirects:
                if redirect.operator == "<<":
                    yield "".join(piece.text for piece in redirect.target)
        for one in at.feeders:
            for use in self.uses.get(one, ()):
                yield from printed(use)

    def _reads(self, first: Argument, use: Use) -> bool:
        folder, _, name = first.text.rpartition("/")
        if not first.known or first.glob or folder not in _SYSTEM_FOLDERS or name in self.functions:
            return False
        if first.text.startswith("/") and not folder:
            return False
        if name in SETTERS:
            return only_sets(name, use.arguments)
        if name == "xargs":
            return only_hands(use)
        if name == "find":
            return only_reads(name, without_harmless(use.arguments, use.places), use.places)
        return only_reads(name, use.arguments, use.places)

    def _inner(self, use: Use, at: _At) -> bool:
        """Judge what a program runs; whether that is all it does."""
        ran = [*inner(use.name, use.arguments)]
        if use.name in self.functions and use.arguments:
            self._dangers_of_call(use.arguments, at)
        for one in ran:
            self._run(one, use, at)
        return bool(ran) and all(one.clear for one in ran)

    def _run(self, one: Inner, use: Use, at: _At) -> None:
        for name, value in one.assigned:
            self._assigned(name, (value,), at.command.source)
        if self.depth >= _DEEPEST:
            self._add(Level.ASK, "runs commands inside of too many others", at.command.source)
        elif one.text is None:
            extra = appended(use) if use.name in {"xargs", "parallel"} else ()
            extra = (NAME,) if use.name == "xargs" and lists(use) else extra
            self.depth += 1
            self._arguments((*one.arguments, *extra), at)
            self.depth -= 1
        elif one.text.known:
            self._script(one.text.text, one.positional, at)
        else:
            self._add(Level.ASK, "runs a text that an expansion decides", at.command.source)
            self._script(one.text.text, one.positional, at)

    def _script(self, text: str, positional: Arguments, at: _At) -> None:
        """Judge a text that a shell of its own runs."""
        state = at.state.copy()
        for number, one in enumerate(positional):
            state.variables[str(number)] = (one.text if one.known else None,)
        given = " ".join(one.text for one in positional[1:])
        if positional:
            state.variables |= {"@": (given,), "*": (given,)}
        self.depth += 1
        if self.depth <= _DEEPEST:
            self.text(text, state, at.feeders)
        else:
            self._add(Level.ASK, "runs commands inside of too many others", text)
        self.depth -= 1

    def _scripts(self, use: Use, at: _At) -> None:
        """Judge the commands in what a shell reads and in code for an interpreter."""
        words = table().words
        if use.name in words.shells or use.name in _READ_SCRIPTS:
            for text in use.given:
                self._script(text, (), at)
        for text in embedded(use):
            with self._only_dangers():
                self._script(text, (), at)

    def _dangers_of_call(self, arguments: Arguments, at: _At) -> None:
        """Look at the arguments of a function as if it ran them."""
        if arguments[0].text.lower() not in self.functions and self.depth < _DEEPEST:
            self.depth += 1
            with self._only_dangers():
                self._arguments(arguments, at)
            self.depth -= 1


def _added(before: str | None, text: str | None) -> str | None:
    return None if before is None or text is None else before + text


def _unknown(use: Use) -> str:
    if not use.name:
        return "the program is decided by an expansion"
    if table().reader(use.name) or any(one.startswith(f"{use.name} ") for one in table().readers):
        return f"{use.name} with these arguments may change something, or read elsewhere"
    return f"{use.name} is not one of the commands that only read"


def _read(at: _At) -> Iterator[Argument]:
    for redirect in (each for one in (at.command, *at.feeders) for each in one.redirects):
        if redirect.operator == "<":
            for arguments in readings((redirect.target,), at.state):
                yield from arguments
