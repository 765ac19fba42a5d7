"""The context of a command: what builtins, assignments and redirections before it leave behind.

Only two functions change a value, the state they are given: `apply_builtin`, and
`resolve_substitutions` for the outputs it knows.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...shell.expansion import ANY_PATH, Argument, Piece, expand_word, expand_words
from ...shell.quoting import decode_ansi_c, expand_operator
from .finding import DangerLevel
from .invocation import Invocation, PathContext, resolve_cd_target
from .matching import find_option_value, has_any_option, list_operands
from .tables import load_tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...shell.expansion import Arguments, ShellState, SimpleCommand, Word

    Uses = Mapping[SimpleCommand, Sequence[Invocation]]
    """What each command runs, as far as it was judged."""


_MAX_READ = 4  # so many of the lines and words a name may read are looked at
_PRINTING_OPTION = {"echo": re.compile(r"-[neE]+"), "printf": re.compile(r"--|-v")}
_WIDE = re.compile(r"(?:^|[\s=])[/~.*-]")
"""What is read matters where it names a place or is an option."""


def judge_redirection(
    operator: str, target: Argument, places: PathContext
) -> tuple[DangerLevel, str]:
    """Return how dangerous a redirection is, and why."""
    text = target.text
    if text.startswith(("/dev/tcp/", "/dev/udp/")):
        return DangerLevel.DANGEROUS, "opens a connection to another machine"
    if ">" not in operator:
        if places.is_secret(target):
            return DangerLevel.DANGEROUS, "reads a private key or password"
        readable = places.is_readable(target) and not places.is_sensitive(target)
        harmless = target.known and places.is_harmless_device(text)
        return (
            DangerLevel.SAFE if readable or harmless else DangerLevel.ASK
        ), "reads a file elsewhere"
    if places.is_protected_behind_links(target):
        return (
            DangerLevel.DANGEROUS,
            "writes to the system, a device, or what decides who may log in",
        )
    descriptor = "&" in operator and re.fullmatch(r"\d+|-", text)
    harmless = places.is_harmless_device(text) and text != "/dev/tty"
    if target.known and (descriptor or harmless):
        return DangerLevel.SAFE, ""
    return DangerLevel.ASK, "writes to a file"


def list_input_paths(target: Argument, places: PathContext) -> Iterator[str]:
    """Yield the files that an input redirection may mean, absolute and not made plain."""
    if target.text.startswith("/"):
        yield target.text
    elif not target.text.isdigit():  # a descriptor
        yield from (f"{folder}/{target.text}" for folder in places.folders if folder is not None)


def list_printed_texts(use: Invocation) -> Iterator[str]:
    """Yield what a command is known to print."""
    if use.name in {"echo", "printf"}:
        words = [argument.text for argument in _list_printed_words(use)]
        texts = [" ".join(words)]
        if use.name == "printf" and len(words) > 1:
            texts.append(" ".join(words[1:]))
        yield from texts
        yield from (decode_ansi_c(text) for text in texts if "\\" in text)
    elif use.name == "cat" and not list_operands(use.arguments):
        yield from use.given


def _list_printed_words(use: Invocation) -> Arguments:
    """Return what `echo` or `printf` is given to print: what looks like an option is text, too."""
    rest = use.arguments
    own = _PRINTING_OPTION[use.name]
    while rest and own.fullmatch(rest[0].text):
        rest = rest[2 if rest[0].text == "-v" else 1 :]
    return rest


def find_printed_line(use: Invocation) -> str | None:
    """Return what `echo` or `printf` prints, None where it is not known."""
    words = _list_printed_words(use)
    formats = use.name == "printf" and any("%" in argument.text for argument in words[:1])
    if any(not argument.known or argument.glob for argument in use.arguments):
        return None
    whole = " ".join(argument.text for argument in words[1 if formats else 0 :])
    options = use.arguments[: len(use.arguments) - len(words)]
    escapes = use.name == "printf" or any("e" in argument.text for argument in options)
    return decode_ansi_c(whole) if escapes else whole


def list_xargs_arguments(use: Invocation) -> Arguments:
    """Return what xargs adds to its command."""
    printed_texts = [
        text for invocation in (*use.before, *use.inside) for text in list_printed_texts(invocation)
    ]
    known_texts = (*printed_texts, *use.given)
    home = use.places.home
    words = (word for text in known_texts for word in text.split())
    # a here-string stands for the home folder with `~`, and what is printed may have it for real
    expanded = (home + word[1:] if word == "~" or word[:2] == "~/" else word for word in words)
    known = tuple(map(Argument, expanded))
    return (*known, Argument("", known=False))


def apply_builtin(
    arguments: Arguments, state: ShellState, fed: tuple[str, ...] = (), *, certain: bool
) -> None:
    """Keep in the state what a builtin changes about the commands after it.

    `fed` are the texts it may read from standard input, as far as they are known.
    """
    name = arguments[0].text
    operands = list_operands(arguments[1:])
    if name in {"cd", "pushd"} and arguments[0].known:
        where = operands[0] if operands else Argument("")
        if where.known and where.text != "-":
            starts = (*state.folders, *_list_search_folders(where.text, state))
            new = tuple(resolve_cd_target(where.text, folder, state.home) for folder in starts)
        else:
            new = (None, state.home)
        if not certain and ".." in where.text:
            new = (*new, None)  # a loop may climb any number of times
        sure = certain and where.known
        state.folders = tuple(dict.fromkeys(new if sure else (*new, *state.folders)))
    elif name == "set" and (operands or any(argument.text == "--" for argument in arguments)):
        _set_positional(operands, state, certain=certain)
    elif name == "popd":
        state.folders = (None, *state.folders)
    elif name == "printf" and (variable := find_option_value(arguments[1:], "-v")) is not None:
        text = " ".join(argument.text for argument in operands if argument != variable)
        state.variables[variable.text] = (text, None)
    elif name in {"read", "mapfile", "readarray", "getopts", "unset"}:
        known = (value for text in fed for value in (*text.split("\n"), *text.split()))
        wide = tuple(value for value in dict.fromkeys(known) if _WIDE.search(value))
        state.variables |= {argument.text: (*wide[:_MAX_READ], None) for argument in operands}


def _set_positional(arguments: Arguments, state: ShellState, *, certain: bool) -> None:
    """Keep what `set -- A B` makes of `$1`, `$2`, `$@` and `$*`."""
    texts = tuple(argument.text if argument.known else None for argument in arguments)
    every = (" ".join(argument.text for argument in arguments), *texts)
    numbered = {str(number): (text,) for number, text in enumerate(texts, 1)}
    for name, possible in {"@": every, "*": every, **numbered}.items():
        before = () if certain else state.values(name)
        state.variables[name] = tuple(dict.fromkeys((*before, *possible)))


def _list_search_folders(target: str, state: ShellState) -> tuple[str | None, ...]:
    """Return the folders of CDPATH, in which a relative target of `cd` is looked for, too."""
    if "CDPATH" not in state.variables or target.startswith(("/", "./", "../")):
        return ()
    values = state.variables["CDPATH"]
    return tuple(folder for value in values if value for folder in value.split(":") if folder) or (
        None,
    )


@dataclass(frozen=True, slots=True)
class Scope:
    """The surroundings of a command."""

    command: SimpleCommand
    state: ShellState
    places: PathContext
    """The folders when the command starts; its own `cd` changes only those of the state."""
    feeders: tuple[SimpleCommand, ...]


def build_invocation(arguments: Arguments, at: Scope, uses: Uses) -> Invocation:
    """Return a program with its arguments and what is around it."""
    first = arguments[0]
    name = first.text.rsplit("/", 1)[-1].lower().removesuffix(".exe") if first.known else ""
    inside = (inner for arg in arguments for inner in arg.inside)
    return Invocation(
        name,
        arguments[1:],
        at.places,
        before=_collect_invocations((*at.feeders, *_list_piped_commands(at.command)), uses),
        inside=_collect_invocations(inside, uses),
        given=tuple(list_given_texts(at, uses)),
        read=tuple(
            argument
            for each in (at.command, *at.feeders)
            for redirect in each.redirects
            if redirect.operator == "<"
            for read in expand_words((redirect.target,), at.state)
            for argument in read
        ),
    )


def _collect_invocations(
    commands: Iterator[SimpleCommand] | Sequence[SimpleCommand], uses: Uses
) -> tuple[Invocation, ...]:
    return tuple(use for command in commands for use in uses.get(command, ()))


def _list_piped_commands(command: SimpleCommand) -> tuple[SimpleCommand, ...]:
    """Return what `< <(…)` runs."""
    targets = (redirect.target for redirect in command.redirects if redirect.operator == "<")
    return tuple(inner for target in targets for piece in target for inner in piece.inside)


def list_given_texts(at: Scope, uses: Uses) -> Iterator[str]:
    """Yield the texts on standard input, as far as the command line holds them."""
    for source in (at.command, *at.feeders):
        for redirect in source.redirects:
            if redirect.operator == "<<":
                yield "".join(piece.text for piece in redirect.target)
                if any(piece.kind == "variable" for piece in redirect.target):
                    yield from filter(None, expand_word(redirect.target, at.state))
    for use in _collect_invocations((*at.feeders, *_list_piped_commands(at.command)), uses):
        yield from list_printed_texts(use)


def resolve_substitutions(word: Word, state: ShellState, uses: Uses) -> Word:
    """Return the word with `$(echo …)` and `$(pwd)` as variables that hold what they print.

    `<(…)` is the name of a pipe.
    """
    first = word[0] if word and word[0].kind == "text" else None
    tilde = _WHERE.match(first.text) if first else None
    if first and tilde and (tilde.end() < len(first.text) or len(word) == 1):
        name = "PWD" if tilde[0] == "~+" else "OLDPWD"
        state.variables[tilde[0]] = (*state.values(name), None)
        rest = (first._replace(text=first.text[tilde.end() :]), *word[1:])
        word = (Piece("variable", tilde[0], in_quotes=True), *rest)
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
    reads = any(command.redirects and not command.words for command in piece.inside)  # `$(< file)`
    if not values and piece.text[:2] != "$((" and (reads or not _is_naming_parts(ran)):
        values = (ANY_PATH,)
    if not values:
        return piece
    state.variables[piece.text] = values
    return piece._replace(kind="variable")


def _is_naming_parts(ran: tuple[Invocation, ...]) -> bool:
    """Whether what is printed are names of files below a folder, or no paths at all."""
    others = [invocation for invocation in ran if invocation.name not in _MOVES]
    if not others:
        return True
    first, *rest = others
    if first.name in {"echo", "printf"}:
        return not rest
    return first.name in _LIST_PARTS and all(
        invocation.name in {*_PASSING, *_CHOOSE} for invocation in rest
    )


def _find_printed_values(
    ran: tuple[Invocation, ...], commands: int, state: ShellState
) -> tuple[str | None, ...]:
    """Return the possible outputs of a substitution's commands; empty if unknown."""
    if not ran or (commands == len(ran) == 1 and (top := _find_top_folder(ran[0])) is not None):
        return (top,) if ran else ()
    if ran[-1].name == "pwd" and all(invocation.name in {"pwd", *_MOVES} for invocation in ran):
        ends = (
            folder
            for invocation in ran
            if invocation.name == "pwd"
            for folder in invocation.places.folders
        )
        return tuple(dict.fromkeys(ends))
    if commands > 1:
        passed = all(invocation.name in _PASSING for invocation in ran[1:]) and ran[0].name in {
            "echo",
            "printf",
        }
        if passed:
            return (
                find_printed_line(ran[0]),
                ANY_PATH if any(invocation.name == "tr" for invocation in ran) else None,
            )
        if not all(invocation.name in _MOVES for invocation in ran):
            return ()
    if all(invocation.name in {"echo", "printf"} for invocation in ran):
        return tuple(find_printed_line(invocation) for invocation in ran)
    places = tuple(text for invocation in ran for text in _find_named_places(invocation, state))
    return (*places, None) if places else ()


