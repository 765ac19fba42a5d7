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
    if any(_DEVICE.search(one.text) for one in arguments if not one.text.startswith("if=")):
        return False
    outputs = [one._replace(text=one.text[3:]) for one in arguments if one.text[:3] == "of="]
    operands = [one for one in arguments if one.text[:1] != "-" and "=" not in one.text]
    named = outputs or operands
    return (
        bool(named)
        and all(one.known for one in arguments)
        and all(_is_plain_file(one, places) for one in named)
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
    if any(_ELSEWHERE.match(one.text) or not one.known for one in arguments):
        return False
    start = next((i for i, one in enumerate(arguments) if one.text == "clean"), None)
    if start is None:
        return False
    found: list[Argument] = []
    left = list(arguments[start + 1 :])
    while left:
        one = left.pop(0)
        if one.text == "--":
            found += left
            break
        if one.text[:1] != "-":
            found.append(one)
        elif one.text in {"--exclude", "--exclud", "--exclu", "--excl", "--exc", "--ex", "--e"} or (
            one.text[:2] != "--" and one.text[-1:] == "e"
        ):
            del left[:1]  # a pattern that is left alone
    return bool(found) and all(_is_workspace_path(one, places) for one in found)


def _is_workspace_path(argument: Argument, places: PathContext) -> bool:
    """Whether a pathspec names a part of the workspace; git itself knows wildcards, too."""
    return (
        bool(argument.text)
        and argument.text[:1] != ":"
        and places.is_readable(argument)
        and not places.is_vital(argument._replace(glob=True))
    )


def is_help_request(arguments: Arguments, words: int) -> bool:
    """Whether a program is only asked for its help or version, after at most so many words."""
    *before, last = arguments or (Argument(""),)
    plain = all(one.known and _SUBCOMMAND_WORD.fullmatch(one.text) for one in before)
    return last.known and last.text in _HELP and plain and len(before) <= words


_EXPLICIT = ["-e", "-f", "--regexp", "--file", "--files"]  # then no operand is a pattern
_SEARCHERS = {"grep", "egrep", "fgrep", "zgrep", "rg", "ag", "git grep"}
_RUNS = ("--show-signature", "--ext-diff", "--textconv", "--output", "--open-files-in-pager")
_VERIFIES = re.compile(r"%[-+ ]?G|%\((?:\*?signature)")
"""What in a format of git has a signature verified, by the program that the configuration names."""
_CHOOSING = ("-g", "--glob", "--iglob", "--include")
_SHORT = 2  # characters of an option such as -f
_LEAST = 3  # characters of an abbreviated option such as --f


def list_options(arguments: Arguments) -> Arguments:
    """Return the arguments that are options, those before `--`."""
    return tuple(one for one in _cut_at_dashes(arguments) if one.text[:1] == "-" != one.text)


def list_operands(arguments: Arguments, valued: Iterable[str] = ()) -> Arguments:
    """Return the arguments that are no options, nor the values of options in `valued`."""
    before = _cut_at_dashes(arguments)
    found = [
        one
        for left, one in zip_longest((None, *before), before)
        if one is not None
        and (one.text[:1] != "-" or one.text == "-")
        and (left is None or left.text not in valued)
    ]
    return (*found, *arguments[len(before) + 1 :])


def _cut_at_dashes(arguments: Arguments) -> Arguments:
    end = next((i for i, one in enumerate(arguments) if one.text == "--"), len(arguments))
    return arguments[:end]


def read_program_name(argument: Argument) -> str:
    """Return the name of a program without its folder, in lower case."""
    return argument.text.rsplit("/", 1)[-1].lower()


def has_option(argument: Argument, option: str) -> bool:
    """Whether an argument gives an option: in a cluster, abbreviated, or with a value."""
    name = argument.text.split("=", 1)[0]
    if option.startswith("--"):
        short_of = len(name) >= _LEAST and name.startswith("--") and option.startswith(name)
        return short_of or has_pattern_match(name, (option,))
    if len(option) == _SHORT:
        return name[:1] == "-" != name[1:2] and option[1] in argument.text[1:]
    return name == option


def has_any_option(arguments: Arguments, wanted: Iterable[str]) -> bool:
    """Whether one of the options is given."""
    return any(has_option(one, option) for option in wanted for one in list_options(arguments))


def find_option_value(arguments: Arguments, option: str) -> Argument | None:
    """Return the value of an option, glued to it or the argument after it."""
    for one, after in zip_longest(arguments, arguments[1:]):
        if one.text == option:
            return after
        if one.text.startswith(f"{option}=") and option.startswith("--"):
            return one._replace(text=one.text.partition("=")[2])
        if len(option) == _SHORT and one.text.startswith(option):
            return one._replace(text=one.text[_SHORT:])
    return None


_TARGET_OPTIONS = ("-t", "--target-directory")


def is_rule_met(
    rule: DangerRule, arguments: Arguments, places: PathContext, valued: tuple[str, ...]
) -> bool:
    """Whether a rule, which is about the program, calls these arguments dangerous.

    `valued` holds the options that take the next argument.
    """
    given = list_operands(arguments, valued)
    if not _has_words(given, rule.words) or is_help_request(arguments, len(rule.words)):
        return False
    if (rule.spares == "files" and is_limited_to_files(arguments, places)) or (
        rule.spares == "paths" and is_limited_to_paths(arguments, places)
    ):
        return False
    rest = given[len(rule.words) :]
    if rule.keeps_last and len(rest) > 1 and not has_any_option(arguments, _TARGET_OPTIONS):
        rest = rest[:-1]
    texts = [one.text for one in arguments if one not in given[: len(rule.words)]]
    return (
        (not rule.options or has_any_option(arguments, rule.options))
        and (not rule.operands or any(has_pattern_match(text, rule.operands) for text in texts))
        and (rule.place is None or any(is_in_place(one, rule.place, places) for one in rest))
        and not has_any_option(arguments, rule.unless)
    )


def _has_words(given: Arguments, words: tuple[str, ...]) -> bool:
    return len(given) >= len(words) and all(
        has_pattern_match(one.text, tuple(word.split("|")))
        for one, word in zip(given, words, strict=False)
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
        return files is not None and all(_is_readable_file(one, places) for one in files)
    if name in _EVALUATES and any(one.glob for one in arguments):
        return False  # of a file named `-v`, and one after it, they run what is in its brackets
    if is_plain_calculation(name, arguments) or is_local_request(name, arguments):
        return True
    files = find_library_tool_files(name, arguments)
    if files is None:
        files = find_queried_database(name, arguments)
    if files is not None:
        return all(_is_readable_file(one, places) for one in files)
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
        _VERIFIES.search(one.text) or any(has_option(one, bad) for bad in _RUNS)
        for one in arguments
    ):
        return False  # it may run gpg, or a program of the configuration
    globs = (one for one in arguments if one.glob)  # names of files, whatever they are given to
    chosen = (one._replace(glob=True) for one in _list_chosen_files(program, arguments))
    if not all(_is_readable_file(one, places) for one in globs) or any(
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
    if program not in _LISTING and any(has_option(one, two) for one in arguments for two in _LISTS):
        return True
    if program == "file" and has_any_option(arguments, ("-f",)):
        return True
    return program in _BINARY_TOOLS and any(one.text[:1] == "@" for one in arguments)


def _find_lead(arguments: Arguments, places: PathContext) -> bool | None:
    """Return whether `cd` may be followed where no path tells it; None where a path does."""
    given = list_operands(arguments)
    if not given:
        return places.is_readable(Argument(places.home))
    if [one.text for one in arguments] == ["-"]:
        return True  # to a folder that is unknown to the commands after it
    return False if any(one.text == "-" for one in given) else None


def _list_chosen_files(program: str, arguments: Arguments) -> Iterator[Argument]:
    """Yield the names of files that options choose, and those git takes out of a commit."""
    for left, one in pairwise((*arguments[:1], *arguments)):
        if left.text in _CHOOSING or one.text.startswith(_CHOOSING):
            yield one._replace(text=one.text.rpartition("=")[2])
        if one.text[:2] == "-g" and program == "rg":
            yield one._replace(text=one.text[_SHORT:])
        if program == "git" and ":" in one.text:
            yield one._replace(text=one.text.rpartition(":")[2])


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
        or any(name == one.partition(" ")[0] for one in load_tables().readers)
        or any(name in one.commands for one in load_tables().rules)
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
    two = f"{name} {' '.join(one.text for one in arguments[:2])}"
    if two in load_tables().readers and arguments[1:2] and arguments[1].known:
        return two, arguments[2:]
    one = f"{name} {arguments[0].text}"
    if one not in load_tables().readers and name in load_tables().readers:
        return name, arguments
    return one, arguments[1:]


def _is_within_limits(reader: ReadOnlyCommand, arguments: Arguments) -> bool:
    given = list_operands(arguments, reader.valued)
    limited = bool(
        reader.never or reader.options is not None or reader.operands or reader.forbidden
    )
    if (limited or reader.needs) and any(
        not one.known or (one.glob and one.text[:1] in "*?[") for one in arguments
    ):
        return False
    # a name of the folder may be an option, or one operand more: `uniq *` writes the second
    too_many = reader.most is not None and (
        len(given) > reader.most or any(one.glob for one in given)
    )
    if too_many or any(
        has_pattern_match(one.text, reader.forbidden)
        or any(has_option(one, bad) for bad in reader.never)
        for one in arguments
    ):
        return False
    if reader.operands and not all(has_pattern_match(one.text, reader.operands) for one in given):
        return False
    if reader.needs and not any(one.text in reader.needs for one in arguments):
        return False
    return reader.options is None or all(
        _is_allowed_option(one, reader.options) for one in list_options(arguments)
    )


def _is_allowed_option(argument: Argument, allowed: tuple[str, ...]) -> bool:
    if has_pattern_match(argument.text, allowed):
        return True
    letters = {one[1] for one in allowed if len(one) == _SHORT}
    return argument.text[:2] != "--" and set(argument.text[1:]) <= letters


def _is_opening_readable(
    name: str, reader: ReadOnlyCommand, arguments: Arguments, places: PathContext
) -> bool:
    explicit = name in _SEARCHERS and has_any_option(arguments, _EXPLICIT)
    given = list_operands(arguments, reader.valued)[0 if explicit else reader.skip :]
    glued = [
        one._replace(text=text)
        for one in list_options(arguments)
        for text in (one.text.partition("=")[2], one.text[_SHORT:])
        if text.startswith("/") or ".." in text or places.is_sensitive(one._replace(text=text))
    ]
    if any(not one.known for one in arguments):
        return False
    return all(_is_readable_file(one, places) for one in (*given, *glued))


def _is_readable_file(argument: Argument, places: PathContext) -> bool:
    """Whether a file may be read unasked."""
    return places.is_readable(argument) and not places.is_sensitive(argument)
