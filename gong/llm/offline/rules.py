"""Plain requests to steps, for the offline model: text patterns, no model of language. Pure.

A request is cut into clauses at "then" and at line ends, never inside quotes, fenced blocks or a
`$` line; each clause is one step. Any text gives steps: what no pattern fits is `unknown`.

| verb | request | fields of the step |
|---|---|---|
| read | read FILE | path |
| list | list DIR | path |
| search | search TEXT in DIR | text, path |
| run | run COMMAND, $ COMMAND | text |
| write | write FILE with TEXT | path, text |
| replace | replace A with B in FILE | path, text, new |
| think | think about TEXT | text, may be empty |
| remember | remember that TEXT | text |
| recall | a question; `recall.py` makes it of `unknown` | text, words to search, answer if known |
| resume | a request that only a summary has | none |
| unknown | anything else | text |
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple

from ...summary.sentences import find_remembered_fact, is_question, split_sentences

if TYPE_CHECKING:
    from collections.abc import Iterator


Verb = Literal[
    "read",
    "list",
    "search",
    "run",
    "write",
    "replace",
    "think",
    "remember",
    "recall",
    "resume",
    "unknown",
]


class Step(NamedTuple):
    """One thing to do; the table above says which fields a verb has."""

    verb: Verb
    text: str = ""
    path: str = "."
    new: str = ""
    words: str = ""
    answer: str | None = None


_FENCE = r"```[^\n]*\n(?:.*?\n)??[ \t]*```"
_QUOTED = r'"[^"]*"|(?<!\w)\'[^\'\n]*\'(?!\w)|`[^`\n]+`|“[^”]*”'
_BORDER = re.compile(
    rf"(?P<kept>{_FENCE}|{_QUOTED})|(?P<then>\b(?:and[ \t]+)?then\b[,:]?)"
    r"|(?P<line>\n(?!\s{0,16}```))",
    re.IGNORECASE | re.DOTALL,
)
_SHELL = re.compile(r"[ \t]*(?:[-*][ \t]+)?\$[ \t]*(?P<command>[^\n]*)")
_COURTESY = re.compile(
    r"(?:(?:[-*•]|\d+[.)])\s+|(?:please|now|first|next|finally|also|and|ok(?:ay)?|hey|hi|hello|kindly"
    r"|(?:can|could|would|will) you|i want you to|i(?:'d| would) like you to|let's|let us|go and)"
    r"\b[,:]?\s*)*",
    re.IGNORECASE,
)


def parse_request(prompt: str) -> tuple[Step, ...]:
    """Return the steps a prompt asks for, in order; empty for a blank prompt.

    Unknown steps that follow one another are one, as prose has many lines; an unknown one after
    a fact continues the fact, unless it is a question.
    """
    steps: list[Step] = []
    for step in map(_parse_clause, _split_clauses(prompt)):
        last = steps[-1] if steps and step.verb == "unknown" else None
        if last and last.verb == "unknown":
            steps[-1] = last._replace(text=f"{last.text}\n{step.text}")
        elif (
            last
            and last.verb == "remember"
            and not any(map(is_question, split_sentences(step.text)))
        ):
            steps[-1] = last._replace(text=f"{last.text}; {step.text}")
        else:
            steps.append(step)
    return tuple(steps)


def _split_clauses(prompt: str) -> Iterator[str]:
    """Yield the parts of a prompt that are one step each, blank ones left out."""
    start = 0
    while start < len(prompt):
        if shell := _SHELL.match(prompt, start):
            clause, start = shell[0].strip(), shell.end() + 1
        else:
            borders = _BORDER.finditer(prompt, start)
            border = next((border for border in borders if not border["kept"]), None)
            clause = prompt[start : border.start() if border else None].strip()
            if border and border["then"]:
                clause = clause.rstrip(",;.").rstrip() or clause
            start = border.end() if border else len(prompt)
        if clause:
            yield clause


def _compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return a rule that must match a whole clause, in any case and over line ends."""
    return re.compile(rf"(?:{pattern})\s*\Z", re.IGNORECASE | re.DOTALL)