def _find_named_places(use: Invocation, state: ShellState) -> Iterator[str]:
    """Yield places that a command is known to name, among others."""
    operands = [operand for operand in list_operands(use.arguments) if operand.known]
    words = [argument.text for argument in use.arguments]
    if use.name == "cat" and not use.arguments:
        yield from use.given
    elif use.name in {"realpath", "readlink"}:
        yield from (argument.text for argument in operands)
    elif use.name == "dirname":
        yield from (
            posixpath.dirname(path) for argument in operands for path in use.places.paths(argument)
        )
    elif words == ["rev-parse", "--show-toplevel"] and use.name == "git":
        yield use.places.start
    elif (use.name == "ls" and not operands) or (use.name == "git" and words == ["ls-files"]):
        yield from (f"{folder}/*" for folder in state.folders if folder is not None)
    elif use.name == "find" and not (
        len(operands) > 1 or {*words} & {*load_tables().words.narrowing}
    ):
        yield from (argument.text for argument in operands or (Argument("."),))
    elif use.name == "find":  # of a whole system any part is too much
        yield from (argument.text for argument in operands[:1] if use.places.is_foreign(argument))
    elif use.name == "ls" and has_any_option(use.arguments, ["-d"]):
        yield from (argument.text for argument in operands)


def _find_top_folder(use: Invocation) -> str | None:
    """Return what `git rev-parse --show-toplevel` prints in the session's folder."""
    names_top = [argument.text for argument in use.arguments] == ["rev-parse", "--show-toplevel"]
    asks = use.name == "git" and names_top and use.places.folders == (use.places.start,)
    return use.places.repository if asks else None


_WHERE = re.compile(r"~[-+](?=/|$)")
_MOVES = {"cd", "pushd", "popd", "dirname", "readlink", "realpath", "basename"}
_LIST_PARTS = {
    "find", "fd", "ls", "git", "mktemp", "date", "uname", "whoami", "hostname", "id", "which",
    "command", "type", "wc", "seq", "nproc", "expr", "echo", "printf", "pwd",
}  # fmt: skip
_CHOOSE = {"grep", "egrep", "fgrep", "rg", "xargs"}
_PASSING = {"cat", "tee", "sort", "head", "tail", "uniq", "tr"}
"""Programs that print what they read, all or in part."""
