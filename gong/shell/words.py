"""The grammar of bash, tree-sitter's, and what it gets wrong: found or set right; pure.

| text | the grammar sees | what is done here |
|---|---|---|
| `! { a; }`, `time if …` | programs named `{` and `time` | `parse_line_tree` blanks the prefix |
| two lines, at times | one command | `split_command_lines` splits it |
| a word with a line continuation in it | two words | `cut_gap` finds nothing between them |
| `a{$b,c}` | `a{`, a lone `$`, `b,c}` | `repair_dollars` makes the variable again |
| an expansion in what counts as text | text | `has_expansion` finds it: not whole |
| some characters beyond ASCII | its scanner crashes | it is shown `%` in their place |
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from .expansion import CommandTooLong, Piece

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node, Parser

    from .expansion import Word


_EXPANDS = re.compile(r"(?<!\\)(?:\\\\)*(?:\$[A-Za-z_{(@*#?$!0-9-]|`)")
_ODD = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\xa0\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ud800-\udfff\ufeff]"
)
_MAX_PIPES = 3000
_MARK = re.compile(rb"[&;(){}<>$`]")
_MAX_MARKS = 30_000
_HEREDOC = re.compile(rb"<<-?\s*['\"\\]?\w")
_MAX_OPEN = 5000
_NAME = re.compile(r"[A-Za-z_]\w*")
_BROKEN_LINE = b"\\\n"
DOLLAR = Piece("text", "$")
_PLAIN_BYTES = bytes(byte if byte and chr(byte).isascii() else ord("%") for byte in range(256))
"""What the grammar is shown: its scanner, at 0.25.1, crashes on some characters beyond ASCII.

A percent sign replaces them: it is part of a word as they are, and ends a name.
"""


class ParserMissing(Exception):
    """The grammar is not installed."""


def parse_tree(source: bytes) -> Node:
    """Return the root of a text's tree.

    Raises ParserMissing when there is no grammar for it, CommandTooLong when the grammar would take
    minutes over it, or fall: a pipeline of n commands takes it n² of time and memory.
    """
    # Counted before parsing: once the parser has begun, nothing can stop it.
    if source.count(b"|") > _MAX_PIPES:
        lines = source.split(b"\n") if b"<<" in source else [source]  # a text may be a table
        if max(line.count(b"|") for line in lines) > _MAX_PIPES:
            raise CommandTooLong
    if b"<<" not in source:
        if len(_MARK.findall(source)) > _MAX_MARKS or source.count(b"(") > _MAX_OPEN:
            raise CommandTooLong
    elif len(_HEREDOC.findall(source)) > _MAX_OPEN:
        raise CommandTooLong
    return _load_parser().parse(source.translate(_PLAIN_BYTES)).root_node


KEYWORDS = {b"{", b"if", b"while", b"until", b"for", b"case", b"select", b"!"}
"""What begins a compound command, or one more negation."""
_PREFIX = re.compile(rb"(?:^|[\s;&|(){}`])(?:!|time|coproc)\s")
_MAX_PREFIXES = 16


def parse_line_tree(source: bytes) -> Node:
    """Return the root of a text's tree; what comes before a compound command is blank in it.

    `!`, `time` and `coproc` change nothing about what is run. Raises as `parse_tree` does.
    """
    root = parse_tree(source)
    if not _PREFIX.search(source):
        return root
    # Blanking one prefix may uncover another one below it: `time ! { a; }`.
    blanked = bytearray(source)
    for _ in range(_MAX_PREFIXES):
        spans = [*_find_prefixes(root, source)]
        if not spans:
            return root
        for start, end in spans:
            blanked[start:end] = b" " * (end - start)
        root = parse_tree(bytes(blanked))
    raise CommandTooLong


def _find_prefixes(root: Node, source: bytes) -> Iterator[tuple[int, int]]:
    """Yield where the words begin and end that hide a compound command from the grammar."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        waiting += node.named_children
        if node.type == "command":
            words = node.named_children
            texts = [source[word.start_byte : word.end_byte] for word in words[:4]]
            if texts[0] in KEYWORDS and node.parent and node.parent.type == "negated_command":
                yield node.parent.start_byte, node.start_byte
            elif texts[0] in {b"time", b"coproc"}:
                place = next((at for at, text in enumerate(texts) if text in KEYWORDS), 0)
                named = texts[0] == b"coproc" or texts[1:2] == [b"-p"]
                if place == 1 or (place == _AFTER_NAME and named):
                    yield node.start_byte, words[place].start_byte


_AFTER_NAME = 2  # `time -p {`, `coproc NAME {`


@cache
def _load_parser() -> Parser:
    try:
        import tree_sitter  # only where a command is looked at
        import tree_sitter_bash
    except ImportError as error:
        raise ParserMissing(str(error)) from error
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def has_odd_characters(text: str) -> bool:
    """Whether characters are in it that the grammar, or a reader's eye, takes for others."""
    return _ODD.search(text) is not None


def has_expansion(text: str) -> bool:
    """Whether the shell expands something in what the grammar takes for text."""
    return _EXPANDS.search(text) is not None


def cut_gap(source: bytes, left: Node, right: Node) -> bytes:
    """Return the text between two words, without line continuations."""
    return source[left.end_byte : right.start_byte].replace(_BROKEN_LINE, b"")


def split_command_lines(source: bytes, nodes: list[Node]) -> list[list[Node]]:
    """Return the words line by line: the grammar may take two commands for one."""
    lines: list[list[Node]] = [[]]
    for node in nodes:
        if lines[-1] and b"\n" in cut_gap(source, lines[-1][-1], node):
            lines.append([])
        lines[-1].append(node)
    return lines


def repair_dollars(word: Word) -> Iterator[Piece]:
    """Yield the pieces; a dollar that the grammar left alone begins the variable after it."""
    dollar = False
    for piece in word:
        name = _NAME.match(piece.text) if dollar and piece.kind == "text" else None
        if dollar and name is None:
            yield DOLLAR
        dollar = piece == DOLLAR
        if name is not None:
            yield Piece("variable", name[0])
            yield Piece("text", piece.text[name.end() :])
        elif not dollar:
            yield piece
    if dollar:
        yield DOLLAR
