"""Modules that docs/library.md once named otherwise: the old names still import, with a warning."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # the module that has this name takes a tenth of the time of `tape ls`
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

RENAMED = {
    "tape.blocks": "tape.model.entries",
    "tape.entries": "tape.model.entries",
    "tape.follow": "tape.history.follow",
    "tape.payload": "tape.model.line",
    "tape.repair": "tape.context.repair",
    "tape.upkeep": "tape.store.maintenance.upkeep",
    "tape.verify": "tape.check.verify",
    "tape.view": "tape.context.view",
}
"""Old name of a module → the name it has now."""


class RenamedModuleFinder:
    """Finds the modules of RENAMED: the last of `sys.meta_path`, so other imports cost the same."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to load an old name, as the module of the new one, and warn."""
        if name not in RENAMED:
            return None
        import warnings  # noqa: PLC0415 (only old programs need it)
        from importlib.machinery import ModuleSpec  # noqa: PLC0415 (as above)

        del path, target
        new = RENAMED[name]
        warnings.warn(f"{name} is now {new}", DeprecationWarning, stacklevel=2)
        return ModuleSpec(name, _RenamedModuleLoader(new))  # type: ignore[arg-type]


class _RenamedModuleLoader:
    """Loads a module that has another name now."""

    def __init__(self, new: str) -> None:
        self._new = new

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module of the new name, imported."""
        from importlib import import_module  # noqa: PLC0415 (only old programs need it)

        del spec
        module = import_module(self._new)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give back what the import system overwrote: the module has run under its new name."""
        module.__spec__ = self._spec


def install_finder() -> None:
    """Let the old names be imported in this process."""
    if not any(isinstance(one, RenamedModuleFinder) for one in sys.meta_path):
        sys.meta_path.append(RenamedModuleFinder())
