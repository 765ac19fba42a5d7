"""Faults that are found without a model: secrets anywhere, some languages by line.

They are read without comments; Python is left to ruff and bandit (`analysers`). A rule holds for
endings of file names:

category            files     the line says
------------------  --------  ---------------------------------------------------------------
sql-injection       js go     a query whose text has ${…}, + or Sprintf in it
command-injection   js go sh  exec with a text that is put together; eval of a variable
xss                 js go     innerHTML, document.write, dangerouslySetInnerHTML, template.HTML
unsafe-call         js go sh  eval, new Function, InsecureSkipVerify, a download given to a shell
unclosed-resource   go        os.Open and its like without Close in the lines that follow
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from ..errors import ConfigurationError
from .findings import ReviewFinding
from .secrets import find_written_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..config import ReviewRule
    from .diff import ReviewedFile
    from .findings import Severity

_JS = frozenset({".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".vue", ".svelte"})
_GO, _SHELL = frozenset({".go"}), frozenset({".sh", ".bash", ".zsh"})
_LINES_TO_CLOSE = 8


class _Rule(NamedTuple):
    endings: frozenset[str]
    severity: Severity
    category: str
    pattern: re.Pattern[str]
    text: str
    fix: str | None = None


_SQL = r"(?:select|insert|update|delete|drop|alter)\b"
_COMPOSED_SQL = "the query is built from values, which can change what it does"
_COMPOSED_COMMAND = "the command is built from values, which can add commands"
_JS_SQL = (
    rf"\.(?:query|execute|raw)\(\s*"
    rf"(?:`\s*{_SQL}[^`]*\$\{{|['\"]\s*{_SQL}[^'\"]*['\"]\s*\+)"
)
_JS_COMMAND = (
    r"(?:(?:(?<![.\w$])|\b(?:cp|child_?[pP]rocess)\.)exec|\bexecSync)"
    r"\(\s*(?:`[^`]*\$\{|['\"][^'\"]*['\"]\s*\+)"
)
_JS_MARKUP = (
    r"\.(?:inner|outer)HTML\s*\+?=\s*(?!\s*(?:['\"][^'\"$]*['\"]|`[^`$]*`)\s*;?\s*$)"
    r"|dangerouslySetInnerHTML|\bdocument\.write(?:ln)?\(\s*[^'\"`)]"
)
_GO_SQL = (
    r"\.(?:Query|QueryRow|Exec)(?:Context)?\((?:\w+,\s*)?"
    rf"(?:fmt\.Sprintf\(\s*[\"`]\s*{_SQL}|[\"`]\s*{_SQL}[^\"`]*[\"`]\s*\+)"
)
_GO_COMMAND = (
    r"exec\.Command(?:Context)?\((?:\w+,\s*)?\"(?:ba|z)?sh\",\s*\"-c\",\s*"
    r"(?:fmt\.Sprintf\(|[^\")]*\+|\"[^\"]*\"\s*\+)"
)
_MARKUP = "text from others can become markup here"
_CERTIFICATE = "this accepts any certificate"
_RULES = (
    _Rule(_JS, "critical", "sql-injection", re.compile(_JS_SQL, re.IGNORECASE),
          _COMPOSED_SQL, "placeholders and an array of values"),
    _Rule(_JS, "critical", "command-injection", re.compile(_JS_COMMAND),
          _COMPOSED_COMMAND, "execFile with an array of words"),
    _Rule(_JS, "major", "xss", re.compile(_JS_MARKUP), _MARKUP, "textContent"),
    _Rule(_JS, "major", "unsafe-call",
          re.compile(r"(?<![.\w$])eval\(\s*[^'\")]|\bnew\s+Function\("),
          "this runs any code that it is given"),
    _Rule(_JS, "major", "unsafe-call", re.compile(r"rejectUnauthorized\s*:\s*false"),
          _CERTIFICATE),
    _Rule(_GO, "critical", "sql-injection", re.compile(_GO_SQL, re.IGNORECASE),
          _COMPOSED_SQL, "placeholders and arguments"),
    _Rule(_GO, "critical", "command-injection", re.compile(_GO_COMMAND),
          _COMPOSED_COMMAND, "exec.Command with one argument for each word"),
    _Rule(_GO, "major", "xss", re.compile(r"\btemplate\.(?:HTML|JS|URL)\(\s*[^\"`)]"), _MARKUP),
    _Rule(_GO, "major", "unsafe-call", re.compile(r"InsecureSkipVerify\s*:\s*true"),
          _CERTIFICATE),
    _Rule(_SHELL, "critical", "command-injection",
          re.compile(r"(?:^|[;&|]\s*|\bthen\s+|\bdo\s+)\s*eval\s+[^#]*\$"), _COMPOSED_COMMAND),
    _Rule(_SHELL, "major", "unsafe-call",
          re.compile(r"\b(?:curl|wget)\b[^|#]*\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b"),
          "this runs whatever the server sends"),
)  # fmt: skip
_GO_OPENS = re.compile(
    r"(?P<name>\w+)\s*,\s*\w+\s*:?=\s*(?:os\.(?:Open|Create|OpenFile)|net\.Dial|sql\.Open)\("
)


def name_passes(files: Sequence[ReviewedFile], rules: Sequence[ReviewRule] = ()) -> list[str]:
    """Return which checks files get, in words for people."""
    endings = {PurePath(file.path).suffix.lower() for file in files}
    named = {"JavaScript": _JS, "Go": _GO, "shell": _SHELL}
    names = ["secrets", *(name for name, those in named.items() if those & endings)]
    return [*names, *(["rules of config.toml"] if rules else [])]


def find_faults(file: ReviewedFile, rules: Sequence[ReviewRule] = ()) -> list[ReviewFinding]:
    """Return what is wrong in a file, changed or not.

    Raises ConfigurationError for a rule that is not a regular expression.
    """
    findings = [*find_written_secrets(file)]
    ending = PurePath(file.path).suffix.lower()
    findings += _find_by_line(file, ending)
    findings += _find_by_custom_rules(file, rules)
    return findings


def _find_by_line(file: ReviewedFile, ending: str) -> Iterator[ReviewFinding]:
    rules = [rule for rule in _RULES if ending in rule.endings]
    if not rules:
        return
    lines = [*_strip_comments(file.lines, "#" if ending in _SHELL else "//")]
    for number, line in enumerate(lines, 1):
        for rule in rules:
            if rule.pattern.search(line):
                yield ReviewFinding(
                    file.path, (number, number), rule.severity, rule.category, rule.text, rule.fix
                )
        if ending in _GO and (opened := _GO_OPENS.search(line)) is not None:
            after = "\n".join(lines[number : number + _LINES_TO_CLOSE])
            name = re.escape(opened["name"])
            if not re.search(rf"\b{name}\.Close\(|\breturn\b[^\n]*\b{name}\b", after):
                yield ReviewFinding(
                    file.path, (number, number), "major", "unclosed-resource",
                    f"nothing closes {opened['name']}", f"defer {opened['name']}.Close()",
                )  # fmt: skip


def _strip_comments(lines: Sequence[str], mark: str) -> Iterator[str]:
    """Yield lines without their comments; what a quote holds is none."""
    is_inside = False
    for line in lines:
        code, quote, at = "", "", 0
        while at < len(line):
            char = line[at]
            if is_inside:
                is_inside = not line.startswith("*/", at)
                at += 1 if is_inside else 2
                continue
            if quote:
                if char == "\\":
                    code += line[at : at + 2]
                    at += 2
                    continue
                quote = "" if char == quote else quote
            elif char in "'\"`":
                quote = char
            elif mark == "//" and line.startswith("/*", at):
                is_inside, at = True, at + 2
                continue
            elif line.startswith(mark, at) and (mark != "#" or at == 0 or line[at - 1].isspace()):
                break
            code += char
            at += 1
        yield code


def _find_by_custom_rules(
    file: ReviewedFile, rules: Sequence[ReviewRule]
) -> Iterator[ReviewFinding]:
    for rule in rules:
        if rule.files and not any(PurePath(file.path).match(pattern) for pattern in rule.files):
            continue
        search = compile_rule(rule)
        for number, line in enumerate(file.lines, 1):
            if search(line):
                text = rule.text or f"the line has {rule.pattern}"
                yield ReviewFinding(
                    file.path, (number, number), rule.severity, rule.id, text, source="config.toml"
                )


def compile_rule(rule: ReviewRule) -> Callable[[str], object]:
    """Return what finds a rule in a line; raises ConfigurationError."""
    try:
        return re.compile(rule.pattern).search
    except re.error as error:
        raise ConfigurationError(f"[review] rule {rule.id}: {error}") from error
