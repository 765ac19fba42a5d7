"""The walk through a command line: judges each command by the commands before and around it.

A judge is used for one command line; its findings are collected in `found` and never removed.

How dangerous a shell command is: safe, ask, or dangerous, and the reason.

Text in, values out: no file is looked at and nothing is run. A whole command is as dangerous as
its most dangerous part; what is not understood is never safe.

The danger floor as a policy: no rule, mode or answer overrides its refusals.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ..shell.expansion import (
    LONGEST_VALUE,
    Argument,
    CommandTooLong,
    FreshFolder,
    ShellState,
    expand_word,
    expand_words,
    is_fully_expanded,
    limit_values,
)
from ..shell.parser import parse_command_line
from ..shell.words import ParserMissing
from .decision import Verdict
from .hidden import split_suspect_parts
from .invocation import DangerLevel, Judgement, PathContext, build_judgement
from .programs import MAX_DEPTH, ProgramJudge
from .scope import (
    DECLARING_BUILTINS,
    Scope,
    apply_builtin,
    is_harmless_variable,
    judge_assignment,
    judge_redirection,
    list_given_texts,
    list_printed_texts,
    resolve_substitutions,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..shell.expansion import ParsedCommandLine, Redirect, SimpleCommand
    from ..tools.tool import PreparedCall
    from .decision import Policy
    from .invocation import Invocation


_SHREDS = re.compile(r"[;&|\n(){}`]+")
_MOST_SHREDS = 200
_CREDENTIAL = re.compile(
    r"(?:\$\{)?((?:[A-Z0-9_]*_)?(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASS|CREDENTIALS?|PAT)"
    r"(?:_[A-Z0-9_]*)?)(?!\w)"
)
_PATTERN = re.compile(r"[!?*+@]\([^()]*\)")
_MOST_ADDED = 64  # values that `x+=` may make at once
_MOST_STEPS = 8000
"""So many readings of commands are judged in one command line; four arguments count as much."""
_NEW_FOLDER = "/tmp/tmp.XXXXXXXXXX"  # noqa: S108 (a name)
_PARSING = 5  # steps that reading a text costs, whatever it holds


@dataclass(slots=True)
class CommandJudge:
    """Goes through one command line; what is found gathers in `found`."""

    places: PathContext
    depth: int = 0
    found: list[Judgement] = field(default_factory=list)
    uses: dict[SimpleCommand, list[Invocation]] = field(default_factory=dict)
    """What each command runs, as far as it was judged."""
    functions: set[str] = field(default_factory=set)
    steps: int = 0
    """How much was judged so far."""
    loose: set[str] = field(default_factory=set)
    """Names set in loops and branches: they keep every value they ever may have."""
    programs: ProgramJudge = field(init=False)

    def __post_init__(self) -> None:
        """Hand the programs their way back here."""
        self.programs = ProgramJudge(self)

    def text(self, text: str, state: ShellState, feeders: tuple[SimpleCommand, ...]) -> None:
        """Judge a text of shell; raises TooLong, and ParserMissing."""
        self.count(_PARSING)
        view = parse_command_line(text)
        self.functions |= view.functions
        if not view.whole:
            self.add(DangerLevel.ASK, "cannot be taken apart", text)
            self._judge_shreds(text, state)
            self._judge_patterns(text, state)
        for bomb in view.bombs:
            self.add(DangerLevel.DANGEROUS, "starts itself without end", bomb)
        self.loose |= {
            name.rstrip("+")
            for one in view.commands
            for name, _ in one.assignments
            if not one.certain
        }
        first = state.folders
        self._judge_commands(view, state, feeders)
        if not all(one.certain for one in view.commands):
            last = state.folders
            state.folders = tuple(dict.fromkeys((*first, *last)))
            self._judge_commands(view, state, feeders)  # a loop's start sees what its end has set

    def count(self, steps: int) -> None:
        """Count what is looked at; raises TooLong."""
        self.steps += steps
        if self.steps > _MOST_STEPS:
            raise CommandTooLong

    def _judge_shreds(self, text: str, state: ShellState) -> None:
        """Look for danger in the shreds of a text that cannot be taken apart."""
        parts = dict.fromkeys(one.strip() for one in _SHREDS.split(text))
        shreds = [one for one in parts if one and one != text.strip()]
        if self.depth >= MAX_DEPTH:
            return
        if len(shreds) > _MOST_SHREDS:
            raise CommandTooLong
        self.depth += 1
        for one in shreds:
            with self.keep_only_dangers():
                self.text(one, state.copy(), ())
        self.depth -= 1

    def _judge_patterns(self, text: str, state: ShellState) -> None:
        """Look for danger with `!(a)` and the like, which the grammar does not know, as `*`."""
        plain = _PATTERN.sub("*", text)
        if plain != text and self.depth < MAX_DEPTH:
            self.depth += 1
            with self.keep_only_dangers():
                self.text(plain, state.copy(), ())
            self.depth -= 1

    @contextmanager
    def keep_only_dangers(self) -> Iterator[None]:
        """Forget what is found meanwhile, but for dangers."""
        before = len(self.found)
        yield
        self.found[before:] = [one for one in self.found[before:] if one.level > DangerLevel.ASK]

    def _judge_commands(
        self, view: ParsedCommandLine, state: ShellState, feeders: tuple[SimpleCommand, ...]
    ) -> None:
        states: dict[tuple[int, ...], ShellState] = {(): state}
        self._record_calls(view, state)
        for command in view.commands:
            scope = command.scope
            known = next(scope[:n] for n in range(len(scope), -1, -1) if scope[:n] in states)
            here = states[scope] if scope == known else states[known].copy()
            states[scope] = here
            self._judge_command(command, here, (*feeders, *command.feeders))

    def _record_calls(self, view: ParsedCommandLine, state: ShellState) -> None:
        """Take what functions are called with for what their numbered variables may hold."""
        for command in view.commands:
            name, *given = command.words or ((),)
            if "".join(piece.text for piece in name) in view.functions:
                values = [expand_word(one, state) for one in given]
                for number, possible in enumerate(values, 1):
                    before = state.variables.get(str(number), ())
                    state.variables[str(number)] = (*before, *possible)
                every = tuple(text for possible in values for text in possible)
                for name_of_all in ("@", "*"):
                    before = state.variables.get(name_of_all, ())
                    state.variables[name_of_all] = (*before, *every)

    def add(self, level: DangerLevel, reason: str, part: str) -> None:
        """Keep what is found."""
        self.found.append(build_judgement(level, reason, part))

    def _judge_command(
        self, command: SimpleCommand, state: ShellState, feeders: tuple[SimpleCommand, ...]
    ) -> None:
        state.leave_chain(command.chain)
        at = Scope(command, state, replace(self.places, folders=state.folders), feeders)
        written = [target for one in command.redirects for target in self._judge_redirect(one, at)]
        self._judge_assignments(at)
        words = tuple(resolve_substitutions(word, state, self.uses) for word in command.words)
        read = [one for one in expand_words(words, state) if one]
        for arguments in read:
            self.programs.judge(arguments, at)
            fed = tuple(list_given_texts(at, self.uses)) if arguments[0].text == "read" else ()
            apply_builtin(arguments, state, fed, certain=command.certain and len(read) == 1)
        for text in self.programs.carried.keep(self.uses.get(command, ()), written):
            self.programs.check_text(text, at)
        self._ask_about_credentials(command, state)
        if not is_fully_expanded(words, state):
            self.add(DangerLevel.ASK, "may stand for too many commands", command.source)

    def _ask_about_credentials(self, command: SimpleCommand, state: ShellState) -> None:
        """Ask where a variable may hold a credential of the environment, and is not only tested."""
        first = "".join(piece.text for word in command.words[:1] for piece in word)
        given = (one.target for one in command.redirects if one.operator == "<<")
        for piece in (piece for word in (*command.words, *given) for piece in word):
            found = piece.kind in {"variable", "unknown"} and _CREDENTIAL.match(piece.text)
            if found and found[1] not in state.variables and first not in {"[", "test"}:
                self.add(
                    DangerLevel.ASK, f"tells {found[1]}, which may be a credential", command.source
                )

    def _judge_redirect(self, redirect: Redirect, at: Scope) -> Iterator[Argument]:
        """Judge a redirection and yield the files it writes."""
        if redirect.operator == "<<":
            return
        for arguments in expand_words(
            (resolve_substitutions(redirect.target, at.state, self.uses),), at.state
        ):
            for target in arguments:
                level, reason = judge_redirection(redirect.operator, target, at.places)
                if level:
                    self.add(level, reason, redirect.source)
                if ">" in redirect.operator:
                    yield target

    def _judge_assignments(self, at: Scope) -> None:
        values: dict[str, list[str | None]] = {}
        for name, word in at.command.assignments:
            given = expand_word(resolve_substitutions(word, at.state, self.uses), at.state)
            before = at.state.values(name[:-1]) if name.endswith("+") else ()
            many = len(before) * len(given) > _MOST_ADDED
            added = [None] if many else [_append_value(one, o) for one in before for o in given]
            known = values.setdefault(name.rstrip("+"), [])
            known[:] = limit_values((*known, *added, *given))
        first = "".join(piece.text for word in at.command.words[:1] for piece in word)
        for name, possible in values.items():
            if (name, first) != ("IFS", "read"):  # there it parts what is read and nothing else
                self.judge_variable(name, possible, at)
        for name, word in at.command.assignments:
            if not is_harmless_variable(name.rstrip("+")):
                ran = (
                    one
                    for piece in word
                    for each in piece.inside
                    for one in self.uses.get(each, ())
                )
                for text in [text for one in ran for text in list_printed_texts(one)]:
                    self.programs.check_text(text, at)  # `BASH_ENV=<(echo …)`
        if not first or first in DECLARING_BUILTINS:
            for name, possible in values.items():
                loose = name in self.loose and name in at.state.variables
                before = () if at.command.certain and not loose else at.state.values(name)
                at.state.variables[name] = limit_values((*before, *possible))
        self._record_fresh_folder(at)

    def _record_fresh_folder(self, at: Scope) -> None:
        """Keep what `name=$(mktemp -d) &&` makes: what comes after runs only if there is one."""
        command, given = at.command, at.command.assignments
        if not command.chain or command.words or len(given) != 1 or len(given[0][1]) != 1:
            return
        ran = [one for inner in given[0][1][0].inside for one in self.uses.get(inner, ())]
        if len(ran) == 1 and ran[0].name == "mktemp" and _is_making_folder(ran[0]):
            at.state.fresh = FreshFolder(command.chain, given[0][0], at.state.folders)
            at.state.variables[given[0][0]] = (_NEW_FOLDER,)

    def judge_variable(self, name: str, values: Iterable[str | None], at: Scope) -> None:
        """Judge the values a variable is given."""
        level, reason = judge_assignment(name, values)
        if level:
            self.add(level, reason, at.command.source)
            for text in values:  # other programs may run it: PAGER, GIT_SSH_COMMAND, BASH_ENV
                paths = at.places.paths(Argument(text)) if text else ()
                held = (
                    each for path in paths for each in self.programs.carried.texts.get(path, ())
                )
                for part in (*(split_suspect_parts(text) if text else ()), *held):
                    self.programs.check_text(part, at)


def _is_making_folder(use: Invocation) -> bool:
    """Whether mktemp makes a folder where it makes them unless it is told otherwise."""
    words = {one.text for one in use.arguments if one.known}
    folder = len(words) == len(use.arguments) and words & {"-d", "--directory"}
    return bool(folder) and words <= {"-d", "-q", "--directory", "--quiet"}


def _append_value(before: str | None, text: str | None) -> str | None:
    whole = None if before is None or text is None else before + text
    return None if whole is None or len(whole) > LONGEST_VALUE else whole


__all__ = ["REFUSAL", "DangerLevel", "Judgement", "check_command", "classify_command"]

REFUSAL = "错误: 危险命令已被拦截。此命令可能造成不可逆损害。"
"""The refusal of a dangerous command, for the model (row M097)."""


def classify_command(
    command: str, cwd: str, home: str, roots: tuple[str, ...] = ("/tmp",)
) -> Judgement:
    """Return the most dangerous finding in a command line for bash.

    `cwd` and `home` are absolute paths; below `cwd` and `roots` files may be read unasked.
    """
    judge = CommandJudge(PathContext(cwd, home, (cwd, *roots), (cwd,)))
    try:
        judge.text(command, ShellState(home, (cwd,)), ())
    except ParserMissing:
        return build_judgement(
            DangerLevel.ASK, "cannot be analysed: tree-sitter-bash is missing", command
        )
    except CommandTooLong:
        return build_judgement(
            DangerLevel.DANGEROUS, "holds more commands than can be looked at", command
        )
    return max(judge.found, key=lambda one: one.level, default=Judgement(DangerLevel.SAFE))


def check_command(command: str, cwd: str, home: str) -> Verdict:
    """Refuse a dangerous command; no rule or mode overrides a refusal."""
    found = classify_command(command, cwd, home)
    if found.level < DangerLevel.DANGEROUS:
        return Verdict(allowed=True)
    text = f"{REFUSAL}\n{found.part}: {found.reason}. Find another way, or ask the user to run it."
    return Verdict(allowed=False, text=text)


@dataclass(frozen=True, slots=True)
class DangerPolicy:
    """Asks `above` about every call but those of a dangerous command, which it refuses."""

    above: Policy
    """Decides about all other calls: rules, modes, people."""
    cwd: str
    """Where commands run; absolute."""
    home: str

    async def __call__(self, prepared: PreparedCall) -> Verdict:
        """Refuse a dangerous command; leave everything else to `above`."""
        command = getattr(prepared.arguments, "command", None)
        if isinstance(command, str):
            verdict = check_command(command, self.cwd, self.home)
            if not verdict.allowed:
                return verdict
        return await self.above(prepared)
