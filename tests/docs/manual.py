"""A page of reference for a command line, made from the help of its commands.

Commands, options, examples and JSON keys come from click; exit codes are passed in.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from tests.docs.pages import EXAMPLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Verb:
    """A command: the words that call it (`work new`), and a line that says what it does."""

    name: str
    line: str
    command: click.Command


@dataclass(frozen=True, slots=True)
class Manual:
    """The parts of a page."""

    program: str
    introduction: str
    verbs: Sequence[Verb]
    codes: str
    """The section on exit codes."""
    ends: Mapping[str, tuple[tuple[int, str], ...]]
    """Exit codes of commands besides those of every command: code and when."""
    shared: Sequence[click.Parameter] = field(default=())
    """Options of every command, described once."""

    def page(self) -> str:
        """Return the whole page."""
        parts = [self.introduction, self._contents(), self.codes]
        parts += [_options("Options of every command", self.shared)] if self.shared else []
        return "\n".join([*parts, *map(self._verb, self.verbs)])

    def _contents(self) -> str:
        rows = [
            f"| [`{one.name}`](#{self.program}-{one.name.replace(' ', '-')}) | {one.line} |"
            for one in self.verbs
        ]
        return table(("command", "does"), rows)

    def _verb(self, one: Verb) -> str:
        ctx = click.Context(one.command, info_name=one.name, help_option_names=["-h", "--help"])
        shared = {option.name for option in self.shared}
        own = [option for option in one.command.params if option.name not in shared]
        usage = " ".join([self.program, one.name, *one.command.collect_usage_pieces(ctx)])
        parts = [f"## {self.program} {one.name}\n", f"`{usage}`\n"]
        parts += _paragraphs(one.command.help or "")
        parts += [_options("", own)] if any(isinstance(opt, click.Option) for opt in own) else []
        parts += [_ends(self.ends[one.name])] if one.name in self.ends else []
        shown = examples(one.command)
        parts += [f"```{EXAMPLE}", *shown, "```\n"] if shown else []
        return "\n".join(parts)


_PROMISE = re.compile(r"--json prints (an array of )?(?:it: )?(?=\{)")


def promised(verb: click.Command) -> tuple[bool, set[str]] | None:
    """Return whether a verb's help promises an array, and the keys of what it prints."""
    text = " ".join((verb.help or "").split())
    found = _PROMISE.search(text)
    if found is None:
        return None
    depth, keys = 0, [""]
    for character in text[found.end() :]:
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(character, 0)
        if depth == 0:
            break
        if depth == 1 and character == ",":
            keys.append("")
        elif depth == 1:
            keys[-1] += character
    return bool(found[1]), {re.sub(r"[{}\[\]]|:.*", "", key).strip() for key in keys}


def examples(verb: click.Command) -> list[str]:
    """Return the command lines at the end of a verb's help page; words behind one as a comment."""
    lines = (line.strip() for line in (verb.epilog or "").rstrip("\n").split("\n")[2:])
    return [re.sub(r" {2,}", "  # ", line, count=1) for line in lines]


_CODED = re.compile(r"\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}|(?<![\w`-])--?[a-z][a-z-]*")
_JSON = re.compile(r"(?<=[.:]) (?=--json prints)")


def _paragraphs(text: str) -> Iterator[str]:
    """Yield a help text as Markdown; what --json prints is a paragraph of its own."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        for part in _JSON.split(" ".join(paragraph.split())):
            yield _marked(part) + "\n"


def _marked(text: str) -> str:
    """Return prose with options and JSON shapes as code, and nothing else taken for Markdown."""
    parts = re.split(r"(`[^`]*`)", text)
    plain = (_escaped(part) if at % 2 == 0 else part for at, part in enumerate(parts))
    return "".join(plain)


def _escaped(text: str) -> str:
    parts, at = [], 0
    for found in _CODED.finditer(text):
        parts += [re.sub(r"([*<\[\]])", r"\\\1", text[at : found.start()]), f"`{found[0]}`"]
        at = found.end()
    return "".join([*parts, re.sub(r"([*<\[\]])", r"\\\1", text[at:])])


def _options(title: str, params: Iterable[click.Parameter]) -> str:
    rows = [_option(one) for one in params if isinstance(one, click.Option)]
    head = f"## {title}\n\n" if title else ""
    return f"{head}{table(('option', 'does'), rows)}"


def _option(option: click.Option) -> str:
    ctx = click.Context(click.Command("verb"))
    names = ", ".join([*option.opts, *option.secondary_opts])
    value = "" if option.is_flag else f" {option.make_metavar(ctx)}"
    default = f" Default: {option.default}." if option.show_default else ""
    cells = [f"`{names}{value}`", _marked(f"{option.help}{default}")]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _ends(codes: Iterable[tuple[int, str]]) -> str:
    return _marked(f"Exit codes: {'; '.join(f'{code}, {when}' for code, when in codes)}.\n")


def table(head: Sequence[str], rows: Iterable[str]) -> str:
    """Return a table of rows that are lines already."""
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *rows, ""])
