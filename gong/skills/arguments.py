r"""The arguments of a skill: what was typed after its name → its text; pure.

    in the text            becomes
    ---------------------  ----------------------------------------------------------
    $ARGUMENTS             everything after the name, as it was typed
    $ARGUMENTS[0]          the first word, quotes as in a shell
    $1, $2                 the first word, the second
    $0, $1                 the same, counted from 0: in a text with a $0 in it
    $name, ${name}         the argument of that name in `arguments`
    ${CLAUDE_SKILL_DIR}    the folder of the skill; more are in `ArgumentValues.variables`
    \$1                    $1

Named arguments are taken from `name=value`, `--name value` and `--name=value`, the others in order
from the words that are left. A text that names none of them gets what was typed at its end.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, NamedTuple

from ..errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .skill import Skill, SkillArgument

_PLACEHOLDER = re.compile(
    r"(?P<escaped>\\\$)|\$(?:"
    r"ARGUMENTS\[(?P<index>\d+)\]|(?P<all>ARGUMENTS)\b|(?P<number>\d{1,2})(?!\d)"
    r"|\{(?P<braced>[A-Za-z_][\w-]*)\}|(?P<name>[A-Za-z_]\w*(?:-\w+)*))"
)
_FROM_ZERO = re.compile(r"(?<!\\)\$0(?!\d)")
_TYPES = {
    "integer": re.compile(r"[+-]?\d+"),
    "number": re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"),
    "boolean": re.compile(r"true|false|yes|no|on|off|1|0", re.IGNORECASE),
}
_TYPE_NAMES = {"int": "integer", "float": "number", "bool": "boolean"}


class ArgumentValues(NamedTuple):
    """The values of the placeholders of one use."""

    typed: str
    """Everything after the name."""
    words: tuple[str, ...]
    named: Mapping[str, str]
    variables: Mapping[str, str]
    """What `${NAME}` stands for, such as CLAUDE_SKILL_DIR."""
    first: int
    """The number of the first word: 0 or 1."""


def read_arguments(skill: Skill, typed: str, variables: Mapping[str, str]) -> ArgumentValues:
    """Return the values of the placeholders of a skill.

    Raises ConfigurationError where a required argument is missing, or one has the wrong type.
    """
    words = split_words(typed)
    named = _name_arguments(skill, words)
    return ArgumentValues(
        typed.strip(), words, named, variables, 0 if _FROM_ZERO.search(skill.body) else 1
    )


def split_words(typed: str) -> tuple[str, ...]:
    """Return words as a shell would split them; at blanks where a quote is never closed."""
    try:
        return tuple(shlex.split(typed))
    except ValueError:
        return tuple(typed.split())


def fill_placeholders(text: str, values: ArgumentValues) -> str:
    """Return a text with its placeholders replaced; unknown names stay as they are."""

    def fill(match: re.Match[str]) -> str:
        if match["escaped"]:
            return "$"
        if match["all"]:
            return values.typed
        if match["index"] is not None:
            return _find_word(values.words, int(match["index"]))
        if match["number"] is not None:
            return _find_word(values.words, int(match["number"]) - values.first)
        name = match["braced"] or match["name"]
        if match["braced"] and name in values.variables:
            return values.variables[name]
        return values.named.get(name, match[0])

    return _PLACEHOLDER.sub(fill, text)


def has_placeholders(skill: Skill) -> bool:
    """Return whether the text of a skill says where its arguments go."""
    names = {argument.name for argument in skill.arguments}
    return any(
        match["all"]
        or match["index"]
        or match["number"]
        or {match["braced"], match["name"]} & names
        for match in _PLACEHOLDER.finditer(skill.body)
    )


def _find_word(words: Sequence[str], place: int) -> str:
    return words[place] if 0 <= place < len(words) else ""


def _name_arguments(skill: Skill, words: Sequence[str]) -> dict[str, str]:
    """Return the value of each named argument; empty for one that was not given."""
    known = {argument.name: argument for argument in skill.arguments}
    values: dict[str, str] = {}
    rest: list[str] = []
    waiting = ""
    for word in words:
        name, equals, value = word.removeprefix("--").partition("=")
        if waiting:
            values[waiting], waiting = word, ""
        elif equals and name in known:
            values[name] = value
        elif word.startswith("--") and name in known:
            if known[name].type in {"boolean", "bool"}:
                values[name] = "true"
            else:
                waiting = name
        else:
            rest.append(word)
    left = [argument for argument in skill.arguments if argument.name not in values]
    for place, argument in enumerate(left):
        is_last = place == len(left) - 1
        values[argument.name] = " ".join(rest[place:]) if is_last else _find_word(rest, place)
    for argument in skill.arguments:
        _check_value(skill, argument, values[argument.name])
    return values


def _check_value(skill: Skill, argument: SkillArgument, value: str) -> None:
    if not value:
        if argument.required:
            about = f" ({argument.description})" if argument.description else ""
            usage = f"/{skill.name} {skill.hint}".rstrip()
            raise ConfigurationError(f"/{skill.name} needs {argument.name}{about}: write {usage}")
        return
    kind = _TYPE_NAMES.get(argument.type, argument.type)
    pattern = _TYPES.get(kind)
    if pattern is not None and not pattern.fullmatch(value):
        raise ConfigurationError(
            f"{argument.name} of /{skill.name} is not of the type {kind}: {value!r}"
        )
