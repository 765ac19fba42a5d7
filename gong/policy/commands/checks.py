"""Dangers beyond the tables: the input of programs, and commands inside other code.

Every function takes one use of a program and returns why it is dangerous, or None; pure.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from ...shell.expansion import Argument
from .invocation import is_inside
from .matching import (
    EXECUTES_COMMANDS,
    FETCHED_REASON,
    find_option_value,
    has_any_option,
    is_in_place,
    is_rule_met,
    list_operands,
    read_program_name,
)
from .removal import check_container_removal, check_listed_removal, check_unknown_removal
from .tables import find_later_reason, has_pattern_match, load_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ...shell.expansion import Arguments
    from .invocation import Invocation, PathContext
    from .tables import DangerRule

_RECURSIVE = ["-r", "-R", "--recursive"]
_SOURCES = {".", "source", "eval"}
_SEARCHED = 64_000  # characters at each end of a program's text in which dangers are looked for
_MAX_BEHIND = 4  # so many times a name among the arguments is taken for a program
_KEY_OPTIONS = {"-i", "--key", "--cert", "-E", "--cacert", "--netrc-file"}
_RUN = re.compile(
    r"(?:system|popen\w*|exec\w*|spawn\w*|run|call|check_\w+|getoutput|qx|%x|script|shell_exec|passthru)"
    r"\s*[(\s{]\s*[frb]{0,2}(\"\"\"|'''|[\"'`/{])(.{1,2000}?)(?:\1|\})|`([^`]{1,2000})`",
    re.DOTALL,
)
_LIST = re.compile(r"(?:run|call|Popen|check_\w+|spawn\w*|exec\w*)\s*\(\s*\[([^\]]{1,2000})\]")
_CALLED = re.compile(r"\b(?:exec\w*|spawn\w*|system)\s*\(([^()]{1,500})\)")
_PIPED = re.compile(r"\"([^\"\n]{1,2000})\"\s*(?=\|)|\|&?\s*\"([^\"\n]{1,2000})\"")
_BRACKETED = re.compile(r"(?:\bqx|%x)\s*[({\[]([^)}\]]{1,2000})[)}\]]")
_REMOVING_CALL = re.compile(
    r"(?:\b(?:rmtree|remove_tree|rm_rf?|rmSync|rmdir|rmdirSync|rimraf|unlink|unlinkSync|removeSync"
    r"|removedirs|remove_dir|remove_entry\w*|RemoveAll|emptyDir|emptyDirSync)\s*\(?|delete-directory"
    r"|(?:\b(?:os|fs|promises|Deno|File|Dir|FileUtils)\.|[\"']\)\.|(?<![\w.]))(?:remove|rm|delete)\()"
    r"\s*(?:[\w.]+\(\s*){0,3}[\"']([^\"'\n]{1,500})[\"']"
)
"""A call that removes, with the path it is given; perhaps inside of `Path(…)` and the like."""
_REMOVED_VALUE = re.compile(
    r"[\"']([^\"'\n]{1,500})[\"']\s*\)?\s*\.(?:deleteDir|rmtree|rmdir|delete|unlink)\b"
)
_LITERAL = re.compile(r"[\"']([^\"']*)[\"']")

_QUOTED = re.compile(r"\"([^\"]*)\"|'([^']*)'")
_MAX_LITERALS = 40


def find_dangers(use: Invocation) -> Iterator[str]:
    """Yield every reason for which a use is dangerous."""
    for rule in _find_rules(use.name):
        if is_rule_met(rule, use.arguments, use.places, load_tables().valued.get(use.name, ())):
            yield rule.reason
    for check in _CHECKS:
        reason = check(use)
        if reason:
            yield reason


@lru_cache(maxsize=1024)
def _find_rules(name: str) -> tuple[DangerRule, ...]:
    if not has_pattern_match(name, _list_rule_commands()):
        return ()
    return tuple(rule for rule in load_tables().rules if has_pattern_match(name, rule.commands))


@cache
def _list_rule_commands() -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for rule in load_tables().rules for name in rule.commands))


def _check_unknown_program(use: Invocation) -> str | None:
    """Take a program that an expansion decides for `rm`, when its arguments fit."""
    fits = not use.name and has_any_option(use.arguments, _RECURSIVE)
    if fits and any(use.places.is_vital(operand) for operand in list_operands(use.arguments)):
        return "may remove a system, home or workspace folder"
    return None


def _check_program_behind(use: Invocation) -> str | None:
    """Look at the arguments of a program that is not known as if it ran them."""
    words = load_tables().words
    if not use.name or use.name in words.containers or load_tables().is_reader(use.name):
        return None
    seen: Counter[str] = Counter()
    for index, argument in enumerate(use.arguments):
        name = read_program_name(argument) if argument.known else ""
        seen[name] += 1
        if not name or seen[name] > _MAX_BEHIND:  # a later one has no more arguments than it
            continue
        for rule in _find_rules(name):
            if rule.place and is_rule_met(rule, use.arguments[index + 1 :], use.places, ()):
                return rule.reason
    return None


def _check_fed_shell(use: Invocation) -> str | None:
    """Look at a shell or interpreter that runs what was downloaded or decoded."""
    words = load_tables().words
    runs = use.name in words.shells or use.name in _SOURCES
    reads = _is_reading_script(use)
    if _is_interpreter(use.name):
        runs = not any(
            operand.known and not operand.inside for operand in list_operands(use.arguments)
        )
    inside = use.inside if runs or not use.name else ()
    sources = (*(use.before if reads else ()), *inside)
    for source in sources:
        if source.name in words.downloaders:
            return FETCHED_REASON
        if source.name in words.decoders:
            return "runs a text that was made unreadable"
    return None


def _is_reading_script(use: Invocation) -> bool:
    """Whether standard input is the program's own script."""
    words = load_tables().words
    if use.name in words.shells:
        scripts = [operand for operand in list_operands(use.arguments) if operand.text != "-"]
        return has_any_option(use.arguments, ["-s"]) or not (
            scripts or has_any_option(use.arguments, ["-c"])
        )
    if use.name in {".", "source"}:
        return any(
            argument.text.startswith(("/dev/stdin", "/dev/fd/")) for argument in use.arguments
        )
    if not _is_interpreter(use.name):
        return False
    has_code = has_any_option(use.arguments, ["-c", "-m", "-e", "-E", "-p", "-n", "-r", "--eval"])
    return not has_code and all(operand.text == "-" for operand in list_operands(use.arguments))


