"""The packages' modules as syntax trees, for tests that judge source: each is parsed once."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parent.parent
PACKAGES = ("tape", "gong")


def parse_files(root: Path, files: Iterable[Path]) -> dict[Path, ast.Module]:
    """Return file → syntax tree; files are named from the root.

    Without the collector of garbage, which finds none in trees and takes longer than parsing.
    """
    gc.disable()
    try:
        return {file.relative_to(root): ast.parse(file.read_text("utf-8")) for file in files}
    finally:
        gc.enable()


@cache
def parse_package(root: Path, package: str) -> dict[Path, ast.Module]:
    """Return file → syntax tree of every module of a package."""
    trees = parse_files(root, sorted((root / package).rglob("*.py")))
    gc.freeze()
    return trees


def parse_packages() -> dict[Path, ast.Module]:
    """Return file → syntax tree of every module of both packages."""
    return {
        file: tree for package in PACKAGES for file, tree in parse_package(ROOT, package).items()
    }


@cache
def list_nodes(root: Path, package: str) -> list[tuple[Path, ast.AST]]:
    """Return every node of a package with its file."""
    trees = parse_package(root, package)
    return [(file, node) for file, tree in trees.items() for node in ast.walk(tree)]


def list_all_nodes() -> list[tuple[Path, ast.AST]]:
    """Return every node of both packages with its file."""
    return [pair for package in PACKAGES for pair in list_nodes(ROOT, package)]
