"""Options and operands of one program: whether they meet a row of a table, or only read; pure.

What is not known to be limited to plain files or paths of the workspace is not: an expansion, a
wildcard, an option whose value may be a device.
"""

from __future__ import annotations

import re
from functools import partial
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING

from ...shell.expansion import Argument
from .read_only_uses import (
    find_library_tool_files,
    find_listed_archive,
    find_queried_database,
    find_script_files,
    is_local_request,
    is_plain_calculation,
    is_script_program,
)
from .tables import has_pattern_match, has_reading_subcommands, load_tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ...shell.expansion import Arguments
    from .invocation import PathContext
    from .tables import DangerRule, ReadOnlyCommand


EXECUTES_COMMANDS = re.compile(
    r"\b(?:system|popen\w*|exec\w*|spawn\w*|subprocess\w*|child_process|qx|shell_exec|passthru)\b",
    re.IGNORECASE,
)
"""What runs commands, in one language or another."""

FETCHED_REASON = "runs what comes from the network, unseen"

_DEVICE = re.compile(r"/dev\b|(?:UUID|LABEL|PARTUUID|PARTLABEL|ID)=", re.IGNORECASE)
_ELSEWHERE = re.compile(r"-C|--work-tree|--git-dir|--super-prefix|--namespace")
_SUBCOMMAND_WORD = re.compile(r"[a-z][a-z-]+")
_HELP = {"--help", "--version"}


def is_limited_to_files(arguments: Arguments, places: PathContext) -> bool:
    """Whether all that is written are plain files below the folders that may be read.

    Of `dd` only what `of=` names is written; of others each operand may be.
    """
    if any(
        _DEVICE.search(argument.text)
        for argument in arguments
        if not argument.text.startswith("if=")
    ):
        return False
    outputs = [
        argument._replace(text=argument.text[3:])
        for argument in arguments
        if argument.text[:3] == "of="
    ]
    operands = [
        argument for argument in arguments if argument.text[:1] != "-" and "=" not in argument.text
    ]
    named = outputs or operands
    return (
        bool(named)
        and all(argument.known for argument in arguments)
        and all(_is_plain_file(operand, places) for operand in named)
    )


def _is_plain_file(argument: Argument, places: PathContext) -> bool:
    return (
        bool(argument.text)
        and not argument.glob
        and places.is_readable(argument)
        and not (
            places.is_protected(argument) or places.is_vital(argument) or places.is_device(argument)
        )
        and not argument.text.startswith("/dev")
    )


def is_limited_to_paths(arguments: Arguments, places: PathContext) -> bool:
    """Whether a `git clean` is limited to known paths, none of which is the whole workspace.

    `arguments` are those after `git`.
    """
    if any(_ELSEWHERE.match(argument.text) or not argument.known for argument in arguments):
        return False
    start = next((i for i, argument in enumerate(arguments) if argument.text == "clean"), None)
    if start is None:
        return False
    paths: list[Argument] = []
    left = list(arguments[start + 1 :])
    while left:
        argument = left.pop(0)
        if argument.text == "--":
            paths += left
            break
        if argument.text[:1] != "-":
            paths.append(argument)
        elif argument.text in {
            "--exclude",
            "--exclud",
            "--exclu",
            "--excl",
            "--exc",
            "--ex",
            "--e",
        } or (argument.text[:2] != "--" and argument.text[-1:] == "e"):
            del left[:1]  # a pattern that is left alone
    return bool(paths) and all(_is_workspace_path(path, places) for path in paths)


def _is_workspace_path(argument: Argument, places: PathContext) -> bool:
    """Whether a pathspec names a part of the workspace; git itself knows wildcards, too."""
    return (
        bool(argument.text)
        and argument.text[:1] != ":"
        and places.is_readable(argument)
        and not places.is_vital(argument._replace(glob=True))
    )


def is_help_request(arguments: Arguments, words: int) -> bool:
    """Whether a program is only asked for its help or version, after at most `words` words."""
    *before, last = arguments or (Argument(""),)
    plain = all(argument.known and _SUBCOMMAND_WORD.fullmatch(argument.text) for argument in before)
    return last.known and last.text in _HELP and plain and len(before) <= words


_EXPLICIT = ["-e", "-f", "--regexp", "--file", "--files"]  # then no operand is a pattern
_SEARCHERS = {"grep", "egrep", "fgrep", "zgrep", "rg", "ag", "git grep"}
_RUNS = ("--show-signature", "--ext-diff", "--textconv", "--output", "--open-files-in-pager")
_VERIFIES = re.compile(r"%[-+ ]?G|%\((?:\*?signature)")
"""What in a format of git has a signature verified, by the program that the configuration names."""
_CHOOSING = ("-g", "--glob", "--iglob", "--include")
_SHORT = 2  # characters of an option such as -f
_MIN_OPTION_CHARS = 3  # characters of an abbreviated option such as --f


