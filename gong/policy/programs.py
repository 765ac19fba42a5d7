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

from ..shell.expansion import Argument
from .checks import find_dangers, find_embedded_commands
from .hidden import FETCHED_REASON, WrittenFiles, find_hidden_commands
from .invocation import DangerLevel, Invocation
from .matching import find_option_value, is_only_reading
from .scope import (
    SETTING_BUILTINS,
    build_invocation,
    is_only_setting,
    list_printed_texts,
    list_xargs_arguments,
)
from .tables import load_tables
from .wrapping import (
    LISTED_NAME,
    drop_harmless_execs,
    find_inner_commands,
    is_harmless_xargs,
    is_listing_files,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager

    from ..shell.expansion import Arguments, ShellState, SimpleCommand
    from .scope import Scope
    from .wrapping import InnerCommand

MAX_DEPTH = 8  # so many commands inside of commands are looked at
_SYSTEM_FOLDERS = {"", "/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"}
_SYSTEM_FOLDERS |= {"/opt/homebrew/bin"}
_BLANK = re.compile(r"\s")
_SEPARATORS = re.compile(r"[\s'\"\\;|&()$`]+")
_MOST_NAMES = 8  # names that are put in the place of `{}`
_MOST_TIMES = 8  # so many times the same text is looked at
_READ_SCRIPTS = {"source", ".", "ssh", "su", "at", "batch"}


class CommandWalk(Protocol):
    """The walk through the command line in which a program is run."""

    depth: int
    uses: dict[SimpleCommand, list[Invocation]]
    functions: set[str]

    def text(self, text: str, state: ShellState, feeders: tuple[SimpleCommand, ...]) -> None:
        """Judge a text of shell."""
        ...

    def count(self, steps: int) -> None:
        """Count what is looked at; raises TooLong."""
        ...

    def add(self, level: DangerLevel, reason: str, part: str) -> None:
        """Keep what is found."""
        ...

    def keep_only_dangers(self) -> AbstractContextManager[None]:
        """Forget what is found meanwhile, but for dangers."""
        ...

    def judge_variable(self, name: str, values: Iterable[str | None], at: Scope) -> None:
        """Judge the values a variable is given."""
        ...


@dataclass(slots=True)
class ProgramJudge:
    """Judges the programs of one command line, and stores the text of their files and aliases."""

    walk: CommandWalk
    running: set[str] = field(default_factory=set)
    looked_at: Counter[str] = field(default_factory=Counter)
    """Texts of files and aliases whose dangers were looked for, and how often."""
    aliases: dict[str, str] = field(default_factory=dict)
    carried: WrittenFiles = field(default_factory=WrittenFiles)

    def judge(self, arguments: Arguments, at: Scope) -> None:
        """Judge one program with its arguments, and what it runs; raises TooLong."""
        self.walk.count(1 + len(arguments) // 4)
        use = build_invocation(arguments, at, self.walk.uses)
        uses = self.walk.uses.setdefault(at.command, [])
        if use not in uses:  # what may or may not run is judged for both
            uses.append(use)
        reasons = list(find_dangers(use))
        for reason in reasons:
            self.walk.add(DangerLevel.DANGEROUS, reason, at.command.source)
        clear = self._judge_inner_commands(use, at)
        self._judge_scripts(use, at)
        self._judge_written_files(arguments[0], use, at)
        self._judge_alias(use, at)
        if not clear and not reasons and not self._is_only_reading_program(arguments[0], use):
            self.walk.add(DangerLevel.ASK, _explain_unknown_program(use), at.command.source)
            for text in find_hidden_commands(use):
                self.check_text(text, at)

    def _is_only_reading_program(self, first: Argument, use: Invocation) -> bool:
        folder, _, name = first.text.rpartition("/")
        decided = first.known and not first.glob
        if not decided or folder not in _SYSTEM_FOLDERS or name in self.walk.functions:
            return False
        if (first.text.startswith("/") and not folder) or _BLANK.search(name):
            return False  # `'git status'` is no git: its name has a blank
        if name in SETTING_BUILTINS:
            return is_only_setting(name, use.arguments)
        if name == "xargs":
            return is_harmless_xargs(use)
        if name == "find":
            return is_only_reading(name, drop_harmless_execs(use.arguments, use.places), use.places)
        return is_only_reading(name, use.arguments, use.places)

    def _judge_inner_commands(self, use: Invocation, at: Scope) -> bool:
        """Judge what a program runs; whether that is all it does."""
        ran = [*find_inner_commands(use.name, use.arguments)]
        if use.name in self.walk.functions and use.arguments:
            self._check_function_call(use.arguments, at)
        for one in ran:
            self._judge_inner_command(one, use, at)
        return bool(ran) and all(one.clear for one in ran)

    def _judge_inner_command(self, one: InnerCommand, use: Invocation, at: Scope) -> None:
        for name, value in one.assigned:
            self.walk.judge_variable(name, (value,), at)
        for text in (
            each for ran in use.inside if one.assigned for each in list_printed_texts(ran)
        ):
            self.check_text(text, at)  # `env BASH_ENV=<(echo …)`
        if self.walk.depth >= MAX_DEPTH:
            text = " ".join(each.text for each in (one.text, *one.arguments) if each)
            self._ask_about_depth(text, at)
        elif one.text is None:
            extra = list_xargs_arguments(use) if use.name in {"xargs", "parallel"} else ()
            extra = (LISTED_NAME,) if use.name == "xargs" and is_listing_files(use) else extra
            mark = find_option_value(use.arguments, "-I") or find_option_value(
                use.arguments, "--replace"
            )
            self._judge_filled_in(
                one.arguments, extra, mark.text if mark and mark.text else "{}", at
            )
            self.walk.depth += 1
            self.judge((*one.arguments, *extra), at)
            self.walk.depth -= 1
        elif one.text.known:
            self._judge_script(one.text.text, one.positional, at)
        else:
            self.walk.add(
                DangerLevel.ASK, "runs a text that an expansion decides", at.command.source
            )
            self._judge_script(one.text.text, one.positional, at)

    def _judge_filled_in(
        self, arguments: Arguments, names: Arguments, mark: str, at: Scope
    ) -> None:
        """Look for danger in a command of xargs whose marks stand for names that are known."""
        if not any(mark in one.text for one in arguments):
            return
        self.walk.depth += 1
        for name in [one.text for one in names if one.known and one != LISTED_NAME][:_MOST_NAMES]:
            with self.walk.keep_only_dangers():
                filled = (one._replace(text=one.text.replace(mark, name)) for one in arguments)
                self.judge(tuple(filled), at)
        self.walk.depth -= 1

    def _judge_script(self, text: str, positional: Arguments, at: Scope) -> None:
        """Judge a text that a shell of its own runs."""
        state = at.state.copy()
        for number, one in enumerate(positional):
            state.variables[str(number)] = (one.text if one.known else None,)
        given = tuple(one.text for one in positional[1:] if one.text)
        if positional:
            values = tuple(dict.fromkeys((" ".join(given), *given)))
            state.variables |= {"@": values, "*": values}
        self.walk.depth += 1
        if self.walk.depth <= MAX_DEPTH:
            self.walk.text(text, state, at.feeders)
        else:
            self._ask_about_depth(text, at)
        self.walk.depth -= 1

    def _ask_about_depth(self, text: str, at: Scope) -> None:
        """Ask about a text inside of too many others; its words may be a danger all the same."""
        self.walk.add(DangerLevel.ASK, "runs commands inside of too many others", at.command.source)
        words = tuple(Argument(one) for one in _SEPARATORS.split(text) if one)
        self.walk.count(1 + len(words) // 4)
        for reason in find_dangers(Invocation("env", words, at.places)):
            self.walk.add(DangerLevel.DANGEROUS, reason, at.command.source)

    def _judge_scripts(self, use: Invocation, at: Scope) -> None:
        """Judge the commands in what a shell reads and in code for an interpreter."""
        words = load_tables().words
        if use.name in words.shells or use.name in _READ_SCRIPTS:
            for text in use.given:
                self._judge_script(text, (), at)
            for text in dict.fromkeys(
                each for one in use.inside for each in list_printed_texts(one)
            ):
                self.check_text(text, at)  # `bash <(echo …)`
        for text in dict.fromkeys(find_embedded_commands(use)):
            with self.walk.keep_only_dangers():
                self._judge_script(text, (), at)

    def _judge_written_files(self, first: Argument, use: Invocation, at: Scope) -> None:
        """Judge the files a program runs that this command line wrote."""
        fetched, known = self.carried.find_run_texts(first, use)
        if fetched:
            self.walk.add(DangerLevel.DANGEROUS, FETCHED_REASON, at.command.source)
        for text in known:
            fed = replace(use, given=(text,))
            for reason in find_dangers(fed):
                self.walk.add(DangerLevel.DANGEROUS, reason, at.command.source)
            for one in dict.fromkeys(
                (text, *find_embedded_commands(fed), *find_hidden_commands(fed))
            ):
                self.check_text(one, at)

    def _judge_alias(self, use: Invocation, at: Scope) -> None:
        """Remember what names stand for, and look at one as if it stood there."""
        if use.name == "alias":
            self.aliases |= {
                name: text for one in use.arguments for name, _, text in [one.text.partition("=")]
            }
        elif use.name in self.aliases:
            words = (shlex.quote(one.text) for one in use.arguments)
            self.check_text(" ".join((self.aliases[use.name], *words)), at)

    def check_text(self, text: str, at: Scope) -> None:
        """Look for danger in a text that may run; it may name itself."""
        if text in self.running or self.looked_at[text] > _MOST_TIMES:
            return
        self.running.add(text)
        self.looked_at[text] += 1
        with self.walk.keep_only_dangers():
            self._judge_script(text, (), at)
        self.running.discard(text)

    def _check_function_call(self, arguments: Arguments, at: Scope) -> None:
        """Look at the arguments of a function as if it ran them."""
        if arguments[0].text.lower() not in self.walk.functions and self.walk.depth < MAX_DEPTH:
            self.walk.depth += 1
            with self.walk.keep_only_dangers():
                self.judge(arguments, at)
            self.walk.depth -= 1


def _explain_unknown_program(use: Invocation) -> str:
    if not use.name:
        return "the program is decided by an expansion"
    if use.name in load_tables().words.interactive:
        return f"{use.name} waits for keys: take a command that prints and ends, such as cat"
    if load_tables().find_reader(use.name) or any(
        one.startswith(f"{use.name} ") for one in load_tables().readers
    ):
        return f"{use.name} with these arguments may change something, or read elsewhere"
    return f"{use.name} is not one of the commands that only read"
