"""A command line as values, and its words as the arguments a program would get.

What the text does not decide is marked, never guessed: an unknown part stands as nothing, since
an unset variable is nothing. With x="1 2" the word `~/{b,$x}` becomes

    braces  ~/b and ~/$x               `_expand_braces`; what is quoted spreads nothing
    tilde   /home/ada/b, /home/ada/$x  `_expand_tilde`
    values  x = "1 2"                  `expand_words`: once for each value a variable may have
    fields  /home/ada/b  /home/ada/1  2   `_split_fields`: an unquoted value parts at blanks
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice, product
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class CommandTooLong(Exception):
    """A command line holds more than is looked at."""


class Piece(NamedTuple):
    """A run of a word that is decided in one way."""

    kind: Literal["text", "quoted", "variable", "unknown"]
    text: str
    """The characters; the name of a variable; the source of what is unknown."""
    in_quotes: bool = False
    """Whether a variable or an unknown part is in double quotes, so that no space splits it."""
    default: str | None = None
    """What stands for a variable that is empty: `${name:-default}`; other names follow a dollar."""
    filled: bool = False
    """Whether the shell stops where the variable is empty: `${name:?}`."""
    inside: tuple[SimpleCommand, ...] = ()
    """The commands a substitution runs."""


Word = tuple[Piece, ...]


class Redirect(NamedTuple):
    """One redirection."""

    operator: str
    """`>`, `>>`, `<`, `>&` and so on; `<<` for text in the command itself."""
    target: Word
    """The file or descriptor; the text itself after `<<`."""
    source: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class SimpleCommand:
    """One simple command; without words, what a compound statement assigns or redirects."""

    source: str
    words: tuple[Word, ...] = ()
    assignments: tuple[tuple[str, Word], ...] = ()
    """Names and values; a name ends in `+` where the value is added to the one before.

    Of a name that comes several times, each value is possible.
    """
    redirects: tuple[Redirect, ...] = ()
    feeders: tuple[SimpleCommand, ...] = ()
    """The commands before it in its pipelines."""
    scope: tuple[int, ...] = ()
    """The subshells around it, outermost first: what they assign ends with them."""
    certain: bool = True
    """False inside a branch or loop: it may run or not."""
    chain: int = 0
    """Which commands run only after one another's success: those joined by `&&`; 0 for none."""


@dataclass(frozen=True, slots=True)
class ParsedCommandLine:
    """A command line, taken apart."""

    commands: tuple[SimpleCommand, ...]
    """In the order of the source; commands of a substitution before the command around it."""
    functions: frozenset[str]
    """The functions it defines; their bodies are among the commands."""
    bombs: tuple[str, ...]
    """Source of the functions that start themselves twice or in the background."""
    whole: bool
    """Whether every part of the text is in view."""


FILLED_TEXT = "\ufffd"
"""Represents a text that is unknown and cannot be empty."""
ANY_PATH = "\ufffe"
"""Represents the output of a command, which may be any path."""
MAX_READINGS = 96
"""So many readings of one command are looked at, and so many words of one brace."""
_FEW = 8
"""Of more values than this, those that name places or are options are looked at first."""
_WIDE = re.compile(r"^[-.]|[/~*\s]")
_GLOB = re.compile(r"[*?\[]")
_BLANKS = re.compile(r"[ \t\n]+")
_NOTHING = re.compile(r"(?!)")
_VARIABLE = re.compile(r"\$([A-Za-z_]\w*)")
_TILDE = re.compile(r"~([a-z_][\w-]*)?(?=/|$)")
_BRACES = re.compile(r"\{([^{}\s]*)\}")
_SEQUENCE = re.compile(r"(?:(-?\d{1,9})\.\.(-?\d{1,9})|([A-Za-z])\.\.([A-Za-z]))(?:\.\.-?\d+)?")


class Argument(NamedTuple):
    """One argument."""

    text: str
    """Its characters; nothing where they are unknown."""
    known: bool = True
    """Whether the text decides all of it."""
    glob: bool = False
    """Whether a wildcard of it is left to the shell."""
    inside: tuple[SimpleCommand, ...] = ()
    """The commands whose output is part of it."""
    free: bool = False
    """Whether what is unknown of it may be any path."""


Arguments = tuple[Argument, ...]
VariableValues = dict[str, tuple[str | None, ...]]
"""The values a name may have here; None for one that the text does not tell."""


_XDG = {"XDG_CONFIG_HOME": ".config", "XDG_DATA_HOME": ".local/share"}


class FreshFolder(NamedTuple):
    """A folder that is new, for as long as what made it is known to have worked."""

    chain: int
    name: str
    """The variable that holds its path."""
    folders: tuple[str | None, ...]
    """Where the commands run that cannot build on it."""


