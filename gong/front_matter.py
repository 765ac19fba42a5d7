"""The front matter of a Markdown file: YAML between two lines of `---`, then the body.

Files of skills, commands and agents begin with it. People write it, so nothing in it is an
error: where it is not YAML each field is read by itself, one that is not YAML as the text it is,
with a warning; the body is there in any case.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

_FENCED = re.compile(r"\A---[ \t]*\n(?P<yaml>.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"(?P<name>[A-Za-z_][\w.-]*)[ \t]*:(?=\s|\Z)")
_TEXT_FIELDS = ("name", "description")
"""Fields that are texts: what YAML takes for a list or number, as `[Goal: x]`, is a text there."""


class FrontMatter(NamedTuple):
    """What a file says about itself, and its body."""

    fields: dict[str, Any]
    """The fields by name; empty where there are none."""
    body: str
    """The text after the front matter, without blank lines around it."""
    warning: str | None = None
    """Why fields were left out or read as text, in one line."""


def parse_front_matter(text: str) -> FrontMatter:
    r"""Split a file into the fields of its front matter and its body.

    >>> parse_front_matter("---\nname: a\nbackground: yes\n---\nDo it.\n")
    FrontMatter(fields={'name': 'a', 'background': True}, body='Do it.', warning=None)
    >>> parse_front_matter("Do it.")
    FrontMatter(fields={}, body='Do it.', warning=None)
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if not re.match(r"---[ \t]*(\n|\Z)", text):
        return FrontMatter({}, text.strip())
    fenced = _FENCED.match(text)
    if fenced is None:
        return FrontMatter({}, text.strip(), "the front matter has no second line of ---")
    body = text[fenced.end() :].strip()
    warning = None
    try:
        fields = _load_yaml(fenced["yaml"])
    except ValueError as error:
        fields, as_text = _read_by_field(fenced["yaml"])
        warning = f"the front matter is not YAML: {error}"
        if as_text:
            warning += f"; read as text: {', '.join(as_text)}"
    if fields is None:
        return FrontMatter({}, body)
    if not isinstance(fields, dict):
        return FrontMatter({}, body, "the front matter is not a list of fields: name, value")
    for key in _TEXT_FIELDS:
        if not isinstance(fields.get(key), str | None):
            fields[key] = _fold_text(dict(_split_fields(fenced["yaml"])).get(key, ""))
    return FrontMatter({_name_field(key): value for key, value in fields.items()}, body, warning)


def read_flag(value: object) -> bool | None:
    """Return the truth of a field: yes, on, true and 1 are true; None if it is neither."""
    word = str(value).strip().lower()
    if word in {"true", "yes", "on", "1"}:
        return True
    return False if word in {"false", "no", "off", "0"} else None


def read_names(value: object) -> tuple[str, ...] | None:
    """Return the names of a field: a list, or one text with commas; None if it is neither.

    Commas inside parentheses separate nothing: `Bash(git log, git diff), Read` is two names.
    """
    if isinstance(value, str):
        value = re.split(r",(?![^(]*\))", value)
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        return None
    return tuple(name.strip() for name in value if name.strip())


def _name_field(key: object) -> str:
    """Return the name of a field as it was written: YAML takes a bare `on` for true."""
    return "on" if key is True else str(key)


def _read_by_field(text: str) -> tuple[dict[str, Any], list[str]]:
    """Return the fields of what is not YAML as a whole, and the names of those read as text."""
    fields: dict[str, Any] = {}
    as_text = []
    for name, written in _split_fields(text):
        if name in fields:
            continue
        try:
            (fields[name],) = _load_yaml(f"{name}:{written}".replace("\t", "  ")).values()
        except ValueError:
            fields[name] = _fold_text(written)
            as_text.append(name)
    return fields, as_text


def _split_fields(text: str) -> list[tuple[str, str]]:
    """Return each field's name and what is written after its colon, with the lines below it.

    Lines that name no field belong to the one above, and so do those between tags of examples.
    """
    fields: list[tuple[str, list[str]]] = []
    in_example = False
    for line in text.split("\n"):
        if line.startswith("#"):
            continue
        named = None if in_example else _FIELD.match(line)
        if named:
            fields.append((named["name"], [line[named.end() :]]))
        elif fields:
            fields[-1][1].append(line)
        in_example = line.rfind("<example>") > line.rfind("</example>") or (
            in_example and "</example>" not in line
        )
    return [(name, "\n".join(lines)) for name, lines in fields]


def _fold_text(written: str) -> str:
    """Return the text of a field as YAML folds it: lines are joined, blank ones end a paragraph."""
    written = re.sub(r"\A\s*[|>][+-]?[ \t]*\n", "", written).strip()
    if len(written) > 1 and written[0] == written[-1] and written[0] in "\"'":
        written = written[1:-1]
    return "\n".join(" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", written))


def _load_yaml(text: str) -> Any:
    """Return what YAML says, with dates as the texts they were; ValueError if it is not YAML."""
    import yaml  # only for files that have front matter

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers = {  # noqa: RUF012 (as PyYAML has it)
            first: [(tag, form) for tag, form in forms if tag != "tag:yaml.org,2002:timestamp"]
            for first, forms in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

    try:
        return yaml.load(text, Loader)  # noqa: S506 (a SafeLoader)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(getattr(error, "problem", None) or error).split())) from error
    except (RecursionError, ValueError, TypeError) as error:
        raise ValueError(" ".join(str(error).split())) from error
