"""Faults in Python that its syntax tree shows for sure; pure.

category            what is found                                                      severity
------------------  -----------------------------------------------------------------  --------
sql-injection       a query that is put together: f"…{x}", "…" + x, "…" % x, .format   critical
command-injection   a shell given a command that is put together                       critical
unsafe-call         eval, exec, pickle, yaml.load, mktemp, TLS that is not checked     major
unclosed-resource   open(…) that nothing closes                                        major
swallowed-error     an except that catches everything and does nothing                 minor
mutable-default     a list, dict or set as a default                                   minor
complexity          a function with more than 15 branches                              minor
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from .findings import ReviewFinding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .diff import ReviewedFile
    from .findings import Severity

MOST_BRANCHES = 15
_QUERIES = {"execute", "executemany", "executescript", "raw", "read_sql", "text"}
_SQL = ("select ", "insert ", "update ", "delete ", "drop ", "create ", "alter ", "replace ")
_SHELLS = {"os.system", "os.popen", "commands.getoutput", "subprocess.getoutput"}
_UNSAFE = {
    "eval": "runs any code that it is given",
    "exec": "runs any code that it is given",
    "pickle.load": "runs code that the data brings",
    "pickle.loads": "runs code that the data brings",
    "marshal.loads": "is not safe for untrusted data",
    "tempfile.mktemp": "names a file that another program may create first",
}
_BRANCHES = (
    *(ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.IfExp),
    *(ast.comprehension, ast.match_case, ast.Assert),
)


class _Fault(NamedTuple):
    node: ast.AST
    severity: Severity
    category: str
    text: str
    fix: str | None = None


def find_python_faults(file: ReviewedFile) -> list[ReviewFinding]:
    """Return the faults in a file, changed or not; nothing where it is no Python."""
    try:
        tree = ast.parse(file.text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    found = []
    for fault in _walk_faults(tree):
        first = getattr(fault.node, "lineno", 1)
        last = getattr(fault.node, "end_lineno", None) or first
        if fault.category in {"complexity", "swallowed-error"}:
            last = first
        found.append(
            ReviewFinding(
                file.path, (first, last), fault.severity, fault.category, fault.text, fault.fix
            )
        )
    return found


def _walk_faults(tree: ast.Module) -> Iterator[_Fault]:
    kept = _find_kept_calls(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Call():
                yield from _check_call(node)
                if _name_call(node) in {"open", "io.open"} and id(node) not in kept:
                    said = "nothing closes this file if an error is raised before its end"
                    fix = "with open(…) as file:"
                    yield _Fault(node, "major", "unclosed-resource", said, fix)
            case ast.ExceptHandler():
                yield from _check_handler(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from _check_function(node)


def _name_call(node: ast.Call) -> str:
    """Return the dotted name that is called; empty for anything else."""
    parts: list[str] = []
    called: ast.expr = node.func
    while isinstance(called, ast.Attribute):
        parts.append(called.attr)
        called = called.value
    if not isinstance(called, ast.Name):
        return f".{parts[0]}" if parts else ""
    return ".".join((called.id, *reversed(parts)))


def _is_composed(node: ast.expr | None) -> bool:
    """Return whether a text is put together from parts that are not all written there."""
    match node:
        case ast.JoinedStr(values=values):
            return any(isinstance(one, ast.FormattedValue) for one in values)
        case ast.BinOp(op=ast.Add() | ast.Mod(), left=left, right=right):
            is_text = any(_is_text(one) for one in (left, right))
            return is_text and not (_is_fixed(left) and _is_fixed(right))
        case ast.Call(func=ast.Attribute(attr="format", value=value), args=args, keywords=keywords):
            return _is_text(value) and bool(args or keywords)
    return False


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _is_fixed(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_fixed(node.left) and _is_fixed(node.right)
    return isinstance(node, ast.Constant)


def _has_sql(node: ast.expr) -> bool:
    texts = (
        one.value.lower().lstrip()
        for one in ast.walk(node)
        if isinstance(one, ast.Constant) and isinstance(one.value, str)
    )
    return any(one.startswith(_SQL) for one in texts)


def _check_call(node: ast.Call) -> Iterator[_Fault]:
    name = _name_call(node)
    last = name.rpartition(".")[2]
    first = node.args[0] if node.args else None
    options = {one.arg: one.value for one in node.keywords if one.arg}
    if last in _QUERIES and first is not None and _is_composed(first) and _has_sql(first):
        said = "the query is built from values, which can change what it does"
        yield _Fault(node, "critical", "sql-injection", said, "placeholders and a tuple of values")
    shell = options.get("shell")
    is_shell = name in _SHELLS or (isinstance(shell, ast.Constant) and shell.value is True)
    if is_shell and first is not None and _is_composed(first):
        said = "the shell runs a command that is built from values, which can add commands"
        fix = "a list of words, without a shell"
        yield _Fault(node, "critical", "command-injection", said, fix)
    if name in _UNSAFE and not (
        name in {"eval", "exec"} and first is not None and _is_fixed(first)
    ):
        yield _Fault(node, "major", "unsafe-call", f"{name} {_UNSAFE[name]}")
    if name == "yaml.load" and not _has_safe_loader(node, options):
        said = "yaml.load makes any object that the text names"
        yield _Fault(node, "major", "unsafe-call", said, "yaml.safe_load")
    verify = options.get("verify")
    if isinstance(verify, ast.Constant) and verify.value is False:
        said = "verify=False accepts any certificate"
        yield _Fault(node, "major", "unsafe-call", said, "leave verify out")


def _has_safe_loader(node: ast.Call, options: dict[str, ast.expr]) -> bool:
    given = options.get("Loader") or (node.args[1] if len(node.args) > 1 else None)
    return given is not None and "Safe" in ast.unparse(given)


def _check_handler(node: ast.ExceptHandler) -> Iterator[_Fault]:
    catches_all = node.type is None or (
        isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"}
    )
    does_nothing = all(
        isinstance(one, ast.Pass)
        or (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
        for one in node.body
    )
    if catches_all and does_nothing:
        yield _Fault(node, "minor", "swallowed-error", "every error is caught here and lost")


def _check_function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[_Fault]:
    for default in (*node.args.defaults, *node.args.kw_defaults):
        if isinstance(default, ast.List | ast.Dict | ast.Set):
            said = f"the default of {node.name} is one object for all calls"
            yield _Fault(
                default, "minor", "mutable-default", said, "None, and create it in the function"
            )
    count = 1 + sum(isinstance(one, _BRANCHES) for one in ast.walk(node))
    if count > MOST_BRANCHES:
        said = f"{node.name} has {count} branches: divide it"
        yield _Fault(node, "minor", "complexity", said)


def _find_kept_calls(tree: ast.Module) -> set[int]:
    """Return the calls of open whose file is closed, or given to somebody who may do it."""
    kept: set[int] = set()
    for scope in ast.walk(tree):
        if not isinstance(scope, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        used = {
            one.value.id
            for one in ast.walk(scope)
            if isinstance(one, ast.Attribute)
            and one.attr in {"close", "detach"}
            and isinstance(one.value, ast.Name)
        }
        used |= _find_given_names(scope)
        for node in ast.walk(scope):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in used:
                    kept.add(id(value))
                case ast.Assign(targets=[ast.Attribute() | ast.Subscript()], value=value):
                    kept.add(id(value))
                case ast.withitem(context_expr=value):
                    kept |= {id(one) for one in ast.walk(value)}
                case ast.Return(value=ast.expr() as value) | ast.Yield(value=ast.expr() as value):
                    kept.add(id(value))
                case ast.Lambda(body=value):
                    kept.add(id(value))
                case ast.Call(args=arguments, keywords=keywords):
                    kept |= {id(one) for one in arguments}
                    kept |= {id(one.value) for one in keywords}
    return kept


def _find_given_names(scope: ast.AST) -> set[str]:
    """Return the names that are returned, given to a call, or used in `with`."""
    found: set[str] = set()
    for node in ast.walk(scope):
        match node:
            case ast.Return(value=ast.Name(id=name)) | ast.Yield(value=ast.Name(id=name)):
                found.add(name)
            case ast.withitem(context_expr=value):
                found |= {one.id for one in ast.walk(value) if isinstance(one, ast.Name)}
            case ast.Call(args=arguments, keywords=keywords):
                found |= {one.id for one in arguments if isinstance(one, ast.Name)}
                found |= {one.value.id for one in keywords if isinstance(one.value, ast.Name)}
    return found
