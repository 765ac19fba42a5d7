"""Schemas of tools as every provider takes them; pure.

Servers send schemas that are not JSON Schema, and ones that some provider refuses, with the whole
request. What is valid and taken by all is left as it is.

    sent                                      for models
    ----------------------------------------  -----------------------------------------------------
    `type` "int", "str", "dict", upper case   the type that is meant; an unknown one is left out
    null in the place of a schema or list     nothing; `properties` {} at the root
    true, false in the place of a schema      {}, {"not": {}}
    an array without `items`                  `items` {}
    a list of `items` (draft 7)               `prefixItems`
    `anyOf` and the like at the root          the properties of all; what all require is required
    `$ref` at the root                        what it refers to
    `$ref` to nothing, or to another file,    {}
    and references that lead in a circle
    a `pattern` that Python cannot read       nothing
    a value twice in `enum`                   once
    a property named "a b", "$top"            "a_b", "_top", and a call has the own name
    another word that JSON Schema has not     nothing

The server checks arguments itself, so what is left out here costs nothing but advice.
"""

from __future__ import annotations

import json
import re
import warnings
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from jsonschema.exceptions import ValidationError

_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = ("items", "not", "if", "then", "else", "contains", "propertyNames")
_SINGLE_OR_BOOLEAN = ("additionalProperties", "unevaluatedProperties", "unevaluatedItems")
_ANY_VALUE = {"const", "default"}
"""Words whose value may be null."""
_TYPES = {
    **dict.fromkeys(("string", "str", "text"), "string"),
    **dict.fromkeys(("integer", "int", "long"), "integer"),
    **dict.fromkeys(("number", "float", "double", "decimal"), "number"),
    **dict.fromkeys(("boolean", "bool"), "boolean"),
    **dict.fromkeys(("object", "dict", "map"), "object"),
    **dict.fromkeys(("array", "list", "tuple"), "array"),
    **dict.fromkeys(("null", "none"), "null"),
}
_MAX_CHARS = 64
"""Characters of the name of a property (Anthropic)."""
_FOREIGN = re.compile(r"[^A-Za-z0-9_.-]")
_MAX_FAULTS = 1000
_MAX_STEPS = 20
"""References, and choices within choices, that are followed at the root."""


class TranslatedSchema(NamedTuple):
    """The schema of a tool's arguments."""

    schema: dict[str, Any]
    names: dict[str, str]
    """Properties that have another name in `schema` → their own name."""


class UnusableSchema(Exception):
    """A schema cannot be made one that providers take; the text says why."""


def translate_schema(sent: Mapping[str, Any]) -> TranslatedSchema:
    """Return the schema of a tool for models; raises UnusableSchema."""
    try:
        schema = _translate_node({**sent, "type": "object"}, sent)
        schema = _merge_choices(_inline_root(schema, 0), 0)
        schema.setdefault("properties", {})
        schema, names = _rename_properties(schema)
        schema = _translate_node(schema, schema)  # what a reference led to may have moved
        return TranslatedSchema(_remove_faults(schema), names)
    except RecursionError:
        raise UnusableSchema("its schema is nested too deeply") from None


def _translate_node(node: Any, root: Mapping[str, Any]) -> Any:
    """Return a schema without what is not JSON Schema; booleans become objects."""
    if isinstance(node, bool):
        return {} if node else {"not": {}}
    if not isinstance(node, dict):
        return {}
    for key in ("$ref", "$dynamicRef"):
        if key in node and not _has_target(node[key], root):
            node = {name: value for name, value in node.items() if name != key}
    if isinstance(node.get("items"), list):
        node = {**node, "prefixItems": node["items"], "items": node.get("additionalItems")}
        node.pop("additionalItems", None)
    plain = {key: _translate_word(key, value, root) for key, value in node.items()}
    plain = {key: value for key, value in plain.items() if value is not None or key in _ANY_VALUE}
    for limit, other in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(plain.get(limit), bool):  # draft 4
            is_exclusive = plain.pop(limit)
            if is_exclusive and other in plain:
                plain[limit] = plain.pop(other)
    kind = plain.get("type")
    if (kind == "array" or (isinstance(kind, list) and "array" in kind)) and not (
        "items" in plain or "prefixItems" in plain
    ):
        plain["items"] = {}
    return plain


def _translate_word(key: str, value: Any, root: Mapping[str, Any]) -> Any:  # noqa: C901, PLR0911 (a case each)
    """Return the value of a word of a schema; None where it says nothing."""
    if key in _ANY_VALUE or value is None:
        return value
    if key in _NAMED:
        if not isinstance(value, dict):
            return None
        return {
            name: _translate_node(node, root)
            for name, node in value.items()
            if key != "patternProperties" or _is_pattern(name)
        }
    if key in _LISTED:
        return (
            [_translate_node(node, root) for node in value] or None
            if isinstance(value, list)
            else None
        )
    if key in _SINGLE:
        return _translate_node(value, root)
    if key in _SINGLE_OR_BOOLEAN:
        return value if isinstance(value, bool) else _translate_node(value, root)
    if key == "type":
        return _translate_type(value)
    if key == "required":
        named = value if isinstance(value, list) else []
        return list(dict.fromkeys(word for word in named if isinstance(word, str))) or (
            [] if value == [] else None
        )
    if key == "enum":
        return _drop_repeated(value) or None if isinstance(value, list) else None
    if key == "pattern":
        return value if isinstance(value, str) and _is_pattern(value) else None
    return value


