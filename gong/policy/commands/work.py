"""What a program runs besides itself, as work for the judge: programs, texts, dangers. Pure.

Each function reads one use of a program and yields, in the order in which a shell gets to it, what
is to be judged next:

    work                     what runs it                          what counts of its findings
    -----------------------  ------------------------------------  -----------------------------
    ProgramRun               a wrapper: sudo, find -exec, xargs    all
    ProgramRun(likely=True)  a function, `"$@"`, filled-in names   dangers
    TextRun SCRIPT           a shell: bash -c, bash <<EOF          all
    TextRun CODE             code of another language              dangers, and that it removes
    TextRun WRITTEN          a file or pipe this line wrote        dangers, and that it removes
    TextRun POSSIBLE         nothing known: it may be a command    dangers
    VariableSet              –                                     all, of the value too
    TooDeep                  a wrapper inside too many others      a question, and known dangers
    DangerReason, AskReason  –                                     it is one
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from ...shell.expansion import Argument
from .checks import find_dangers, find_embedded_commands
from .hidden import find_hidden_commands, split_suspect_parts
from .matching import FETCHED_REASON, find_option_value, list_operands
from .scope import list_printed_texts, list_xargs_arguments
from .tables import load_tables
from .variables import quote_obeyed_variable
from .wrappers import LISTED_NAME, is_listing_files

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from ...shell.expansion import Arguments, SimpleCommand
    from .hidden import WrittenFiles
    from .invocation import Invocation, PathContext
    from .scope import Uses
    from .wrappers import InnerCommand

_MAX_FILLED = 8
"""Maximum names that are filled in for `{}`."""
_READ_SCRIPTS = {"source", ".", "ssh", "su", "at", "batch"}
"""Programs other than shells that run the text on their input."""


class TextKind(Enum):
    """Who runs a text, and how certain that is."""

    SCRIPT = auto()
    CODE = auto()
    WRITTEN = auto()
    POSSIBLE = auto()


class TextRun(NamedTuple):
    """A text of shell that runs, or may run."""

    text: str
    kind: TextKind
    positional: Arguments = ()
    """The values of `$0`, `$1` and so on."""


class ProgramRun(NamedTuple):
    """A program with its arguments."""

    arguments: Arguments
    folder: Argument | None = None
    """Where it runs, if not where the command runs."""
    obeyed: tuple[str, ...] = ()
    """The variables that are set for it, as words."""
    likely: bool = False
    """Whether it may run, or may not."""


class VariableSet(NamedTuple):
    """A variable that is set for a program."""

    name: str
    value: str


class TooDeep(NamedTuple):
    """The words of a command inside too many others."""

    text: str


class DangerReason(NamedTuple):
    """A reason for which the command is dangerous."""

    reason: str


class AskReason(NamedTuple):
    """A reason for which the command is asked about."""

    reason: str


Work = TextRun | ProgramRun | VariableSet | TooDeep | DangerReason | AskReason


def list_called_programs(use: Invocation, functions: Collection[str]) -> Iterator[Work]:
    """Yield what a function, or a later `"$@"`, may run: the arguments as a program."""
    calls = use.name in functions and use.arguments
    if calls and use.arguments[0].text.lower() not in functions:
        yield ProgramRun(use.arguments, likely=True)
    operands = list_operands(use.arguments) if use.name == "set" else ()
    if operands:
        yield ProgramRun(operands, likely=True)


def list_wrapped_work(
    use: Invocation, commands: Sequence[InnerCommand], *, is_deepest: bool
) -> Iterator[Work]:
    """Yield what a wrapper runs; `is_deepest` if nothing inside of it is looked at."""
    for command in commands:
        yield from (VariableSet(name, value) for name, value in command.assigned)
        if command.assigned:  # `env BASH_ENV=<(echo …)`
            for text in _list_inside_texts(use):
                yield TextRun(text, TextKind.POSSIBLE)
        obeyed = tuple(
            word
            for name, value in command.assigned
            if (word := quote_obeyed_variable(name, (value,), use.places, for_program=True))
        )
        if is_deepest:
            parts = (argument.text for argument in (command.text, *command.arguments) if argument)
            yield TooDeep(" ".join(parts))
        elif command.text is None:
            yield from _list_filled_programs(use, command, obeyed)
        else:
            if obeyed:
                yield AskReason("sets variables for it")
            if not command.text.known:
                yield AskReason("runs a text that depends on an expansion")
            yield TextRun(command.text.text, TextKind.SCRIPT, command.positional)


def _list_filled_programs(
    use: Invocation, command: InnerCommand, obeyed: tuple[str, ...]
) -> Iterator[Work]:
    """Yield the command of a wrapper, with the arguments that xargs adds or fills in."""
    arguments, folder = command.arguments, command.folder
    names = list_xargs_arguments(use) if use.name in {"xargs", "parallel"} else ()
    names = (LISTED_NAME,) if use.name == "xargs" and is_listing_files(use) else names
    option = find_option_value(use.arguments, "-I") or find_option_value(use.arguments, "--replace")
    mark = option.text if option and option.text else "{}"
    if any(mark in argument.text for argument in arguments):
        known = [argument.text for argument in names if argument.known and argument != LISTED_NAME]
        for name in known[:_MAX_FILLED]:
            filled = (
                argument._replace(text=argument.text.replace(mark, name)) for argument in arguments
            )
            yield ProgramRun(tuple(filled), folder, likely=True)
    yield ProgramRun((*arguments, *names), folder, obeyed)


def list_script_work(first: Argument, use: Invocation, written: WrittenFiles) -> Iterator[Work]:
    """Yield the texts a program runs: its input, its code, files this command line wrote."""
    if use.name in load_tables().words.shells or use.name in _READ_SCRIPTS:
        yield from (TextRun(text, TextKind.SCRIPT) for text in use.given)
        for text in dict.fromkeys(_list_inside_texts(use)):
            yield TextRun(text, TextKind.WRITTEN)  # `bash <(echo …)`
    for text in dict.fromkeys(find_embedded_commands(use)):
        yield TextRun(text, TextKind.CODE)
    fetched, texts = written.find_run_texts(first, use)
    if fetched:
        yield DangerReason(FETCHED_REASON)
    for text in texts:
        fed = replace(use, given=(text,))
        yield from map(DangerReason, find_dangers(fed))
        inside = (*find_embedded_commands(fed), *find_hidden_commands(fed))
        for part in dict.fromkeys((text, *inside)):
            yield TextRun(part, TextKind.WRITTEN)


def list_fed_work(use: Invocation, command: SimpleCommand, uses: Uses) -> Iterator[Work]:
    """Yield texts that reach a shell by another way than its input.

    `exec 3<<<TEXT` opens one for a later `bash <&3`, `mapfile a <<<TEXT` fills an array whose
    elements may be a command, and `… | tee >(bash)` feeds a shell beside.
    """
    words = load_tables().words
    opens = use.name in {"mapfile", "readarray"} or (use.name == "exec" and not use.arguments)
    pieces = (
        piece
        for redirect in command.redirects
        if ">" in redirect.operator
        for piece in redirect.target
    )
    beside = [
        *use.inside,
        *(other for piece in pieces for inner in piece.inside for other in uses.get(inner, ())),
    ]
    has_shell = any(invocation.name in words.shells for invocation in beside)
    if opens or has_shell:
        texts = (*use.given, *list_printed_texts(use))
        for text in dict.fromkeys(texts):
            yield TextRun(text, TextKind.POSSIBLE)
            yield TextRun(text.replace("\n", " "), TextKind.POSSIBLE)
        joined = " ".join(texts)
        if opens and joined not in texts:
            yield TextRun(joined, TextKind.POSSIBLE)
    if has_shell and any(invocation.name in words.downloaders for invocation in (use, *use.before)):
        yield DangerReason(FETCHED_REASON)


def list_value_work(
    values: Sequence[str | None], places: PathContext, written: WrittenFiles
) -> Iterator[Work]:
    """Yield texts that other programs may run as the value of a variable: PAGER, BASH_ENV."""
    for text in filter(None, values):
        paths = places.paths(Argument(text))
        held = (part for path in paths for part in written.texts.get(path, ()))
        for part in (*split_suspect_parts(text), *held):
            yield TextRun(part, TextKind.POSSIBLE)


def _list_inside_texts(use: Invocation) -> Iterator[str]:
    """Yield what the substitutions among its arguments are known to print."""
    return (text for inner in use.inside for text in list_printed_texts(inner))


@dataclass(slots=True)
class Aliases:
    """Names that `alias` and `hash` gave to commands."""

    texts: dict[str, str] = field(default_factory=dict)

    def record(self, use: Invocation) -> None:
        """Record the names that a use of `alias` or `hash -p` defines."""
        if use.name == "alias":
            named = (argument.text.partition("=") for argument in use.arguments)
            self.texts |= {name: text for name, _, text in named}
        elif use.name == "hash":
            program = find_option_value(use.arguments, "-p")
            names = [operand.text for operand in list_operands(use.arguments, ("-p",))]
            if program is not None:
                self.texts |= {name.lower(): shlex.quote(program.text) for name in names}

    def list_work(self, use: Invocation) -> Iterator[Work]:
        """Yield the text that a name represents, with the arguments of this use."""
        if use.name in self.texts:
            words = (shlex.quote(argument.text) for argument in use.arguments)
            yield TextRun(" ".join((self.texts[use.name], *words)), TextKind.POSSIBLE)