@dataclass(slots=True)
class ShellState:
    """The state at the start of a command."""

    home: str
    folders: tuple[str | None, ...]
    """The folders it may run in; None for one that is unknown."""
    variables: VariableValues = field(default_factory=dict)
    fresh: FreshFolder | None = None

    def copy(self) -> ShellState:
        """Return an independent copy."""
        return ShellState(self.home, self.folders, dict(self.variables), self.fresh)

    def leave_chain(self, chain: int) -> None:
        """Begin a command of a chain: behind another one a new folder may not have been made."""
        # `d=$(mktemp -d) && cd "$d" && rm -rf *` empties a folder of its own; with `;` for the
        # last `&&` it empties the folder that a failed `cd` stayed in.
        if self.fresh is not None and self.fresh.chain != chain:
            self.folders = tuple(dict.fromkeys((*self.folders, *self.fresh.folders)))
            self.variables[self.fresh.name] = (*self.values(self.fresh.name), None)
            self.fresh = None

    def values(self, name: str) -> tuple[str | None, ...]:
        """Return the values a name may have."""
        if name in self.variables:
            return self.variables[name]
        known: VariableValues = {"HOME": (self.home,), "PWD": self.folders, "IFS": (" ",)}
        if name == "OLDPWD":
            return (*self.folders, self.home, None)
        if name in _XDG:
            return (f"{self.home}/{_XDG[name]}", None)
        return known.get(name, (None,))


def expand_words(words: tuple[Word, ...], state: ShellState) -> Iterator[Arguments]:
    """Yield the arguments once for each choice of values its variables may have."""
    # A variable has one value at a time, so a name that comes twice is no second choice.
    pieces = [piece for word in words for piece in word if piece.kind == "variable"]
    names = dict.fromkeys(piece.text for piece in pieces)
    defaults = {piece.text: piece.default for piece in pieces if piece.default}
    choices = [_list_choices(name, defaults.get(name), state) for name in names]
    for blanks in dict.fromkeys(map(_compile_blanks, state.values("IFS"))):
        for values in islice(product(*choices), MAX_READINGS):
            known = dict(zip(names, values, strict=True))
            yield tuple(
                argument
                for word in words
                for spread in _expand_braces(word)
                for argument in _split_fields(_expand_tilde(spread, state.home), known, blanks)
            )


def is_fully_expanded(words: tuple[Word, ...], state: ShellState) -> bool:
    """Whether `expand_words` yields every reading there is."""
    count = 1
    for name in {piece.text for word in words for piece in word if piece.kind == "variable"}:
        count *= len(state.values(name)) + 1
    return count <= MAX_READINGS


def limit_values(values: Iterable[str | None]) -> tuple[str | None, ...]:
    """Return the values once each; of very many those that matter most, and None for the rest."""
    distinct = tuple(dict.fromkeys(values))
    if len(distinct) <= MAX_READINGS:
        return distinct
    return (*tuple(sorted(distinct, key=_is_minor_value))[:MAX_READINGS], None)


def _is_minor_value(value: str | None) -> bool:
    return value is not None and not _WIDE.search(value)


def expand_word(word: Word, state: ShellState) -> tuple[str | None, ...]:
    """Return the texts one word may have as a value; None for an unknown one."""
    quoted = tuple(piece._replace(in_quotes=True) for piece in word)
    texts = [_join_arguments(arguments) for arguments in expand_words((quoted,), state)]
    return tuple(dict.fromkeys(texts)) or ("",)


def _join_arguments(arguments: Arguments) -> str | None:
    if not all(argument.known for argument in arguments):
        return (
            ANY_PATH
            if len(arguments) == 1 and arguments[0].free and not arguments[0].text
            else None
        )
    whole = " ".join(argument.text for argument in arguments)
    return whole if len(whole) <= MAX_VALUE else None


def _list_choices(name: str, default: str | None, state: ShellState) -> tuple[str | None, ...]:
    values = state.values(name)
    values = (*values, *_expand_default(default, state)) if default else values
    if len(values) <= _FEW:
        return values
    return tuple(sorted(values, key=_is_minor_value))


def _expand_default(default: str, state: ShellState) -> tuple[str | None, ...]:
    """Return what a default may be; of several variables in it only the first is looked up."""
    match = _VARIABLE.search(default)
    if match is None:
        return (default,)
    start, end = default[: match.start()], default[match.end() :]
    return tuple(None if text is None else f"{start}{text}{end}" for text in state.values(match[1]))


def _compile_blanks(characters: str | None) -> re.Pattern[str]:
    """Return what parts the words of an unquoted value, for a value of IFS."""
    if characters in {None, " "}:
        return _BLANKS
    return re.compile(f"[{re.escape(characters or '')}]+") if characters else _NOTHING