def list_options(arguments: Arguments) -> Arguments:
    """Return the arguments that are options, those before `--`."""
    return tuple(
        argument
        for argument in _cut_at_dashes(arguments)
        if argument.text[:1] == "-" != argument.text
    )


def list_operands(arguments: Arguments, valued: Iterable[str] = ()) -> Arguments:
    """Return the arguments that are no options, nor the values of options in `valued`."""
    before = _cut_at_dashes(arguments)
    operands = [
        argument
        for left, argument in zip_longest((None, *before), before)
        if argument is not None
        and (argument.text[:1] != "-" or argument.text == "-")
        and (left is None or left.text not in valued)
    ]
    return (*operands, *arguments[len(before) + 1 :])


def _cut_at_dashes(arguments: Arguments) -> Arguments:
    end = next((i for i, argument in enumerate(arguments) if argument.text == "--"), len(arguments))
    return arguments[:end]


def read_program_name(argument: Argument) -> str:
    """Return the name of a program without its folder, in lower case."""
    return argument.text.rsplit("/", 1)[-1].lower()


def has_option(argument: Argument, option: str) -> bool:
    """Whether an argument gives an option: in a cluster, abbreviated, or with a value."""
    name = argument.text.split("=", 1)[0]
    if option.startswith("--"):
        short_of = (
            len(name) >= _MIN_OPTION_CHARS and name.startswith("--") and option.startswith(name)
        )
        return short_of or has_pattern_match(name, (option,))
    if len(option) == _SHORT:
        return name[:1] == "-" != name[1:2] and option[1] in argument.text[1:]
    return name == option


def has_any_option(arguments: Arguments, options: Iterable[str]) -> bool:
    """Whether one of the options is given."""
    return any(
        has_option(argument, option) for option in options for argument in list_options(arguments)
    )


def find_option_value(arguments: Arguments, option: str) -> Argument | None:
    """Return the value of an option, glued to it or the argument after it."""
    for argument, after in zip_longest(arguments, arguments[1:]):
        if argument.text == option:
            return after
        if argument.text.startswith(f"{option}=") and option.startswith("--"):
            return argument._replace(text=argument.text.partition("=")[2])
        if len(option) == _SHORT and argument.text.startswith(option):
            return argument._replace(text=argument.text[_SHORT:])
    return None


_TARGET_OPTIONS = ("-t", "--target-directory")


def is_rule_met(
    rule: DangerRule, arguments: Arguments, places: PathContext, valued: tuple[str, ...]
) -> bool:
    """Whether a rule, which is about the program, calls these arguments dangerous.

    `valued` holds the options that take the next argument.
    """
    operands = list_operands(arguments, valued)
    if not _has_words(operands, rule.words) or is_help_request(arguments, len(rule.words)):
        return False
    if (rule.spares == "files" and is_limited_to_files(arguments, places)) or (
        rule.spares == "paths" and is_limited_to_paths(arguments, places)
    ):
        return False
    rest = operands[len(rule.words) :]
    if rule.keeps_last and len(rest) > 1 and not has_any_option(arguments, _TARGET_OPTIONS):
        rest = rest[:-1]
    texts = [argument.text for argument in arguments if argument not in operands[: len(rule.words)]]
    return (
        (not rule.options or has_any_option(arguments, rule.options))
        and (not rule.operands or any(has_pattern_match(text, rule.operands) for text in texts))
        and (
            rule.place is None or any(is_in_place(operand, rule.place, places) for operand in rest)
        )
        and not has_any_option(arguments, rule.unless)
    )


def _has_words(operands: Arguments, words: tuple[str, ...]) -> bool:
    return len(operands) >= len(words) and all(
        has_pattern_match(operand.text, tuple(word.split("|")))
        for operand, word in zip(operands, words, strict=False)
    )


def is_in_place(argument: Argument, place: str, places: PathContext) -> bool:
    """Whether an argument names what a rule says."""
    match place:
        case "vital":
            return places.is_vital(argument)
        case "protected":
            return places.is_protected(argument)
        case "system":
            return places.is_foreign(argument)
        case "device":
            return places.is_device(argument)
        case _:
            return places.is_secret(argument)


