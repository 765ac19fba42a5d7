"""Patterns for paths: `*`, `?`, `[a-z]`, `**` and `{a,b}`, matched in linear time (pure).

`*` and `?` never match "/". A pattern without "/" is matched against the last name alone, any
other against the whole path, relative to the folder that is searched.

A pattern is a small automaton, never a regular expression and never expanded: braces may be beside
or inside braces, and stars beside stars, without the work growing by more than their number.
`Glob.matches` walks a path once, remembering each step it has worked out. `{a,b*}/c` becomes

    fork ─┬─ a ─────────┬─ fork ── / ── c ── end
          └─ b ── stars ┘

and a walk is at several places at once, each a node and a phase:

    | phase     | at             | reads                    | then                            |
    | --------- | -------------- | ------------------------ | ------------------------------- |
    | _AT       | any other node | its character            | _AT of each target              |
    | _AT       | a fork, stars  | nothing; all but "/"     | the same; the targets, any time |
    | _DEEP     | `**` at a name | anything, "/" too        | the two below                   |
    | _CLOSING  | after `**`     | nothing                  | accepts, if this is the end     |
    | _ENTERING | the same, where a name begins | nothing   | goes past a "/" that follows    |
"""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_PATTERN_CHARACTERS = 4096
"""The longest pattern that is taken."""
_MAX_REMEMBERED = 200_000
"""What the steps remembered for one pattern may hold before they are worked out again."""

_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-.0-~",
    "lower": "a-z",
    "print": " -.0-~",
    "punct": "!-/:-@\\[-`{-~",
    "space": " \\t\\n\\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
_SPECIAL = re.compile(r"\[:(\w+):\]")


class _Literal(NamedTuple):
    """One character."""

    character: str


class _CharacterSet(NamedTuple):
    """One of some characters; never "/"."""

    members: re.Pattern[str]


class _Stars(NamedTuple):
    """Any characters but "/"; with `deep` also folders, where the stars are a name of their own."""

    deep: bool


class _Fork(NamedTuple):
    """Where braces open and close: nothing is read."""


class _End(NamedTuple):
    """The end of the pattern."""


_Node = _Literal | _CharacterSet | _Stars | _Fork | _End

_AT, _DEEP, _CLOSING, _ENTERING = range(4)
"""Phases of a place: see the table above."""
_Places = frozenset[tuple[int, int]]


class _Step:
    """All places a walk may be at after some text, and where each next character leads."""

    __slots__ = ("accepts", "next", "places")

    def __init__(self, places: _Places, *, accepts: bool) -> None:
        self.places = places
        self.accepts = accepts
        self.next: dict[str, _Step] = {}


class Glob:
    """A pattern of paths, ready to be matched; `compile_glob` and `compile_rule` make it."""

    def __init__(self, nodes: tuple[_Node, ...], targets: tuple[tuple[int, ...], ...]) -> None:
        self._nodes = nodes
        self._targets = targets
        self._steps: dict[_Places, _Step] = {}
        self._remembered = 0
        self._start = self._build_step([(0, _AT)], at_name=True)

    def matches(self, path: str) -> bool:
        """Whether all of a path matches."""
        step = self._start
        for character in path:
            after = step.next.get(character)
            if after is None:
                after = self._advance_step(step, character)
            step = after
            if not step.places:
                return False
        return step.accepts

    def _advance_step(self, step: _Step, character: str) -> _Step:
        if self._remembered > _MAX_REMEMBERED:
            self._steps.clear()
            self._start.next.clear()
            self._remembered = 0
        reached: list[tuple[int, int]] = []
        for place in step.places:
            node, phase = place
            if phase == _DEEP:
                reached.append(place)
            elif isinstance(kind := self._nodes[node], _Stars):
                if character != "/":
                    reached.append(place)
            elif _can_consume(kind, character):
                reached += ((target, _AT) for target in self._targets[node])
        after = self._build_step(reached, at_name=character == "/")
        step.next[character] = after
        self._remembered += 1
        return after

    def _build_step(self, reached: list[tuple[int, int]], *, at_name: bool) -> _Step:
        """Return the step for these places and all that is reached from them without reading.

        `at_name` says that a name begins here, so that `**` may read folders.
        """
        seen: set[tuple[int, int]] = set()
        waiting = reached
        while waiting:
            place = waiting.pop()
            if place not in seen:
                seen.add(place)
                waiting += self._follow_unread(place, at_name=at_name)
        places = frozenset(place for place in seen if self._can_read(place))
        step = self._steps.get(places)
        if step is None:
            accepts = any(
                phase in {_AT, _CLOSING} and isinstance(self._nodes[node], _End)
                for node, phase in places
            )
            step = self._steps[places] = _Step(places, accepts=accepts)
            self._remembered += len(places)
        return step

    def _follow_unread(self, place: tuple[int, int], *, at_name: bool) -> list[tuple[int, int]]:
        """Return the places reached from one without reading a character."""
        node, phase = place
        kind, targets = self._nodes[node], self._targets[node]
        if phase == _DEEP:
            phases = (_CLOSING, _ENTERING) if at_name else (_CLOSING,)
            return [(target, after) for target in targets for after in phases]
        if isinstance(kind, _Fork):
            return [(target, phase) for target in targets]
        if isinstance(kind, _Stars):
            beyond = [(target, phase) for target in targets]
            return [*beyond, (node, _DEEP)] if kind.deep and at_name and phase == _AT else beyond
        if phase == _ENTERING and kind == _SLASH:
            return [(target, _AT) for target in targets]
        return []

    def _can_read(self, place: tuple[int, int]) -> bool:
        """Whether a place matters for what comes next; the others only led to it."""
        node, phase = place
        kind = self._nodes[node]
        if isinstance(kind, _End):
            return phase in {_AT, _CLOSING}
        return phase == _DEEP or (phase == _AT and not isinstance(kind, _Fork))


