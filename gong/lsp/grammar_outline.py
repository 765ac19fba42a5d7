"""The outline of a file by the grammar of its language: where no language server takes it.

Grammars come with the extra `outline`, one package for each language. What cannot be parsed is left
out, and what stands around it is kept. `outline_program` parses a file in a process of its own.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from ..errors import GongError
from .answers import format_symbol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tree_sitter import Node, Parser, Query

_MAX_NAME = 120
_CAPTURE = "node"
_SCRIPT_KINDS = {
    "abstract_class_declaration": "class",
    "abstract_method_signature": "method",
    "class_declaration": "class",
    "enum_declaration": "enum",
    "field_definition": "property",
    "function_declaration": "function",
    "function_signature": "function",
    "generator_function_declaration": "function",
    "interface_declaration": "interface",
    "internal_module": "namespace",
    "method_definition": "method",
    "method_signature": "method",
    "module": "namespace",
    "property_signature": "property",
    "public_field_definition": "property",
    "type_alias_declaration": "type",
    "variable_declarator": "variable",
}
_C_KINDS = {
    "class_specifier": "class",
    "concept_definition": "concept",
    "declaration": "variable",
    "enum_specifier": "enum",
    "field_declaration": "field",
    "function_definition": "function",
    "namespace_definition": "namespace",
    "preproc_def": "constant",
    "preproc_function_def": "macro",
    "struct_specifier": "struct",
    "type_definition": "type",
    "union_specifier": "union",
}
_C_BODIES = frozenset({"compound_statement"})


class _Language(NamedTuple):
    """A grammar, and which of its nodes are symbols."""

    package: str
    function: str
    """The function of the package that returns the grammar."""
    kinds: Mapping[str, str]
    """Types of nodes, with the word for such a symbol."""
    bodies: frozenset[str]
    """Types of nodes in which a variable is no symbol of the file."""


_SCRIPT_BODIES = frozenset({"statement_block", "arrow_function", "function_expression"})
_TSX = _Language("tree_sitter_typescript", "language_tsx", _SCRIPT_KINDS, _SCRIPT_BODIES)
_LANGUAGES = {
    "python": _Language(
        "tree_sitter_python",
        "language",
        {
            "assignment": "variable",
            "class_definition": "class",
            "function_definition": "function",
            "type_alias_statement": "type",
        },
        frozenset({"function_definition", "lambda"}),
    ),
    "typescript": _TSX._replace(function="language_typescript"),
    "typescriptreact": _TSX,
    "javascript": _Language("tree_sitter_javascript", "language", _SCRIPT_KINDS, _SCRIPT_BODIES),
    "go": _Language(
        "tree_sitter_go",
        "language",
        {
            "const_spec": "constant",
            "field_declaration": "field",
            "function_declaration": "function",
            "method_declaration": "method",
            "method_elem": "method",
            "type_alias": "type",
            "type_spec": "type",
            "var_spec": "variable",
        },
        frozenset({"block"}),
    ),
    "rust": _Language(
        "tree_sitter_rust",
        "language",
        {
            "const_item": "constant",
            "enum_item": "enum",
            "enum_variant": "variant",
            "field_declaration": "field",
            "function_item": "function",
            "function_signature_item": "function",
            "impl_item": "impl",
            "macro_definition": "macro",
            "mod_item": "module",
            "static_item": "variable",
            "struct_item": "struct",
            "trait_item": "trait",
            "type_item": "type",
            "union_item": "union",
        },
        frozenset({"block"}),
    ),
    "c": _Language("tree_sitter_c", "language", _C_KINDS, _C_BODIES),
    "cpp": _Language("tree_sitter_cpp", "language", _C_KINDS, _C_BODIES),
    "java": _Language(
        "tree_sitter_java",
        "language",
        {
            "annotation_type_declaration": "annotation",
            "class_declaration": "class",
            "constructor_declaration": "constructor",
            "enum_constant": "constant",
            "enum_declaration": "enum",
            "field_declaration": "field",
            "interface_declaration": "interface",
            "method_declaration": "method",
            "record_declaration": "record",
        },
        frozenset(),
    ),
}
_ENDS = {
    **dict.fromkeys(("py", "pyi"), "python"),
    **dict.fromkeys(("ts", "mts", "cts"), "typescript"),
    **dict.fromkeys(("js", "mjs", "cjs", "jsx"), "javascript"),
    **dict.fromkeys(("c", "h"), "c"),
    **dict.fromkeys(("cc", "cpp", "cxx", "hh", "hpp"), "cpp"),
    "tsx": "typescriptreact",
    "go": "go",
    "rs": "rust",
    "java": "java",
}
_VARIABLES = frozenset({"constant", "variable"})
_CONTAINERS = frozenset({"class", "interface", "enum", "record", "impl", "trait", "struct"})
_NAME_FIELDS = ("name", "left", "property", "declarator")
_NO_NAMES = frozenset({"attribute", "subscript"})
_FUNCTIONS = frozenset(
    {"arrow_function", "function", "function_expression", "generator_function", "lambda"}
)


class OutlineError(GongError):
    """A file that has no outline; the text says why."""


def find_language(path: str) -> str | None:
    """Return the language of a file that has a grammar here; None for any other."""
    name = path.rpartition("/")[2]
    return _ENDS.get(name.rpartition(".")[2].lower()) if "." in name else None


def list_symbols(text: str, language: str) -> Iterator[str]:
    """Yield a line for each symbol of a text in a language of `find_language`.

    Raises OutlineError where its package is not installed, or the text is nested too deep.
    """
    parser, query = _load_grammar(language)
    from tree_sitter import QueryCursor  # it is there now

    tree = parser.parse(text.encode("utf-8", "replace"))
    nodes = QueryCursor(query).captures(tree.root_node).get(_CAPTURE, [])
    kinds, bodies = _LANGUAGES[language].kinds, _LANGUAGES[language].bodies
    around: list[tuple[int, str]] = []
    """The symbols around a node, from outside in: where each ends, and its kind; "" for a body."""
    for node in sorted(nodes, key=lambda node: (node.start_byte, -node.end_byte)):
        while around and around[-1][0] <= node.start_byte:
            around.pop()
        names = _find_names(node) if node.type in kinds else ()
        if names:
            containers = [kind for _, kind in around if kind]
            kind = _choose_kind(node, kinds[node.type], containers[-1] if containers else "")
            if len(containers) == len(around) or kind not in _VARIABLES:
                line = names[0].start_point.row + 1
                yield format_symbol(line, len(containers), kind, _join_names(node, names))
                around.append((node.end_byte, kind))
        if node.type in bodies:
            around.append((node.end_byte, ""))


@cache
def _load_grammar(language: str) -> tuple[Parser, Query]:
    """Return a parser, and a query for symbols and for the bodies of functions."""
    from tree_sitter import Language, Parser, Query  # only where a file is parsed

    package, function, kinds, bodies = _LANGUAGES[language]
    try:
        grammar = Language(getattr(import_module(package), function)())
    except ImportError:
        raise OutlineError(
            f"the grammar of {language} is not installed: pip install 'gong[outline]'"
        ) from None
    wanted = [kind for kind in (*kinds, *bodies) if grammar.id_for_node_kind(kind, True)]
    return Parser(grammar), Query(grammar, " ".join(f"({kind}) @{_CAPTURE}" for kind in wanted))


def _find_names(node: Node) -> Sequence[Node]:
    """Return the names of a symbol; none where it has none, or is only mentioned."""
    if node.type.endswith("_specifier") and node.child_by_field_name("body") is None:
        return ()  # `struct stat *status` in C
    fields = ("trait", "type") if node.type == "impl_item" else _NAME_FIELDS
    for field in fields:
        names = [*map(_find_declared, node.children_by_field_name(field))]
        if names:
            has_others = any("pattern" in name.type or name.type in _NO_NAMES for name in names)
            return () if has_others else names
    return ()


def _join_names(node: Node, names: Sequence[Node]) -> str:
    """Return what a symbol is called, with the type that it is of in Go and Rust."""
    text = ", ".join(map(_format_node, names))
    receiver = node.child_by_field_name("receiver")
    if receiver is not None:
        text = f"{_format_node(receiver)} {text}"
    elif node.child_by_field_name("trait") is not None:
        text = f"{text} for {_format_node(node.child_by_field_name('type'))}"
    return text[:_MAX_NAME]


def _find_declared(node: Node) -> Node:
    """Return the name that a declarator of C declares, without pointers and parameters."""
    while True:
        inner = node.child_by_field_name("declarator") or node.child_by_field_name("name")
        if node.type in {"parenthesized_declarator", "reference_declarator"}:
            inner = inner or next(iter(node.named_children), None)
        if inner is None or node.type == "qualified_identifier":
            return node
        node = inner


def _is_function_declared(node: Node) -> bool:
    """Tell whether a declaration of C is one of a function, and not of a pointer to some."""
    inner = node.child_by_field_name("declarator")
    while inner is not None and inner.type in {"pointer_declarator", "reference_declarator"}:
        inner = inner.child_by_field_name("declarator") or next(iter(inner.named_children), None)
    if inner is None or inner.type != "function_declarator":
        return False
    declared = inner.child_by_field_name("declarator")
    return declared is not None and declared.type != "parenthesized_declarator"


def _choose_kind(node: Node, kind: str, container: str) -> str:
    """Return the kind of a symbol by where it stands, and by what it declares or holds."""
    if kind in {"field", "variable"} and _is_function_declared(node):
        kind = "function"
    if kind == "function" and container in _CONTAINERS:
        return "method"
    value = node.child_by_field_name("value") or node.child_by_field_name("right")
    if kind == "variable" and value is not None and value.type in _FUNCTIONS:
        return "function"
    return "field" if kind == "variable" and container in _CONTAINERS else kind


def _format_node(node: Node | None) -> str:
    """Return the text of a node as one line."""
    text = node.text if node is not None else None
    return " ".join((text or b"").decode("utf-8", "replace").split())