def is_only_reading(name: str, arguments: Arguments, places: PathContext) -> bool:
    """Whether a program changes nothing and reads only what may be read unasked."""
    if is_version_request(name, arguments):
        return True
    if name == "tar" or is_script_program(name):
        find = find_listed_archive if name == "tar" else partial(find_script_files, name)
        files = find(arguments)
        return files is not None and all(_is_readable_file(file, places) for file in files)
    if name in _EVALUATES and any(argument.glob for argument in arguments):
        return False  # of a file named `-v`, and one after it, they run what is in its brackets
    if is_plain_calculation(name, arguments) or is_local_request(name, arguments):
        return True
    files = find_library_tool_files(name, arguments)
    if files is None:
        files = find_queried_database(name, arguments)
    if files is not None:
        return all(_is_readable_file(file, places) for file in files)
    return _is_within_reader(name, arguments, places)


def is_reading_anywhere(name: str, arguments: Arguments, places: PathContext) -> bool:
    """Whether a program changes nothing, wherever the files are that it is given."""
    if is_version_request(name, arguments):
        return True
    if name == "tar" or is_script_program(name):
        find = find_listed_archive if name == "tar" else partial(find_script_files, name)
        return find(arguments) is not None
    return (
        is_plain_calculation(name, arguments)
        or is_local_request(name, arguments)
        or find_library_tool_files(name, arguments) is not None
        or find_queried_database(name, arguments) is not None
        or find_reader_of(name, arguments, places) is not None
    )


def find_reader_of(
    program: str, arguments: Arguments, places: PathContext
) -> ReadOnlyCommand | None:
    """Return the limits within which a use of a program only reads, None where it may do more."""
    name, arguments = _split_subcommand(program, arguments, places)
    reader = load_tables().find_reader(name)
    return reader if reader is not None and _is_within_limits(reader, arguments) else None


def _is_within_reader(program: str, arguments: Arguments, places: PathContext) -> bool:
    """Whether a program keeps within the limits of a reader of the table."""
    name, arguments = _split_subcommand(program, arguments, places)
    reader = load_tables().find_reader(name)
    if reader is None or not _is_within_limits(reader, arguments):
        return False
    return not _is_given_lists(program, arguments) and _is_reading_named(
        program, name, reader, arguments, places
    )


def _is_reading_named(
    program: str,
    name: str,
    reader: ReadOnlyCommand,
    arguments: Arguments,
    places: PathContext,
) -> bool:
    """Whether what a reader's words name may be read unasked; `name` has its subcommand."""
    if program == "git" and any(
        _VERIFIES.search(argument.text) or any(has_option(argument, bad) for bad in _RUNS)
        for argument in arguments
    ):
        return False  # it may run gpg, or a program of the configuration
    globs = (
        argument for argument in arguments if argument.glob
    )  # names of files, whatever they are given to
    chosen = (name._replace(glob=True) for name in _list_chosen_files(program, arguments))
    if not all(_is_readable_file(pattern, places) for pattern in globs) or any(
        map(places.is_sensitive, chosen)
    ):
        return False
    if program in {"cd", "pushd"} and (leads := _find_lead(arguments, places)) is not None:
        return leads
    if reader.opens and None in places.folders and not list_operands(arguments, reader.valued):
        return False  # it reads a folder that is not known
    return not reader.opens or _is_opening_readable(name, reader, arguments, places)


_EVALUATES = {"[", "test", "printf", "read", "let", "declare", "local", "export", "unset"}
_LISTS = ("--files-from", "--files0-from", "--files0", "--files")
_LISTING = {"rg", "fd", "fdfind", "ag", "ack"}
"""Programs in which `--files` means something else."""
_BINARY_TOOLS = {"strings", "nm", "objdump", "readelf", "size", "addr2line", "c++filt", "ar"}
"""Programs that read more arguments from `@FILE`."""


def _is_given_lists(program: str, arguments: Arguments) -> bool:
    """Whether a program reads the names of its files from a file: nobody sees which they are."""
    if program not in _LISTING and any(
        has_option(argument, two) for argument in arguments for two in _LISTS
    ):
        return True
    if program == "file" and has_any_option(arguments, ("-f",)):
        return True
    return program in _BINARY_TOOLS and any(argument.text[:1] == "@" for argument in arguments)


def _find_lead(arguments: Arguments, places: PathContext) -> bool | None:
    """Return whether `cd` may be followed where no path tells it; None where a path does."""
    operands = list_operands(arguments)
    if not operands:
        return places.is_readable(Argument(places.home))
    if [argument.text for argument in arguments] == ["-"]:
        return True  # to a folder that is unknown to the commands after it
    return False if any(operand.text == "-" for operand in operands) else None