def _is_interpreter(name: str) -> bool:
    return has_pattern_match(name, load_tables().words.interpreters)


def find_embedded_commands(use: Invocation) -> Iterator[str]:
    """Yield the shell commands in code for an interpreter."""
    if _is_interpreter(use.name):
        for text in map(_cut_to_ends, (*(argument.text for argument in use.arguments), *use.given)):
            yield from (match[2] or match[3] for match in _RUN.finditer(text))
            yield from (match[1] for match in _BRACKETED.finditer(text))
            for listed in (*_LIST.finditer(text), *_CALLED.finditer(text)):
                yield " ".join(_LITERAL.findall(listed[1]))
            literals = [double or other for double, other in _QUOTED.findall(text)][:_MAX_LITERALS]
            if EXECUTES_COMMANDS.search(text) and literals:
                yield from (" ".join(literals), "".join(literals))
            if use.name.endswith("awk"):
                yield from (match[1] or match[2] for match in _PIPED.finditer(text))


def _check_removing_code(use: Invocation) -> str | None:
    """Look at the paths that code for an interpreter, or an editor, removes."""
    if not (_is_interpreter(use.name) or use.name in load_tables().words.interactive):
        return None
    for text in map(_cut_to_ends, (*(argument.text for argument in use.arguments), *use.given)):
        for match in (*_REMOVING_CALL.finditer(text), *_REMOVED_VALUE.finditer(text)):
            path = match[1]
            if path == "~" or path.startswith("~/"):
                path = use.places.home + path[1:]
            if use.places.is_vital(Argument(path, glob="*" in path)):
                return "removes a system, home or workspace folder"
    return None


def _check_patterns(use: Invocation) -> str | None:
    """Look for calls in code for an interpreter, and for statements for a database."""
    patterns = load_tables().calls if _is_interpreter(use.name) else ()
    if use.name in load_tables().words.databases:
        patterns += load_tables().statements
    texts = [
        _cut_to_ends(text) for text in (*(argument.text for argument in use.arguments), *use.given)
    ]
    found = (why for pattern, why in patterns for text in texts if re.search(pattern, text))
    return next(found, None)


def _cut_to_ends(text: str) -> str:
    """Return the beginning and the end of code that is longer than what is searched."""
    return text if len(text) <= 2 * _SEARCHED else f"{text[:_SEARCHED]}\n{text[-_SEARCHED:]}"


def _check_secret_read(use: Invocation) -> str | None:
    words = load_tables().words
    opens = use.name in words.read or use.name in words.fetchers
    reader = load_tables().readers.get(use.name)
    opens = opens or (reader is not None and reader.opens and use.name != "find")
    if opens and any(
        is_in_place(part, "secret", use.places) for part in _split_arguments(use.arguments)
    ):
        return "reads a private key or password"
    return None


def _split_arguments(arguments: Arguments) -> Iterator[Argument]:
    """Yield the arguments and their parts after `=` or `@`, except keys to log in with."""
    for left, argument in zip((None, *arguments), arguments, strict=False):
        if left is None or left.text not in _KEY_OPTIONS:
            yield argument
            for text in re.split("[@=:]", argument.text)[1:]:
                yield argument._replace(text=text)


