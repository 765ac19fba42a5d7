"""The page docs/reference-gong.md for the commands of `gong`; `reference.py` writes it."""

from __future__ import annotations

import ast
import inspect
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec import Struct
from msgspec.structs import fields

from gong.cli.run import gong
from gong.config import Settings, list_choices
from tests.docs.manual import Manual, Verb, table

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference-gong.md"

INTRODUCTION = """\
# Reference of gong

Every command of `gong`, as in `gong COMMAND --help`; `gong` alone is `gong chat`, and `gong tape`
is the [other program](reference.md). This page is written by `make docs` from the commands
themselves, and a test runs its examples. [Tapes](tapes.md) explains REF.
"""

CODES = """\
## Exit codes

They are [those of `tape`](reference.md#exit-codes). Any command may end with 0, 1, 2 or 130, and
with 4 if data it needs is damaged; further codes are listed with each command. `--debug` anywhere
shows a traceback of an error.
"""

SETTINGS = """\
## Settings

Keys of `config.toml` in `$GONG_CONFIG_DIR`, else in `$XDG_CONFIG_HOME/gong`, else in
`~/.config/gong`, and over them those of `.gong/config.toml` in a trusted project. All are optional;
a flag overrides a key, and `GONG_MODEL` overrides `model`.
"""

FINDS = (3, "REF matches nothing, or several things")
BUSY = (5, "another program is writing the named branch")
WORK = (3, "ID matches no work, or several")
ENDS: dict[str, tuple[tuple[int, str], ...]] = {
    "chat": (
        FINDS,
        BUSY,
        (6, "the model's key is missing or refused"),
        (8, "-p stopped at a limit (--max-turns, --max-cost, --max-time)"),
        (9, "-p, and the answer is cut, empty or only thought"),
        (75, "-p, and the provider was busy or unreachable, also on the last retry"),
    ),
    "compact": ((1, "there is nothing to compact, or nothing to undo"), FINDS, BUSY),
    "context": (FINDS,),
    "handoff": (FINDS, BUSY),
    "work show": (WORK,),
    "work add": (WORK,),
    "work done": (WORK,),
    "work handoff": (WORK,),
    "cost": (FINDS,),
    "doctor": ((1, "a check failed"), FINDS),
    "models": ((3, "there is no such provider"),),
    "auth login": ((3, "there is no such provider"),),
    "auth logout": ((3, "no key of that provider is saved"),),
    "review": (
        (1, "there is a finding at or above --fail-on"),
        (10, "a stage, an analyser or the fixing failed; what the others found is printed"),
    ),
    "eval list": ((1, "something is wrong with a task"),),
    "eval run": (
        (1, "a try ended with an error, or less is solved than --fail-under demands"),
        (6, "the model's key is missing or refused"),
        (8, "the budget is spent, and tries are left"),
    ),
    "sessions show": (FINDS,),
    "sessions rm": (FINDS, (5, "a branch is being written")),
    "tool": ((1, "the tool failed"), (3, "there is no such tool"), (7, "the call is refused")),
}
"""Exit codes of commands besides 0, 2 and 130: code and when."""


def verbs() -> list[Verb]:
    """Return the commands in the order of the help page, each group first; not `tape`."""
    ctx = click.Context(gong, info_name="gong")
    names = [name for name in gong.list_commands(ctx) if name != "tape"]
    found = [(name, gong.get_command(ctx, name)) for name in names]
    return [verb for name, one in found if one for verb in _verbs(name, one)]


def _verbs(name: str, one: click.Command) -> Iterator[Verb]:
    yield Verb(name, _line(one), one)
    if isinstance(one, click.Group):
        ctx = click.Context(one)
        for inner in one.list_commands(ctx):
            if (command := one.get_command(ctx, inner)) is not None:
                yield Verb(f"{name} {inner}", _line(command), command)


def _line(one: click.Command) -> str:
    """Return the first sentence of a help text."""
    return " ".join((one.help or "").split("\n\n")[0].split())


def keys(of: type[Struct] = Settings, before: str = "") -> Iterator[str]:
    """Yield the names of all settings, those of tables with dots."""
    for one in fields(of):
        if isinstance(one.default, Struct):
            yield from keys(type(one.default), f"{before}{one.name}.")
        else:
            yield before + one.name


def _settings(of: type[Struct] = Settings, before: str = "") -> Iterator[str]:
    """Yield a row for each setting: its key, its default, and what its docstring says."""
    said = _said(of)
    for one in fields(of):
        if isinstance(one.default, Struct):
            yield from _settings(type(one.default), f"{before}{one.name}.")
        else:
            means = [said.get(one.name, ""), _choices(f"{before}{one.name}")]
            yield f"| `{before}{one.name}` | {_default(one)} | {' '.join(filter(None, means))} |"


def _choices(key: str) -> str:
    """Return a sentence with the words that a setting may have; empty where it takes others."""
    words = [f"`{word}`" for word in list_choices(tuple(key.split(".")))]
    return f"One of {', '.join(words[:-1])} and {words[-1]}." if words else ""


def _default(one: msgspec.structs.FieldInfo) -> str:
    value: Any = one.default
    if value is msgspec.NODEFAULT or value is None or value == "":
        return ""
    return f"`{msgspec.json.encode(value).decode()}`"


def _said(of: type[Struct]) -> dict[str, str]:
    """Return the docstrings behind the fields of a Struct."""
    (defined,) = ast.parse(dedent(inspect.getsource(of))).body
    body = [*ast.iter_child_nodes(defined)]
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
    }


def page() -> str:
    """Return the whole page."""
    verbs_page = Manual("gong", INTRODUCTION, verbs(), CODES, ENDS).page()
    rows = table(("key", "default", "means"), _settings())
    return f"{verbs_page}\n{SETTINGS}\n{rows}"
