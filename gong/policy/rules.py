r"""Rules of permission: `Tool` or `Tool(pattern)`; what they cover, and which are offered; pure.

    rule                     covers
    Bash                     every command; so does Bash(*)
    Bash(npm test)           the command `npm test`, and no other arguments
    Bash(npm test:*)         `npm test` and whatever follows; `Bash(npm test *)` is the same
    Bash(npm run *:ci)       `*` matches anything, `\*` for a star
    Read(docs/**)            files by patterns as in .gitignore, from the working folder
    Edit(/srv/app/x.py)      an absolute path; `~/` is the home folder
    WebFetch(domain:x.org)   x.org and what is below it
    Skill(commit)            the skill commit; `Skill(git:*)` is every one of git
    mcp__github              every tool of a server; `mcp__github__get_issue` is one

Names are case-free, and names of one family are one: Bash and shell; Edit, Write and apply_patch;
Read, Grep and ls. To allow, a rule has to cover a part of a command and all that its words do
not tell (`actions`); to deny or to ask it is enough that it may cover it.
"""

from __future__ import annotations

import posixpath
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ..errors import ConfigurationError
from ..web.addresses import InvalidAddress, normalize_host

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .commands.finding import CommandFinding
    from .commands.invocation import Invocation

_FAMILIES = {
    "bash": ("bash", "shell", "run_shell_command", "exec_command", "local_shell", "sh", "command"),
    "edit": (
        "edit", "write", "edit_file", "write_file", "multiedit", "multi_edit", "apply_patch",
        "replace", "str_replace", "create_file", "notebookedit", "notebook_edit", "patch",
        "search_replace", "insert", "applypatch", "write_to_file", "str_replace_editor",
    ),
    "read": (
        "read", "read_file", "grep", "find", "glob", "ls", "list_dir", "list_directory",
        "grep_search", "search_file_content", "read_many_files", "view", "view_file", "grep_files",
        "list_files", "file_search", "search_files", "view_image", "notebookread", "lsp",
    ),
    "websearch": ("websearch", "web_search", "google_web_search"),
    "webfetch": ("webfetch", "web_fetch", "fetch", "fetch_url"),
}  # fmt: skip
_FAMILY_OF = {name: family for family, names in _FAMILIES.items() for name in names}
_SHOWN_NAMES = {"bash": "Bash", "edit": "Edit", "read": "Read", "webfetch": "WebFetch"}
_RULE = re.compile(r"\s*([\w.*-]+)\s*(?:\((.*)\))?\s*", re.DOTALL)


def find_family(name: str) -> str:
    """Return bash, edit, read or webfetch for tools of these kinds, else the name in lower case."""
    return _FAMILY_OF.get(name.lower(), name.lower())


@dataclass(frozen=True)
class PermissionRule:
    """One rule."""

    text: str
    """As it was written."""
    tool: str
    """A family of tools, or a name in small letters."""
    pattern: str | None = None
    """What is between the parentheses; None for every call."""

    @cached_property
    def is_open(self) -> bool:
        """Whether it covers every call of its tools."""
        return self.pattern in {None, "*", ":*", "**"}

    @cached_property
    def command_pattern(self) -> re.Pattern[str]:
        """What fits the words of a command it is about."""
        assert self.pattern is not None, "an open rule has no words"
        text = self.pattern.removesuffix(":*")
        ends = "" if text == self.pattern else "(?: .*)?"
        if text.endswith(" *") and not text.endswith("\\ *"):
            text, ends = text.removesuffix(" *"), "(?: .*)?"
        text = _PLAIN_QUOTES.sub(r"'\1'", text)  # words are compared in single quotes
        parts = re.split(r"(\\\*|\*)", text)
        whole = "".join(_COMMAND_PARTS.get(part) or re.escape(part) for part in parts)
        return re.compile(whole.strip() + ends, re.DOTALL)

    @cached_property
    def is_exact(self) -> bool:
        """Whether no wildcard is in it."""
        return self.pattern is not None and not re.search(r"(?<!\\)\*", self.pattern)

    @cached_property
    def shown_words(self) -> frozenset[str]:
        """The words of a command that it shows."""
        text = (self.pattern or "").removesuffix(":*").replace("\\*", "*")
        return frozenset(text.split())


_PLAIN_QUOTES = re.compile(r"\"([^\"'$`\\]*[^\w\"'$`\\@%+=:,./-][^\"'$`\\]*)\"")
_COMMAND_PARTS = {"\\*": r"\*", "*": ".*"}


