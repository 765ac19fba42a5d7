"""The tables of `data/`: what is dangerous, what only reads, and which commands run others."""

from __future__ import annotations

import re
from fnmatch import translate
from functools import cache, lru_cache
from importlib.resources import files
from threading import Lock
from typing import Literal

import msgspec
from msgspec import Struct

PlaceKind = Literal["vital", "protected", "system", "device", "secret"]


class DangerRule(Struct, frozen=True, forbid_unknown_fields=True):
    """One dangerous use; everything that is given has to be met."""

    commands: tuple[str, ...]
    """Names of the program, with wildcards."""
    reason: str
    words: tuple[str, ...] = ()
    """Its first operands, in order, with wildcards and `|` between choices."""
    options: tuple[str, ...] = ()
    """Options of which one is there; `-rf` meets `-r`, `--forc` and `--force=x` meet `--force`."""
    operands: tuple[str, ...] = ()
    """Patterns of which an argument after the words fits one."""
    place: PlaceKind | None = None
    """What an operand after the words has to name."""
    keeps_last: bool = False
    """Whether the last of several operands is the place for the others, and loses nothing."""
    unless: tuple[str, ...] = ()
    """Options that make it harmless."""
    spares: Literal["files", "paths"] | None = None
    """Harmless where it is limited to plain files or, as git knows them, paths of the workspace."""


class ReadOnlyCommand(Struct, frozen=True, forbid_unknown_fields=True):
    """A command that changes nothing, and within which limits."""

    opens: bool = True
    """Whether its operands are files it reads: these are judged as paths."""
    never: tuple[str, ...] = ()
    """Options that make it more than a reader."""
    options: tuple[str, ...] | None = None
    """The only options it may have; None for all but `never`."""
    most: int | None = None
    """How many operands it may have."""
    operands: tuple[str, ...] = ()
    """Patterns every operand has to fit one of; none for any."""
    forbidden: tuple[str, ...] = ()
    """Patterns no argument may fit."""
    leading: bool = False
    """Whether its options stand first: behind a word that is known nothing is one."""
    skip: int = 0
    """How many operands come before the files: the pattern of grep."""
    needs: tuple[str, ...] = ()
    """Options of which one has to be there."""
    valued: tuple[str, ...] = ()
    """Options that take the next argument, which is no file."""
    runs: bool = False
    """Whether it may run what it is given, where it is used in another way."""
    configs: tuple[str, ...] = ()
    """Names of the files, in the folder or above it, that configure the program."""
    unless: str = ""
    """What, as a regular expression, such a file must not hold: there it does more than to read."""


class WrapperCommand(Struct, frozen=True, forbid_unknown_fields=True):
    """A command that runs another one, given in its arguments."""

    valued: tuple[str, ...] = ()
    """Options that take the next argument."""
    skip: int = 0
    """How many operands come before the command."""
    assigns: bool = False
    """Whether NAME=value may come before the command."""
    clear: bool = False
    """Whether it adds nothing: the verdict is that of the command inside."""
    plain: tuple[str, ...] | None = None
    """The only options, as patterns, with which it adds nothing; None for any."""
    after: tuple[str, ...] = ()
    """The command stands after the first of these, not after the operands."""
    text: bool = False
    """Whether the command is a text for a shell."""
    option: str = ""
    """The option whose value is the text; none where the operands are it."""


class PlaceTable(Struct, frozen=True, forbid_unknown_fields=True):
    """Paths by what they are to a machine."""

    tops: tuple[str, ...]
    """Folders that are lost only as a whole."""
    system: tuple[str, ...]
    """Folders of which every part is the system's."""
    shared: tuple[str, ...]
    """Folders anybody writes into."""
    home: tuple[str, ...]
    """Patterns below a home whose loss cannot be made good."""
    keys: tuple[str, ...]
    """Below a home: what decides who may log in, and where."""
    public: tuple[str, ...]
    """Files that say what machine this is, and no more: they may be read unasked."""
    harmless_devices: tuple[str, ...]
    secrets: tuple[str, ...]
    """Private keys and passwords, as patterns."""
    sensitive: tuple[str, ...]
    """Files that often hold credentials, as patterns."""
    samples: tuple[str, ...]
    """Endings of such files that hold none."""


