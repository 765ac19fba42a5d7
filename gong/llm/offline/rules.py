"""The steps that the offline model can do.

Plain requests to steps, for the offline model: pure text matching, no model of language.

A request is cut into clauses at "then" and at line ends, never inside quotes, fenced blocks or a
`$` line; each clause is one step. Any text gives steps: what is not understood is a `Puzzle`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from .sentences import find_remembered_fact, is_question, split_sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class ReadStep(Struct, frozen=True, tag="read"):
    """Read a file."""

    path: str


class ListStep(Struct, frozen=True, tag="list"):
    """List a folder."""

    path: str


class SearchStep(Struct, frozen=True, tag="search"):
    """Search a folder's files for a pattern."""

    pattern: str
    path: str


class RunStep(Struct, frozen=True, tag="run"):
    """Run a shell command."""

    command: str


class WriteStep(Struct, frozen=True, tag="write"):
    """Write a whole file."""

    path: str
    content: str


class ReplaceStep(Struct, frozen=True, tag="replace"):
    """Replace a text in a file."""

    path: str
    old: str
    new: str


class ThinkStep(Struct, frozen=True, tag="think"):
    """Think aloud; `about` may be empty."""

    about: str


class RememberStep(Struct, frozen=True, tag="remember"):
    """Note a fact for later: it is in the conversation, so nothing else has to be done."""

    fact: str


class RecallStep(Struct, frozen=True, tag="recall"):
    """Answer a question from what was said before: `memory.py` makes it of a puzzle.

    `answer` is None where it was not found; `words` are to be looked for then.
    """

    question: str
    words: str
    answer: str | None


class SummarizedStep(Struct, frozen=True, tag="summarised"):
    """Nothing: what was asked stands in a summary, and no call says how far it had come."""


class PuzzleStep(Struct, frozen=True, tag="puzzle"):
    """Words that were not understood."""

    text: str


Step = (
    ReadStep
    | ListStep
    | SearchStep
    | RunStep
    | WriteStep
    | ReplaceStep
    | ThinkStep
    | RememberStep
    | RecallStep
    | SummarizedStep
    | PuzzleStep
)


_FENCE = r"```[^\n]*\n(?:.*?\n)??[ \t]*```"
_QUOTED = r'"[^"]*"|(?<!\w)\'[^\'\n]*\'(?!\w)|`[^`\n]+`|“[^”]*”'
_THEN = r"\b(?:and[ \t]+)?then\b[,:]?"
_LINE_END = r"\n(?!\s{0,16}```)"
_BORDER = re.compile(
    rf"(?P<kept>{_FENCE}|{_QUOTED})|(?P<then>{_THEN})|(?P<line>{_LINE_END})",
    re.IGNORECASE | re.DOTALL,
)
_SHELL = re.compile(r"[ \t]*(?:[-*][ \t]+)?\$[ \t]*(?P<command>[^\n]*)")
_COURTESY = re.compile(
    r"(?:(?:[-*•]|\d+[.)])\s+|(?:please|now|first|next|finally|also|and|ok(?:ay)?|hey|hi|hello|kindly"
    r"|(?:can|could|would|will) you|i want you to|i(?:'d| would) like you to|let's|let us|go and)"
    r"\b[,:]?\s*)",
    re.IGNORECASE,
)


def parse_request(prompt: str) -> tuple[Step, ...]:
    """Return the steps a prompt asks for, in order; empty for a blank prompt."""
    return tuple(_join_puzzles(_parse_clause(clause) for clause in _split_clauses(prompt)))


def _split_clauses(prompt: str) -> Iterator[str]:
    """Yield the parts of a prompt that are one step each, blank ones left out."""
    start = 0
    while start < len(prompt):
        clause, start = _read_clause(prompt, start)
        if clause:
            yield clause