def parse_rule(text: str) -> PermissionRule:
    """Return a rule from its text; raises ConfigurationError where it is none."""
    match = _RULE.fullmatch(text)
    if match is None:
        raise ConfigurationError(
            f"{text!r} is not a rule: write Tool or Tool(pattern), such as Bash(npm test:*)"
        )
    pattern = match[2].strip() if match[2] is not None else None
    if pattern == "":
        raise ConfigurationError(f"{text!r} has an empty pattern: write {match[1]} for every call")
    return PermissionRule(text.strip(), find_family(match[1]), pattern)


def escape_pattern(text: str) -> str:
    """Return a pattern that fits this text and nothing else."""
    return text.replace("*", "\\*")


# commands


def is_line_covered(rule: PermissionRule, line: str) -> bool:
    """Whether a rule is this very command line."""
    if rule.tool != "bash" or rule.pattern is None:
        return False
    return rule.is_exact and rule.pattern.replace("\\*", "*") == line.strip()


def is_action_covered(
    rules: Sequence[PermissionRule], action: CommandFinding
) -> PermissionRule | None:
    """Return the rule that allows a program, with all that it runs; None without one."""
    for rule in rules:
        if rule.tool != "bash":
            continue
        if rule.is_open:
            return rule
        if action.kind != "run" or action.hidden:
            continue
        if not rule.command_pattern.fullmatch(action.text):
            continue
        if not rule.is_exact and not _is_showing(rule, action):
            continue
        if rule.is_exact or all(is_action_covered(rules, inner) for inner in action.inner):
            return rule
    return None


def _is_showing(rule: PermissionRule, action: CommandFinding) -> bool:
    """Whether a rule with a wildcard shows the words that it has to."""
    words = {word for text in action.shown for word in text.split()}
    return words <= rule.shown_words


def find_touching_rule(
    rules: Iterable[PermissionRule], line: str, uses: Iterable[Invocation]
) -> PermissionRule | None:
    """Return the first rule that may be about a program of a command line; to deny or to ask.

    A program is compared by its name alone, and with its words as they are and quoted.
    """
    from .commands.matching import list_operands  # a tenth of the time of a start
    from .commands.tables import load_tables

    texts = {line.strip()}
    for use in uses:
        name, words = use.name, [argument.text for argument in use.arguments]
        texts.add(" ".join((name, *words)))
        operands = list_operands(use.arguments, load_tables().valued.get(name, ()))
        texts.add(" ".join((name, *(operand.text for operand in operands))))
    for rule in rules:
        if rule.tool == "bash" and (
            rule.is_open or any(rule.command_pattern.fullmatch(text) for text in texts)
        ):
            return rule
    return None


# files


def is_path_covered(
    rule: PermissionRule, path: str, cwd: str, home: str, *, below: bool = True
) -> bool:
    """Whether a rule of a family of file tools is about an absolute path.

    With `below` the name of a folder covers all that is in it; to allow it does not, where no
    slash and no `**` at its end says so.
    """
    if rule.is_open:
        return True
    assert rule.pattern is not None
    below = below or rule.pattern.endswith(("/", "**"))
    return bool(_compile_path_pattern(rule.pattern, cwd, home, below=below).fullmatch(path))


@lru_cache(maxsize=512)
def _compile_path_pattern(pattern: str, cwd: str, home: str, *, below: bool) -> re.Pattern[str]:
    """Return what fits the paths of a pattern of .gitignore."""
    anchor, rest = cwd, pattern
    if pattern.startswith("//"):
        anchor, rest = "", pattern[1:]
    elif pattern.startswith("~"):
        anchor, rest = home, pattern[1:]
    elif pattern.startswith("/"):
        anchor, rest = "", pattern
    elif pattern.startswith("./"):
        rest = pattern[1:]
    elif "/" not in pattern.rstrip("/"):
        rest = f"/**/{pattern}"
    else:
        rest = f"/{pattern}"
    parts = [part for part in re.split(r"(\\.|/\*\*(?=/|$)|\*\*|\*|\?|\[[^\]/]+\])", rest) if part]
    whole = "".join(_translate_path_part(part) for part in parts)
    ends = "(?:/.*)?" if below else ""
    return re.compile(re.escape(anchor.rstrip("/")) + whole.rstrip("/") + ends, re.DOTALL)


def _translate_path_part(part: str) -> str:
    if part == "/**":
        return "(?:/.*)?"
    if part == "**":
        return ".*"
    if part in {"*", "?"}:
        return "[^/]*" if part == "*" else "[^/]"
    if part[0] == "[" and part[-1] == "]":
        return f"[{part[1:-1].replace('!', '^', 1) if part[1] == '!' else part[1:-1]}]"
    return re.escape(part[1:] if part[0] == "\\" else part)


