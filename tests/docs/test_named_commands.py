"""Every command that a message or a page names is there, with the options that it names.

Commands stand between backticks, or in blocks of pages. What stands for something else is written
in capitals, or left out (…).
"""

from __future__ import annotations

import ast
import re
import shlex
from contextlib import suppress
from functools import cache
from itertools import takewhile
from typing import TYPE_CHECKING

import click
import pytest

from gong.cli.run import gong as gong_group
from tape.cli.git_words import EXPLAINED, translate_git_words
from tape.cli.group import tape as tape_group
from tape.errors import UsageError
from tests.sources import ROOT, parse_packages

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

GROUPS = {"tape": tape_group, "gong": gong_group}
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
_NAMED = re.compile(r"`(?P<command>(?:tape|gong) [^`\n]+)`")
_LINE = re.compile(r"^\s*(?:\$ )?(?P<command>(?:tape|gong) [^\n]+)$", re.MULTILINE)
_BLOCK = re.compile(r"^```(?:console|sh|text)?\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
_PLACE = "PLACE"
"""What a program puts into a text."""
SLIPS = {"tape lgo", "gong chta"}
"""Shown because the answer to them is."""
_ENDS = {"|", "||", "&&", ";", "#", ">", "<", "2>", "→", "&"}


def find_in_page(text: str) -> Iterator[str]:
    """Yield the commands that a page names."""
    for block in _BLOCK.finditer(text):
        for match in _LINE.finditer(block["text"]):
            yield match["command"]
    for match in _NAMED.finditer(_BLOCK.sub("", text)):
        yield match["command"]


def find_in_module(tree: ast.Module) -> Iterator[str]:
    """Yield the commands that the texts of a module name."""
    for node in ast.walk(tree):
        text = ""
        if isinstance(node, ast.JoinedStr):
            text = "".join(
                str(part.value) if isinstance(part, ast.Constant) else _PLACE
                for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        for match in _NAMED.finditer(text):
            yield match["command"]


@cache
def resolve(program: str, names: tuple[str, ...]) -> tuple[click.Command, int] | None:
    """Return the command that words name, and how many of them; None if there is none."""
    command: click.Command = GROUPS[program]
    count = 0
    while isinstance(command, click.Group) and count < len(names):
        inner = command.get_command(click.Context(command, obj=None), names[count])
        if inner is None:
            return (command, count) if count else None
        command, count = inner, count + 1
    return command, count


def list_options(command: click.Command) -> set[str]:
    """Return the options of a command, or of a group that has one by default, and those of all."""
    options = {"-h", "--help", "--version"}
    inner = list_inner(command) if isinstance(command, click.Group) else ()
    for param in (p for each in (command, *inner, GROUPS["tape"]) for p in each.params):
        options |= {*param.opts, *param.secondary_opts}
    return options


def list_inner(group: click.Group) -> list[click.Command]:
    """Return the commands of a group."""
    ctx = click.Context(group, obj=None)
    found = (group.get_command(ctx, name) for name in group.list_commands(ctx))
    return [command for command in found if command is not None]


def read_words(text: str) -> list[str]:
    """Return the words of a command as `tape` reads them; only the program if nothing is named."""
    try:
        program, *rest = shlex.split(text.replace("…", " "), comments=True)
    except ValueError:
        return ["tape"]  # a part of a command
    end = next((at for at, word in enumerate(rest) if word in _ENDS), len(rest))
    rest = rest[:end]
    while rest and rest[0] in ("--store", "--utc", "--no-pager", "--debug"):
        rest = rest[2 if rest[0] == "--store" else 1 :]
    if not rest or not re.fullmatch(r"[a-z][a-z-]*", rest[0]) or rest[0] == "help":
        return [program]
    if program == "tape":
        with suppress(UsageError):  # a word of git: the answer says what to do instead
            return [program, *(() if rest[0] in EXPLAINED else translate_git_words(rest))]
        return [program]
    return [program, *rest]


def find_fault(text: str) -> str:
    """Return what is wrong with a command; "" if nothing is."""
    program, *rest = ["tape"] if text in SLIPS else read_words(text)
    if not rest:
        return ""
    known = resolve(program, tuple(word for word in rest if re.fullmatch(r"[a-z][a-z-]*", word)))
    if known is None:
        return "" if program == "gong" and len(rest) > 1 else f"no command {rest[0]}"
    options = list_options(known[0])
    words = (word.partition("=")[0] for word in takewhile(lambda word: word != "--", rest))
    unknown = [word for word in words if word[:2] == "--" and word not in options]
    return f"{known[0].name} has no {unknown[0]}" if unknown else ""


def list_faults(commands: Iterable[str]) -> list[str]:
    """Return what is wrong with commands."""
    return [f"{command}: {fault}" for command in commands if (fault := find_fault(command))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_commands_that_there_are(page):
    assert list_faults(find_in_page(page.read_text("utf-8"))) == []


def test_messages_name_commands_that_there_are():
    trees = parse_packages()
    faults = {str(path): list_faults(find_in_module(tree)) for path, tree in trees.items()}
    assert {path: lines for path, lines in faults.items() if lines} == {}


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        ("tape push --all", ""),
        ("tape pusch", "no command pusch"),
        ("tape push --everything", "push has no --everything"),
        ("tape remote verify --repair", ""),
        ("tape remote verify --mend", "verify has no --mend"),
        ("tape --store there pull", ""),
        ("tape fork ^1 --switch", ""),
        ("tape log --stat", ""),
        ("gong mend --nowhere", ""),  # a prompt
        ("gong mend", "no command mend"),
        ("gong doctor --nowhere", "doctor has no --nowhere"),
    ],
)
def test_a_command_that_is_not_there_is_a_fault(command, fault):
    assert find_fault(command) == fault
