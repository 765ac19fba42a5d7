"""The unified client: the same types for every model.

Names in `_HOMES` are loaded on first use, so that the import is fast; `__init__.pyi` has their
types.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "accumulate": ("StreamAccumulator",),
    "apis": ("register_api",),
    "client": ("Client",),
    ".errors": ("Aborted", "UnsupportedToolChoice"),
    "models": ("Catalogue", "ModelInfo", "Preset", "Timeouts", "cost"),
    "picture_sources": ("Pictures",),
    "retry": ("RetryPolicy",),
    "types": (
        "Grammar", "RateLimit", "Request", "Response",
        "StreamEvent", "ToolChoice", "ToolSpec", "Usage",
    ),
    ".sdk.functions": ("Tool",),
    ".sdk.generation": (
        "generate", "generate_object", "set_default_client", "stream_object", "stream_text",
    ),
    ".sdk.results": ("GenerateResult", "StepFinish", "StepResult", "StreamResult"),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = list(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME_OF[name]}", __package__), name)
