"""The project's English is the field's: words of a private dialect do not come back.

`OLD` is the table of old words, each with the word to use instead. The pages, the help of every
command, the docstrings and the messages are searched for them.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

import click
import pytest

from gong.cli.run import gong
from tape.cli.group import tape
from tests.sources import ROOT, list_all_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]

OLD = {
    r"(?:the|its|model's) window": "context window, context usage",
    r"verbs?": "command",
    r"money": "cost",
    r"(?:go|goes|going|went|gone)[ -]on": "continue, continued",
    r"mend(?:s|ed|ing)?": "repair",
    r"anew": "again, rebuild, recompute",
    r"puts? aside|putting aside": "replace by a placeholder; suspend",
    r"stands? in for": "replace, represent",
    r"leads? to nothing": "unreachable",
    r"nobody (?:told|is there|knows)": "unknown; not a terminal",
    r"who answers(?! next)|answered so far": "current model",
    r"tak(?:e|es|en) (?:it |them )?back": "undo, undone",
    r"made up": "placeholder",
    r"nothing was said": "the session is empty",
    r"is no time|no JSON": "invalid time, not JSON",
    r"too dear": "too expensive",
    r"(?:begins?|starts?) with a blank": "start with a space",
    r"by hand": "directly",
    r"did not tell|nobody can tell": "unknown",
    r"as inside|what no row can say": "name the thing",
}
OLD_WORDS = re.compile(rf"\b(?:{'|'.join(OLD)})\b", re.IGNORECASE)

RIDDLES = {
    r"stands? (?:for|in|at|on|there|here|alone)": "is in, replaces, means, matches",
    r"(?:is|are|was) told": "gets, is reported to, is warned",
    r"so many": "the parameter's name",
    r"nobody (?:told|asked|says)": "who does not",
    r"what came of|put aside|goes on with|as inside": "name the thing",
    r"in one list": "as a list",
}
"""What docstrings do not say, and what they say instead: subject, verb, object."""

ALLOWED = {
    # the journal's word (tape.md §4), shown to people as "continued"
    **dict.fromkeys(
        (
            "tape/cli/context.py",
            "tape/history/follow.py",
            "tape/store/refs.py",
            "tape/store/writer.py",
        ),
        r"go-on",
    ),
    "docs/glossary.md": r"verb",  # names the parts of a sentence
    "gong/llm/offline/rules.py": r"verbs?",  # the verb of a sentence
}
"""Places where an old word has its plain meaning."""

MIN_WORDS = 4
"""Shorter literals are keys, names and fragments."""


class Text(NamedTuple):
    """A text that people read, and where it is."""

    place: str
    line: int
    words: str


def page_texts(path: Path) -> Iterator[Text]:
    """Yield the lines of a page."""
    place = path.relative_to(ROOT).as_posix()
    for number, line in enumerate(path.read_text().splitlines(), 1):
        yield Text(place, number, line)


def module_texts() -> Iterator[Text]:
    """Yield the docstrings of all modules, and literals that are long enough to be a sentence."""
    for path, node in list_all_nodes():
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            continue
        if len(re.findall(r"[A-Za-z']{2,}", node.value)) >= MIN_WORDS:
            yield Text(path.as_posix(), node.lineno, " ".join(node.value.split()))


def help_texts(command: click.Command, name: str) -> Iterator[Text]:
    """Yield the help of a command and of all its subcommands."""
    context = click.Context(command, info_name=name, help_option_names=["-h", "--help"])
    yield Text(f"{name} --help", 1, " ".join(command.get_help(context).split()))
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            if name + child != "gongtape" and (found := command.get_command(context, child)):
                yield from help_texts(found, f"{name} {child}")


def old_words(texts: Iterator[Text]) -> list[str]:
    """Return a line for each old word in the texts, with where it is."""
    return [
        f"{text.place}:{text.line}: {found.group()!r} in {text.words[:120]!r}"
        for text in texts
        for found in OLD_WORDS.finditer(text.words)
        if not re.fullmatch(ALLOWED.get(text.place, r"(?!)"), found.group(), re.IGNORECASE)
    ]


def test_no_old_word_is_in_pages_help_messages_and_docstrings():
    pages = (page_texts(path) for path in PAGES)
    helps = (help_texts(tape, "tape"), help_texts(gong, "gong"))
    lines = [line for texts in (*pages, module_texts(), *helps) for line in old_words(texts)]
    assert not lines, "\n".join(lines)


def test_docstrings_say_who_does_what():
    riddles = re.compile(rf"\b(?:{'|'.join(RIDDLES)})\b")
    lines = [
        f"{path}:{getattr(node, 'lineno', 1)}: {match.group()!r}"
        for path, node in list_all_nodes()
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for match in riddles.finditer(" ".join((ast.get_docstring(node) or "").split()))
    ]
    assert not lines, "\n".join(lines)


@pytest.mark.parametrize(
    "words", ["the window is full", "Without a verb", "(go-on)", "It goes on", "was mended"]
)
def test_an_old_word_is_found(words):
    assert old_words(iter([Text("page.md", 1, words)]))


@pytest.mark.parametrize("words", ["amended", "a window of tmux", "the context window", "adverb"])
def test_a_word_that_contains_an_old_one_is_not(words):
    assert not old_words(iter([Text("page.md", 1, words)]))
