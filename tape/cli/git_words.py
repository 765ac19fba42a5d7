"""Words of git that are no commands of `tape`: what each does here, or which command does it; pure.

    typed                    means
    checkout B               switch B
    checkout -b N [REF]      fork [REF] --name N --switch;  so do switch -c N, switch --create N
    branch [-a | -v]         branches
    branch N [REF]           fork [REF] --name N
    tag [N [REF]]            label [REF N]
    tag -d N                 label --delete N
    init, grep, find, list   new, search, search, ls; history means log
    help [COMMAND], version  [COMMAND] --help, --version
    log --after T, status -s log --since T, status: what git's option means is done anyway
    commit, push, reset, …   nothing: the answer says what to do instead
    log --stat, branch -d, … nothing, likewise: options of git that have no place here
    log FILE, checkout FILE  nothing, likewise, where FILE is no REF but a file

A word that is a command of `tape` is never read as one of git's, but for its options.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_RECORDED = "every entry is recorded as it happens"
_GOING_BACK = "`tape fork ^1 --switch` goes back before the newest prompt, and nothing is lost"
_REMOTES = "`tape remote` lists remotes, `tape remote status` what they and this store lack"
_NO_FILES = "files are changed by agents only"

EXPLAINED = {
    "add": f"there is nothing to stage: {_RECORDED}",
    "commit": f"there is nothing to commit: {_RECORDED}; `tape label REF NAME` names an entry",
    "fetch": "`tape remote status` says what a remote has that is not here; `tape pull` brings it",
    "stash": f"nothing needs stashing: {_RECORDED}; `tape fork --switch` continues elsewhere",
    "reset": _GOING_BACK,
    "revert": f"{_GOING_BACK}; `gong undo` restores files too",
    "rebase": "history never changes: `tape fork REF` starts a branch at any entry",
    "cherry-pick": "entries are never copied: `tape merge REF --pick ENTRY` brings one over",
    "bisect": "`tape blame FILE` shows which entry and prompt last changed each line",
    "reflog": "`tape branches` counts the moves of a branch; BRANCH@{1} is its head one move ago",
    "rev-parse": "`tape show REF --raw` prints the line of an entry, its id first",
    "clean": "`tape gc --dry-run` shows what no branch and no tape needs",
    "config": "`tape` has no settings but $TAPE_HOME; `gong config list` shows those of `gong`",
    "describe": "`tape status` names tape, branch and head; `tape label` lists the names",
    "shortlog": "`tape stats --by model` counts the calls of each; also --by day, tape, branch",
    "worktree": "a branch needs no folder: `tape fork --switch` starts one",
    "submodule": "tapes hold none: `tape fork --new` starts a tape of its own at an entry",
    "ls-files": "`tape files` lists what a path changed, `tape files --at REF FILE` prints one",
    "ls-tree": "`tape files` lists what a path changed, `tape files --at REF FILE` prints one",
    "cat-file": "`tape show REF --raw` prints the line of an entry",
    "rev-list": "`tape log --oneline` lists the entries of a path, with their ids",
    "merge-base": "`tape diff REF REF2` begins with the newest common entry",
    "show-branch": "`tape log --graph` draws the branches",
    "whatchanged": "`tape log -p` shows changed files, `tape files` what is left of the changes",
    "notes": "`tape label REF NAME` names an entry",
    "bundle": "`tape export -o FILE` writes a tape as one file",
    "format-patch": "`tape files -p` prints the changes as a patch, for `git apply`",
    "am": f"{_NO_FILES}: `tape files -p | git apply` does the changes of a path again",
    "apply": f"{_NO_FILES}: `tape files -p | git apply` does the changes of a path again",
    "undo": f"`gong undo` undoes the newest prompt and its changes of files; {_GOING_BACK}",
    "delete": "`tape rm TAPE` moves a tape to the trash, `tape restore TAPE` brings it back",
    "remove": "`tape rm TAPE` moves a tape to the trash, `tape restore TAPE` brings it back",
    "redo": "`gong redo` reverses the newest undo; `tape branches` counts the moves of a branch",
}
"""Words that do nothing here, and what does what they are typed for."""

ALIASES = (
    "checkout",
    "branch",
    "tag",
    "init",
    "grep",
    "find",
    "list",
    "history",
    "help",
    "version",
)
"""Words that do here what they do in git, or elsewhere."""

_RENAMED = {
    "init": "new", "grep": "search", "find": "search", "list": "ls", "history": "log",
    "version": "--version",
}  # fmt: skip
_LISTING_FLAGS = frozenset({"-a", "--all", "-v", "-vv", "-l", "--list"})

_NOT_STAGED = "nothing is staged: `tape files` lists what a path changed"
_NOT_DELETED = (
    "branches are kept, as nothing is lost so: `tape switch BRANCH` leaves one, "
    "`tape rm TAPE` removes a tape"
)
_NOT_RENAMED = (
    "a branch keeps its name: `tape fork BRANCH --name NEW --switch` starts one at its head; "
    "`tape rename` changes a tape's title"
)
_FILE_HISTORY = "`tape blame FILE` shows who changed its lines, `tape search FILE` who spoke of it"
_FILE_LISTS = "`tape files` lists the changed files, `tape log -p` shows each change"
_DIFF_LISTS = "`tape diff REF --files` lists the files of each side, `tape files -p` is a patch"
_NO_COMMITS = "`tape log --graph` draws merges, `tape log --type anchor` lists them"
_SEARCHES = "`tape search WORDS` finds entries by their words"

_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "log": {
        "--grep --pickaxe-regex -S -G": _SEARCHES,
        "--stat --shortstat --numstat --name-only --name-status --summary": _FILE_LISTS,
        "--author --committer": "`tape log --author-model NAME` lists what a model wrote",
        "--follow -L": _FILE_HISTORY,
        "--merges --no-merges --first-parent": _NO_COMMITS,
        "--pretty --format": "`tape log --json` prints all there is, --oneline one line per entry",
        "-g --walk-reflogs": EXPLAINED["reflog"],
    },
    "show": {"--stat --name-only --name-status -p --patch": _FILE_LISTS},
    "diff": {
        "--stat --shortstat --numstat --name-only --name-status -p --patch": _DIFF_LISTS,
        "--cached --staged": _NOT_STAGED,
    },
    "branch": {
        "-d -D --delete": _NOT_DELETED,
        "-m -M --move -c -C --copy": _NOT_RENAMED,
        "--show-current": "`tape status` names the current branch",
        "-r --remotes -u --set-upstream-to": _REMOTES,
    },
    "switch": {"-d --detach": "`tape fork REF --switch` continues at any entry"},
    "checkout": {
        "--detach --orphan": "`tape fork REF --switch` continues at any entry"
    },
    "merge": {
        "--abort --quit --continue": "a merge is done or not begun: `tape merge --undo` undoes it",
        "--no-ff --ff --ff-only --squash --no-commit -m -s":
            "each merge is a summary, on the branch merged into: `tape merge REF --summary TEXT`",
    },
    "tag": {"-m --message -s --sign": "a label has no message: `tape label REF NAME`"},
    "rm": {
        "-r -rf -f --force --cached --recursive":
            "`tape rm TAPE --yes` moves a tape to the trash; files of projects stay",
    },
    "restore": {
        "--staged --worktree --source -s -S -W":
            "`tape restore TAPE` is for the trash; `gong rewind` restores files",
    },
    "gc": {"--prune --aggressive --auto": "`tape gc --dry-run` shows what would be deleted"},
}  # fmt: skip
"""Options of git that have no place here, by the word before them, and what does their work."""

_DROPPED: Mapping[str, frozenset[str]] = {
    "log": frozenset({"--decorate", "--no-decorate", "--abbrev-commit", "--date-order", "--color"}),
    "status": frozenset({"-s", "--short", "-b", "--branch", "--porcelain", "--long"}),
    "remote": frozenset({"-v", "--verbose"}),
    "grep": frozenset({"--ignore-case", "--line-number", "--recursive"}),
}
"""Options of git that ask for what is done here anyway."""

_GREP_FLAGS = frozenset("-EFInRriw")
"""The letters of such options of grep, which may stand together."""

_SAME: Mapping[str, Mapping[str, str]] = {
    "log": {"--after": "--since", "--before": "--until", "--max-count": "-n"},
}
"""Options of git that have another name here."""

_ON_FILES = {
    "log": _FILE_HISTORY,
    "show": "`tape files --at REF FILE` prints a file as it was, `tape blame FILE` its changes",
    "diff": "`tape files -p` shows changes of files, `tape blame FILE` those of one",
    "checkout": "`tape files --at REF FILE` prints it as it was, `gong rewind` restores files",
    "restore": "`tape files --at REF FILE` prints it as it was, `gong rewind` restores files",
    "rm": "`tape rm` is for tapes; files of projects are deleted without it",
    "mv": "`tape mv DIR` records that a project moved; files are moved without it",
}
"""What to say where a command for tapes is given a file."""


def translate_git_words(words: Sequence[str]) -> list[str]:
    """Return the command line of `tape` that a command line in git's words means; others as is.

    Raises UsageError, with what to type, for an option of git that has no place here.
    """
    name, *typed = words
    _refuse_git_options(name, typed)
    rest = _translate_options(name, typed)
    match name:
        case "help":
            return [*rest[:1], "--help"]
        case "checkout":
            return _translate_switch(rest, {"-b", "-B"})
        case "switch" if not {"-c", "-C", "--create"}.isdisjoint(rest):
            return _translate_switch(rest, {"-c", "-C", "--create"})
        case "branch":
            return _translate_branch(rest)
        case "tag":
            return _translate_tag(rest)
    return [_RENAMED.get(name, name), *rest]


def explain_file(name: str, files: Sequence[str]) -> str:
    """Return what to say where a command was given files instead of REFs; "" for others."""
    if not files or name not in _ON_FILES:
        return ""
    return f"{files[0]} is a file, and no REF: {_ON_FILES[name].replace('FILE', files[0])}"


def _refuse_git_options(name: str, rest: Sequence[str]) -> None:
    """Raise UsageError for the first option of git that has no place here."""
    explained = {
        option: text
        for options, text in _OPTIONS.get(name, {}).items()
        for option in options.split()
    }
    for word in rest:
        if word == "--":
            return
        option = word.partition("=")[0] if word.startswith("--") else word
        if option in explained:
            raise UsageError(f"tape {name} has no {option}: {explained[option]}")


def _translate_options(name: str, rest: Sequence[str]) -> list[str]:
    """Return the words after a command with git's options as they are called here."""
    dropped, same = _DROPPED.get(name, frozenset()), _SAME.get(name, {})
    words: list[str] = []
    for at, word in enumerate(rest):
        if word == "--":
            return [*words, *rest[at:]]
        option, sign, value = word.partition("=")
        is_flag = name == "grep" and word[:1] == "-" and {*word[1:]} < _GREP_FLAGS
        is_count = word == "-n" and "".join(rest[at + 1 : at + 2]).isdecimal()
        if option in dropped or (is_flag and not is_count):
            continue
        if option in same:
            words += [same[option], value] if sign else [same[option]]
        else:
            words.append(word)
    return words