_SLASH = _Literal("/")


def compile_glob(glob: str) -> Glob:
    """Return what matches the paths a glob means; ValueError for one that is too long."""
    if len(glob) > MAX_PATTERN_CHARACTERS:
        raise ValueError(
            f"Pattern too long: {len(glob)} characters, {MAX_PATTERN_CHARACTERS} at most."
            " Use a shorter one, or several."
        )
    glob = glob.removeprefix("./")
    return _compile_nodes(glob.strip("/"), anywhere="/" not in glob.rstrip("/"), braces=True)


def compile_ignore_glob(glob: str) -> Glob:
    """Return what matches the whole of a text by a glob of an ignore file: one without braces."""
    return _compile_nodes(glob, anywhere=False, braces=False)


def _can_consume(kind: _Node, character: str) -> bool:
    if isinstance(kind, _Literal):
        return kind.character == character
    return isinstance(kind, _CharacterSet) and kind.members.match(character) is not None


def _compile_nodes(glob: str, *, anywhere: bool, braces: bool) -> Glob:
    nodes: list[_Node] = [_Fork()]
    targets: list[list[int]] = [[]]

    def add(kind: _Node, after: int) -> int:
        nodes.append(kind)
        targets.append([])
        targets[after].append(len(nodes) - 1)
        return len(nodes) - 1

    pairs = _pair_braces(glob) if braces else {}
    closing = set(pairs.values())
    # For each open brace: where its choices begin, and where they end.
    opened: list[tuple[int, int]] = []
    last = 0
    if anywhere:
        last = add(_SLASH, add(_Stars(deep=True), last))
    place = 0
    while place < len(glob):
        if place in pairs:
            last = add(_Fork(), last)
            nodes.append(_Fork())
            targets.append([])
            opened.append((last, len(nodes) - 1))
            place += 1
        elif place in closing or (opened and glob[place] == ","):
            begin, end = opened[-1]
            targets[last].append(end)
            last = begin if glob[place] == "," else opened.pop()[1]
            place += 1
        else:
            kind, place = _parse_element(glob, place)
            last = add(kind, last)
    add(_End(), last)
    return Glob(tuple(nodes), tuple(map(tuple, targets)))


def _pair_braces(glob: str) -> dict[int, int]:
    """Return where each brace that is closed opens and closes; the others are plain characters."""
    pairs, opened, place = dict[int, int](), list[int](), 0
    while place < len(glob):
        if glob[place] == "{":
            opened.append(place)
        elif glob[place] == "}" and opened:
            pairs[opened.pop()] = place
        place = _parse_element(glob, place)[1]
    return pairs


def _parse_element(glob: str, place: int) -> tuple[_Node, int]:
    """Return what one element of a glob becomes, and where the next begins."""
    character = glob[place]
    if character == "*":
        end = place
        while end < len(glob) and glob[end] == "*":
            end += 1
        return _Stars(deep=end - place > 1), end
    if character == "?":
        return _NO_SLASH, place + 1
    if character == "[":
        return _parse_set(glob, place)
    if character == "\\" and place + 1 < len(glob):
        return _Literal(glob[place + 1]), place + 2
    return _Literal(character), place + 1


_NO_SLASH = _CharacterSet(re.compile("[^/]", re.DOTALL))
_NOTHING = _CharacterSet(re.compile("(?!)"))


def _parse_set(glob: str, place: int) -> tuple[_Node, int]:
    """Return a set of characters; one that is not closed matches nothing."""
    start = place + 1
    negated = glob[start : start + 1] in {"!", "^"}
    start += negated
    at = start
    members: list[str | None] = []
    while at < len(glob) and (glob[at] != "]" or at == start):
        member, at = _parse_member(glob, at)
        members.append(member)
    if at >= len(glob) or None in members:
        return _NOTHING, len(glob)
    inside = "".join(filter(None, members))
    if not inside:
        return (_NO_SLASH if negated else _NOTHING), at + 1
    return _CharacterSet(re.compile(f"(?!/)[{'^' if negated else ''}{inside}]")), at + 1


def _parse_member(glob: str, at: int) -> tuple[str | None, int]:
    """Return a character, range or class of a set; None for a class that is unknown."""
    special = _SPECIAL.match(glob, at)
    if special:
        return _CLASSES.get(special[1]), special.end()
    first, at = _parse_character(glob, at)
    if glob[at : at + 1] != "-" or glob[at + 1 : at + 2] in {"", "]"}:
        return re.escape(first), at
    last, at = _parse_character(glob, at + 1)
    # As in git, a range that ends before it begins holds its first character.
    return (f"{re.escape(first)}-{re.escape(last)}" if first <= last else re.escape(first)), at


def _parse_character(glob: str, at: int) -> tuple[str, int]:
    escaped = glob[at] == "\\" and at + 1 < len(glob)
    return glob[at + escaped], at + escaped + 1