_NAME = rf"(?:{_QUOTED}|\S+)"
_PHRASE = rf"(?:{_QUOTED}|\S.*?)"
_FILE = r"(?:(?:the|a|an|my|this)\s+)?(?:new\s+)?(?:file\s+)?(?:called\s+|named\s+)?"
_FOLDER = r"(?:(?:the|my|this)\s+)?(?:(?:folder|directory|dir)\s+)?"
_EVERYWHERE = (
    r"(?:here|everywhere|(?:(?:all|the|this|these|every|current)\s+)+"
    r"(?:files?|project|folder|directory|repo(?:sitory)?|code(?:base)?)(?:\s+here)?)"
)
_STOPS = r"[.!?,;:]*"

_READ = _compile_pattern(
    r"(?:read|show|open|cat|view|display|print|look\s+at|what(?:'s|\s+is)\s+in)(?:\s+me)?"
    r"(?:\s+(?:the\s+)?(?:contents?\s+of|what(?:'s|\s+is)\s+in))?\s+"
    rf"(?:(?:the|my|this)\s+)?(?:file\s+)?(?:called\s+|named\s+)?(?P<text>{_PHRASE})"
)
_LIST = _compile_pattern(
    r"(?:(?:list|show)(?:\s+me)?|ls|dir|what(?:\s+files)?(?:\s+(?:is|are))?)"
    r"(?:\s+-\w+)*"
    r"(?P<plain>(?:\s+(?:all|the|files?|folders?|entries|contents?|everything|there|are|is)\b)*)"
    r"(?:\s+(?P<in>in|of|under|inside)\b)?"
    rf"(?:\s+(?:(?P<here>{_EVERYWHERE})|{_FOLDER}(?P<path>{_NAME})(?:\s+(?:folder|directory))?))?"
    rf"{_STOPS}"
)
_SEARCH = _compile_pattern(
    r"(?:search|grep|look|find|where\s+is)(?:\s+-\w+)*(?:\s+for)?"
    rf"\s+(?:the\s+(?:text|word|string)\s+)?(?P<text>{_PHRASE})"
    rf"(?:\s+(?:in|under|inside|within)\s+(?:(?P<here>{_EVERYWHERE})|{_FOLDER}(?P<path>{_NAME})))?"
    rf"{_STOPS}"
)
_SEARCH_IN_FOLDER = _compile_pattern(
    rf"(?:search|look|grep)\s+(?:in\s+)?(?:(?P<here>{_EVERYWHERE})|{_FOLDER}(?P<path>{_NAME}))"
    rf"\s+for\s+(?P<text>{_PHRASE}){_STOPS}"
)
_RUN = _compile_pattern(
    r"(?:run|execute|exec)(?:\s+(?:the\s+)?(?:shell\s+)?command\b)?\s*:?\s+(?P<text>\S.*)"
)
_WRITE_BLOCK = _compile_pattern(
    rf"(?:write|create|save|make|put)\s+{_FILE}(?P<path>{_NAME})\b.*?"
    r"```[^\n]*\n(?P<text>(?:.*?\n)??)[ \t]*```"
)
_WRITE = _compile_pattern(
    rf"(?:write|create|save|make)\s+{_FILE}(?P<path>{_NAME})\s*"
    r"(?:\b(?:with|containing|saying|that\s+says)\b|:)"
    r"(?:\s+(?:the\s+)?(?:text|contents?)\b)?\s*:?\s*(?P<text>\S.*)"
)
_WRITE_TO = _compile_pattern(
    rf"(?:write|save|put)\s+(?P<text>{_PHRASE})\s+(?:to|into|in)\s+{_FILE}(?P<path>{_NAME})"
)
_WRITE_QUOTED_TO = _compile_pattern(
    rf"(?:write|save|put)\s+(?P<text>{_QUOTED})\s+(?:to|into|in)\s+{_FILE}(?P<path>{_NAME})"
)
_WRITE_EMPTY = _compile_pattern(rf"(?:write|create|make)\s+an\s+empty\s+{_FILE}(?P<path>{_NAME})")
_REPLACE = _compile_pattern(
    rf"(?:in\s+{_FILE}(?P<before>{_NAME}?),?\s+)?(?:replace|change|swap)\s+(?P<text>{_PHRASE})"
    rf"\s+(?:with|by|to|into|for)\s+(?P<new>{_PHRASE})(?:\s+in\s+{_FILE}(?P<path>{_NAME}))?"
)
_THINK = _compile_pattern(
    r"think(?:\s+(?:hard|deeply|carefully|a\s+bit|aloud|out\s+loud))?"
    r"(?:\s*:|\s+(?:about|of|on|over|through)\b:?)?(?:\s+(?P<text>\S.*?))?[.!]*"
)
_SEARCH_LIKE_GREP = _compile_pattern(
    rf"grep(?:\s+-\w+)*\s+(?!for\s)(?P<text>{_NAME})\s+(?P<path>\S+)"
)
_PATTERNS: tuple[tuple[Verb, re.Pattern[str]], ...] = (
    ("think", _THINK),
    ("run", _RUN),
    ("replace", _REPLACE),
    *(
        ("write", pattern)
        for pattern in (_WRITE_BLOCK, _WRITE_EMPTY, _WRITE_QUOTED_TO, _WRITE, _WRITE_TO)
    ),
    *(("search", pattern) for pattern in (_SEARCH_IN_FOLDER, _SEARCH_LIKE_GREP, _SEARCH)),
    ("list", _LIST),
    ("read", _READ),
)


