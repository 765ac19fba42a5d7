"""Commands that may hide in the options, the language or the input of another program.

What a program does with a text is not known for most: each part of it that reads as a command
counts as one that may run. Programs that are known to take text as text hide none. `WrittenFiles`
remembers what one command writes and a later one runs; a file is known by its path, judged by
letters alone. All of it is pure but `WrittenFiles.keep`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from ...shell.expansion import Argument
from .matching import EXECUTES_COMMANDS, find_option_value, list_operands
from .scope import list_printed_texts
from .tables import find_later_reason, has_pattern_match, load_tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...shell.expansion import Arguments
    from .invocation import Invocation, PathContext


_MESSAGES = re.compile(
    r"--(?:message|title|body|subject|summary|description|comment|notes?|author|trailer|grep|format"
    r"|pretty|date|label|help|prompt|committer|since|until|text)"
)
"""Options whose value is read by people, or compared."""
_GIT_MESSAGES = re.compile(r"-[a-zA-Z]*m|-[SGLe]|-F")
_GIT_RUNS = {
    "bisect", "submodule", "rebase", "filter-branch", "difftool", "mergetool", "config",
    "send-email", "instaweb", "credential", "daemon", "web--browse",
}  # fmt: skip
"""Subcommands of git among whose operands a command may stand."""
_GIT_OPTIONS = re.compile(
    r"-[cxu]|-y[xO]|-O|--(?:exec|extcmd|upload-pack|receive-pack|open-files|config)"
)
_MARKS = re.compile(r"[;&|\n(){}`'\"=!:,\[\]]+")
_LITERAL = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'")
_LEADING = re.compile(r"(?m)^[\s@+:!|~%*\\-]+")
_CRON = re.compile(r"(?m)^\s*(?:@\w+|(?:[\d*/,?LW#A-Za-z-]+\s+){4}[\d*/,?LW#A-Za-z-]+)\s+")
_MAKE_NAME = re.compile(r"\$\((\w+)\)")
_SUBSTITUTED = re.compile(
    r"s([^\\\n\w\s])((?:\\.|(?!\1).)*)\1((?:\\.|(?!\1).)*)\1([a-zA-Z0-9]*)", re.DOTALL
)
_SEDS = {"sed", "gsed", "ssed"}
_SED_OPTION = re.compile(r"\A(?:--expression=|-[nErsuz]*e(?=\S))")
_EXECUTED = re.compile(
    r"(?:^|[;{}\n])[^;{}\na-zA-Z]*(?:/[^/\n]*/[^;{}\na-zA-Z/]*)*e(?:\s+([^\n]+)|\s*(?=[;}\n]|$))"
)
_ESCAPE = re.compile(
    r"(?:\.shell|\.system|\\!|(?:^|;)\s*system|!)\s+([^\n]+)|\bprogram\s+'([^']+)'", re.IGNORECASE
)
"""What a client of a database gives to a shell."""
_OWN_QUOTES = re.compile(r"[\\$'\"{<>|]")
_MAX_PARTS = 40  # parts of one text, and texts of one program
_MAX_MARKS = 120
"""A text with more marks is looked at line by line."""
_MAX_TEXT = 64_000


def find_hidden_commands(use: Invocation) -> Iterator[str]:
    """Yield the texts that may be commands the program runs, each at most once."""
    sure = _list_sed_commands(use) if use.name in _SEDS else ()
    texts = dict.fromkeys(
        (*sure, *(part for text in _list_suspect_texts(use) for part in split_suspect_parts(text)))
    )
    yield from list(texts)[: 4 * _MAX_PARTS]


def _list_suspect_texts(use: Invocation) -> Iterator[str]:
    words = load_tables().words
    if use.name in words.databases:
        for text in (*_list_argument_texts(use), *use.given):
            yield from (match[1] or match[2] for match in _ESCAPE.finditer(text))
    elif use.name == "git":
        yield from _list_git_texts(use)
    elif has_pattern_match(use.name, words.interpreters) and any(
        EXECUTES_COMMANDS.search(text) for text in (*_list_argument_texts(use), *use.given)
    ):
        yield from (*_list_argument_texts(use), *use.given)
    elif use.name not in _SEDS and can_run_input(use.name):
        printed = (text for inner in use.inside for text in list_printed_texts(inner))
        for whole in (*_list_argument_texts(use), *use.given, *printed):
            # A crontab begins with times, a makefile spells $ twice
            text = whole[:_MAX_TEXT]
            if use.name in {"crontab", "fcrontab"}:
                yield _CRON.sub("", text)
            if use.name not in {"make", "gmake", "bmake"}:
                yield text
            else:
                yield _LEADING.sub("", _MAKE_NAME.sub(r"${\1}", text).replace("$$", "$"))


def can_run_input(name: str) -> bool:
    """Whether a program may run what it is given; those that are known to read it do not."""
    words = load_tables().words
    if has_pattern_match(name, words.spawners):
        return True
    known = (*words.sayers, *words.containers, *words.shells, *words.writers, *words.copiers)
    if (
        not name
        or name
        in {*known, *words.removers, *words.senders, *words.downloaders} - _SPAWNING_PROGRAMS
    ):
        return False
    return not load_tables().is_reader(name) and not has_pattern_match(name, words.interpreters)


_SPAWNING_PROGRAMS = {
    "ssh",
    "scp",
    "sftp",
    "rsync",
    "ex",
    "ed",
    "lftp",
    "ftp",
    "socat",
    "mutt",
    "openssl",
}
"""Senders and writers that may run commands here all the same."""


def _list_argument_texts(use: Invocation) -> Iterator[str]:
    """Yield the arguments that are no messages, and what is glued to an option."""
    for left, argument in pairwise((Argument(""), *use.arguments)):
        if not (_MESSAGES.match(argument.text) or _MESSAGES.fullmatch(left.text)):
            yield argument.text
            if argument.text[:1] == "-" != argument.text[1:2]:
                yield argument.text[2:]


def _list_git_texts(use: Invocation) -> Iterator[str]:
    operands = list_operands(use.arguments, load_tables().valued.get("git", ()))
    runs = bool(operands) and operands[0].text in _GIT_RUNS
    for left, argument in pairwise((Argument(""), *use.arguments)):
        if _MESSAGES.match(argument.text) or _GIT_MESSAGES.fullmatch(left.text):
            continue
        if argument.text.startswith("ext::"):
            yield argument.text.partition("::")[2].replace("% ", " ")
        elif runs or _GIT_OPTIONS.match(left.text) or _GIT_OPTIONS.match(argument.text):
            yield argument.text
            yield argument.text[2:]


def _list_sed_commands(use: Invocation) -> Iterator[str]:
    """Yield what `e` and `s///e` of sed run; without a command, `e` runs what it reads."""
    for argument in use.arguments:
        script = _SED_OPTION.sub("", argument.text, count=1)
        for match in _SUBSTITUTED.finditer(script):
            if "e" in match[4]:
                text = re.sub(r"\\(.)", r"\1", match[3])
                yield from (text, *use.given, *(text + each for each in use.given))
        for match in _EXECUTED.finditer(script):
            yield from (match[1],) if match[1] else use.given


def split_suspect_parts(text: str) -> Iterator[str]:
    """Yield a text and its parts, as far as they may be commands that are dangerous."""
    if not _is_suspect(text):
        return
    plain = _LEADING.sub("", text)
    if len(_MARKS.findall(plain)) > _MAX_MARKS:
        yield from [line for line in plain.split("\n") if _is_suspect(line)][:_MAX_MARKS]
        return
    yield plain
    literals = [single or other for single, other in _LITERAL.findall(text)]
    if 1 < len(literals) <= _MAX_PARTS:
        yield " ".join(literals)
    if text.count("\n") < _MAX_PARTS:
        fragments = [fragment.strip() for fragment in _MARKS.split(text)]
        yield from [
            fragment for fragment in fragments if fragment != plain and _is_suspect(fragment)
        ][:_MAX_PARTS]
        ends = [match.end() for match in _MARKS.finditer(text)][:_MAX_PARTS]
        tails = (text[end:].rstrip("'\")") for end in ends)
        yield from filter(_is_suspect, tails)
    yield from [literal for literal in literals if _is_suspect(literal)][:_MAX_PARTS]


def _is_suspect(text: str) -> bool:
    """Whether a text has several words, and may name a program that can be dangerous."""
    words = text.split()
    if not words or (len(words) == 1 and not _OWN_QUOTES.search(text)):
        return False
    return bool(_compile_program_names().search(text.lower()) or ("$" in text or "\\" in text))


@cache
def _compile_program_names() -> re.Pattern[str]:
    """Return what fits a name of a program that a rule is about, or that hides others."""
    names = {name for rule in load_tables().rules for name in rule.commands}
    names |= {
        *load_tables().words.shells,
        *load_tables().words.downloaders,
        *load_tables().words.removers,
    }
    plain = sorted(re.escape(name.strip("*")) for name in names)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(plain)})(?![a-z])|:\(\)")


_VALUED = {
    "curl": (
        "-o", "--output", "-d", "--data", "-H", "--header", "-X", "--request", "-u", "--user",
        "-A", "--user-agent", "-e", "-F", "--form", "-m", "--max-time", "--retry", "-x", "-b",
    ),
    "wget": ("-O", "--output-document", "-P", "--header", "-U", "-t", "-T", "-o"),
}  # fmt: skip
_SHELL_VALUED = ("-o", "+o", "-O", "+O", "--rcfile", "--init-file", "-W", "-X", "--require")
_SOURCES = {".", "source"}
_BUILDERS = {"make", "gmake", "bmake"}
_BUILD_FILES = ("Makefile", "makefile", "GNUmakefile")
_PROSE = (".md", ".rst", ".adoc", ".html")
_PASSES_ON = {"cat", "tee", "echo", "printf"}
"""Programs that write the text they are given, or say it."""


@dataclass(slots=True)
class WrittenFiles:
    """What the files that a command line wrote hold, by path."""

    fetched: set[str] = field(default_factory=set)
    """Those that come from the network."""
    texts: dict[str, list[str]] = field(default_factory=dict)
    """Those whose text is in the command line."""

    def keep(self, uses: Sequence[Invocation], targets: Sequence[Argument]) -> tuple[str, ...]:
        """Remember what the programs of one command write; `targets` are its redirections.

        Returns the texts among them that are run at a later time, at a login or a commit.
        """
        later: list[str] = []
        for use in uses:
            own = (*targets, *(list_operands(use.arguments) if use.name == "tee" else ()))
            paths = [path for target in own for path in use.places.paths(target)]
            if any(
                program.name in load_tables().words.downloaders for program in (use, *use.before)
            ):
                self.fetched |= {*paths, *_resolve_paths(list_download_targets(use), use.places)}
            elif use.name in _PASSES_ON:
                written = (*use.given, *list_printed_texts(use))
                for path in paths:
                    self.texts.setdefault(path, []).extend(written)
                    later += written if find_later_reason(path) else ()
        return tuple(dict.fromkeys(later))

    def find_run_texts(self, first: Argument, use: Invocation) -> tuple[bool, tuple[str, ...]]:
        """Return whether a program runs a fetched file, and the known texts it runs."""
        paths = _resolve_paths(list_run_scripts(first, use), use.places)
        read = {
            *paths,
            *(
                path
                for path in _resolve_paths(list_input_files(use), use.places)
                if not path.lower().endswith(_PROSE)
            ),
        }
        texts = (text for path in read for text in self.texts.get(path, ()))
        return not self.fetched.isdisjoint(paths), tuple(texts)


def list_download_targets(use: Invocation) -> Iterator[Argument]:
    """Yield the files that curl or wget puts what it fetches in."""
    if use.name not in _VALUED:
        return
    valued = _VALUED[use.name]
    for argument, after in pairwise((*use.arguments, Argument(""))):
        letters = argument.text[1:] if argument.text[:1] == "-" != argument.text[1:2] else ""
        if letters[-1:] == ("o" if use.name == "curl" else "O"):
            yield after
    for option in ("-o", "--output") if use.name == "curl" else ("-O", "--output-document"):
        value = find_option_value(use.arguments, option)
        if value is not None:
            yield value
    for operand in list_operands(use.arguments, valued):
        yield operand._replace(text=operand.text.split("?")[0].rstrip("/").rsplit("/", 1)[-1])


def list_run_scripts(first: Argument, use: Invocation) -> Iterator[Argument]:
    """Yield the files a use of a program runs: itself, or the script it is given."""
    words = load_tables().words
    if "/" in first.text:
        yield first
    runs = use.name in words.shells or use.name in _SOURCES
    if runs or any(
        use.name.startswith(interpreter.rstrip("*")) for interpreter in words.interpreters
    ):
        operands = list_operands(use.arguments, _SHELL_VALUED)
        yield from operands[:1] or use.read


def list_input_files(use: Invocation) -> Iterator[Argument]:
    """Yield the files in which a program of another language may find commands."""
    if can_run_input(use.name) or use.name in load_tables().words.databases:
        yield from (*list_operands(use.arguments), *use.read)
        if use.name in _BUILDERS:
            yield from map(Argument, _BUILD_FILES)


def _resolve_paths(arguments: Iterator[Argument] | Arguments, places: PathContext) -> set[str]:
    return {path for argument in arguments if argument.text for path in places.paths(argument)}
