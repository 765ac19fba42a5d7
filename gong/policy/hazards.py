"""Dangers beyond the tables: the input of programs, and commands inside other code.

Every function takes one use of a program and returns why it is dangerous, or None; pure.
"""

from __future__ import annotations

import re
from collections import Counter
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING

from .hidden import EXECUTES
from .matching import any_option, in_place, meets, operands, value_of
from .mounts import removed_inside
from .removing import removed, untold
from .tables import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .expansion import Argument, Arguments
    from .places import Places
    from .tables import Rule
    from .use import Use

_RECURSIVE = ["-r", "-R", "--recursive"]
_SOURCES = {".", "source", "eval"}
_SEARCHED = 64_000  # characters at each end of a program's text in which dangers are looked for
_MOST_BEHIND = 4  # so many times a name among the arguments is taken for a program
_KEY_OPTIONS = {"-i", "--key", "--cert", "-E", "--cacert", "--netrc-file"}
_RUN = re.compile(
    r"(?:system|popen\w*|exec\w*|spawn\w*|run|call|check_\w+|getoutput|qx|%x|script|shell_exec|passthru)"
    r"\s*[(\s{]\s*[frb]{0,2}(\"\"\"|'''|[\"'`/{])(.{1,2000}?)(?:\1|\})|`([^`]{1,2000})`",
    re.DOTALL,
)
_LIST = re.compile(r"(?:run|call|Popen|check_\w+|spawn\w*|exec\w*)\s*\(\s*\[([^\]]{1,2000})\]")
_CALLED = re.compile(r"\b(?:exec\w*|spawn\w*|system)\s*\(([^()]{1,500})\)")
_PIPED = re.compile(r"\"([^\"\n]{1,2000})\"\s*\|")
_BRACKETED = re.compile(r"(?:\bqx|%x)\s*[({\[]([^)}\]]{1,2000})[)}\]]")
_LITERAL = re.compile(r"[\"']([^\"']*)[\"']")

_QUOTED = re.compile(r"\"([^\"]*)\"|'([^']*)'")
_MOST_LITERALS = 40


def dangers(use: Use) -> Iterator[str]:
    """Yield every reason for which a use is dangerous."""
    for rule in _rules(use.name):
        if meets(rule, use.arguments, use.places, table().valued.get(use.name, ())):
            yield rule.reason
    for check in _CHECKS:
        reason = check(use)
        if reason:
            yield reason


@lru_cache(maxsize=1024)
def _rules(name: str) -> tuple[Rule, ...]:
    rules = table().rules
    return tuple(one for one in rules if any(fnmatchcase(name, each) for each in one.commands))


def _unknown_program(use: Use) -> str | None:
    """Take a program that an expansion decides for `rm`, when its arguments fit."""
    fits = not use.name and any_option(use.arguments, _RECURSIVE)
    if fits and any(use.places.vital(one) for one in operands(use.arguments)):
        return "may remove a system, home or workspace folder"
    return None


def _behind(use: Use) -> str | None:
    """Look at the arguments of a program that is not known as if it ran them."""
    words = table().words
    if not use.name or use.name in words.containers or table().reader(use.name):
        return None
    seen: Counter[str] = Counter()
    for index, one in enumerate(use.arguments):
        name = _base(one) if one.known else ""
        seen[name] += 1
        if not name or seen[name] > _MOST_BEHIND:  # a later one has no more arguments than it
            continue
        for rule in _rules(name):
            if rule.place and meets(rule, use.arguments[index + 1 :], use.places, ()):
                return rule.reason
    return None


def _base(argument: Argument) -> str:
    return argument.text.rsplit("/", 1)[-1].lower()


def _fed_shell(use: Use) -> str | None:
    """Look at a shell or interpreter that runs what was downloaded or decoded."""
    words = table().words
    runs = use.name in words.shells or use.name in _SOURCES
    reads = _reads_script(use)
    if _is_interpreter(use.name):
        runs = not any(one.known and not one.inside for one in operands(use.arguments))
    inside = use.inside if runs or not use.name else ()
    sources = (*(use.before if reads else ()), *inside)
    for one in sources:
        if one.name in words.downloaders:
            return "runs what comes from the network, unseen"
        if one.name in words.decoders:
            return "runs a text that was made unreadable"
    return None


def _reads_script(use: Use) -> bool:
    """Whether standard input is the program's own script."""
    words = table().words
    if use.name in words.shells:
        given = [one for one in operands(use.arguments) if one.text != "-"]
        return any_option(use.arguments, ["-s"]) or not (given or any_option(use.arguments, ["-c"]))
    if use.name in {".", "source"}:
        return any(one.text.startswith(("/dev/stdin", "/dev/fd/")) for one in use.arguments)
    if not _is_interpreter(use.name):
        return False
    asked = any_option(use.arguments, ["-c", "-m", "-e", "-E", "-p", "-n", "-r", "--eval"])
    return not asked and all(one.text == "-" for one in operands(use.arguments))


def _is_interpreter(name: str) -> bool:
    return any(fnmatchcase(name, one) for one in table().words.interpreters)