def _list_chosen_files(program: str, arguments: Arguments) -> Iterator[Argument]:
    """Yield the names of files that options choose, and those git takes out of a commit."""
    for left, argument in pairwise((*arguments[:1], *arguments)):
        if left.text in _CHOOSING or argument.text.startswith(_CHOOSING):
            yield argument._replace(text=argument.text.rpartition("=")[2])
        if argument.text[:2] == "-g" and program == "rg":
            yield argument._replace(text=argument.text[_SHORT:])
        if program == "git" and ":" in argument.text:
            yield argument._replace(text=argument.text.rpartition(":")[2])


def is_version_request(name: str, arguments: Arguments) -> bool:
    """Whether a program that is known only says its version, or its help."""
    if len(arguments) != 1 or not arguments[0].known:
        return False
    words, text = load_tables().words, arguments[0].text
    if text in words.version_options and name in words.version:
        return True
    if text not in {"--help", "--version"} or name in words.shells:
        return False
    return (
        name in {*words.version, *words.read, *words.look}
        or any(name == reader.partition(" ")[0] for reader in load_tables().readers)
        or any(name in rule.commands for rule in load_tables().rules)
    )


def _split_subcommand(
    name: str, arguments: Arguments, places: PathContext
) -> tuple[str, Arguments]:
    """Return `git log` and what follows, for a program whose readers are subcommands."""
    if not has_reading_subcommands(name):
        return name, arguments
    while name == "git" and arguments[:1]:
        if arguments[0].text in {"--no-pager", "-P", "--no-optional-locks"}:
            arguments = arguments[1:]
        elif arguments[0].text == "-C" and all(map(places.is_readable, arguments[1:2])):
            arguments = arguments[2:]
        else:
            break
    while arguments[:1] and arguments[0].text in load_tables().selecting.get(name, ()):
        arguments = arguments[2:]
    if not arguments or not arguments[0].known:
        return name, arguments
    two = f"{name} {' '.join(argument.text for argument in arguments[:2])}"
    if two in load_tables().readers and arguments[1:2] and arguments[1].known:
        return two, arguments[2:]
    subcommand = f"{name} {arguments[0].text}"
    if subcommand not in load_tables().readers and name in load_tables().readers:
        return name, arguments
    return subcommand, arguments[1:]


def _is_within_limits(reader: ReadOnlyCommand, arguments: Arguments) -> bool:
    if reader.leading:
        arguments = arguments[:1]
    operands = list_operands(arguments, reader.valued)
    limited = bool(
        reader.never or reader.options is not None or reader.operands or reader.forbidden
    )
    if (limited or reader.needs) and any(
        not argument.known or (argument.glob and argument.text[:1] in "*?[")
        for argument in arguments
    ):
        return False
    # a name of the folder may be an option, or one operand more: `uniq *` writes the second
    too_many = reader.most is not None and (
        len(operands) > reader.most or any(operand.glob for operand in operands)
    )
    if too_many or any(
        has_pattern_match(argument.text, reader.forbidden)
        or any(has_option(argument, bad) for bad in reader.never)
        for argument in arguments
    ):
        return False
    if reader.operands and not all(
        has_pattern_match(operand.text, reader.operands) for operand in operands
    ):
        return False
    if reader.needs and not any(argument.text in reader.needs for argument in arguments):
        return False
    return reader.options is None or all(
        _is_allowed_option(option, reader.options) for option in list_options(arguments)
    )


def _is_allowed_option(argument: Argument, allowed: tuple[str, ...]) -> bool:
    if has_pattern_match(argument.text, allowed):
        return True
    letters = {option[1] for option in allowed if len(option) == _SHORT}
    return argument.text[:2] != "--" and set(argument.text[1:]) <= letters


def _is_opening_readable(
    name: str, reader: ReadOnlyCommand, arguments: Arguments, places: PathContext
) -> bool:
    explicit = name in _SEARCHERS and has_any_option(arguments, _EXPLICIT)
    operands = list_operands(arguments, reader.valued)[0 if explicit else reader.skip :]
    glued = [
        option._replace(text=text)
        for option in list_options(arguments)
        for text in (option.text.partition("=")[2], option.text[_SHORT:])
        if text.startswith("/") or ".." in text or places.is_sensitive(option._replace(text=text))
    ]
    if any(not argument.known for argument in arguments):
        return False
    return all(_is_readable_file(file, places) for file in (*operands, *glued))


def _is_readable_file(argument: Argument, places: PathContext) -> bool:
    """Whether a file may be read unasked."""
    return places.is_readable(argument) and not places.is_sensitive(argument)
