"""Words of git that are no commands of `tape`: what each does here, or which command does it; pure.

    typed                    means
    checkout B               switch B
    checkout -b N [REF]      fork [REF] --name N --switch;  so do switch -c N, switch --create N
    branch [-a | -v]         branches
    branch N [REF]           fork [REF] --name N
    tag [N [REF]]            label [REF N]
    tag -d N                 label --delete N
    init, grep               new, search
    commit, push, reset, …   nothing: the answer says what to do instead

A word that is a command of `tape` is never read as one of git's, but for `switch -c`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_RECORDED = "every entry is recorded as it happens"
_GOING_BACK = "`tape fork ^1 --switch` goes back before the newest prompt, and nothing is lost"

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
    "help": "`tape --help` lists the commands, `tape COMMAND --help` explains one",
}
"""Words that do nothing here, and what does what they are typed for."""

ALIASES = ("checkout", "branch", "tag", "init", "grep")
"""Words that do here what they do in git."""

_RENAMED = {"init": "new", "grep": "search"}
_LISTING_FLAGS = frozenset({"-a", "--all", "-v", "-vv", "-l", "--list"})


def translate_git_words(words: Sequence[str]) -> list[str]:
    """Return the command line of `tape` that a command line in git's words means; others as is."""
    name, *rest = words
    match name:
        case "checkout":
            return _translate_switch(rest, {"-b", "-B"})
        case "switch" if not {"-c", "-C", "--create"}.isdisjoint(rest):
            return _translate_switch(rest, {"-c", "-C", "--create"})
        case "branch":
            return _translate_branch(rest)
        case "tag":
            return _translate_tag(rest)
    return [_RENAMED.get(name, name), *rest]


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
