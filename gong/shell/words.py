"""What tree-sitter's grammar of bash gets wrong, found or set right; pure.

It takes two lines for one command, parts a word at a broken line, leaves a dollar alone, takes what
the shell expands for text, and its scanner crashes on some characters.

Words of a shell command as values: which of their pieces stand as they are, and which expand.

The statements around them are read by `shell`. A word may hold commands, in its substitutions:
these are given back to the walk it belongs to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from .expansion import CommandTooLong, Piece, SimpleCommand, Word
from .quoting import decode_ansi_c, split_bare_word, unescape_double_quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node, Parser


_EXPANDS = re.compile(r"(?<!\\)(?:\\\\)*(?:\$[A-Za-z_{(@*#?$!0-9-]|`)")
_ODD = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\xa0\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ud800-\udfff\ufeff]"
)
_MOST_PIPES = 3000
_MARK = re.compile(rb"[&;(){}<>$`]")
_MOST_MARKS = 30_000
_HEREDOC = re.compile(rb"<<-?\s*['\"\\]?\w")
_MOST_OPEN = 5000
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

    Raises ParserMissing when there is no grammar for it, TooLong when the grammar would take
    minutes over it, or fall: a pipeline of n commands takes it n² of time and memory.
    """
    if source.count(b"|") > _MOST_PIPES:
        lines = source.split(b"\n") if b"<<" in source else [source]  # a text may be a table
        if max(one.count(b"|") for one in lines) > _MOST_PIPES:
            raise CommandTooLong
    if b"<<" not in source:
        if len(_MARK.findall(source)) > _MOST_MARKS or source.count(b"(") > _MOST_OPEN:
            raise CommandTooLong
    elif len(_HEREDOC.findall(source)) > _MOST_OPEN:
        raise CommandTooLong
    return _load_parser().parse(source.translate(_PLAIN_BYTES)).root_node


@cache
def _load_parser() -> Parser:
    try:
        import tree_sitter  # noqa: PLC0415 (only where a command is looked at)
        import tree_sitter_bash  # noqa: PLC0415 (as above)
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
    found: list[list[Node]] = [[]]
    for node in nodes:
        if found[-1] and b"\n" in cut_gap(source, found[-1][-1], node):
            found.append([])
        found[-1].append(node)
    return found


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


_EXPANDED = {"simple_expansion", "expansion", "command_substitution", "process_substitution"}
_MOST_WORDS = 16_000
"""So many words of one text are looked at."""
_DIGITS = re.compile(r"[\d\s+*/%()-]*")


@dataclass(frozen=True, slots=True)
class NodeContext:
    """The position of a node."""

    scope: tuple[int, ...] = ()
    feeders: tuple[SimpleCommand, ...] = ()
    certain: bool = True
    chain: int = 0


class TreeWalk(Protocol):
    """The walk a word belongs to."""

    commands: list[SimpleCommand]
    whole: bool

    def walk(self, node: Node, place: NodeContext) -> None:
        """Gather the commands at and below a node."""
        ...

    def children(self, node: Node, place: NodeContext) -> None:
        """Gather the commands below a node."""
        ...

    def inner(self, place: NodeContext) -> NodeContext:
        """Return a place in a subshell of its own."""
        ...


