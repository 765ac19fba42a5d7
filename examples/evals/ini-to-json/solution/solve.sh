#!/bin/bash
cat > convert.py <<'PY'
"""Prints an .ini file as JSON: convert.py FILE."""

import json
import re
import sys

STRING = r'"(?:[^"\\]|\\["\\n])*"'
WORDS = dict.fromkeys(("true", "yes", "on"), True) | dict.fromkeys(("false", "no", "off"), False)


def read_value(text):
    """Return the value of a text that is no array."""
    if not text:
        return None
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    if re.fullmatch(r"-?(0|[1-9]\d*)", text, re.ASCII):
        return int(text)
    if re.fullmatch(r"-?(0|[1-9]\d*)\.\d+", text, re.ASCII):
        return float(text)
    if text.startswith('"'):
        if not re.fullmatch(STRING, text):
            raise ValueError(f"{text} is no text in quotes")
        return re.sub(r"\\(.)", lambda match: match[1].replace("n", "\n"), text[1:-1])
    return text


def read_array(text):
    """Return the values of an array."""
    if not text.endswith("]"):
        raise ValueError("the array has no end")
    inside = text[1:-1].strip()
    if not inside:
        return []
    items, rest = [], inside
    while True:
        match = re.match(rf"\s*({STRING}|[^,\"\[\]]*?)\s*(,|$)", rest)
        if not match:
            raise ValueError(f"{text} is no array of simple values")
        items.append(read_value(match[1]))
        if not match[2]:
            return items
        rest = rest[match.end() :]


def read_line(line, top, section):
    """Add a line to the object of its section; return the section of the next line."""
    if line.startswith("["):
        if not re.fullmatch(r"\[[^\[\].]+(\.[^\[\].]+)*\]", line):
            raise ValueError("no name of a section")
        section = top
        for name in line[1:-1].split("."):
            section = section.setdefault(name.strip(), {})
            if not isinstance(section, dict):
                raise ValueError(f"{name} is a key already")
        return section
    match = re.fullmatch(r"([^=:]+?)\s*[=:]\s*(.*)", line)
    if not match:
        raise ValueError("neither a section nor a key with a value")
    key, text = match.groups()
    if isinstance(section.get(key), dict):
        raise ValueError(f"{key} is a section already")
    section[key] = read_array(text) if text.startswith("[") else read_value(text)
    return section


def main(name):
    top = section = {}
    with open(name, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            text = line.strip()
            if not text or text[0] in "#;":
                continue
            try:
                section = read_line(text, top, section)
            except ValueError as error:
                sys.exit(f"{name}:{number}: {error}")
    print(json.dumps(top, indent=2, ensure_ascii=False))


main(sys.argv[1])
PY
