"""Commands that run another command: which one, as arguments or as a text for a shell; pure.

`find -exec` and `xargs` hand on names of files. What lists files of a folder that may be read hands
on nothing else; the command that takes the names has to be one that only reads, whatever they are.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING

from ...shell.expansion import Argument
from .matching import find_option_value, has_any_option, list_operands
from .tables import has_pattern_match, load_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...shell.expansion import Arguments
    from .invocation import Invocation, PathContext
    from .tables import WrapperCommand


_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_EMBEDDED = re.compile(
    r"(?:--checkpoint-action=exec|--to-command|--use-compress-program|--rsh|--exec)=(.+)"
    r"|(?:alias\.[\w-]+|core\.\w+|[\w.-]+\.(?:textconv|cmd|command|helper|driver))=!?(.+)"
    r"|ProxyCommand[= ](.+)",
    re.DOTALL | re.IGNORECASE,
)
_SETTING = re.compile(
    r"-x|--exec|alias\..+|core\.\w+|[\w.-]+\.(?:textconv|cmd|command|helper|driver|clean|smudge)",
    re.IGNORECASE,
)
"""Arguments of git that are followed by a command."""
_CARRIERS = {
    "su": ("--command",),
    "runuser": ("--command",),
    "flock": ("-c", "--command"),
    "script": ("-qc", "--command"),
    "fish": ("--command",),
    "man": ("-P", "--pager"),
    "tar": ("-I",),
    "rsync": ("-e",),
    "zip": ("-TT",),
    "npx": ("-c", "--call"),
    "npm": ("-c", "--call"),
    "gdb": ("-ex", "--eval-command"),
    "expect": ("-c",),
    "git": ("--upload-pack", "--receive-pack"),
    **dict.fromkeys(("vi", "vim", "nvim", "view", "ex"), ("-c", "--cmd")),
}
"""By program: options whose value is run."""
_SHELL_OUT = re.compile(r"\s*:?\s*(?:!|shell\s+|spawn\s+)")
_MORE = {"time": ("-o", "--output"), "env": ("-S", "-C", "--split-string", "--chdir")}
"""Options of clear wrappers that make them do more than to run a command."""
_FOLDERS = {"env": ("-C", "--chdir"), "sudo": ("-D", "--chdir")}
"""By program: options that name the folder in which the command runs."""
_SPLIT = re.compile(r"-[iv0]*S(.*)", re.DOTALL)
_SHELL_VALUED = {"-o", "+o", "-O", "+O", "--rcfile", "--init-file"}
_PLAIN_SHELL = {"-c", "-l", "-e", "-u", "-x", "--norc", "--noprofile", "--login", "--posix"}


@dataclass(frozen=True, slots=True)
class InnerCommand:
    """What a wrapper runs; either arguments or a text."""

    arguments: Arguments = ()
    text: Argument | None = None
    """A text for a shell; unknown where an expansion decides."""
    assigned: tuple[tuple[str, str], ...] = ()
    """Variables that are set for it."""
    positional: Arguments = ()
    """What `$0`, `$1` and so on stand for in the text."""
    clear: bool = False
    """Whether the wrapper adds nothing: then the verdict is that of what it runs."""
    folder: Argument | None = None
    """Where it runs, where the wrapper changes that."""


def find_inner_commands(name: str, arguments: Arguments) -> Iterator[InnerCommand]:
    """Yield every command that a use of a program runs."""
    if name in load_tables().words.shells:
        yield from _find_in_shell(arguments)
    wrapper = load_tables().wrappers.get(name)
    if wrapper is None and arguments:
        subcommand = next(iter(list_operands(arguments, load_tables().valued.get(name, ()))), None)
        wrapper = load_tables().wrappers.get(f"{name} {subcommand.text}") if subcommand else None
    if wrapper is not None:
        yield from _find_in_wrapper(wrapper, name, arguments)
    if name == "alias":
        yield from (
            InnerCommand(text=argument._replace(text=argument.text.partition("=")[2]))
            for argument in arguments
            if "=" in argument.text
        )
    if name == "env":
        yield from _find_in_split_string(arguments)
    yield from _find_in_options(name, arguments)
    for argument in arguments:
        match = _EMBEDDED.fullmatch(argument.text)
        if match:
            yield InnerCommand(text=argument._replace(text=match[1] or match[2] or match[3]))


def _find_in_options(name: str, arguments: Arguments) -> Iterator[InnerCommand]:
    """Yield the commands that are values of options and settings."""
    if name == "git":
        yield from (
            InnerCommand(text=right._replace(text=right.text.lstrip("!")))
            for left, right in pairwise(arguments)
            if _SETTING.fullmatch(left.text)
        )
    for option in _CARRIERS.get(name, ()):
        text = find_option_value(arguments, option)
        if text is not None and text.text:
            yield InnerCommand(text=text._replace(text=_SHELL_OUT.sub("", text.text, count=1)))


def _find_in_split_string(arguments: Arguments) -> Iterator[InnerCommand]:
    """Yield what `env -S` makes of a text and the arguments after it."""
    for index, argument in enumerate(arguments):
        short = _SPLIT.fullmatch(argument.text)
        value = short[1] if short else argument.text.partition("--split-string=")[2]
        bare = argument.text == "--split-string" or (short is not None and not value)
        first = arguments[index + 1 : index + 2] if bare else (argument._replace(text=value),)
        if bare or value:
            rest = arguments[index + 1 + bare :]
            quoted = (each._replace(text=shlex.quote(each.text)) for each in rest)
            yield InnerCommand(text=_join_to_text((*first, *quoted)))
            return


def _find_in_shell(arguments: Arguments) -> Iterator[InnerCommand]:
    """Yield the text after `-c`, however it is clustered: `-lc`, `-ec`."""
    rest, clear, has_code_option = arguments, True, False
    while rest and rest[0].text[:1] in {"-", "+"} and rest[0].text not in {"-", "--"}:
        option = rest[0].text
        letters = option[1:] if not option.startswith("--") else ""
        has_code_option |= "c" in letters
        clear &= option in _PLAIN_SHELL or (
            bool(letters) and option[0] == "-" and {f"-{each}" for each in letters} <= _PLAIN_SHELL
        )
        rest = rest[2 if option in _SHELL_VALUED else 1 :]
    if rest[:1] and rest[0].text in {"-", "--"}:
        rest = rest[1:]
    if has_code_option and rest:
        yield InnerCommand(text=rest[0], positional=rest[1:], clear=clear)


def _find_in_wrapper(
    wrapper: WrapperCommand, name: str, arguments: Arguments
) -> Iterator[InnerCommand]:
    if name == "command" and has_any_option(arguments[:1], ["-v", "-V"]):
        return  # says where a command is, and runs none
    if wrapper.option:
        text = find_option_value(arguments, wrapper.option)
        if text is not None:
            yield InnerCommand(text=text)
        elif wrapper.valued and (rest := _skip_to_command(wrapper, arguments)[0]):
            yield InnerCommand(arguments=rest)
    elif wrapper.after:
        yield from _find_after_marks(wrapper, arguments)
    else:
        rest, assigned = _skip_to_command(wrapper, arguments)
        own = arguments[: len(arguments) - len(rest)]
        values = (find_option_value(own, option) for option in _FOLDERS.get(name, ()))
        folder = next((value for value in values if value is not None), None)
        clear = wrapper.clear and not has_any_option(own, _MORE.get(name, ()))
        if wrapper.plain is not None:
            options = (argument.text for argument in own if argument.text[:1] == "-")
            clear = clear and all(has_pattern_match(option, wrapper.plain) for option in options)
        if rest and wrapper.text:
            yield InnerCommand(text=_join_to_text(rest), assigned=assigned, clear=clear)
        elif rest:
            yield InnerCommand(arguments=rest, assigned=assigned, clear=clear, folder=folder)


def _find_after_marks(wrapper: WrapperCommand, arguments: Arguments) -> Iterator[InnerCommand]:
    """Yield the arguments after each mark, up to the `;` or `+` that ends them."""
    starts = [i + 1 for i, argument in enumerate(arguments) if argument.text in wrapper.after]
    for start in starts:
        rest = arguments[start + wrapper.skip :]
        end = next((i for i, argument in enumerate(rest) if argument.text in {";", "+"}), len(rest))
        if rest[:end]:
            joined = (
                InnerCommand(text=_join_to_text(rest[:end]))
                if wrapper.text
                else InnerCommand(rest[:end])
            )
            yield joined


def _skip_to_command(
    wrapper: WrapperCommand, arguments: Arguments
) -> tuple[Arguments, tuple[tuple[str, str], ...]]:
    """Return the command after options, operands and assignments of its wrapper."""
    assigned: list[tuple[str, str]] = []
    skip, rest = wrapper.skip, arguments
    while rest:
        argument = rest[0]
        match = _ASSIGNMENT.fullmatch(argument.text) if wrapper.assigns else None
        if argument.text.startswith("-") and argument.text != "-":
            rest = rest[2 if argument.text in wrapper.valued else 1 :]
        elif match:
            assigned.append((match[1], match[2]))
            rest = rest[1:]
        elif skip:
            skip, rest = skip - 1, rest[1:]
        else:
            break
    return rest, tuple(assigned)


def _join_to_text(arguments: Arguments) -> Argument:
    return Argument(
        " ".join(argument.text for argument in arguments),
        all(argument.known for argument in arguments),
        inside=tuple(command for argument in arguments for command in argument.inside),
    )


LISTED_NAME = Argument("{}")
"""Stands for a file below the folder."""
_TAKERS = {"grep", "egrep", "fgrep", "echo", "basename", "dirname", "file"}
_LISTERS = {
    "find": re.compile(r"(?!-(?:f?printf|files0-from|exec|ok)).*", re.DOTALL),
    "fd": re.compile(r"-[a-zA-Z0-9]+|[^-].*", re.DOTALL),
    "fdfind": re.compile(r"-[a-zA-Z0-9]+|[^-].*", re.DOTALL),
    "ls": re.compile(r"-[1aAdrtSR]+|[^-].*", re.DOTALL),
    "git": re.compile(r"ls-files|-[zmoc]+|--(?:others|exclude-standard|modified|cached)"),
}
"""By program: the arguments with which it lists files and prints nothing else."""
_FILTERS = {
    "grep": re.compile(r"-[viEFzxw]+|[^-].*", re.DOTALL),
    "sort": re.compile(r"-[urnz]+"),
    "uniq": re.compile(r"-[z]"),
    "head": re.compile(r"-n?\d+"),
    "tail": re.compile(r"-n?\d+"),
}
"""By program: the arguments with which it passes on some of the lines it is given."""
_OWN = re.compile(r"-[0rt]+|-[nPL]\d+|--null|--no-run-if-empty|-I\S+")
_OWN_VALUED = {"-n", "-P", "-L", "-I"}


def is_name_reader(argument: Argument) -> bool:
    """Whether a program only reads the files it is given, whatever their names are."""
    words = load_tables().words
    known = argument.known and not argument.glob
    return known and argument.text in {*words.read, *words.look, *_TAKERS} - {"cd", "pushd"}


def drop_harmless_execs(arguments: Arguments, places: PathContext) -> Arguments:
    """Return the arguments of a find without each `-exec` whose command takes names."""
    left: list[Argument] = []
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        words = [*takewhile(lambda each: each.text not in {";", "+"}, rest)]
        if (
            argument.text != "-exec"
            or len(words) == len(rest)
            or not words
            or not is_name_reader(words[0])
        ):
            left.append(argument)
        else:
            del rest[: len(words) + 1]
    return arguments if _has_sensitive_names(arguments, places) else tuple(left)


def is_harmless_xargs(use: Invocation) -> bool:
    """Whether an xargs does no more than to hand listed names to a command that takes them."""
    rest = list(use.arguments)
    while rest and rest[0].known and rest[0].text[:1] == "-":
        own = rest.pop(0).text
        if own in _OWN_VALUED and rest:
            rest.pop(0)
        elif not _OWN.fullmatch(own):
            return False
    return bool(rest) and is_name_reader(rest[0]) and is_listing_files(use)


def is_listing_files(use: Invocation) -> bool:
    """Whether the command before it only lists files."""
    if not use.before or any(program.read or program.given for program in (use, *use.before)):
        return False
    first, *others = use.before
    if not _is_allowed_use(first, _LISTERS) or _has_sensitive_names(first.arguments, first.places):
        return False
    if first.name == "git" and [argument.text for argument in first.arguments[:1]] != ["ls-files"]:
        return False
    return all(
        _is_allowed_use(other, _FILTERS)
        and len(list_operands(other.arguments)) == (other.name == "grep")
        for other in others
    )


def _is_allowed_use(use: Invocation, table_of: dict[str, re.Pattern[str]]) -> bool:
    pattern = table_of.get(use.name)
    return pattern is not None and all(
        argument.known and pattern.fullmatch(argument.text) for argument in use.arguments
    )


def _has_sensitive_names(arguments: Arguments, places: PathContext) -> bool:
    """Whether names that often hold credentials are asked for."""
    return any(
        places.is_sensitive(argument._replace(glob=True)) for argument in arguments if argument.text
    )