def build_path_rule(family: str, path: str) -> str:
    """Return the rule for one file."""
    text = re.sub(r"([*?\[\\])", r"\\\1", posixpath.normpath(path))
    return f"{_SHOWN_NAMES[family]}({text})"


# other tools


def is_tool_covered(rule: PermissionRule, name: str) -> bool:
    """Whether a rule is about a tool of no family; servers' names may come with `mcp__` or not."""
    if rule.pattern is not None and not rule.is_open:
        return False
    own, name = (text.lower().removeprefix("mcp__") for text in (rule.tool, name))
    own = own.removesuffix("__*")
    return own in {name, "*"} or ("__" in name and name.startswith(f"{own}__"))


def is_skill_covered(rule: PermissionRule, skill: str) -> bool:
    """Whether a rule is about a skill: `Skill`, `Skill(commit)`, `Skill(git:*)`."""
    if rule.tool != "skill" or rule.pattern is None:
        return is_tool_covered(rule, "skill")
    prefix = rule.pattern.removesuffix(":*").removesuffix("*").rstrip()
    skill = skill.lstrip("/").removeprefix("skill:")
    return skill == prefix or (rule.pattern.endswith("*") and skill.startswith(prefix))


def is_domain_covered(rule: PermissionRule, host: str) -> bool:
    """Whether a rule for fetching is about a host."""
    if rule.is_open:
        return True
    domain = (rule.pattern or "").removeprefix("domain:").strip().removeprefix("*.")
    with suppress(InvalidAddress):  # such a domain is none of a host
        domain = normalize_host(domain)
    return host == domain or host.endswith(f".{domain}")


# what is offered

_TWO_WORDS = re.compile(r"[a-z][a-z0-9]*(?:[:_-][a-z0-9]+)*")
_ONE_WORD = {
    "mkdir", "touch", "pytest", "tsc", "eslint", "prettier", "black", "mypy", "jest", "isort",
    "vitest", "mocha", "rspec", "flake8", "pylint", "pyright", "shellcheck", "tox", "nox",
}  # fmt: skip
_THREE_WORDS = re.compile(
    r"(?:npm|pnpm|yarn|bun|poetry|pdm|hatch|deno) run|docker compose|go tool|gh \w+"
)
_RUNS_FILES = re.compile(r"(?:python|pypy|perl|ruby|node|nodejs|php|lua|bash|sh|zsh|dash)[\d.]*")
_MAX_RULE = 2000


def build_action_rule(action: CommandFinding) -> str | None:
    """Return the rule that allows a program for good; None where none may be offered.

    The fewest words that say what it does: `npm run test`, `git commit`, `python x.py`; all of them
    where only all of them do.
    """
    if action.kind != "run" or action.hidden or action.removes:
        return None
    if action.code or action.inner or (set(action.shown) - set(action.words[:1])):
        text = escape_pattern(action.text)
    else:
        words = action.words[: _count_telling_words(action.words)]
        text = f"{escape_pattern(' '.join(words))}:*"
    return f"Bash({text})" if len(text) <= _MAX_RULE else None


def _count_telling_words(words: Sequence[str]) -> int:
    """Return how many words say what a program does: itself, a subcommand, a script of its own."""
    first, second, third = (*words, "", "")[:3] if len(words) > 1 else (words[0], "", "")
    runs = bool(_RUNS_FILES.fullmatch(first))
    if third and third[0] != "-" and _THREE_WORDS.fullmatch(f"{first} {second}"):
        return 3
    if runs:
        return 3 if second == "-m" else 2
    return 2 if first not in _ONE_WORD and _TWO_WORDS.fullmatch(second) else 1


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The rules of the settings and flags."""

    allow: tuple[PermissionRule, ...] = ()
    deny: tuple[PermissionRule, ...] = ()
    ask: tuple[PermissionRule, ...] = ()

    @classmethod
    def parse(
        cls, allow: Iterable[str] = (), deny: Iterable[str] = (), ask: Iterable[str] = ()
    ) -> RuleSet:
        """Return the rules of their texts; raises ConfigurationError."""
        return cls(*(tuple(map(parse_rule, texts)) for texts in (allow, deny, ask)))


NO_RULES = RuleSet()


@runtime_checkable
class HasRunRules(Protocol):
    """A policy that applies the rules of a run, such as those of a skill, beside its own."""

    run_rules: RuleSet
