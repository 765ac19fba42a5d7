"""A shell command as values: every simple command in it, wherever it stands.

The grammar is tree-sitter's (`grammar`); this module only reads its tree. Nothing is left out in
silence: where the text does not parse, or runs something the view cannot show, `whole` is False.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .command import Command, Parsed, Piece, Redirect, Word
from .grammar import DOLLAR, expands, gap, lines, mended, odd, tree
from .quoting import ansi_c, double_quoted, unquoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

_CONDITIONAL = {"if_statement", "while_statement", "case_statement", "c_style_for_statement"}
_NAMED_COMMANDS = {"command", "declaration_command", "unset_command"}
_REDIRECTS = {"file_redirect", "heredoc_redirect", "herestring_redirect"}
_ARITHMETIC = {"arithmetic_expansion", "c_style_for_statement", "subscript"}
_EXPANDED = {"simple_expansion", "expansion", "command_substitution", "process_substitution"}
_COMPARED = re.compile(rb"\s-(?:eq|ne|lt|le|gt|ge|v)\s")
_QUOTED = re.compile(r"[\\'\"]")
_DIGITS = re.compile(r"[\d\s+*/%()-]*")


def parsed(text: str) -> Parsed:
    """Return the view of a command line; ParserMissing when there is no grammar for it."""
    source = text.encode("utf-8", "replace")
    root = tree(source)
    reader = _Reader(source)
    try:
        reader.walk(root, _Place())
    except RecursionError:
        reader.whole = False
    whole = reader.whole and not root.has_error and not odd(text)
    return Parsed(tuple(reader.commands), frozenset(reader.functions), tuple(reader.bombs), whole)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a node stands."""

    scope: tuple[int, ...] = ()
    feeders: tuple[Command, ...] = ()
    certain: bool = True


