"""Python objects that settings name: `module:object`, or an entry point of an installed package."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def load_object(name: str, group: str) -> Any:
    """Return what `module:object` names, an entry point of a group, or else a module.

    Raises ImportError or AttributeError if there is none, and whatever importing it raises.
    """
    module, _, attribute = name.partition(":")
    if not attribute:
        from importlib.metadata import entry_points  # slow to load

        points = [*entry_points(group=group, name=name)]
        return points[0].load() if points else import_module(name)
    target: Any = import_module(module)
    for part in attribute.split("."):
        target = getattr(target, part)
    return target