def _read_clause(prompt: str, start: int) -> tuple[str, int]:
    """Return the clause that begins at `start`, and where the next one begins."""
    if shell := _SHELL.match(prompt, start):
        return shell[0].strip(), shell.end() + 1
    for border in _BORDER.finditer(prompt, start):
        clause = prompt[start : border.start()].strip()
        if border["then"]:
            return clause.rstrip(",;.").rstrip() or clause, border.end()
        if border["line"]:
            return clause, border.end()
    return prompt[start:].strip(), len(prompt)


def _join_puzzles(steps: Iterator[Step]) -> Iterator[Step]:
    """Yield the steps, with puzzles that follow one another as one: prose has many lines.

    A puzzle after a fact continues the fact, unless it is a question.
    """
    last: PuzzleStep | RememberStep | None = None
    for step in steps:
        if isinstance(step, PuzzleStep) and last is not None and not _is_new_puzzle(last, step):
            last = _extend_step(last, step.text)
            continue
        if last is not None:
            yield last
            last = None
        if isinstance(step, PuzzleStep | RememberStep):
            last = step
        else:
            yield step
    if last is not None:
        yield last


def _is_new_puzzle(last: PuzzleStep | RememberStep, puzzle: PuzzleStep) -> bool:
    return isinstance(last, RememberStep) and any(map(is_question, split_sentences(puzzle.text)))


def _extend_step(last: PuzzleStep | RememberStep, text: str) -> PuzzleStep | RememberStep:
    if isinstance(last, PuzzleStep):
        return PuzzleStep(f"{last.text}\n{text}")
    return RememberStep(f"{last.fact}; {text}")


def _parse_clause(clause: str) -> Step:
    if shell := _SHELL.match(clause):
        command = shell["command"].strip()
        return RunStep(command) if command else PuzzleStep(clause)
    request = _strip_courtesy(clause)
    rules = _RULES if len(request) <= _LONGEST_SENTENCE else _RULES_FOR_LONG_TEXT
    return next((step for rule in rules if (step := rule(request))), PuzzleStep(clause))


def _strip_courtesy(clause: str) -> str:
    """Return the clause without "please", bullets and the like before its verb."""
    start = 0
    while polite := _COURTESY.match(clause, start):
        start = polite.end()
    return clause[start:]


def _compile_rule(pattern: str) -> re.Pattern[str]:
    """Return a rule that must match a whole clause, in any case and over line ends."""
    return re.compile(rf"(?:{pattern})\s*\Z", re.IGNORECASE | re.DOTALL)


_LONGEST_SENTENCE = 4_000  # some rules look at every pair of words
_NAME = rf"(?:{_QUOTED}|\S+)"
_PHRASE = rf"(?:{_QUOTED}|\S.*?)"
_FILE = r"(?:(?:the|a|an|my|this)\s+)?(?:new\s+)?(?:file\s+)?(?:called\s+|named\s+)?"
_FOLDER = r"(?:(?:the|my|this)\s+)?(?:(?:folder|directory|dir)\s+)?"
_EVERYWHERE = (
    r"(?:here|everywhere|(?:(?:all|the|this|these|every|current)\s+)+"
    r"(?:files?|project|folder|directory|repo(?:sitory)?|code(?:base)?)(?:\s+here)?)"
)
_END = r"[.!?,;:]*"