_UNBOUNDED = frozenset({"think", "run", "write"})
"""Verbs whose patterns take linear time, for texts of more than _MAX_SENTENCE_CHARS."""
_MAX_SENTENCE_CHARS = 4_000


def _parse_clause(clause: str) -> Step:
    if shell := _SHELL.match(clause):
        command = shell["command"].strip()
        return Step("run", command) if command else Step("unknown", clause)
    polite = _COURTESY.match(clause)
    request = clause[polite.end() :] if polite else clause
    is_long = len(request) > _MAX_SENTENCE_CHARS
    for verb, pattern in _PATTERNS:
        if is_long and verb not in _UNBOUNDED:
            continue
        match = pattern.match(request)
        if match and (step := _build_step(verb, match)):
            return step
    fact = find_remembered_fact(request)
    return Step("remember", fact) if fact else Step("unknown", clause)


def _build_step(verb: Verb, match: re.Match[str]) -> Step | None:
    """Return the step a pattern's match gives; None where a part of it is missing."""
    parts = match.groupdict()
    raw = parts.get("text") or ""
    text, path = _strip_quotes(raw), _parse_file_path(parts.get("path") or parts.get("before"))
    match verb:
        case "think":
            return Step(verb, raw)
        case "run":
            quoted = re.fullmatch(rf"({_QUOTED}){_STOPS}", raw.strip(), re.DOTALL)
            command = _strip_quotes(quoted[1]) if quoted else raw.strip()
            return Step(verb, command) if command.strip() else None
        case "list":
            return Step(verb, path=path or ".") if _is_list_request(match) else None
        case "read":
            path = _find_path(raw)
        case "search":
            path = path or "."
    if not path or (verb in {"search", "replace"} and not text):
        return None
    literal = match.re is _WRITE_BLOCK
    return Step(
        verb,
        "" if verb == "read" else raw if literal else text,
        path,
        _strip_quotes(parts.get("new") or ""),
    )


def _is_list_request(match: re.Match[str]) -> bool:
    """Return whether it is a folder that is asked for: "show README.md" is not."""
    if re.match(r"list|ls|dir", match[0], re.IGNORECASE):
        return True
    files = re.search(r"files?|folder|director|entries|everything", match[0], re.IGNORECASE)
    bare = match["path"] is None or match["in"] is not None
    return (files is not None and bare) or (match["path"] or "").endswith("/")


def _find_path(words: str) -> str | None:
    """Return the path in `words`: quoted, the only word, or the first that looks like one."""
    if quoted := re.match(_QUOTED, words):
        return _strip_quotes(quoted[0]) or None
    every = words.split()
    likely = every if len(every) == 1 else filter(re.compile(r".*?(?:/|\w\.\w)|\.\w").match, every)
    return _parse_file_path(next(iter(likely), None))


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
