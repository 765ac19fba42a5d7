"""Uses of sed, awk and tar that do no more than to print what they read; pure.

What is not known to be harmless is not: files written, commands run, other files opened.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..shell.expansion import Argument

if TYPE_CHECKING:
    from ..shell.expansion import Arguments


_SED = re.compile(
    r"\s*(?:(?:\d+|\$|/[^/\n;]*/)(?:\s*,\s*(?:\+?\d+|\$|/[^/\n;]*/))?)?\s*!?\s*\{?\s*"
    r"(?:[pdq=lnNgGhHxD]|s([/|,#])(?:(?!\1)[^\\\n;]|\\[^\n])*\1(?:(?!\1)[^\\\n;]|\\[^\n])*\1[gpiI\d]*)?\s*\}?\s*"
)
_SED_LETTERS = set("nErsuz")
_SED_OPTIONS = {"--quiet", "--silent", "--regexp-extended", "--null-data", "--separate"}
_AWK = {"awk", "gawk", "mawk", "nawk"}
_AWK_DOES_MORE = re.compile(
    r"(?<!\|)\|(?!\|)|print.*>(?!=)|@|\\\n|\b(?:system|getline|close|ENVIRON|ARG\w*|PROCINFO|SYMTAB|FUNCTAB)\b",
    re.DOTALL,
)
"""Before the first `print`, `>` compares."""
_AWK_VALUED = ("-F", "-v")


def is_script_program(name: str) -> bool:
    """Whether `find_script_files` knows the program."""
    return name == "sed" or name in _AWK


def find_script_files(name: str, arguments: Arguments) -> Arguments | None:
    """Return the files a use of sed or awk reads, None when it may do more than to print."""
    if any(not one.known or (one.glob and one.text[:1] in "*?[") for one in arguments):
        return None
    return _find_sed_files(arguments) if name == "sed" else _find_awk_files(arguments)


def _find_sed_files(arguments: Arguments) -> Arguments | None:
    scripts: list[Argument] = []
    others: list[Argument] = []
    left = iter(arguments)
    for one in left:
        if one.text in _SED_OPTIONS:
            continue
        if one.text[:1] != "-" or one.text == "-":
            others.append(one)
            continue
        letters, mark, glued = one.text[1:].partition("e")
        if not set(letters) <= _SED_LETTERS:
            return None
        if mark:
            script = Argument(glued) if glued else next(left, None)
            if script is None:
                return None
            scripts.append(script)
    if not scripts:
        scripts, others = others[:1], others[1:]
    parts = [part for one in scripts for part in re.split(r"[;\n]", one.text)]
    return tuple(others) if scripts and all(map(_SED.fullmatch, parts)) else None


def _find_awk_files(arguments: Arguments) -> Arguments | None:
    left = list(arguments)
    while left and left[0].text[:2] in _AWK_VALUED:
        del left[: 2 if left[0].text in _AWK_VALUED else 1]
    if not left or left[0].text[:1] == "-" or _AWK_DOES_MORE.search(left[0].text):
        return None
    files = left[1:]
    return None if any(one.text[:1] == "-" != one.text for one in files) else tuple(files)


_TAR_KEYS = re.compile(r"-?[tvzjJ]*f?")
_TAR_OPTIONS = {
    "-t",
    "-v",
    "-z",
    "-j",
    "-J",
    "--list",
    "--verbose",
    "--gzip",
    "--gunzip",
    "--bzip2",
}
_TAR_OPTIONS |= {"--xz", "--zstd", "--wildcards", "--full-time"}


def find_listed_archive(arguments: Arguments) -> Arguments | None:
    """Return the archive a use of tar lists, None when it may do more than that."""
    lists, archives, rest = False, [], list(arguments)
    keys = rest[:1]  # the first argument may be keys without a dash
    while rest:
        one = rest.pop(0)
        text = one.text
        if not one.known or one.glob:
            return None
        if text.startswith("--file="):
            archives.append(one._replace(text=text.partition("=")[2]))
        elif text in _TAR_OPTIONS:
            lists |= text in {"-t", "--list"}
        elif (keys == [one] and not lists) or text[:1] == "-":
            if not _TAR_KEYS.fullmatch(text):
                return None
            lists |= "t" in text
            archives += (rest.pop(0),) if text.endswith("f") and rest else ()
        keys = []
    if not lists or len(archives) != 1:
        return None
    archive = archives[0]
    local = ":" not in archive.text  # `host:file` is on another machine
    return (archive,) if local and archive.known and not archive.glob else None