_READ = _compile_rule(
    r"(?:read|show|open|cat|view|display|print|look\s+at|what(?:'s|\s+is)\s+in)(?:\s+me)?"
    r"(?:\s+(?:the\s+)?(?:contents?\s+of|what(?:'s|\s+is)\s+in))?\s+"
    rf"(?:(?:the|my|this)\s+)?(?:file\s+)?(?:called\s+|named\s+)?(?P<rest>{_PHRASE})"
)
_LIST = _compile_rule(
    r"(?:(?:list|show)(?:\s+me)?|ls|dir|what(?:\s+files)?(?:\s+(?:is|are))?)"
    r"(?:\s+-\w+)*"
    r"(?P<plain>(?:\s+(?:all|the|files?|folders?|entries|contents?|everything|there|are|is)\b)*)"
    r"(?:\s+(?P<in>in|of|under|inside)\b)?"
    rf"(?:\s+(?:(?P<here>{_EVERYWHERE})|{_FOLDER}(?P<path>{_NAME})(?:\s+(?:folder|directory))?))?"
    rf"{_END}"
)
_SEARCH = _compile_rule(
    r"(?:search|grep|look|find|where\s+is)(?:\s+-\w+)*(?:\s+for)?"
    rf"\s+(?:the\s+(?:text|word|string)\s+)?(?P<pattern>{_PHRASE})"
    rf"(?:\s+(?:in|under|inside|within)\s+(?:(?P<here>{_EVERYWHERE})|{_FOLDER}(?P<path>{_NAME})))?"
    rf"{_END}"
)
_SEARCH_IN_FOLDER = _compile_rule(
    rf"(?:search|look|grep)\s+(?:in\s+)?(?:(?P<here>{_EVERYWHERE})|{_FOLDER}(?P<path>{_NAME}))"
    rf"\s+for\s+(?P<pattern>{_PHRASE}){_END}"
)
_RUN = _compile_rule(
    r"(?:run|execute|exec)(?:\s+(?:the\s+)?(?:shell\s+)?command\b)?\s*:?\s+(?P<command>\S.*)"
)
_WRITE_BLOCK = _compile_rule(
    rf"(?:write|create|save|make|put)\s+{_FILE}(?P<path>{_NAME})\b.*?"
    r"```[^\n]*\n(?P<content>(?:.*?\n)??)[ \t]*```"
)
_WRITE = _compile_rule(
    rf"(?:write|create|save|make)\s+{_FILE}(?P<path>{_NAME})\s*"
    r"(?:\b(?:with|containing|saying|that\s+says)\b|:)"
    r"(?:\s+(?:the\s+)?(?:text|contents?)\b)?\s*:?\s*(?P<content>\S.*)"
)
_WRITE_TO = _compile_rule(
    rf"(?:write|save|put)\s+(?P<content>{_PHRASE})\s+(?:to|into|in)\s+{_FILE}(?P<path>{_NAME})"
)
_WRITE_QUOTED_TO = _compile_rule(
    rf"(?:write|save|put)\s+(?P<content>{_QUOTED})\s+(?:to|into|in)\s+{_FILE}(?P<path>{_NAME})"
)
_WRITE_EMPTY = _compile_rule(rf"(?:write|create|make)\s+an\s+empty\s+{_FILE}(?P<path>{_NAME})")
_REPLACE = _compile_rule(
    rf"(?:in\s+{_FILE}(?P<before>{_NAME}?),?\s+)?(?:replace|change|swap)\s+(?P<old>{_PHRASE})"
    rf"\s+(?:with|by|to|into|for)\s+(?P<new>{_PHRASE})(?:\s+in\s+{_FILE}(?P<path>{_NAME}))?"
)
_THINK = _compile_rule(
    r"think(?:\s+(?:hard|deeply|carefully|a\s+bit|aloud|out\s+loud))?"
    r"(?:\s*:|\s+(?:about|of|on|over|through)\b:?)?(?:\s+(?P<about>\S.*?))?[.!]*"
)


def _parse_read(clause: str) -> Step | None:
    found = _READ.match(clause)
    path = found and _find_path(found["rest"])
    return ReadStep(path) if path else None


def _parse_list(clause: str) -> Step | None:
    found = _LIST.match(clause)
    if found is None or not _is_list_request(clause, found):
        return None
    return ListStep(_parse_file_path(found["path"]) or ".")


def _is_list_request(clause: str, found: re.Match[str]) -> bool:
    """Return whether it is a folder that is asked for: "show README.md" is not."""
    if re.match(r"list|ls|dir", clause, re.IGNORECASE):
        return True
    files = re.search(r"files?|folder|director|entries|everything", clause, re.IGNORECASE)
    bare = found["path"] is None or found["in"] is not None
    return (files is not None and bare) or (found["path"] or "").endswith("/")


