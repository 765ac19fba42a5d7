"""Pipelines joined by `&&` and `||`, as the shell groups them; pure.

The grammar puts a list inside of the pipeline before it, and a redirection around all of them: in
`a | b && c < f` the shell feeds `f` to `c` alone, and `a` to `b` alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .command import CommandTooLong

if TYPE_CHECKING:
    from tree_sitter import Node

_MOST_WAITING = 10_000  # nodes of a list that wait for what stands before them
CHAIN_NODES = {"list", "pipeline", "redirected_statement"}
REDIRECT_NODES = {"file_redirect", "heredoc_redirect", "herestring_redirect"}


@dataclass(slots=True)
class Stage:
    """One command of a pipeline, simple or compound."""

    body: Node | None = None
    """None where there is nothing but redirections."""
    redirects: list[Node] = field(default_factory=list)


@dataclass(slots=True)
class Pipeline:
    """Commands of which each feeds the next."""

    operator: str = ""
    """What joins it to the pipeline before: `&&` or `||`."""
    stages: list[Stage] = field(default_factory=list)


def list_pipelines(node: Node) -> list[Pipeline]:
    """Return the pipelines of a node of `CHAINS`, in the order of the source.

    Nothing here calls itself: a list may be thousands of commands long. Raises TooLong.
    """
    joined = [Pipeline()]
    waiting: list[Node | list[Node]] = [node]
    while waiting:
        one = waiting.pop()
        if len(waiting) > _MOST_WAITING:
            raise CommandTooLong
        if isinstance(one, list):  # redirections of the stage before them
            joined[-1].stages[-1].redirects += one
        elif one.type == "redirected_statement":
            body = one.child_by_field_name("body")
            redirects = [each for each in one.children if each.type in REDIRECT_NODES]
            if body is None:
                joined[-1].stages.append(Stage(None, redirects))
            else:
                waiting += [redirects, body]
        elif one.type in CHAIN_NODES:
            waiting += reversed(one.children)
        elif one.type in {"&&", "||"}:
            joined.append(Pipeline(one.type))
        elif one.is_named:
            joined[-1].stages.append(Stage(one))
    return joined