def _expand_tilde(word: Word, home: str) -> Word:
    """Return the word with a leading tilde replaced by the folder it names."""
    match = _TILDE.match(word[0].text) if word and word[0].kind == "text" else None
    if match is None or (match.end() == len(word[0].text) and len(word) > 1):
        return word
    user = match[1]
    folder = home if user is None else "/root" if user == "root" else f"/home/{user}"
    return (Piece("quoted", folder), Piece("text", word[0].text[match.end() :]), *word[1:])


def _expand_braces(word: Word) -> list[Word]:
    """Expand `{a,b}` into its words; quoted braces expand to nothing more."""
    text = "".join(piece.text for piece in word if piece.kind == "text")
    if "{" not in text or "}" not in text:
        return [word]
    # Each piece is one character while braces are expanded; a text with such characters is unknown.
    if len(word) > _MAX_PIECES or _MARKS.search(text):
        return [(*word, Piece("unknown", text))]
    marks = [
        piece.text if piece.kind == "text" else chr(_FIRST_MARK + i) for i, piece in enumerate(word)
    ]
    done: list[str] = []
    waiting = ["".join(marks)]
    while waiting and len(done) + len(waiting) < MAX_READINGS:
        spread_text = waiting.pop(0)
        for brace in _BRACES.finditer(spread_text):
            parts = _split_brace(brace[1])
            if parts:
                waiting += [
                    spread_text[: brace.start()] + part + spread_text[brace.end() :]
                    for part in parts
                ]
                break
        else:
            done.append(spread_text)
    found_words = done + waiting
    spread = [*found_words[:_MAX_SPREAD], *found_words[_MAX_SPREAD:][-_MAX_SPREAD:]]
    left = tuple(Piece("unknown", text) for text in spread[:1] if len(spread) >= MAX_READINGS)
    return [(*_decode_marks(text, word), *left) for text in spread]


def _split_brace(inner: str) -> list[str]:
    """Return the words of a brace, `a,b` or `1..3`; nothing where it is text."""
    if "," in inner:
        return inner.split(",")
    match = _SEQUENCE.fullmatch(inner)
    if match is None:
        return []
    first, last = (int(match[1]), int(match[2])) if match[1] else (ord(match[3]), ord(match[4]))
    low, high = min(first, last), min(max(first, last), min(first, last) + _MAX_SPREAD)
    return [chr(code) if match[3] else str(code) for code in range(low, high + 1)]


MAX_VALUE = 100_000
"""So many characters of a variable's value are looked at: what is longer is unknown."""
_FIRST_MARK = 0xF0000
_MAX_PIECES = 1000
_MAX_SPREAD = 256
"""So many of the words of one brace are looked at, at each end."""
_MARKS = re.compile(f"[{chr(_FIRST_MARK)}-{chr(_FIRST_MARK + _MAX_PIECES)}]")


def _decode_marks(text: str, word: Word) -> Word:
    """Return the word of a text in which marks replace pieces."""
    return tuple(
        word[ord(part) - _FIRST_MARK] if index % 2 else Piece("text", part)
        for index, part in enumerate(re.split(f"({_MARKS.pattern})", text))
        if part
    )


class _GrowingField:
    """An argument as it grows."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.known, self.glob, self.there = True, False, False
        self.free = False
        self.inside: list[SimpleCommand] = []

    def add(self, text: str, *, quoted: bool = False) -> None:
        self.texts.append(text)
        self.there |= quoted or bool(text)
        self.glob |= not quoted and bool(_GLOB.search(text))

    def build_argument(self) -> Argument:
        return Argument("".join(self.texts), self.known, self.glob, tuple(self.inside), self.free)


def _split_fields(
    word: Word, values: Mapping[str, str | None], blanks: re.Pattern[str]
) -> Arguments:
    fields = [_GrowingField()]
    for piece in word:
        value = values.get(piece.text) if piece.kind == "variable" else None
        fields[-1].inside += piece.inside
        if piece.kind in {"text", "quoted"}:
            fields[-1].add(piece.text, quoted=piece.kind == "quoted")
        # An unset variable is nothing, and `rm -rf $x/` with nothing is the root: an unknown one is
        # taken for nothing, and marked. `${x:?}` stops the shell instead.
        elif value is None:
            fields[-1].known, fields[-1].there = False, True
            fields[-1].add(FILLED_TEXT if piece.filled else "", quoted=True)
        elif ANY_PATH in value:
            fields[-1].known, fields[-1].free = False, True
            fields[-1].add(value.replace(ANY_PATH, ""), quoted=True)
        elif piece.in_quotes:
            fields[-1].add(value, quoted=True)
            fields[-1].glob |= bool(_GLOB.search(value))  # a loop's name holds what was matched
        else:
            first, *others = blanks.split(value)
            fields[-1].add(first)
            for other in others:  # each begins a new argument
                fields.append(_GrowingField())
                fields[-1].add(other)
    return tuple(field.build_argument() for field in fields if field.there)
