"""Parses a command line of bash: every simple command in it, at any depth, as values; pure.

Nothing is left out in silence: where the text does not parse, or runs something the view cannot
show, `whole` is False. An example, `a $x | (b; c) && d`:

    command  feeders  scope  chain
    a $x     –        1      1      each stage of a pipeline is a subshell
    b        a        2, 3   1      the parentheses are one more
    c        a        2, 3   1
    d        –        –      1      in one chain with the pipeline: it runs only after its success

The grammar puts a list inside of the pipeline before it, and a redirection around all of them: in
`a | b && c < f` the shell feeds `f` to `c` alone, and `a` to `b` alone. `list_pipelines` undoes
that: it returns [[a, b], [c < f]].
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from .expansion import CommandTooLong, ParsedCommandLine, Piece, Redirect, SimpleCommand, Word
from .quoting import decode_ansi_c, split_bare_word, unescape_double_quoted
from .words import (
    DOLLAR,
    cut_gap,
    has_expansion,
    has_odd_characters,
    parse_line_tree,
    repair_dollars,
    split_command_lines,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node


_MAX_WAITING = 10_000  # nodes of a list that wait for their left side
CHAIN_NODES = {"list", "pipeline", "redirected_statement"}
REDIRECT_NODES = {"file_redirect", "heredoc_redirect", "herestring_redirect"}


@dataclass(slots=True)
class Stage:
    """One command of a pipeline, simple or compound."""

    body: Node | None = None
    """None where there is nothing but redirections."""
    redirects: list[Node] = field(default_factory=list)


@dataclass(slots=True)
class Pipeline:
    """Commands of which each feeds the next."""

    operator: str = ""
    """What joins it to the pipeline before: `&&` or `||`."""
    stages: list[Stage] = field(default_factory=list)


def list_pipelines(node: Node) -> list[Pipeline]:
    """Return the pipelines of a node of `CHAIN_NODES`, in the order of the source.

    Nothing here calls itself: a list may be thousands of commands long. Raises CommandTooLong.
    """
    joined = [Pipeline()]
    waiting: list[Node | list[Node]] = [node]
    while waiting:
        item = waiting.pop()
        if len(waiting) > _MAX_WAITING:
            raise CommandTooLong
        if isinstance(item, list):  # redirections of the stage before them
            joined[-1].stages[-1].redirects += item
        elif item.type == "redirected_statement":
            body = item.child_by_field_name("body")
            redirects = [each for each in item.children if each.type in REDIRECT_NODES]
            if body is None:
                joined[-1].stages.append(Stage(None, redirects))
            else:
                waiting += [redirects, body]
        elif item.type in CHAIN_NODES:
            waiting += reversed(item.children)
        elif item.type in {"&&", "||"}:
            joined.append(Pipeline(item.type))
        elif item.is_named:
            joined[-1].stages.append(Stage(item))
    return joined


_CONDITIONAL = {"if_statement", "while_statement", "case_statement", "c_style_for_statement"}
_NAMED_COMMANDS = {"command", "declaration_command", "unset_command"}
_ARITHMETIC = {"arithmetic_expansion", "c_style_for_statement", "subscript"}
_MAX_COMMANDS = 4000
"""So many commands of one text are looked at."""
_MAX_FEEDERS = 128
_COMPARED = re.compile(rb"\s-(?:eq|ne|lt|le|gt|ge|v)\s")
_ANY_NAMES = re.compile(rb"\s[*?][^\s]*(?=\s)")
"""A word of `[ … ]` that may stand for any name of the folder."""
_STARTS = ((Piece("variable", "0"),), (Piece("variable", "0", in_quotes=True),))
"""The first word of a command that is the script itself."""
_EVERY = (Piece("variable", "@", in_quotes=True),)
"""What `for name; do` goes through."""
_QUOTED = re.compile(r"[\\'\"]")
_EXPANDED = {"simple_expansion", "expansion", "command_substitution", "process_substitution"}
_MAX_WORDS = 16_000
"""So many words of one text are looked at."""
_DIGITS = re.compile(r"[\d\s+*/%()-]*")
_CUTS = (["#"], ["%"], ["%%"], ["##"], ["/"], ["//"])
"""Operators of `${name…}` that take a part of a value, or its length."""


@dataclass(frozen=True, slots=True)
class NodeContext:
    """The position of a node."""

    scope: tuple[int, ...] = ()
    feeders: tuple[SimpleCommand, ...] = ()
    certain: bool = True
    chain: int = 0


def parse_command_line(text: str) -> ParsedCommandLine:
    """Return the view of a command line.

    Raises ParserMissing when there is no grammar for it, CommandTooLong when it holds too much.
    """
    source = text.encode("utf-8", "replace")
    root = parse_line_tree(source)
    reader = _TreeReader(source)
    try:
        reader.walk(root, NodeContext())
    except RecursionError:  # nested deeper than any person writes
        reader.whole = False
    itself = [
        command
        for command in reader.commands
        if command.words[:1] and command.words[0][:1] in _STARTS
    ]
    # `$0 | $0 &` starts the script twice, and each of these does so again: a fork bomb.
    if len(itself) > 1:
        reader.bombs.append(text)
    whole = reader.whole and not root.has_error and not has_odd_characters(text)
    return ParsedCommandLine(
        tuple(reader.commands), frozenset(reader.functions), tuple(reader.bombs), whole
    )


class _TreeReader:
    """Reads one tree; what it finds gathers in its lists."""

    def __init__(self, source: bytes) -> None:
        self.commands: list[SimpleCommand] = []
        self.functions: set[str] = set()
        self.bombs: list[str] = []
        self.whole = True
        self._source = source
        self._scopes = 0
        self._chains = 0
        self._seen_words = 0

    def walk(self, node: Node, place: NodeContext) -> None:
        """Gather the commands at and below a node."""
        # All other nodes are walked through, so one of an unknown type hides no command.
        if node.type in _NAMED_COMMANDS:
            self._read_command(node, place, ())
        elif node.type in CHAIN_NODES:
            self._walk_chain(node, place)
        elif node.type in {"variable_assignment", "test_command"}:
            self._add_command(node, place, (self._read_assignment(node, place),))
        elif node.type == "for_statement":
            self._walk_loop(node, place)
        elif node.type == "function_definition":
            self._walk_function(node, place)
        elif node.type in {"subshell", "command_substitution", "process_substitution"}:
            self._walk_children(node, self._enter_subshell(place))
        elif node.type == "expansion":
            self._read_expansion(node, place, in_quotes=False)
        else:
            self._walk_other(node, place)

    def _walk_other(self, node: Node, place: NodeContext) -> None:
        counts = node.type == "compound_statement" and [
            child.type for child in node.children[:1]
        ] == ["(("]
        if counts or node.type in _ARITHMETIC:
            self._read_arithmetic(node)
        if node.type in _CONDITIONAL:
            place = replace(place, certain=False)
        self._walk_children(node, place)

    def _walk_children(self, node: Node, place: NodeContext) -> None:
        """Gather the commands below a node."""
        for child in node.children:
            if child.type in REDIRECT_NODES:
                self._add_command(child, place, (), redirects=self._read_redirects([child], place))
            elif child.is_named:
                self.walk(child, place)

    def _enter_subshell(self, place: NodeContext) -> NodeContext:
        """Return a place in a subshell of its own."""
        self._scopes += 1
        return replace(place, scope=(*place.scope, self._scopes))

    def _add_command(
        self,
        node: Node,
        place: NodeContext,
        assignments: tuple[tuple[str, Word], ...],
        words: tuple[Word, ...] = (),
        redirects: tuple[Redirect, ...] = (),
    ) -> None:
        if len(self.commands) == _MAX_COMMANDS:
            raise CommandTooLong
        self.commands.append(
            SimpleCommand(
                self._decode_text(node),
                words,
                tuple(assignment for assignment in assignments if assignment[0]),
                redirects,
                place.feeders,
                place.scope,
                place.certain,
                place.chain,
            )
        )

    def _decode_text(self, node: Node) -> str:
        return self._source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def _read_command(
        self, node: Node, place: NodeContext, redirects: tuple[Redirect, ...]
    ) -> None:
        parts = [
            child
            for child in node.children
            if child.is_named or node.type != "command" or child.type == "$"
        ]
        assignments = [part for part in parts if part.type == "variable_assignment"]
        own = [part for part in parts if part.type in REDIRECT_NODES]
        others = [part for part in parts if part not in assignments and part not in own]
        named_values = tuple(self._read_assignment(assignment, place) for assignment in assignments)
        # Where the grammar joined two lines, it may have got more wrong than that.
        *before, last = split_command_lines(self._source, others)
        self.whole &= not before
        for line in before:
            self._add_command(node, place, (), self._read_words(line, place))
        words = self._read_words(last, place)
        self._add_command(
            node, place, named_values, words, (*self._read_redirects(own, place), *redirects)
        )

    def _read_assignment(self, node: Node, place: NodeContext) -> tuple[str, Word]:
        """Return name and value of an assignment; a test has no name, only what it expands."""
        if node.type == "test_command":
            source = self._source[node.start_byte : node.end_byte]
            if _COMPARED.search(source):
                self._read_arithmetic(node)
            # names of files may be `-v` and `a[$(…)]`, which is run
            self.whole &= source.startswith(b"[[") or not _ANY_NAMES.search(source)
            self._walk_children(node, place)
            return "", ()
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is not None and name.type == "subscript":
            self.walk(name, place)
        pieces = () if value is None else tuple(self._read_pieces(value, place))
        added = "+" if any(child.type == "+=" for child in node.children) else ""
        return "" if name is None else self._decode_text(name) + added, pieces

    def _walk_chain(self, node: Node, place: NodeContext) -> None:
        """Walk pipelines joined to one another: each stage is fed by those before it."""
        joined = list_pipelines(node)
        # After `||` a `cd` or an assignment may not have happened: both states count from here on.
        if any(pipeline.operator == "||" for pipeline in joined):
            place = replace(place, certain=False)
        for pipeline in joined:
            if pipeline.operator != "&&" and len(joined) > 1:
                self._chains += 1
                place = replace(place, chain=self._chains)
            feeders = place.feeders
            for stage in pipeline.stages:
                before = len(self.commands)
                here = replace(place, feeders=feeders)
                self._walk_stage(
                    stage, here if len(pipeline.stages) == 1 else self._enter_subshell(here)
                )
                feeders += tuple(self.commands[before:])
                # In a pipeline of thousands, each stage with all before it would be a square.
                if len(feeders) > 2 * _MAX_FEEDERS:
                    feeders = (*feeders[:_MAX_FEEDERS], *feeders[-_MAX_FEEDERS:])

    def _walk_stage(self, stage: Stage, place: NodeContext) -> None:
        body, redirects = stage.body, self._read_redirects(stage.redirects, place)
        if body is not None and body.type in _NAMED_COMMANDS:
            self._read_command(body, place, redirects)
        else:
            if stage.redirects:
                self._add_command(stage.redirects[0], place, (), redirects=redirects)
                place = replace(place, feeders=(*place.feeders, self.commands[-1]))
            if body is not None:
                self.walk(body, place)
        for part in stage.redirects:
            fed = replace(place, feeders=(*place.feeders, self.commands[-1]))
            self._walk_after_heredoc(part, fed)

    def _walk_after_heredoc(self, node: Node, place: NodeContext) -> None:
        """Walk the rest of the line after the word of a here-document."""
        if node.type == "heredoc_redirect":
            for child in node.children:
                if child.type == "||":
                    place = replace(place, certain=False)
                heredoc = child.type.startswith("heredoc") or child.type in REDIRECT_NODES
                if child.is_named and not heredoc and child.type != "file_descriptor":
                    self.walk(child, place)

    def _read_redirects(self, nodes: list[Node], place: NodeContext) -> tuple[Redirect, ...]:
        return tuple(redirect for node in nodes for redirect in self._read_redirect(node, place))

    def _read_redirect(self, node: Node, place: NodeContext) -> Iterator[Redirect]:
        if node.type == "herestring_redirect":
            yield Redirect("<<", tuple(self._read_pieces(node.children[-1], place)))
        elif node.type == "heredoc_redirect":
            yield from self._read_redirects(
                [child for child in node.children if child.type in REDIRECT_NODES], place
            )
            yield Redirect("<<", self._read_heredoc(node, place))
        else:
            operators = [child.type for child in node.children if not child.is_named]
            # of `3<<<text` the grammar sees `3`, an error and `<`; of `>a <<<text` an error before
            if operators == ["<"] and (
                any(child.type == "ERROR" for child in node.children) or self._is_behind_error(node)
            ):
                operators = ["<<"]
            for target in node.children_by_field_name("destination"):
                pieces = tuple(self._read_pieces(target, place))
                yield Redirect("".join(operators), pieces, self._decode_text(node))

    def _is_behind_error(self, node: Node) -> bool:
        before = node.prev_sibling
        return (
            before is not None
            and before.type == "ERROR"
            and before.end_byte == node.start_byte
            and self._decode_text(before) == "<<"
        )

    def _read_heredoc(self, node: Node, place: NodeContext) -> Word:
        body = next((child for child in node.children if child.type == "heredoc_body"), None)
        if body is None:
            return ()
        # The grammar gives no children to `<<'E'`, which expands nothing, nor to some that expand.
        if not body.children:
            start = next(child for child in node.children if child.type == "heredoc_start")
            self.whole &= bool(_QUOTED.search(self._decode_text(start))) or not has_expansion(
                self._decode_text(body)
            )
            return (Piece("quoted", self._decode_text(body)),)
        return tuple(self._read_spread(body, place, body.start_byte, body.end_byte))

    def _walk_loop(self, node: Node, place: NodeContext) -> None:
        name = node.child_by_field_name("variable")
        place = replace(place, certain=True)  # its body never sees another value
        value_nodes = node.children_by_field_name("value")
        values = self._read_words(value_nodes, place) if value_nodes else (_EVERY,)
        variable = "" if name is None else self._decode_text(name)
        self._add_command(node, place, tuple((variable, value) for value in values))
        body = node.child_by_field_name("body")
        if body is not None:
            self.walk(body, replace(place, certain=False))

    def _walk_function(self, node: Node, place: NodeContext) -> None:
        name = node.child_by_field_name("name")
        before = len(self.commands)
        self._walk_children(node, replace(place, certain=False))
        called = "" if name is None else self._decode_text(name)
        self.functions.add(called)
        # `f() { f | f & }` is a fork bomb; one call of itself is plain recursion.
        own = [
            command
            for command in self.commands[before:]
            if command.words[:1] == ((Piece("text", called),),)
        ]
        if len(own) > 1 or (own and b"&" in self._source[node.start_byte : node.end_byte]):
            self.bombs.append(self._decode_text(node))

    def _read_words(self, nodes: list[Node], place: NodeContext) -> tuple[Word, ...]:
        """Return the words; what only a broken line parts is one word. Raises CommandTooLong."""
        self._seen_words += len(nodes)
        if self._seen_words > _MAX_WORDS:
            raise CommandTooLong
        words: list[Word] = []
        before: Node | None = None
        around = nodes[0].parent if nodes else None
        siblings = pairwise(around.children if around else ())
        neighbours = {(left.id, right.id) for left, right in siblings}  # asked of nodes it is slow
        for node in nodes:
            pieces = tuple(self._read_pieces(node, place))
            between = b" "
            if before is not None and (before.id, node.id) in neighbours:
                between = cut_gap(self._source, before, node)
                self.whole &= not between.strip()
            if between:
                words.append(pieces)
            else:
                words[-1] += pieces
            before = node
        return tuple(tuple(repair_dollars(word)) for word in words)

    def _read_arithmetic(self, node: Node) -> None:
        """Take arithmetic of names for unknown: a value may hold a command in a subscript."""
        inner = self._decode_text(node).lstrip("$([{").rstrip(")]}")
        self.whole &= bool(_DIGITS.fullmatch(inner)) or node.type == "subscript"

    def _read_pieces(self, node: Node, place: NodeContext) -> Iterator[Piece]:
        """Yield the pieces of one word."""
        text = self._decode_text(node)
        match node.type:
            case "command_name" | "concatenation" | "translated_string":
                for child in node.children:
                    if child.is_named:
                        yield from self._read_pieces(child, place)
                    elif child.type == "$" and node.type == "concatenation":
                        yield DOLLAR
            case "string":
                yield from self._read_spread(node, place, node.start_byte + 1, node.end_byte - 1)
            case "raw_string":
                yield Piece("quoted", text[1:-1])
            case "ansi_c_string":
                yield Piece("quoted", decode_ansi_c(text[2:-1]))
            case "simple_expansion" | "expansion":
                yield self._read_expansion(node, place, in_quotes=False)
            case "command_substitution" | "process_substitution" | "arithmetic_expansion" | "array":
                yield self._read_unknown(node, place, in_quotes=False)
            case _:
                self.whole &= not has_expansion(text)
                yield from self._read_bare_word(node, place)

    def _read_bare_word(self, node: Node, place: NodeContext) -> Iterator[Piece]:
        for run, quoted in split_bare_word(self._decode_text(node)):
            yield Piece("quoted" if quoted else "text", run)
        for child in node.children:  # what counts as text may run something all the same
            self.whole &= child.type not in _EXPANDED
            self.walk(child, place)

    def _read_spread(self, node: Node, place: NodeContext, start: int, end: int) -> Iterator[Piece]:
        """Return the pieces between two quotes, or of a here-document."""
        for child in node.children:
            if child.type in {"simple_expansion", "expansion"}:
                piece = self._read_expansion(child, place, in_quotes=True)
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
        self.whole &= not has_expansion(text)
        return Piece("quoted", unescape_double_quoted(text))

    def _read_unknown(self, node: Node, place: NodeContext, *, in_quotes: bool) -> Piece:
        before = len(self.commands)
        self.walk(node, replace(place, feeders=()))
        inside = tuple(self.commands[before:])
        return Piece("unknown", self._decode_text(node), in_quotes, inside=inside)

    def _read_expansion(self, node: Node, place: NodeContext, *, in_quotes: bool) -> Piece:
        """Return the piece a variable is, with its possible replacements."""
        names = [child for child in node.children if child.type.endswith("variable_name")]
        parts = [child for child in node.children if child.type not in {"$", "${", "}"}]
        operators = [self._decode_text(part) for part in parts if part not in names[:1]]
        if not names or (operators and operators[0] not in {":-", "-", ":=", "=", ":?", "?"}):
            # `${x:2}` and `${#x}` give a part of a value, or its length. `${!x}` and `${x@P}` are
            # expanded twice, and what the second time runs is not in the text.
            digits = operators[:1] == [":"] and _DIGITS.fullmatch(
                "".join(operators).replace(":", "")
            )
            self.whole &= bool(digits) or operators[:1] in _CUTS
            before = len(self.commands)
            self._walk_children(node, replace(self._enter_subshell(place), feeders=()))
            inside = tuple(self.commands[before:])
            return Piece("unknown", self._decode_text(node), in_quotes, inside=inside)
        name = self._decode_text(names[0])
        if not operators:
            return Piece("variable", name, in_quotes)
        before = len(self.commands)
        rest = [
            child
            for child in node.children
            if child.start_byte > names[0].end_byte and child.is_named
        ]
        pieces = [piece for child in rest for piece in self._read_pieces(child, place)]
        default = "".join(
            f"${piece.text}" if piece.kind == "variable" else piece.text for piece in pieces
        )
        filled = "?" in operators[0]
        inside = tuple(self.commands[before:])
        return Piece("variable", name, in_quotes, None if filled else default, filled, inside)
