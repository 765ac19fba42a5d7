"""The project's English is the field's: words of a private dialect do not come back.

`OLD` is the table of old words, each with the word to use instead. The pages, the help of every
command, the docstrings and the messages are searched for them.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
import pytest

from gong.cli.run import gong
from tape.cli.group import tape

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
MODULES = sorted(path for folder in ("tape", "gong") for path in (ROOT / folder).rglob("*.py"))

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

ALLOWED = {
    "docs/glossary.md": r"verb",  # names the parts of a sentence
    "gong/llm/offline/rules.py": r"verb",  # the verb of a sentence
}
"""Places where an old word has its plain meaning."""

FEWEST_WORDS = 4
"""Shorter literals are keys, names and fragments."""

NOT_YET = frozenset(
    line.strip()
    for line in """
    README.md
    docs/anchors.md
    docs/branches.md
    docs/crash-safety.md
    docs/export.md
    docs/glossary.md
    docs/reference.md
    docs/store.md
    docs/tapes.md
    docs/tutorial.md
    tape --help
    tape blame --help
    tape completion --help
    tape export --help
    tape fsck --help
    tape import --help
    tape reindex --help
    tape replay --help
    tape search --help
    tape stats --help
    tape tail --help
    tape verify --help
    tape/blame/replay.py
    tape/blame/history.py
    tape/store/blobs.py
    tape/cli/__init__.py
    tape/cli/context.py
    tape/cli/blame.py
    tape/cli/branching.py
    tape/cli/completion.py
    tape/cli/output.py
    tape/cli/diff.py
    tape/cli/exchange.py
    tape/cli/check.py
    tape/cli/group.py
    tape/cli/exchange.py
    tape/cli/output.py
    tape/cli/fast.py
    tape/cli/record.py
    tape/cli/playback.py
    tape/cli/listing.py
    tape/cli/timeparse.py
    tape/cli/stats_view.py
    tape/cli/show.py
    tape/cli/terminal.py
    tape/cli/maintain.py
    tape/cli/check.py
    tape/clock.py
    tape/commonmark.py
    tape/store/disk.py
    tape/model/entries.py
    tape/history/follow.py
    tape/formats/anthropic/emit.py
    tape/formats/gemini/emit.py
    tape/formats/anthropic/parse.py
    tape/formats/gemini/parse.py
    tape/formats/openai_chat/parse.py
    tape/formats/openai_responses/parse.py
    tape/formats/encoder.py
    tape/check/fsck.py
    tape/check/repair_plan.py
    tape/check/explain.py
    tape/check/inspection.py
    tape/check/fsck.py
    tape/check/fsck.py
    tape/check/repair_plan.py
    tape/store/maintenance/gc.py
    tape/index/fast_text.py
    tape/index/library.py
    tape/index/contents.py
    tape/index/database.py
    tape/index/projection.py
    tape/index/ingest.py
    tape/index/ingest.py
    tape/index/rebuild.py
    tape/index/stats.py
    tape/index/records.py
    tape/store/locks.py
    tape/store/redaction.py
    tape/context/repair.py
    tape/history/replay.py
    tape/model/summary.py
    tape/exchange/export.py
    tape/exchange/arrays.py
    tape/exchange/arrays.py
    tape/exchange/secret_patterns.py
    tape/store/store.py
    tape/history/activity.py
    tape/history/graph.py
    tape/history/merge_base.py
    tape/check/verify.py
    tape/check/finding.py
    tape/check/journal_and_blobs.py
    tape/store/writer.py
    """.strip().splitlines()
)
"""Pages, commands and modules that are still to be rewritten; the list only shrinks."""


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


def module_texts(path: Path) -> Iterator[Text]:
    """Yield the docstrings of a module, and its literals that are long enough to be a sentence."""
    place = path.relative_to(ROOT).as_posix()
    for node in ast.walk(ast.parse(path.read_text())):
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            continue
        if len(re.findall(r"[A-Za-z']{2,}", node.value)) >= FEWEST_WORDS:
            yield Text(place, node.lineno, " ".join(node.value.split()))


def help_texts(command: click.Command, name: str) -> Iterator[Text]:
    """Yield the help of a command and of all its subcommands."""
    context = click.Context(command, info_name=name)
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


@cache
def found_in() -> dict[str, list[str]]:
    """Return the old words of every page, command and module that has some."""
    sources = {path.relative_to(ROOT).as_posix(): page_texts(path) for path in PAGES}
    sources |= {path.relative_to(ROOT).as_posix(): module_texts(path) for path in MODULES}
    for command, name in ((tape, "tape"), (gong, "gong")):
        for text in help_texts(command, name):
            sources[text.place] = iter([text])
    return {place: found for place, texts in sources.items() if (found := old_words(texts))}


def test_no_old_word_is_in_pages_help_messages_and_docstrings():
    rest = {place: found for place, found in found_in().items() if place not in NOT_YET}
    assert not rest, "\n".join(line for found in rest.values() for line in found)


def test_what_was_rewritten_or_moved_leaves_the_list():
    done = NOT_YET - found_in().keys()
    assert not done, f"take these out of NOT_YET: {', '.join(sorted(done))}"


@pytest.mark.parametrize(
    "words", ["the window is full", "Without a verb", "(go-on)", "It goes on", "was mended"]
)
def test_an_old_word_is_found(words):
    assert old_words(iter([Text("page.md", 1, words)]))


@pytest.mark.parametrize("words", ["amended", "a window of tmux", "the context window", "adverb"])
def test_a_word_that_contains_an_old_one_is_not(words):
    assert not old_words(iter([Text("page.md", 1, words)]))