def _drop_repeated(values: list[Any]) -> list[Any]:
    """Return values, each once; 1 and true are two."""
    return list({json.dumps(value, sort_keys=True): value for value in values}.values())


def _is_pattern(text: str) -> bool:
    """Return whether a text is a regular expression as Python reads it, which providers check."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of sets within sets
            re.compile(text)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def _translate_type(value: Any) -> Any:
    if isinstance(value, list):
        kinds = [_translate_type(kind) for kind in value]
        return list(dict.fromkeys(kinds)) if kinds and all(kinds) else None
    return _TYPES.get(value.lower()) if isinstance(value, str) else None


def _find_referred(reference: Any, root: Mapping[str, Any]) -> Any:
    """Return what a reference inside a schema refers to; None for any other."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    if reference[1:2] not in {"", "/"}:  # an anchor
        return {} if _has_anchor(root, reference[1:]) else None
    target: Any = root
    for step in reference[2:].split("/") if reference[1:] else ():
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(target, list) and name.isdecimal() and int(name) < len(target):
            target = target[int(name)]
        elif isinstance(target, dict) and name in target:
            target = target[name]
        else:
            return None
    return target if isinstance(target, dict | bool) else None


def _has_target(reference: Any, root: Mapping[str, Any]) -> bool:
    """Return whether a reference leads to a schema, over others or at once."""
    for _ in range(_MAX_STEPS):
        referred = _find_referred(reference, root)
        if not isinstance(referred, dict) or "$ref" not in referred:
            return referred is not None
        reference = referred["$ref"]
    return False


def _has_anchor(node: Any, name: str) -> bool:
    inner: Iterable[Any] = ()
    if isinstance(node, dict):
        if name in {node.get("$anchor"), node.get("$dynamicAnchor")}:
            return True
        inner = node.values()
    elif isinstance(node, list):
        inner = node
    return any(_has_anchor(node, name) for node in inner)


def _inline_root(schema: dict[str, Any], steps: int) -> dict[str, Any]:
    """Return a schema whose root is no reference."""
    if "$ref" not in schema:
        return schema
    rest = {key: value for key, value in schema.items() if key != "$ref"}
    referred = _find_referred(schema["$ref"], schema)
    if not isinstance(referred, dict) or referred is schema or steps > _MAX_STEPS:
        return rest
    return _inline_root({**referred, **rest}, steps + 1)


def _merge_choices(schema: dict[str, Any], steps: int) -> dict[str, Any]:
    """Return a schema without choices at its root: the properties of all of them."""
    merged = {key: value for key, value in schema.items() if key not in {*_LISTED, "not", "enum"}}
    if steps > _MAX_STEPS:
        return merged
    for key in ("allOf", "anyOf", "oneOf"):
        choices = [
            _merge_choices(
                _inline_root({**schema, **choice}, 0) if "$ref" in choice else choice, steps + 1
            )
            for choice in schema.get(key, ())
        ]
        if not choices:
            continue
        properties = merged.get("properties", {})
        for choice in choices:
            for name, schema_of_one in choice.get("properties", {}).items():
                known = properties.get(name, schema_of_one)
                properties = {**properties, name: _join_schemas(known, schema_of_one)}
            if choice.get("additionalProperties") not in {None, False}:
                merged.pop("additionalProperties", None)
        required = [{*choice.get("required", ())} for choice in choices]
        needed = set.union(*required) if key == "allOf" else set.intersection(*required)
        merged["properties"] = properties
        named = [*merged.get("required", ()), *sorted(needed)]
        if named:
            merged["required"] = list(dict.fromkeys(named))
    return merged


def _join_schemas(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Return a schema of values that one of two schemas takes."""
    known = first["anyOf"] if [*first] == ["anyOf"] else [first]
    return first if second in known else {"anyOf": [*known, second]}


def _rename_properties(schema: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a schema whose properties have names that providers take, and their own names."""
    properties = schema["properties"]
    new = {name: _build_name(name, properties) for name in properties}
    names = {new_name: name for name, new_name in new.items() if new_name != name}
    if not names:
        return schema, {}
    schema = {**schema, "properties": {new[name]: value for name, value in properties.items()}}
    if "required" in schema:
        schema["required"] = [new.get(name, name) for name in schema["required"]]
    return schema, names


def _build_name(name: str, taken: Mapping[str, Any]) -> str:
    clean = _FOREIGN.sub("_", name)
    if clean == name and 0 < len(name) <= _MAX_CHARS:
        return name
    others = [other for other in taken if other != name and _FOREIGN.sub("_", other) == clean]
    if clean and len(clean) <= _MAX_CHARS and not others:
        return clean
    digest = sha256(name.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{clean[: _MAX_CHARS - 9]}_{digest}"


def _remove_faults(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that is valid: words whose values are not are left out of it (in place)."""
    from jsonschema.validators import Draft202012Validator  # it loads slowly

    judge = Draft202012Validator(Draft202012Validator.META_SCHEMA)
    for _ in range(_MAX_FAULTS):
        fault: ValidationError | None = next(iter(judge.iter_errors(schema)), None)
        if fault is None:
            return schema
        place = [*fault.absolute_path]
        if not place:
            break
        holder: Any = schema
        for step in place[:-1]:
            holder = holder[step]
        del holder[place[-1]]
    raise UnusableSchema("its schema is not JSON Schema")