class WordReader:
    """Reads the words of one tree."""

    def __init__(self, source: bytes, walk: TreeWalk) -> None:
        self._source = source
        self._walk = walk
        self._seen = 0

    def words(self, nodes: list[Node], place: NodeContext) -> tuple[Word, ...]:
        """Return the words; what only a broken line parts is one word. Raises TooLong."""
        self._seen += len(nodes)
        if self._seen > _MOST_WORDS:
            raise CommandTooLong
        words: list[Word] = []
        before: Node | None = None
        neighbours = _pair_neighbours(nodes)
        for node in nodes:
            pieces = tuple(self.pieces(node, place))
            between = b" "
            if before is not None and (before.id, node.id) in neighbours:
                between = cut_gap(self._source, before, node)
                self._walk.whole &= not between.strip()
            if between:
                words.append(pieces)
            else:
                words[-1] += pieces
            before = node
        return tuple(tuple(repair_dollars(word)) for word in words)

    def arithmetic(self, node: Node) -> None:
        """Take arithmetic of names for unknown: a value may hold a command in a subscript."""
        inner = decode_node(self._source, node).lstrip("$([{").rstrip(")]}")
        self._walk.whole &= bool(_DIGITS.fullmatch(inner)) or node.type == "subscript"

    def pieces(self, node: Node, place: NodeContext) -> Iterator[Piece]:
        """Yield the pieces of one word."""
        text = decode_node(self._source, node)
        match node.type:
            case "command_name" | "concatenation" | "translated_string":
                yield from self._read_concatenation(node, place)
            case "string":
                yield from self.spread(node, place, node.start_byte + 1, node.end_byte - 1)
            case "raw_string":
                yield Piece("quoted", text[1:-1])
            case "ansi_c_string":
                yield Piece("quoted", decode_ansi_c(text[2:-1]))
            case "simple_expansion" | "expansion":
                yield self.expansion(node, place, in_quotes=False)
            case "command_substitution" | "process_substitution" | "arithmetic_expansion" | "array":
                yield self._read_unknown(node, place, in_quotes=False)
            case _:
                self._walk.whole &= not has_expansion(text)
                yield from _read_bare_word(text)
                self._walk_hidden_parts(node, place)

    def _read_concatenation(self, node: Node, place: NodeContext) -> Iterator[Piece]:
        for child in node.children:
            if child.is_named:
                yield from self.pieces(child, place)
            elif child.type == "$" and node.type == "concatenation":
                yield DOLLAR

    def _walk_hidden_parts(self, node: Node, place: NodeContext) -> None:
        """Gather what a part that counts as text runs all the same."""
        for child in node.children:
            if child.type in _EXPANDED:
                self._walk.whole = False
            self._walk.walk(child, place)

    def spread(self, node: Node, place: NodeContext, start: int, end: int) -> Iterator[Piece]:
        """Return the pieces between two quotes, or of a here-document."""
        for child in node.children:
            if child.type in {"simple_expansion", "expansion"}:
                piece = self.expansion(child, place, in_quotes=True)
            elif child.type in {"command_substitution", "arithmetic_expansion"}:
                piece = self._read_unknown(child, place, in_quotes=True)
            else:
                continue
            yield self._read_literal(start, child.start_byte)
            yield piece
            start = child.end_byte
        yield self._read_literal(start, end)

    def _read_literal(self, start: int, end: int) -> Piece:
        text = self._source[start:end].decode("utf-8", "replace")
        self._walk.whole &= not has_expansion(text)
        return Piece("quoted", unescape_double_quoted(text))

    def _read_unknown(self, node: Node, place: NodeContext, *, in_quotes: bool) -> Piece:
        before = len(self._walk.commands)
        self._walk.walk(node, replace(place, feeders=()))
        inside = tuple(self._walk.commands[before:])
        return Piece("unknown", decode_node(self._source, node), in_quotes, inside=inside)

    def expansion(self, node: Node, place: NodeContext, *, in_quotes: bool) -> Piece:
        """Return the piece a variable is, with what may stand for it."""
        names = [one for one in node.children if one.type.endswith("variable_name")]
        parts = [one for one in node.children if one.type not in {"$", "${", "}"}]
        operators = [decode_node(self._source, one) for one in parts if one not in names[:1]]
        if not names or (operators and operators[0] not in {":-", "-", ":=", "=", ":?", "?"}):
            if not _is_cut_only(operators):
                self._walk.whole = False  # indirection, and what is expanded twice
            return self._read_unknown_children(node, place, in_quotes=in_quotes)
        name = decode_node(self._source, names[0])
        if not operators:
            return Piece("variable", name, in_quotes)
        before = len(self._walk.commands)
        rest = [one for one in node.children if one.start_byte > names[0].end_byte and one.is_named]
        pieces = [piece for one in rest for piece in self.pieces(one, place)]
        default = "".join(f"${one.text}" if one.kind == "variable" else one.text for one in pieces)
        filled = "?" in operators[0]
        inside = tuple(self._walk.commands[before:])
        return Piece("variable", name, in_quotes, None if filled else default, filled, inside)

    def _read_unknown_children(self, node: Node, place: NodeContext, *, in_quotes: bool) -> Piece:
        before = len(self._walk.commands)
        self._walk.children(node, replace(self._walk.inner(place), feeders=()))
        inside = tuple(self._walk.commands[before:])
        return Piece("unknown", decode_node(self._source, node), in_quotes, inside=inside)


def _pair_neighbours(nodes: list[Node]) -> set[tuple[int, int]]:
    """Return the ids of nodes that follow one another; to ask each takes ever longer."""
    around = nodes[0].parent if nodes else None
    return {(left.id, right.id) for left, right in pairwise(around.children if around else ())}


def decode_node(source: bytes, node: Node) -> str:
    """Return the source of a node."""
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def _is_cut_only(operators: list[str]) -> bool:
    """Whether an expansion gives a part of a value, or its length, and counts with digits alone."""
    if operators[:1] == [":"]:
        return _DIGITS.fullmatch("".join(operators).replace(":", "")) is not None
    return operators[:1] in (["#"], ["%"], ["%%"], ["##"], ["/"], ["//"])


def _read_bare_word(text: str) -> Iterator[Piece]:
    return (Piece("quoted" if quoted else "text", run) for run, quoted in split_bare_word(text))