class _Reader:
    """Reads one tree; what it finds gathers in its lists."""

    def __init__(self, source: bytes) -> None:
        self.commands: list[Command] = []
        self.functions: set[str] = set()
        self.bombs: list[str] = []
        self.whole = True
        self._source = source
        self._scopes = 0

    def walk(self, node: Node, place: _Place) -> None:
        """Gather the commands at and below a node."""
        if node.type in _NAMED_COMMANDS:
            self._command(node, place, ())
        elif node.type == "redirected_statement":
            self._redirected(node, place)
        elif node.type == "pipeline":
            self._pipeline(node, place)
        elif node.type in {"variable_assignment", "test_command"}:
            self._add(node, place, (self._assignment(node, place),))
        elif node.type == "for_statement":
            self._loop(node, place)
        elif node.type == "function_definition":
            self._function(node, place)
        elif node.type in {"subshell", "command_substitution", "process_substitution"}:
            self._children(node, self._inner(place))
        elif node.type == "expansion":
            self._expansion(node, place, in_quotes=False)
        else:
            self._other(node, place)

    def _other(self, node: Node, place: _Place) -> None:
        if node.type in _ARITHMETIC or (node.type == "compound_statement" and _counts(node)):
            self._arithmetic(node)
        alternative = node.type == "list" and any(one.type == "||" for one in node.children)
        if node.type in _CONDITIONAL or alternative:
            place = replace(place, certain=False)
        self._children(node, place)

    def _children(self, node: Node, place: _Place) -> None:
        for child in node.children:
            if child.type in _REDIRECTS:
                self._add(child, place, (), redirects=self._redirects([child], place))
            elif child.is_named:
                self.walk(child, place)

    def _inner(self, place: _Place) -> _Place:
        self._scopes += 1
        return replace(place, scope=(*place.scope, self._scopes))

    def _add(
        self,
        node: Node,
        place: _Place,
        assignments: tuple[tuple[str, Word], ...],
        words: tuple[Word, ...] = (),
        redirects: tuple[Redirect, ...] = (),
    ) -> None:
        self.commands.append(
            Command(
                self._text(node),
                words,
                tuple(one for one in assignments if one[0]),
                redirects,
                place.feeders,
                place.scope,
                place.certain,
            )
        )

    def _text(self, node: Node) -> str:
        return self._source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def _command(self, node: Node, place: _Place, redirects: tuple[Redirect, ...]) -> None:
        parts = [
            one
            for one in node.children
            if one.is_named or node.type != "command" or one.type == "$"
        ]
        assignments = [one for one in parts if one.type == "variable_assignment"]
        own = [one for one in parts if one.type in _REDIRECTS]
        others = [one for one in parts if one not in assignments and one not in own]
        given = tuple(self._assignment(one, place) for one in assignments)
        *before, last = lines(self._source, others)
        self.whole &= not before
        for line in before:
            self._add(node, place, (), self._words(line, place))
        words = self._words(last, place)
        self._add(node, place, given, words, (*self._redirects(own, place), *redirects))

    def _words(self, nodes: list[Node], place: _Place) -> tuple[Word, ...]:
        """Return the words; what only a broken line parts is one word."""
        words: list[Word] = []
        before: Node | None = None
        for node in nodes:
            pieces = tuple(self._pieces(node, place))
            between = b" "
            if before is not None and before == node.prev_sibling:
                between = gap(self._source, before, node)
                self.whole &= not between.strip()
            if between:
                words.append(pieces)
            else:
                words[-1] += pieces
            before = node
        return tuple(tuple(mended(word)) for word in words)

    def _assignment(self, node: Node, place: _Place) -> tuple[str, Word]:
        """Return name and value of an assignment; a test has no name, only what it expands."""
        if node.type == "test_command":
            if _COMPARED.search(self._source[node.start_byte : node.end_byte]):
                self._arithmetic(node)
            self._children(node, place)
            return "", ()
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is not None and name.type == "subscript":
            self.walk(name, place)
        pieces = () if value is None else tuple(self._pieces(value, place))
        added = "+" if any(one.type == "+=" for one in node.children) else ""
        return "" if name is None else self._text(name) + added, pieces

    def _redirected(self, node: Node, place: _Place) -> None:
        body = node.child_by_field_name("body")
        parts = [one for one in node.children if one.type in _REDIRECTS]
        redirects = self._redirects(parts, place)
        if body is not None and body.type in _NAMED_COMMANDS:
            self._command(body, place, redirects)
        else:
            self._add(node, place, (), redirects=redirects)
            feeders = (*place.feeders, self.commands[-1])
            if body is not None:
                self.walk(body, replace(place, feeders=feeders))
        fed = replace(place, feeders=(*place.feeders, self.commands[-1]))
        for part in parts:
            self._after_heredoc(part, fed)
        for stray in node.children:
            self.whole &= stray.type != "ERROR"

    def _after_heredoc(self, node: Node, place: _Place) -> None:
        """Walk what stands on the line of a here-document after its word."""
        if node.type == "heredoc_redirect":
            for child in node.children:
                heredoc = child.type.startswith("heredoc") or child.type in _REDIRECTS
                if child.is_named and not heredoc and child.type != "file_descriptor":
                    self.walk(child, place)

    def _redirects(self, nodes: list[Node], place: _Place) -> tuple[Redirect, ...]:
        return tuple(one for node in nodes for one in self._redirect(node, place))

    def _redirect(self, node: Node, place: _Place) -> Iterator[Redirect]:
        if node.type == "herestring_redirect":
            yield Redirect("<<", tuple(self._pieces(node.children[-1], place)))
        elif node.type == "heredoc_redirect":
            yield from self._redirects(
                [one for one in node.children if one.type in _REDIRECTS], place
            )
            yield Redirect("<<", self._heredoc(node, place))
        else:
            operators = [one.type for one in node.children if not one.is_named]
            for target in node.children_by_field_name("destination"):
                pieces = tuple(self._pieces(target, place))
                yield Redirect("".join(operators), pieces, self._text(node))

    def _heredoc(self, node: Node, place: _Place) -> Word:
        body = next((one for one in node.children if one.type == "heredoc_body"), None)
        if body is None:
            return ()
        if not body.children:
            start = next(one for one in node.children if one.type == "heredoc_start")
            self.whole &= bool(_QUOTED.search(self._text(start))) or not expands(self._text(body))
            return (Piece("quoted", self._text(body)),)
        return tuple(self._spread(body, place, body.start_byte, body.end_byte))

    def _pipeline(self, node: Node, place: _Place) -> None:
        feeders = place.feeders
        for stage in (one for one in node.children if one.is_named):
            before = len(self.commands)
            self.walk(stage, replace(self._inner(place), feeders=feeders))
            feeders += tuple(self.commands[before:])

    def _loop(self, node: Node, place: _Place) -> None:
        name = node.child_by_field_name("variable")
        place = replace(place, certain=True)  # its body never sees another value
        values = self._words(node.children_by_field_name("value"), place)
        variable = "" if name is None else self._text(name)
        self._add(node, place, tuple((variable, value) for value in values))
        body = node.child_by_field_name("body")
        if body is not None:
            self.walk(body, replace(place, certain=False))

    def _function(self, node: Node, place: _Place) -> None:
        name = node.child_by_field_name("name")
        before = len(self.commands)
        self._children(node, replace(place, certain=False))
        called = "" if name is None else self._text(name)
        self.functions.add(called)
        own = [one for one in self.commands[before:] if one.words[:1] == (_plain(called),)]
        if len(own) > 1 or (own and b"&" in self._source[node.start_byte : node.end_byte]):
            self.bombs.append(self._text(node))

    def _arithmetic(self, node: Node) -> None:
        """Take arithmetic of names for unknown: a value may hold a command in a subscript."""
        inner = self._text(node).lstrip("$([{").rstrip(")]}")
        self.whole &= bool(_DIGITS.fullmatch(inner)) or node.type == "subscript"

    def _pieces(self, node: Node, place: _Place) -> Iterator[Piece]:
        text = self._text(node)
        match node.type:
            case "command_name" | "concatenation" | "translated_string":
                yield from self._concatenated(node, place)
            case "string":
                yield from self._spread(node, place, node.start_byte + 1, node.end_byte - 1)
            case "raw_string":
                yield Piece("quoted", text[1:-1])
            case "ansi_c_string":
                yield Piece("quoted", ansi_c(text[2:-1]))
            case "simple_expansion" | "expansion":
                yield self._expansion(node, place, in_quotes=False)
            case "command_substitution" | "process_substitution" | "arithmetic_expansion" | "array":
                yield self._unknown(node, place, in_quotes=False)
            case _:
                self.whole &= not expands(text)
                yield from _bare(text)
                self._hidden(node, place)

    def _concatenated(self, node: Node, place: _Place) -> Iterator[Piece]:
        for child in node.children:
            if child.is_named:
                yield from self._pieces(child, place)
            elif child.type == "$" and node.type == "concatenation":
                yield DOLLAR

    def _hidden(self, node: Node, place: _Place) -> None:
        """Gather what a part that counts as text runs all the same."""
        for child in node.children:
            if child.type in _EXPANDED:
                self.whole = False
            self.walk(child, place)

    def _spread(self, node: Node, place: _Place, start: int, end: int) -> Iterator[Piece]:
        """Return the pieces between two quotes, or of a here-document."""
        for child in node.children:
            if child.type in {"simple_expansion", "expansion"}:
                piece = self._expansion(child, place, in_quotes=True)
            elif child.type in {"command_substitution", "arithmetic_expansion"}:
                piece = self._unknown(child, place, in_quotes=True)
            else:
                continue
            yield self._literal(start, child.start_byte)
            yield piece
            start = child.end_byte
        yield self._literal(start, end)

    def _literal(self, start: int, end: int) -> Piece:
        text = self._source[start:end].decode("utf-8", "replace")
        self.whole &= not expands(text)
        return Piece("quoted", double_quoted(text))

    def _unknown(self, node: Node, place: _Place, *, in_quotes: bool) -> Piece:
        before = len(self.commands)
        self.walk(node, replace(place, feeders=()))
        inside = tuple(self.commands[before:])
        return Piece("unknown", self._text(node), in_quotes, inside=inside)

    def _expansion(self, node: Node, place: _Place, *, in_quotes: bool) -> Piece:
        names = [one for one in node.children if one.type.endswith("variable_name")]
        operators = [self._text(one) for one in node.children if one.type not in {"$", "${", "}"}]
        operators = (
            operators[1:] if names and operators[:1] == [self._text(names[0])] else operators
        )
        if not names or (operators and operators[0] not in {":-", "-", ":=", "=", ":?", "?"}):
            if operators[:1] not in (["#"], ["%"], ["%%"], ["##"], ["/"], ["//"]):
                self.whole = False  # indirection, and what is expanded twice
            return self._unknown_children(node, place, in_quotes=in_quotes)
        name = self._text(names[0])
        if not operators:
            return Piece("variable", name, in_quotes)
        before = len(self.commands)
        rest = [one for one in node.children if one.start_byte > names[0].end_byte and one.is_named]
        default = "".join(piece.text for one in rest for piece in self._pieces(one, place))
        filled = "?" in operators[0]
        inside = tuple(self.commands[before:])
        return Piece("variable", name, in_quotes, None if filled else default, filled, inside)

    def _unknown_children(self, node: Node, place: _Place, *, in_quotes: bool) -> Piece:
        before = len(self.commands)
        self._children(node, replace(self._inner(place), feeders=()))
        return Piece("unknown", self._text(node), in_quotes, inside=tuple(self.commands[before:]))


def _plain(text: str) -> Word:
    return (Piece("text", text),)


def _counts(node: Node) -> bool:
    return bool(node.children) and node.children[0].type == "(("


def _bare(text: str) -> Iterator[Piece]:
    return (Piece("quoted" if quoted else "text", run) for run, quoted in unquoted(text))
