"""What a command line does, in the units that rules of permission are about; pure.

A rule may grant a program by its first words. What these words do not tell, a rule has to show:

    command                 words shown by a rule
    npm test --watch        none: `npm test:*` is enough
    rm build/a              rm                    it removes
    find . -name a -delete  -delete               the option makes it remove
    cat ../secret           ../secret             it leaves the folders of the session
    make test SHELL=/x      SHELL=/x              it runs another program
    prettier $F             all, which no rule of words can: `hidden`
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from .finding import CommandFinding, DangerLevel
from .matching import has_any_option, has_option, list_operands
from .tables import has_pattern_match, load_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...shell.expansion import Argument, Arguments
    from .invocation import Invocation, PathContext
    from .tables import ReadOnlyCommand


_REMOVERS = {"rm", "rmdir", "unlink", "shred", "rimraf", "srm", "truncate", "trash", "del", "dd"}
_GIT_REMOVES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("restore", "reset", "clean", "rm", "prune", "gc", "update-ref"), ()),
    **dict.fromkeys(("filter-branch", "filter-repo", "reflog", "read-tree"), ()),
    "checkout": ("--", "-f", "--force", "--ours", "--theirs", "-p", "--patch"),
    "switch": ("-f", "--force", "--discard-changes"),
    "branch": ("-d", "-D", "--delete", "-m", "-M", "-f", "--force"),
    "tag": ("-d", "--delete", "-f", "--force"),
    "stash": ("drop", "clear", "pop"),
    "worktree": ("remove", "prune"),
    "remote": ("rm", "remove", "prune"),
    "push": ("-d", "--delete", "-f", "--force", "--mirror"),
    "submodule": ("deinit",),
}
"""Subcommands of git that throw something away; where words follow, only with one of them."""
_SERVICES = re.compile(
    r"docker|podman|nerdctl|docker-compose|kubectl|oc|helm|gh|glab|hub|aws|gcloud|az|terraform|tofu"
    r"|pulumi|heroku|fly|flyctl|doctl|systemctl|service|launchctl|supervisorctl|pm2|vagrant|virsh"
)
_SERVICE_REMOVES = re.compile(
    r"(?:.*[:-])?(?:rm|rmi|remove|delete|del|destroy|prune|purge|drop|erase|kill|down|stop|uninstall"
    r"|reset|terminate|close|archive|disable|mask|unpublish|yank|revoke|clear|wipe)(?:[:-].*)?"
)
_EXACT = {
    "kill", "pkill", "killall", "chmod", "chown", "chgrp", "ln", "crontab", "mount", "umount",
    "hash", "alias", "trap", "enable", "source", ".", "eval", "exec", "set", "unset", "export",
    "declare", "local", "readonly", "typeset", "ulimit", "umask", "shopt", "bind", "cd", "pushd",
    "popd", "mv", "cp", "tee", "vi", "vim", "nvim", "ex", "ed", "emacs", "nano",
}  # fmt: skip
"""Programs of which only all words tell what they do."""
_MAKES = {"make", "gmake", "bmake", "just", "task"}
_MAKE_WORDS = re.compile(r"[A-Za-z_.]\w*[:+?]?=.*|-[fCIE].*|--(?:file|makefile|eval|directory).*")
_ASSIGNING = re.compile(r"[A-Za-z_]\w*=", re.DOTALL)
_INSTALLED = re.compile(r"[\w.-]+")
_FILE_COMMANDS = {"mkdir", "touch", "tee", "cp", "mv"}
_MESSAGES = {"-m", "--message", "--body", "--title", "-am", "--notes"}
"""Options whose value is read by people: it need not be known."""
_LOOKS_LIKE_PATH = re.compile(r"[/\\]|^~|^\.\.?$|^\.[\w]")


def build_write_action(
    source: str, reason: str, target: Argument, places: PathContext
) -> CommandFinding:
    """Return the action of a redirection to a file."""
    paths = places.paths(target)
    sure = target.text.startswith("/") or len(paths) == len(places.folders) == 1
    known = target.known and not target.glob and bool(target.text) and sure
    paths_written = paths if known else places.match_paths(target) if target.glob else ()
    return CommandFinding(
        DangerLevel.ASK, source, reason, "write", paths=paths_written, hidden=not known
    )


def build_run_action(
    first: Argument,
    use: Invocation,
    before: tuple[str, ...],
    source: str,
    reason: str,
) -> CommandFinding:
    """Return the action of a program.

    `first` is its name as written, `before` are variables set for it which programs obey.
    """
    name = _format_program(first, use.places)
    removing = _find_removing_words(use)
    removal = () if removing is None else (removing or (name,))
    telling = (_format_word(word) for word in _list_telling_words(use))
    words = tuple(dict.fromkeys((*before, *removal, *telling)))
    code = bool(before) or _is_code(use)
    is_fed_code = _is_running_texts(use) and _is_fed(use)
    if is_fed_code:
        reason = f"{reason}; what it is fed is code, which no rule about its words covers"
    hidden = not name or is_fed_code or _has_hidden_words(use)
    return CommandFinding(
        DangerLevel.ASK,
        source,
        reason,
        "run",
        words=(*before, name, *map(_format_word, use.arguments)),
        shown=words,
        hidden=hidden,
        destructive=removing is not None,
        edits=() if hidden or words else _list_edited_files(use),
        code=code,
        reads=not before and _is_reader(use),
    )


def _format_word(argument: Argument) -> str:
    """Return a word as it could be written; a wildcard stays one."""
    plain = argument.glob and not re.search(r"[\s'\"\\\\;&|<>()$`]", argument.text)
    return argument.text if plain else shlex.quote(argument.text)


def _format_program(first: Argument, places: PathContext) -> str:
    """Return the name of a program; nothing where an expansion or the folder decides it."""
    folder = first.text.rpartition("/")[0]
    if not first.known or first.glob or not first.text:
        return ""
    if folder and first.text[0] != "/" and places.folders != (places.start,):
        paths = places.paths(first)
        return shlex.quote(paths[0]) if len(paths) == len(places.folders) == 1 else ""
    return shlex.quote(first.text)


def _has_hidden_words(use: Invocation) -> bool:
    """Whether a word is unknown, or leads out of the folders from a folder that no word names."""
    left = ""
    for argument in use.arguments:
        if not argument.known and not (
            left in _MESSAGES and use.name in {"git", "gh", "glab", "hub"}
        ):
            return True
        left = argument.text
    if use.places.folders == (use.places.start,):
        return False
    return any(
        path.text[:1] != "/" and not use.places.is_readable(path)
        for path in _list_paths(use.arguments)
    )


def _is_fed(use: Invocation) -> bool:
    """Whether a program is given more than its words: a pipe, a text, a file, a substitution."""
    named = (
        argument
        for argument in use.arguments
        if argument.text.startswith(("/dev/fd/", "/dev/stdin"))
    )
    return bool(use.given or use.before or use.read or any(named))


def _is_running_texts(use: Invocation) -> bool:
    """Whether a program may run what it is fed: data for a script that is named is no code."""
    words = load_tables().words
    first = use.arguments[:1]
    if has_pattern_match(use.name, words.interpreters) and first and first[0].known:
        text = first[0].text
        if text[:1] != "-" and not text.startswith("/dev/"):
            return False
        if text == "-m" and use.arguments[1:]:
            return False
    known = {*words.shells, *words.databases, *load_tables().wrappers, "source", ".", "at", "batch"}
    interprets = has_pattern_match(use.name, (*words.interpreters, *words.spawners))
    return use.name in known - {"find", "fd", "fdfind", "xargs", "git"} or interprets


def _list_paths(arguments: Arguments) -> Iterator[Argument]:
    """Yield what may be a path among the arguments and the values glued to options."""
    for argument in arguments:
        for text in {argument.text, argument.text.partition("=")[2]}:
            if text[:1] != "-" and "://" not in text and text and _LOOKS_LIKE_PATH.search(text):
                yield argument._replace(text=text)


def is_guarded(argument: Argument, places: PathContext) -> bool:
    """Whether a file is sensitive: it may hold credentials, or is run at a later time."""
    if places.is_sensitive(argument) or places.is_secret(argument):
        return True
    return any(map(places.find_later_reason, places.paths(argument)))


def _find_reader(use: Invocation) -> ReadOnlyCommand | None:
    tables = load_tables()
    operands = list_operands(use.arguments, tables.valued.get(use.name, ()))
    two = f"{use.name} {operands[0].text}" if operands else use.name
    return tables.find_reader(two) or tables.find_reader(use.name)


def _is_reader(use: Invocation) -> bool:
    """Whether it is a program that only reads, wherever its files are."""
    reader = _find_reader(use)
    return (
        reader is not None
        and reader.opens
        and not any(has_option(argument, bad) for bad in reader.never for argument in use.arguments)
        and reader.options is None
    )


def _list_telling_words(use: Invocation) -> Iterator[Argument]:
    """Yield the arguments that a rule has to show: they lead elsewhere, or change what runs."""
    reader, name = _find_reader(use), use.name
    module = use.arguments[1].text if use.arguments[1:] and use.arguments[0].text == "-m" else name
    for argument in use.arguments:
        paths = [*_list_paths((argument,))]
        elsewhere = any(
            not use.places.is_readable(each) or is_guarded(each, use.places) for each in paths
        )
        guarded = argument.text[:1] != "-" and is_guarded(argument, use.places)
        more = reader is not None and any(has_option(argument, bad) for bad in reader.never)
        makes = name in _MAKES and _MAKE_WORDS.fullmatch(argument.text)
        if (
            elsewhere
            or guarded
            or more
            or makes
            or name in _SCRIPTS
            or is_choosing(argument, module)
        ):
            yield argument


def is_choosing(argument: Argument, name: str) -> bool:
    """Whether an option chooses another program, project, configuration or server."""
    text = argument.text
    if text[:1] != "-":
        return False
    choosing = load_tables().choosing
    for option in (*choosing["any"], *choosing.get(name, ())):
        if option.startswith("--"):
            if has_option(argument, option):
                return True
        elif text.partition("=")[0] == option or (
            len(option) == _SHORT and option in text[:_SHORT]
        ):
            return True
    return False


_SHORT = 2  # `-f`
_SCRIPTS = {"sed", "gsed", "awk", "gawk", "mawk", "nawk"}


def _find_removing_words(use: Invocation) -> tuple[str, ...] | None:
    """Return the words by which a use removes something; nothing more than its name: ()."""
    if use.name in _REMOVERS:
        return ()
    texts = [argument.text for argument in use.arguments]
    if use.name in {"find", "fd", "fdfind"}:
        return ("-delete",) if "-delete" in texts else None
    operands = [
        operand.text
        for operand in list_operands(use.arguments, load_tables().valued.get(use.name, ()))
    ]
    if use.name == "git" and operands:
        return _find_git_removal(operands[0], use.arguments)
    if not _SERVICES.fullmatch(use.name):
        return None
    verbs = [word for word in operands[:3] if _SERVICE_REMOVES.fullmatch(word)]
    return tuple(map(shlex.quote, verbs)) or None


def _find_git_removal(subcommand: str, arguments: Arguments) -> tuple[str, ...] | None:
    options = _GIT_REMOVES.get(subcommand)
    if options is None or options == ():
        return None if options is None else (subcommand,)
    met = [shlex.quote(argument.text) for argument in arguments if argument.text in options]
    paths = subcommand == "checkout" and any(_FILE.search(argument.text) for argument in arguments)
    return (subcommand, *met) if met or paths else None


_FILE = re.compile(r"^\./?$|\.\w+$")


def _is_code(use: Invocation) -> bool:
    """Whether the arguments are code, or may make it do anything."""
    tables, words = load_tables(), load_tables().words
    name, first = use.name, use.arguments[0].text if use.arguments else ""
    if name in _EXACT or name in _SCRIPTS or name in tables.wrappers:
        return True
    if name in {*words.downloaders, *words.senders, *words.containers, *words.databases} - {"git"}:
        return True
    if has_pattern_match(name, words.spawners):
        return True
    if name == "git":
        return first in {"config", "bisect", "submodule", "filter-branch"} or first[:1] == "-"
    if name in words.shells or has_pattern_match(name, words.interpreters):
        module = first == "-m" and len(use.arguments) > 1
        return not module and (not first or first[:1] == "-")
    return False


def _list_edited_files(use: Invocation) -> tuple[str, ...]:
    """Return the files a plain command for files changes; nothing for other programs."""
    operands = list_operands(use.arguments)
    if use.name not in _FILE_COMMANDS or has_any_option(
        use.arguments, ["-t", "--target-directory"]
    ):
        return ()
    if any(operand.glob for operand in operands):
        return ()
    return tuple(path for operand in operands for path in use.places.paths(operand))
