"""Write docs/reference.md from what the commands say of themselves: `make docs`.

Verbs, options, examples and JSON keys come from click; only the exit codes of each verb stand
here, and `test_reference.py` sees every one of them happen.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tape.cli.group import VERBS, tape

from .pages import EXAMPLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference.md"

INTRODUCTION = """\
# Reference

Every verb of `tape`, as `tape VERB --help` tells it. This page is written by `make docs` from the
commands themselves, and a test runs its examples. New here? [Five minutes](tutorial.md) first;
[tapes](tapes.md) explains REF.
"""

CODES = {
    0: "ok",
    1: "error; one line on standard error says what to do, as for all others",
    2: "usage or configuration",
    3: "not found, or ambiguous",
    4: "damaged: `tape fsck` explains it",
    5: "busy: another program is writing there",
    6: "authentication",
    7: "denied",
    8: "turn or cost limit reached",
    75: "transient: try again",
    130: "interrupted",
}

CODES_LEAD = """\
The same for `tape` and `gong`. Any verb may end with 0, 1, 2 or 130, and with 4 where what it needs
is damaged; what else one may end with, and what it means there, stands with it.
"""

FINDS = (3, "REF leads to nothing, or to several things")
ENDS: dict[str, tuple[tuple[int, str], ...]] = {
    "append": (FINDS, (5, "the branch is named and somebody else writes it")),
    "show": (FINDS,),
    "log": (FINDS,),
    "cat": (FINDS,),
    "tail": (FINDS,),
    "fork": (FINDS,),
    "branches": (FINDS,),
    "switch": (FINDS,),
    "rename": (FINDS,),
    "label": (FINDS,),
    "anchors": (FINDS,),
    "context": (FINDS,),
    "diff": (FINDS,),
    "replay": (FINDS, (4, "--check finds a difference")),
    "stats": (FINDS,),
    "blame": ((3, "no tape knows of a change of FILE"),),
    "export": (FINDS, (4, "the tape is damaged; nothing is written")),
    "import": ((4, "the file is damaged; nothing is made"),),
    "rm": (FINDS, (5, "a branch is being written")),
    "restore": ((3, "no such tape is in the trash"),),
    "mv": (FINDS, (5, "a branch is being written")),
    "detach": (FINDS, (5, "a branch is being written")),
    "redact": (FINDS,),
    "verify": (FINDS, (4, "there is damage, or a torn end that nobody is writing")),
    "fsck": (FINDS, (4, "there is damage, or some is left")),
}
"""What verbs end with beyond 0, 1, 2 and 130: code and when."""

_CODED = re.compile(r"\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}|(?<![\w`-])--?[a-z][a-z-]*")
_JSON = re.compile(r"(?<=[.:]) (?=--json prints)")


def page() -> str:
    """Return the whole page."""
    group = click.Context(tape, info_name="tape")
    verbs = [(name, tape.get_command(group, name)) for name in VERBS]
    parts = [INTRODUCTION, _contents(), _codes(), _options("Options of every verb", _shared())]
    return "\n".join([*parts, *(_verb(group, name, verb) for name, verb in verbs if verb)])


def examples(verb: click.Command) -> list[str]:
    """Return the command lines at the end of a verb's help page."""
    return [line.strip() for line in (verb.epilog or "").split("\n")[2:]]


def _contents() -> str:
    rows = [f"| [`{name}`](#tape-{name}) | {line} |" for name, (_, line) in VERBS.items()]
    return _table(("verb", "does"), rows)


def _codes() -> str:
    rows = [f"| {code} | {meaning} |" for code, meaning in CODES.items()]
    return f"## Exit codes\n\n{CODES_LEAD}\n{_table(('code', 'means'), rows)}"


def _verb(group: click.Context, name: str, verb: click.Command) -> str:
    ctx = click.Context(verb, info_name=name, parent=group)
    shared = {option.name for option in _shared()}
    own = [option for option in verb.params if option.name not in shared]
    usage = " ".join(["tape", name, *verb.collect_usage_pieces(ctx)])
    parts = [f"## tape {name}\n", f"`{usage}`\n", *_paragraphs(verb.help or "")]
    parts += [_options("", own)] if any(isinstance(one, click.Option) for one in own) else []
    parts += [_ends(name)] if name in ENDS else []
    return "\n".join([*parts, f"```{EXAMPLE}", *examples(verb), "```\n"])


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


def _shared() -> list[click.Parameter]:
    """Return the options that every verb has."""
    return [option for option in tape.params if option.name != "version"]


def _options(title: str, params: Iterable[click.Parameter]) -> str:
    rows = [_option(one) for one in params if isinstance(one, click.Option)]
    head = f"## {title}\n\n" if title else ""
    return f"{head}{_table(('option', 'does'), rows)}"


def _option(option: click.Option) -> str:
    ctx = click.Context(tape)
    names = ", ".join([*option.opts, *option.secondary_opts])
    value = "" if option.is_flag else f" {option.make_metavar(ctx)}"
    default = f" Default: {option.default}." if option.show_default else ""
    cells = [f"`{names}{value}`", _marked(f"{option.help}{default}")]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _ends(name: str) -> str:
    return _marked(f"Exit codes: {'; '.join(f'{code}, {when}' for code, when in ENDS[name])}.\n")


def _table(head: tuple[str, str], rows: Iterable[str]) -> str:
    return "\n".join([f"| {head[0]} | {head[1]} |", "|---|---|", *rows, ""])


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