def _parse_search(clause: str) -> Step | None:
    found = _SEARCH_IN_FOLDER.match(clause) or _SEARCH.match(clause)
    if found is None:
        return None
    pattern, where = _strip_quotes(found["pattern"]), _parse_file_path(found["path"])
    if where is None and found["here"] is None and clause.lower().startswith("grep"):
        pattern, where = _split_grep_arguments(found["pattern"])
    return SearchStep(pattern, where or ".") if pattern else None


def _split_grep_arguments(words: str) -> tuple[str, str | None]:
    """Return pattern and folder of words given in the order of the shell's grep."""
    two = re.fullmatch(rf"(?P<pattern>{_NAME})\s+(?P<path>\S+)", words)
    return (_strip_quotes(two["pattern"]), two["path"]) if two else (_strip_quotes(words), None)


def _parse_run(clause: str) -> Step | None:
    found = _RUN.match(clause)
    if found is None:
        return None
    command = found["command"].strip()
    quoted = re.fullmatch(rf"({_QUOTED}){_END}", command, re.DOTALL)
    command = _strip_quotes(quoted[1]) if quoted else command
    return RunStep(command) if command.strip() else None


def _parse_write(clause: str) -> Step | None:
    for rule in (_WRITE_BLOCK, _WRITE_EMPTY, _WRITE_QUOTED_TO, _WRITE, _WRITE_TO):
        if found := rule.match(clause):
            return _build_write(found, literal=rule is _WRITE_BLOCK)
    return None


def _build_write(found: re.Match[str], *, literal: bool) -> Step | None:
    path, content = _parse_file_path(found["path"]), found.groupdict().get("content") or ""
    return WriteStep(path, content if literal else _strip_quotes(content)) if path else None


def _parse_replace(clause: str) -> Step | None:
    found = _REPLACE.match(clause)
    path = found and _parse_file_path(found["path"] or found["before"])
    if not found or not path:
        return None
    old = _strip_quotes(found["old"])
    return ReplaceStep(path, old, _strip_quotes(found["new"])) if old else None


def _parse_think(clause: str) -> Step | None:
    found = _THINK.match(clause)
    return ThinkStep(found["about"] or "") if found else None


def _parse_remember(clause: str) -> Step | None:
    fact = find_remembered_fact(clause)
    return RememberStep(fact) if fact else None


_RULES: tuple[Callable[[str], Step | None], ...] = (
    _parse_think,
    _parse_run,
    _parse_replace,
    _parse_write,
    _parse_search,
    _parse_list,
    _parse_read,
    _parse_remember,
)


_RULES_FOR_LONG_TEXT = (_parse_think, _parse_run, _parse_write, _parse_remember)


def _find_path(words: str) -> str | None:
    """Return the path in `words`: quoted, the only word, or the first that looks like one."""
    if quoted := re.match(_QUOTED, words):
        return _strip_quotes(quoted[0]) or None
    every = words.split()
    if len(every) == 1:
        return _parse_file_path(every[0])
    return next((_parse_file_path(word) for word in every if _is_path_like(word)), None)


def _is_path_like(word: str) -> bool:
    return re.search(r"/|\w\.\w|^\.\w", word) is not None


def _parse_file_path(word: str | None) -> str | None:
    """Return a word as a path: without quotes and without the full stop of a sentence."""
    if not word:
        return None
    if (plain := _strip_quotes(word)) != word:
        return plain or None
    word = word.rstrip("?!,;:")
    return (word[:-1] if re.search(r"\w\.\Z", word) else word) or None


def _strip_quotes(text: str) -> str:
    """Return `text` without the quotes around the whole of it."""
    text = text.strip()
    return text[1:-1] if re.fullmatch(_QUOTED, text) else text