def _code(use: Use) -> str | None:
    if not _is_interpreter(use.name):
        return None
    texts = [*(one.text for one in use.arguments), *use.given]
    return _said(texts, table().calls)


def embedded(use: Use) -> Iterator[str]:
    """Yield the shell commands that stand in code for an interpreter."""
    if _is_interpreter(use.name):
        for text in map(_ends, (*(one.text for one in use.arguments), *use.given)):
            yield from (found[2] or found[3] for found in _RUN.finditer(text))
            yield from (found[1] for found in _BRACKETED.finditer(text))
            for listed in (*_LIST.finditer(text), *_CALLED.finditer(text)):
                yield " ".join(_LITERAL.findall(listed[1]))
            literals = [one or other for one, other in _QUOTED.findall(text)][:_MOST_LITERALS]
            if EXECUTES.search(text) and literals:
                yield from (" ".join(literals), "".join(literals))
            if use.name.endswith("awk"):
                yield from (found[1] for found in _PIPED.finditer(text))


def _database(use: Use) -> str | None:
    if use.name not in table().words.databases:
        return None
    return _said([*(one.text for one in use.arguments), *use.given], table().statements)


def _said(texts: list[str], patterns: tuple[tuple[str, str], ...]) -> str | None:
    shown = [*map(_ends, texts)]
    found = (why for pattern, why in patterns for text in shown if re.search(pattern, text))
    return next(found, None)


def _ends(text: str) -> str:
    """Return the beginning and the end of code that is longer than what is searched."""
    return text if len(text) <= 2 * _SEARCHED else f"{text[:_SEARCHED]}\n{text[-_SEARCHED:]}"


def _secret_read(use: Use) -> str | None:
    words = table().words
    opens = use.name in words.read or use.name in words.fetchers
    reader = table().readers.get(use.name)
    opens = opens or (reader is not None and reader.opens and use.name != "find")
    if opens and any(in_place(part, "secret", use.places) for part in _parts(use.arguments)):
        return "reads a private key or password"
    return None


def _parts(arguments: Arguments) -> Iterator[Argument]:
    """Yield the arguments and what stands in them behind `=` or `@`, but keys to log in with."""
    for left, one in zip((None, *arguments), arguments, strict=False):
        if left is None or left.text not in _KEY_OPTIONS:
            yield one
            for text in re.split("[@=:]", one.text)[1:]:
                yield one._replace(text=text)


def _sent(use: Use) -> str | None:
    """Look at what a program that talks to other machines is given to send."""
    if use.name not in table().words.senders:
        return None
    own = [*_parts(use.arguments), *use.read]
    if any(_private(one, use.places) for one in own):
        return "sends credentials to another machine"
    if any(_tells(one) for one in (*use.before, *use.inside)):
        return "sends credentials to another machine"
    shells = table().words.shells
    if use.name not in {"curl", "wget"} and any(one.name in shells for one in use.before):
        return "hands a shell to another machine"
    return None


def _tells(use: Use) -> bool:
    if use.name in table().words.tellers and not operands(use.arguments):
        return True
    return any(_private(one, use.places) for one in (*_parts(use.arguments), *use.read))


def _private(argument: Argument, places: Places) -> bool:
    text = argument.text
    return (
        bool(text) and "://" not in text and (places.secret(argument) or places.sensitive(argument))
    )


def _written(use: Use) -> str | None:
    """Look at the files a program writes."""
    if any(use.places.protected(one) for one in _targets(use)):
        return "writes to the system, a device, or what decides who may log in"
    return None


def _targets(use: Use) -> Iterator[Argument]:
    words, given = table().words, operands(use.arguments)
    if use.name in words.writers:
        yield from given
    elif use.name in words.copiers:
        yield from given[-1:]
        yield from _values(use.arguments, ["-t", "--target-directory"])
    elif use.name == "dd":
        yield from (one._replace(text=one.text[3:]) for one in given if one.text.startswith("of="))
    elif use.name in {"sed", "perl"} and any_option(use.arguments, ["-i", "--in-place"]):
        yield from given[1:]
    elif use.name in {"curl", "wget", "sort", "gcc", "openssl", "tar", "unzip"}:
        outputs = ["-o", "-O", "--output", "--output-document", "-out", "-d", "-C", "--directory"]
        yield from _values(use.arguments, outputs)


def _values(arguments: Arguments, wanted: list[str]) -> Iterator[Argument]:
    found = (value_of(arguments, one) for one in wanted)
    yield from (one for one in found if one is not None)


def _every_process(use: Use) -> str | None:
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
    return "ends every process" if any(one.text == "-1" for one in rest) else None


def _home_truncated(use: Use) -> str | None:
    """Look at a wiped history of commands."""
    names = {"bash_history", "zsh_history"}
    if use.name in {"ln", "cp", "truncate"} and any(
        one.text.rsplit("/.", 1)[-1] in names for one in use.arguments[-1:]
    ):
        return "wipes the history of commands"
    return None


_CHECKS: tuple[Callable[[Use], str | None], ...] = (
    *(
        _unknown_program,
        _behind,
        removed,
        untold,
        removed_inside,
        _fed_shell,
        _code,
        _database,
        _secret_read,
        _sent,
        _written,
    ),
    *(_every_process, _home_truncated),
)