def _translate_switch(rest: Sequence[str], creating: Collection[str]) -> list[str]:
    for place, word in enumerate(rest):
        if word in creating:
            name, *others = rest[place + 1 :] or [""]
            return ["fork", *rest[:place], *others, "--name", name, "--switch"]
    return ["switch", *rest]


def _translate_branch(rest: Sequence[str]) -> list[str]:
    remaining = [word for word in rest if word not in _LISTING_FLAGS]
    names = [word for word in remaining if not word.startswith("-")]
    if len(remaining) < len(rest) or not names or _is_reference(names[0]):
        return ["branches", *remaining]
    at = remaining.index(names[0])
    return ["fork", *remaining[:at], *remaining[at + 1 :], "--name", names[0]]


def _is_reference(word: str) -> bool:
    """Return whether a word is sooner a REF than the name of a new branch."""
    from ..ids import is_id_prefix
    from ..places.reference import MIN_SURE_DIGITS  # loads slowly

    return ":" in word or (is_id_prefix(word) and len(word) >= MIN_SURE_DIGITS)


def _translate_tag(rest: Sequence[str]) -> list[str]:
    remaining = ["--delete" if word == "-d" else word for word in rest if word not in {"-a", "-l"}]
    if not remaining or remaining[0].startswith("-"):
        return ["label", *remaining]
    name, *place = remaining
    if place and not place[0].startswith("-"):
        return ["label", place[0], name, *place[1:]]
    return ["label", "", name, *place]


def explain_unknown_command(program: str, word: str, known: Collection[str]) -> str:
    """Return what to say of a word that is no command of a program: what does it, or what is near.

    `known` are the names of its commands.
    """
    if program == "tape" and word in EXPLAINED:
        return f"tape has no {word}: {EXPLAINED[word]}"
    from difflib import get_close_matches  # only for what is no command

    near = get_close_matches(word, [*known], n=1, cutoff=0.6)
    hint = f"did you mean {program} {near[0]}?" if near else f"`{program} --help` lists them"
    return f"no command is called {word!r}: {hint}"
