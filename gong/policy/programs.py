"""One program with its arguments, judged by the tables, and whatever it runs in its turn.

The walk it belongs to counts the steps and gathers what is found; a text that a program runs is
given back to it.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from .around import use_of
from .carried import FETCHED, Carried
from .effects import SETTERS, appended, only_sets, printed
from .expansion import Argument
from .handing import NAME, lists, only_hands, without_harmless
from .hazards import dangers, embedded
from .hidden import hidden
from .level import Level
from .matching import only_reads, value_of
from .tables import table
from .use import Use
from .wrapping import inner

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager

    from .around import At
    from .command import Command
    from .expansion import Arguments, State
    from .wrapping import Inner

DEEPEST = 8  # so many commands inside of commands are looked at
_SYSTEM_FOLDERS = {"", "/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"}
_SYSTEM_FOLDERS |= {"/opt/homebrew/bin"}
_BLANK = re.compile(r"\s")
_SEPARATORS = re.compile(r"[\s'\"\\;|&()$`]+")
_MOST_NAMES = 8  # names that are put in the place of `{}`
_MOST_TIMES = 8  # so many times the same text is looked at
_READ_SCRIPTS = {"source", ".", "ssh", "su", "at", "batch"}


class Walk(Protocol):
    """The walk through the command line in which a program is run."""

    depth: int
    uses: dict[Command, list[Use]]
    functions: set[str]

    def text(self, text: str, state: State, feeders: tuple[Command, ...]) -> None:
        """Judge a text of shell."""
        ...

    def count(self, steps: int) -> None:
        """Count what is looked at; raises TooLong."""
        ...

    def add(self, level: Level, reason: str, part: str) -> None:
        """Keep what is found."""
        ...

    def only_dangers(self) -> AbstractContextManager[None]:
        """Forget what is found meanwhile, but for dangers."""
        ...

    def assigned(self, name: str, values: Iterable[str | None], at: At) -> None:
        """Judge the values a variable is given."""
        ...


@dataclass(slots=True)
class Programs:
    """Judges the programs of one command line, and remembers what their files and aliases hold."""

    walk: Walk
    running: set[str] = field(default_factory=set)
    looked_at: Counter[str] = field(default_factory=Counter)
    """Texts of files and aliases whose dangers were looked for, and how often."""
    aliases: dict[str, str] = field(default_factory=dict)
    carried: Carried = field(default_factory=Carried)

    def judge(self, arguments: Arguments, at: At) -> None:
        """Judge one program with its arguments, and what it runs; raises TooLong."""
        self.walk.count(1 + len(arguments) // 4)
        use = use_of(arguments, at, self.walk.uses)
        uses = self.walk.uses.setdefault(at.command, [])
        if use not in uses:  # what may or may not run is judged for both
            uses.append(use)
        reasons = list(dangers(use))
        for reason in reasons:
            self.walk.add(Level.DANGEROUS, reason, at.command.source)
        clear = self._inner(use, at)
        self._scripts(use, at)
        self._files(arguments[0], use, at)
        self._alias(use, at)
        if not clear and not reasons and not self._reads(arguments[0], use):
            self.walk.add(Level.ASK, _unknown(use), at.command.source)
            for text in hidden(use):
                self.dangers_of(text, at)

    def _reads(self, first: Argument, use: Use) -> bool:
        folder, _, name = first.text.rpartition("/")
        decided = first.known and not first.glob
        if not decided or folder not in _SYSTEM_FOLDERS or name in self.walk.functions:
            return False
        if (first.text.startswith("/") and not folder) or _BLANK.search(name):
            return False  # `'git status'` is no git: its name has a blank
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
        if use.name in self.walk.functions and use.arguments:
            self._dangers_of_call(use.arguments, at)
        for one in ran:
            self._run(one, use, at)
        return bool(ran) and all(one.clear for one in ran)

    def _run(self, one: Inner, use: Use, at: At) -> None:
        for name, value in one.assigned:
            self.walk.assigned(name, (value,), at)
        for text in (each for ran in use.inside if one.assigned for each in printed(ran)):
            self.dangers_of(text, at)  # `env BASH_ENV=<(echo …)`
        if self.walk.depth >= DEEPEST:
            text = " ".join(each.text for each in (one.text, *one.arguments) if each)
            self._too_deep(text, at)
        elif one.text is None:
            extra = appended(use) if use.name in {"xargs", "parallel"} else ()
            extra = (NAME,) if use.name == "xargs" and lists(use) else extra
            mark = value_of(use.arguments, "-I") or value_of(use.arguments, "--replace")
            self._filled_in(one.arguments, extra, mark.text if mark and mark.text else "{}", at)
            self.walk.depth += 1
            self.judge((*one.arguments, *extra), at)
            self.walk.depth -= 1
        elif one.text.known:
            self._script(one.text.text, one.positional, at)
        else:
            self.walk.add(Level.ASK, "runs a text that an expansion decides", at.command.source)
            self._script(one.text.text, one.positional, at)

    def _filled_in(self, arguments: Arguments, names: Arguments, mark: str, at: At) -> None:
        """Look for danger in a command of xargs whose marks stand for names that are known."""
        if not any(mark in one.text for one in arguments):
            return
        self.walk.depth += 1
        for name in [one.text for one in names if one.known and one != NAME][:_MOST_NAMES]:
            with self.walk.only_dangers():
                filled = (one._replace(text=one.text.replace(mark, name)) for one in arguments)
                self.judge(tuple(filled), at)
        self.walk.depth -= 1

    def _script(self, text: str, positional: Arguments, at: At) -> None:
        """Judge a text that a shell of its own runs."""
        state = at.state.copy()
        for number, one in enumerate(positional):
            state.variables[str(number)] = (one.text if one.known else None,)
        given = tuple(one.text for one in positional[1:] if one.text)
        if positional:
            values = tuple(dict.fromkeys((" ".join(given), *given)))
            state.variables |= {"@": values, "*": values}
        self.walk.depth += 1
        if self.walk.depth <= DEEPEST:
            self.walk.text(text, state, at.feeders)
        else:
            self._too_deep(text, at)
        self.walk.depth -= 1

    def _too_deep(self, text: str, at: At) -> None:
        """Ask about a text inside of too many others; its words may be a danger all the same."""
        self.walk.add(Level.ASK, "runs commands inside of too many others", at.command.source)
        words = tuple(Argument(one) for one in _SEPARATORS.split(text) if one)
        self.walk.count(1 + len(words) // 4)
        for reason in dangers(Use("env", words, at.places)):
            self.walk.add(Level.DANGEROUS, reason, at.command.source)

    def _scripts(self, use: Use, at: At) -> None:
        """Judge the commands in what a shell reads and in code for an interpreter."""
        words = table().words
        if use.name in words.shells or use.name in _READ_SCRIPTS:
            for text in use.given:
                self._script(text, (), at)
            for text in dict.fromkeys(each for one in use.inside for each in printed(one)):
                self.dangers_of(text, at)  # `bash <(echo …)`
        for text in dict.fromkeys(embedded(use)):
            with self.walk.only_dangers():
                self._script(text, (), at)

    def _files(self, first: Argument, use: Use, at: At) -> None:
        """Judge the files a program runs that this command line wrote."""
        fetched, known = self.carried.run_by(first, use)
        if fetched:
            self.walk.add(Level.DANGEROUS, FETCHED, at.command.source)
        for text in known:
            fed = replace(use, given=(text,))
            for reason in dangers(fed):
                self.walk.add(Level.DANGEROUS, reason, at.command.source)
            for one in dict.fromkeys((text, *embedded(fed), *hidden(fed))):
                self.dangers_of(one, at)

    def _alias(self, use: Use, at: At) -> None:
        """Remember what names stand for, and look at one as if it stood there."""
        if use.name == "alias":
            self.aliases |= {
                name: text for one in use.arguments for name, _, text in [one.text.partition("=")]
            }
        elif use.name in self.aliases:
            words = (shlex.quote(one.text) for one in use.arguments)
            self.dangers_of(" ".join((self.aliases[use.name], *words)), at)

    def dangers_of(self, text: str, at: At) -> None:
        """Look for danger in a text that may run; it may name itself."""
        if text in self.running or self.looked_at[text] > _MOST_TIMES:
            return
        self.running.add(text)
        self.looked_at[text] += 1
        with self.walk.only_dangers():
            self._script(text, (), at)
        self.running.discard(text)

    def _dangers_of_call(self, arguments: Arguments, at: At) -> None:
        """Look at the arguments of a function as if it ran them."""
        if arguments[0].text.lower() not in self.walk.functions and self.walk.depth < DEEPEST:
            self.walk.depth += 1
            with self.walk.only_dangers():
                self.judge(arguments, at)
            self.walk.depth -= 1


def _unknown(use: Use) -> str:
    if not use.name:
        return "the program is decided by an expansion"
    if use.name in table().words.interactive:
        return f"{use.name} waits for keys: take a command that prints and ends, such as cat"
    if table().reader(use.name) or any(one.startswith(f"{use.name} ") for one in table().readers):
        return f"{use.name} with these arguments may change something, or read elsewhere"
    return f"{use.name} is not one of the commands that only read"
