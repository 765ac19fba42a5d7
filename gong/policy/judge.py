"""The walk through a command line: each command judged by what stands before and around it.

A judge is used for one command line; what it finds gathers in `found`, and nothing is taken back.
"""

from __future__ import annotations

import re
import shlex
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from .around import At, given, resolved, use_of
from .carried import FETCHED, Carried
from .effects import DECLARE, SETTERS, appended, assigned, only_sets, redirected, remember
from .expansion import State, complete, readings, texts
from .handing import NAME, lists, only_hands, without_harmless
from .hazards import dangers, embedded
from .level import Judgement, Level, judgement
from .matching import only_reads
from .shell import parsed
from .tables import table
from .wrapping import inner

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .command import Command, Parsed, Redirect
    from .expansion import Argument, Arguments
    from .places import Places
    from .use import Use
    from .wrapping import Inner

_DEEPEST = 8  # so many commands inside of commands are looked at
_SYSTEM_FOLDERS = {"", "/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"}
_SYSTEM_FOLDERS |= {"/opt/homebrew/bin"}
_SHREDS = re.compile(r"[;&|\n(){}`]+")
_MOST_SHREDS = 64
_MOST_TEXTS = 64
_READ_SCRIPTS = {"source", ".", "ssh", "su", "at", "batch"}


@dataclass(slots=True)
class Judge:
    """Goes through one command line; what is found gathers in `found`."""

    places: Places
    depth: int = 0
    found: list[Judgement] = field(default_factory=list)
    uses: dict[Command, list[Use]] = field(default_factory=dict)
    """What each command runs, as far as it was judged."""
    functions: set[str] = field(default_factory=set)
    running: set[str] = field(default_factory=set)
    looked_at: list[str] = field(default_factory=list)
    """Texts of files and aliases whose dangers were looked for."""
    aliases: dict[str, str] = field(default_factory=dict)
    carried: Carried = field(default_factory=Carried)
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
        at = At(command, state, replace(self.places, folders=state.folders), feeders)
        written = [target for one in command.redirects for target in self._redirect(one, at)]
        self._assignments(at)
        words = tuple(resolved(word, state, self.uses) for word in command.words)
        read = [one for one in readings(words, state) if one]
        for arguments in read:
            self._arguments(arguments, at)
            fed = tuple(given(at, self.uses)) if arguments[0].text == "read" else ()
            remember(arguments, state, fed, certain=command.certain and len(read) == 1)
        self.carried.keep(self.uses.get(command, ()), written)
        if not complete(words, state):
            self._add(Level.ASK, "may stand for too many commands", command.source)

    def _redirect(self, redirect: Redirect, at: At) -> Iterator[Argument]:
        """Judge a redirection and yield the files it writes."""
        if redirect.operator == "<<":
            return
        for arguments in readings((resolved(redirect.target, at.state, self.uses),), at.state):
            for target in arguments:
                level, reason = redirected(redirect.operator, target, at.places)
                if level:
                    self._add(level, reason, redirect.source)
                if ">" in redirect.operator:
                    yield target

    def _assignments(self, at: At) -> None:
        values: dict[str, list[str | None]] = {}
        for name, word in at.command.assignments:
            given = texts(resolved(word, at.state, self.uses), at.state)
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

    def _arguments(self, arguments: Arguments, at: At) -> None:
        """Judge one program with its arguments, and what it runs."""
        use = use_of(arguments, at, self.uses)
        uses = self.uses.setdefault(at.command, [])
        if use not in uses:  # what may or may not run is judged for both
            uses.append(use)
        reasons = list(dangers(use))
        for reason in reasons:
            self._add(Level.DANGEROUS, reason, at.command.source)
        clear = self._inner(use, at)
        self._scripts(use, at)
        self._files(arguments[0], use, at)
        self._alias(use, at)
        if not clear and not reasons and not self._reads(arguments[0], use):
            self._add(Level.ASK, _unknown(use), at.command.source)

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

    def _inner(self, use: Use, at: At) -> bool:
        """Judge what a program runs; whether that is all it does."""
        ran = [*inner(use.name, use.arguments)]
        if use.name in self.functions and use.arguments:
            self._dangers_of_call(use.arguments, at)
        for one in ran:
            self._run(one, use, at)
        return bool(ran) and all(one.clear for one in ran)

    def _run(self, one: Inner, use: Use, at: At) -> None:
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

    def _script(self, text: str, positional: Arguments, at: At) -> None:
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

    def _scripts(self, use: Use, at: At) -> None:
        """Judge the commands in what a shell reads and in code for an interpreter."""
        words = table().words
        if use.name in words.shells or use.name in _READ_SCRIPTS:
            for text in use.given:
                self._script(text, (), at)
        for text in embedded(use):
            with self._only_dangers():
                self._script(text, (), at)

    def _files(self, first: Argument, use: Use, at: At) -> None:
        """Judge the files a program runs that this command line wrote."""
        fetched, known = self.carried.run_by(first, use)
        if fetched:
            self._add(Level.DANGEROUS, FETCHED, at.command.source)
        for text in known:
            fed = replace(use, given=(text,))
            for reason in dangers(fed):
                self._add(Level.DANGEROUS, reason, at.command.source)
            for one in (text, *embedded(fed)):
                self._dangers_of(one, at)

    def _alias(self, use: Use, at: At) -> None:
        """Remember what names stand for, and look at one as if it stood there."""
        if use.name == "alias":
            self.aliases |= {
                name: text for one in use.arguments for name, _, text in [one.text.partition("=")]
            }
        elif use.name in self.aliases:
            words = (shlex.quote(one.text) for one in use.arguments)
            self._dangers_of(" ".join((self.aliases[use.name], *words)), at)

    def _dangers_of(self, text: str, at: At) -> None:
        """Look for danger in a text that may run; it may name itself."""
        if text in self.running or len(self.looked_at) > _MOST_TEXTS:
            return
        self.running.add(text)
        self.looked_at.append(text)
        with self._only_dangers():
            self._script(text, (), at)
        self.running.discard(text)

    def _dangers_of_call(self, arguments: Arguments, at: At) -> None:
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
    if use.name in table().words.interactive:
        return f"{use.name} waits for keys: take a command that prints and ends, such as cat"
    if table().reader(use.name) or any(one.startswith(f"{use.name} ") for one in table().readers):
        return f"{use.name} with these arguments may change something, or read elsewhere"
    return f"{use.name} is not one of the commands that only read"