def _is_sending(use: Invocation) -> bool:
    """Whether it talks to another machine: of openssl only some commands do."""
    operands = list_operands(use.arguments)
    return use.name != "openssl" or not operands or operands[0].text in _OPENSSL_SENDS


_OPENSSL_SENDS = {"s_client", "s_server", "s_time", "ocsp", "cmp", "ts"}


def _check_sent_data(use: Invocation) -> str | None:
    """Look at what a program that talks to other machines is given to send."""
    if use.name not in load_tables().words.senders or not _is_sending(use):
        return None
    own = [*_split_arguments(use.arguments), *use.read]
    if any(_is_private_file(argument, use.places) for argument in own):
        return "sends credentials to another machine"
    if any(_is_telling_secrets(invocation) for invocation in (*use.before, *use.inside)):
        return "sends credentials to another machine"
    shells = load_tables().words.shells
    if use.name not in {"curl", "wget"} and any(
        invocation.name in shells for invocation in use.before
    ):
        return "gives another machine a shell"
    return None


def _is_telling_secrets(use: Invocation) -> bool:
    if use.name in load_tables().words.tellers and not list_operands(use.arguments):
        return True
    return any(
        _is_private_file(argument, use.places)
        for argument in (*_split_arguments(use.arguments), *use.read)
    )


def _is_private_file(argument: Argument, places: PathContext) -> bool:
    text = argument.text
    return (
        bool(text)
        and "://" not in text
        and (places.is_secret(argument) or places.is_sensitive(argument))
    )


def _check_written_files(use: Invocation) -> str | None:
    """Look at the files a program writes."""
    if any(map(use.places.is_protected_behind_links, list_written_files(use))):
        return "writes to the system, a device, or what decides who may log in"
    return None


def list_written_files(use: Invocation) -> Iterator[Argument]:
    """Yield the files that a program writes, as far as its words tell."""
    words, operands = load_tables().words, list_operands(use.arguments)
    if use.name in words.writers:
        yield from operands
    elif use.name in words.copiers:
        yield from operands[-1:]
        yield from _list_option_values(use.arguments, ["-t", "--target-directory"])
    elif use.name == "dd":
        yield from (
            argument._replace(text=argument.text[3:])
            for argument in operands
            if argument.text.startswith("of=")
        )
    elif use.name in {"sed", "perl"} and has_any_option(use.arguments, ["-i", "--in-place"]):
        yield from operands[1:]
    elif use.name in {"curl", "wget", "sort", "gcc", "openssl", "tar", "unzip"}:
        outputs = ["-o", "-O", "--output", "--output-document", "-out", "-d", "-C", "--directory"]
        yield from _list_option_values(use.arguments, outputs)


def _list_option_values(arguments: Arguments, options: list[str]) -> Iterator[Argument]:
    values = (find_option_value(arguments, option) for option in options)
    yield from (value for value in values if value is not None)


def _check_kill_all(use: Invocation) -> str | None:
    """Look for `kill -9 -1`: the first number may be a signal, no later one is."""
    if use.name != "kill" or not use.arguments:
        return None
    first, *rest = use.arguments
    if first.text in {"-s", "-n", "--signal"}:
        rest = rest[1:]
    elif first.text == "--":
        pass
    elif not first.text.startswith("-"):
        rest = list(use.arguments)
    return "ends every process" if any(argument.text == "-1" for argument in rest) else None


def _check_history_wipe(use: Invocation) -> str | None:
    """Look at a wiped history of commands."""
    names = {"bash_history", "zsh_history"}
    if use.name not in {"ln", "cp", "truncate"}:
        return None
    if any(argument.text.rsplit("/.", 1)[-1] in names for argument in use.arguments[-1:]):
        return "wipes the history of commands"
    empties = (
        any(argument.text == "/dev/null" for argument in use.arguments) or use.name == "truncate"
    )
    paths = [path for argument in use.arguments[-1:] for path in use.places.paths(argument)]
    if empties and any(_is_startup_file(path, use.places.home) for path in paths):
        return "empties what a shell runs when it starts"
    return None


def _is_startup_file(path: str, home: str) -> bool:
    return is_inside(path, home) and find_later_reason(path.removeprefix(home)) is not None


_CHECKS: tuple[Callable[[Invocation], str | None], ...] = (
    *(
        _check_unknown_program,
        _check_program_behind,
        check_listed_removal,
        check_unknown_removal,
        check_container_removal,
        _check_fed_shell,
        _check_patterns,
        _check_removing_code,
        _check_secret_read,
        _check_sent_data,
        _check_written_files,
    ),
    *(_check_kill_all, _check_history_wipe),
)
