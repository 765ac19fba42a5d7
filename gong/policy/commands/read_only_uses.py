"""Uses of languages, databases and archives that do no more than to print what they read; pure.

What is not known to be harmless is not: files written, commands run, other files opened.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from ...shell.expansion import Argument

if TYPE_CHECKING:
    from ...shell.expansion import Arguments


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
    if any(
        not argument.known or (argument.glob and argument.text[:1] in "*?[")
        for argument in arguments
    ):
        return None
    return _find_sed_files(arguments) if name == "sed" else _find_awk_files(arguments)


def _find_sed_files(arguments: Arguments) -> Arguments | None:
    scripts: list[Argument] = []
    others: list[Argument] = []
    left = iter(arguments)
    for argument in left:
        if argument.text in _SED_OPTIONS:
            continue
        if argument.text[:1] != "-" or argument.text == "-":
            others.append(argument)
            continue
        letters, mark, value = argument.text[1:].partition("e")
        if not set(letters) <= _SED_LETTERS:
            return None
        if mark:
            script = Argument(value) if value else next(left, None)
            if script is None:
                return None
            scripts.append(script)
    if not scripts:
        scripts, others = others[:1], others[1:]
    parts = [part for script in scripts for part in re.split(r"[;\n]", script.text)]
    return tuple(others) if scripts and all(map(_SED.fullmatch, parts)) else None


def _find_awk_files(arguments: Arguments) -> Arguments | None:
    left = list(arguments)
    while left and left[0].text[:2] in _AWK_VALUED:
        del left[: 2 if left[0].text in _AWK_VALUED else 1]
    if not left or left[0].text[:1] == "-" or _AWK_DOES_MORE.search(left[0].text):
        return None
    files = left[1:]
    return None if any(file.text[:1] == "-" != file.text for file in files) else tuple(files)


_TAR_KEYS = re.compile(r"-?[tvzjJ]*f?")
_TAR_OPTIONS = {
    "-t", "-v", "-z", "-j", "-J", "--list", "--verbose", "--gzip", "--gunzip", "--bzip2", "--xz",
    "--zstd", "--wildcards", "--full-time",
}  # fmt: skip


def find_listed_archive(arguments: Arguments) -> Arguments | None:
    """Return the archive a use of tar lists, None when it may do more than that."""
    lists, archives, rest = False, [], list(arguments)
    keys = rest[:1]  # the first argument may be keys without a dash
    while rest:
        argument = rest.pop(0)
        text = argument.text
        if not argument.known or argument.glob:
            return None
        if text.startswith("--file="):
            archives.append(argument._replace(text=text.partition("=")[2]))
        elif text in _TAR_OPTIONS:
            lists |= text in {"-t", "--list"}
        elif (keys == [argument] and not lists) or text[:1] == "-":
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


_PYTHON = re.compile(r"python3?(?:\.\d+)?")
_PURE_CALLS = {
    "print", "len", "sum", "min", "max", "abs", "round", "sorted", "range", "int", "float", "str",
    "repr", "hex", "oct", "bin", "ord", "chr", "list", "tuple", "set", "divmod",
}  # fmt: skip
_PURE_NODES = (
    *(ast.Module, ast.Expr, ast.Constant, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare),
    *(ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.Call, ast.keyword, ast.Name, ast.Load),
    *(ast.List, ast.Tuple, ast.Set, ast.Dict, ast.IfExp, ast.Subscript, ast.Slice),
    *(ast.JoinedStr, ast.FormattedValue),
)
_NODE_VALUE = re.compile(
    r"process\.(?:version|arch|platform|versions(?:\.\w+)?)|[\d\s.+*/()%-]+"
    r"|console\.log\((?:[\d\s.+*/%-]+|process\.(?:version|arch|platform))\);?"
)
_CODE_ARGUMENTS = 2


def is_plain_calculation(name: str, arguments: Arguments) -> bool:
    """Whether a use of Python or Node prints values that its own text makes, and no more."""
    if len(arguments) != _CODE_ARGUMENTS or not all(argument.known for argument in arguments):
        return False
    option, text = (argument.text for argument in arguments)
    if name in {"node", "nodejs"}:
        return option in {"-p", "-e"} and _NODE_VALUE.fullmatch(text) is not None
    return option == "-c" and _PYTHON.fullmatch(name) is not None and _is_pure_python(text)


def _is_pure_python(text: str) -> bool:
    try:
        nodes = [*ast.walk(ast.parse(text))]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    names = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    return all(
        isinstance(node, _PURE_NODES)
        and (not isinstance(node, ast.Name) or (node.id in _PURE_CALLS and id(node) in names))
        and (not isinstance(node, ast.Call) or isinstance(node.func, ast.Name))
        and (not isinstance(node, ast.keyword) or node.arg in {"sep", "end", "key", "reverse"})
        for node in nodes
    )


def find_library_tool_files(name: str, arguments: Arguments) -> Arguments | None:
    """Return the files that `python -m json.tool` reads, None for any other use of a program.

    Python looks for modules in the folder first: what lies there is for the caller to judge.
    """
    if _PYTHON.fullmatch(name) is None or not all(argument.known for argument in arguments):
        return None
    if [argument.text for argument in arguments[:_CODE_ARGUMENTS]] != ["-m", "json.tool"]:
        return None
    rest = arguments[_CODE_ARGUMENTS:]
    files = tuple(argument for argument in rest if argument.text[:1] != "-" or argument.text == "-")
    options = {argument.text for argument in rest} - {file.text for file in files}
    return files if len(files) <= 1 and options <= _JSON_TOOL_OPTIONS else None


_JSON_TOOL_OPTIONS = {"--sort-keys", "--no-ensure-ascii", "--json-lines", "--compact", "--tab"}

_SQLITE_OPTIONS = {
    "-header", "-noheader", "-csv", "-json", "-line", "-column", "-table", "-box", "-markdown",
    "-list", "-batch", "-bail", "-readonly",
}  # fmt: skip
_SQLITE_READS = re.compile(
    r"\s*(?:\.(?:tables|schema|indexes|indices|databases|dbinfo)\b[\w \t%]*"
    r"|(?:select|with|explain|values|pragma\s+(?:table_info|index_list|user_version|schema_version"
    r"|integrity_check|quick_check|foreign_key_list|table_list|database_list))\b.*)",
    re.IGNORECASE | re.DOTALL,
)
_SQLITE_DOES_MORE = re.compile(
    r"\b(?:readfile|writefile|edit|load_extension|fsdir|zipfile|sqlar\w*|attach|vacuum|insert"
    r"|update|delete|replace\s+into|fts3_tokenizer)\b|^\s*\..*\n|\n\s*\.",
    re.IGNORECASE,
)


def find_queried_database(name: str, arguments: Arguments) -> Arguments | None:
    """Return the file that `sqlite3 -readonly FILE QUERY` asks, None for any other use."""
    if name != "sqlite3" or not all(argument.known and not argument.glob for argument in arguments):
        return None
    operands = [argument for argument in arguments if argument.text[:1] != "-"]
    options = {
        argument.text.replace("--", "-", 1) for argument in arguments if argument.text[:1] == "-"
    }
    if len(operands) < _CODE_ARGUMENTS or "-readonly" not in options or options - _SQLITE_OPTIONS:
        return None
    reads = all(
        _SQLITE_READS.fullmatch(operand.text) and not _SQLITE_DOES_MORE.search(operand.text)
        for operand in operands[1:]
    )
    is_address = operands[0].text.startswith(("file:", ":"))
    return (operands[0],) if reads and not is_address else None


_LOCAL = re.compile(
    r"(?:https?://)?(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?"
    r"(?:[/?#][\w./?#&=%,:+~-]*)?"
)
_REQUEST_FLAGS = re.compile(
    r"-[sSfiIvk]+|--(?:silent|show-error|fail|include|head|verbose|compressed)"
)
_REQUEST_VALUES = {
    "-m": re.compile(r"[\d.]+"),
    "--max-time": re.compile(r"[\d.]+"),
    "--connect-timeout": re.compile(r"[\d.]+"),
    "--retry": re.compile(r"\d+"),
    "-H": re.compile(r"(?i:accept|content-type|user-agent): *[\w./*;=, +-]*"),
    "-X": re.compile(r"GET|HEAD|OPTIONS"),
    "-o": re.compile(r"/dev/null|-"),
    "-w": re.compile(r"(?:(?!%output|@)[^@])*"),
}
_WGET_FLAGS = re.compile(r"-q?O-|-qO-|-q|-nv|--quiet|--spider|-S")


def is_local_request(name: str, arguments: Arguments) -> bool:
    """Whether curl or wget asks a server of this machine for something, and sends nothing more.

    A redirection is not followed (curl), and the answer goes to the output.
    """
    if name not in {"curl", "wget"} or not all(
        argument.known and not argument.glob for argument in arguments
    ):
        return False
    addresses, prints, left = 0, name == "curl", iter(argument.text for argument in arguments)
    for text in left:
        if _LOCAL.fullmatch(text):
            addresses += 1
        elif name == "wget":
            if not _WGET_FLAGS.fullmatch(text):
                return False
            prints |= text.endswith("O-") or text == "--spider"
        elif text in _REQUEST_VALUES:
            if not _REQUEST_VALUES[text].fullmatch(next(left, "\n")):
                return False
        elif not _REQUEST_FLAGS.fullmatch(text):
            return False
    return prints and addresses == 1