class ProgramNames(Struct, frozen=True, forbid_unknown_fields=True):
    """Names the analysis looks for."""

    literal: tuple[str, ...]
    """The commands that are dangerous in every case, as first asked for; kept for the tests."""
    shells: tuple[str, ...]
    """Programs that run a text of shell, from `-c` or standard input."""
    interpreters: tuple[str, ...]
    """Programs that run a text of another language."""
    downloaders: tuple[str, ...]
    decoders: tuple[str, ...]
    """Programs that make a command out of what does not look like one."""
    senders: tuple[str, ...]
    """Programs that send what they are given to another machine."""
    tellers: tuple[str, ...]
    """Programs that print the environment, with its keys."""
    containers: tuple[str, ...]
    """Programs whose commands run on another machine's files, or on no machine's."""
    databases: tuple[str, ...]
    sayers: tuple[str, ...]
    """Programs that take what they are given as text: they say, send, search or keep it."""
    spawners: tuple[str, ...]
    """Programs, as patterns, that run commands of their own language whatever else they are."""
    removers: tuple[str, ...]
    writers: tuple[str, ...]
    """Programs that change every file they are given."""
    copiers: tuple[str, ...]
    """Programs that change the last file they are given."""
    fetchers: tuple[str, ...]
    """Programs that read the files they are given, beside those that only read."""
    narrowing: tuple[str, ...]
    """Tests of find that choose among files."""
    harmless_variables: tuple[str, ...]
    """Names, as patterns, that change nothing about how programs are found and run."""
    obeyed_variables: tuple[str, ...]
    """Names, as patterns, that a shell obeys, or programs if they are exported already."""
    read: tuple[str, ...]
    """Plain readers of files."""
    look: tuple[str, ...]
    """Plain commands that look at names and sizes of files, not at what they hold."""
    speak: tuple[str, ...]
    """Plain commands that open no file they are given."""
    interactive: tuple[str, ...]
    """Programs that wait for keyboard input."""
    version: tuple[str, ...]
    """Programs that may be asked for their version."""
    version_options: tuple[str, ...]


class DangerTables(Struct, frozen=True, forbid_unknown_fields=True):
    """All of it."""

    words: ProgramNames
    places: PlaceTable
    later: dict[str, tuple[str, ...]]
    """Reason → ends of paths, as patterns: files that make programs run at a later time."""
    own: dict[str, tuple[str, ...]]
    """Program → words, as patterns: commands that change what gong may do, or what it kept."""
    rules: tuple[DangerRule, ...]
    readers: dict[str, ReadOnlyCommand]
    wrappers: dict[str, WrapperCommand]
    valued: dict[str, tuple[str, ...]]
    """By program: the options before a subcommand that take the next argument."""
    selecting: dict[str, tuple[str, ...]]
    """By program: those of them that only choose what the subcommand is about."""
    choosing: dict[str, tuple[str, ...]]
    """By program, and `any`: options that choose another program, project or server."""
    named_versions: dict[str, dict[str, str]]
    """By program: files, and patterns in them, that choose what runs to print a version."""
    calls: tuple[tuple[str, str], ...]
    """Pattern and reason: what the code of another language must not hold."""
    statements: tuple[tuple[str, str], ...]
    """Pattern and reason: dangerous statements for a database."""

    def is_reader(self, name: str) -> bool:
        """Whether a program never runs what it is given."""
        reader = self.find_reader(name)
        return reader is not None and not reader.runs

    def find_reader(self, name: str) -> ReadOnlyCommand | None:
        """Return the limits of a command that changes nothing, None when it is not known."""
        if name in self.readers:
            return self.readers[name]
        if name in self.words.read or name in self.words.look:
            return ReadOnlyCommand()
        return ReadOnlyCommand(opens=False) if name in self.words.speak else None


_READING = Lock()
"""msgspec learns a type once, and crashes where two threads let it learn the same one."""


def load_tables() -> DangerTables:
    """Return the shipped tables, in every thread the same."""
    with _READING:
        return _read_tables()


@cache
def _read_tables() -> DangerTables:
    import tomllib  # only where a command is looked at

    data = files("gong.policy") / "data"
    names = ("danger.toml", "commands.toml", "later.toml")
    parts = [tomllib.loads((data / name).read_text("utf-8")) for name in names]
    return msgspec.convert({**parts[0], **parts[1], **parts[2]}, DangerTables)


def has_pattern_match(text: str, patterns: tuple[str, ...]) -> bool:
    """Whether a text fits one of these patterns of `fnmatch`, with regard to case."""
    return _compile_patterns(patterns).match(text) is not None


@lru_cache(maxsize=4096)
def _compile_patterns(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, patterns)) or r"(?!)")


@lru_cache(maxsize=1024)
def has_reading_subcommands(name: str) -> bool:
    """Whether the readers name subcommands of a program, as `git log`."""
    return any(reader.startswith(f"{name} ") for reader in load_tables().readers)


def find_later_reason(path: str) -> str | None:
    """Return why a file makes programs run at a later time; None where it does not.

    The path is absolute, or begins with a slash and is relative to the folder of the session. On
    many disks `.GIT` is the same as `.git`.
    """
    small, later = path.lower(), _list_later_ends()
    if not has_pattern_match(small, later[""]):
        return None
    return next(why for why, ends in later.items() if why and has_pattern_match(small, ends))


@cache
def _list_later_ends() -> dict[str, tuple[str, ...]]:
    """Return the patterns of paths by reason, and all of them by the empty reason."""
    later = {
        why: tuple(f"*{end}".lower() for end in ends) for why, ends in load_tables().later.items()
    }
    return {"": tuple(end for ends in later.values() for end in ends), **later}
