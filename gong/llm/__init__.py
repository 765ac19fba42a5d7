"""The unified client: one vocabulary for every model.

What stands in `__all__` is loaded when it is first used, so that importing this costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tape.model.entries import Usage

    from ..errors import Aborted, UnsupportedToolChoice
    from ..sdk.functions import Tool
    from ..sdk.generation import (
        generate,
        generate_object,
        set_default_client,
        stream_object,
        stream_text,
    )
    from ..sdk.results import GenerateResult, StepFinish, StepResult, StreamResult
    from .accumulate import StreamAccumulator
    from .client import Client
    from .models import Catalogue, ModelInfo, Preset, Timeouts, cost
    from .picture_sources import Pictures
    from .retry import RetryPolicy
    from .types import (
        Grammar,
        RateLimit,
        Request,
        Response,
        StreamEvent,
        ToolChoice,
        ToolSpec,
    )

_HOMES = {
    "accumulate": ("StreamAccumulator",),
    "catalogue": ("Catalogue", "ModelInfo", "cost"),
    "client": ("Client",),
    ".errors": ("Aborted", "UnsupportedToolChoice"),
    "functions": ("Tool",),
    "generation": (
        *("generate", "generate_object", "set_default_client", "stream_object", "stream_text"),
    ),
    "pictures": ("Pictures",),
    "presets": ("Preset", "Timeouts"),
    "results": ("GenerateResult", "StepFinish", "StepResult", "StreamResult"),
    "retry": ("RetryPolicy",),
    "types": (
        *("Grammar", "RateLimit", "Request", "Response"),
        *("StreamEvent", "ToolChoice", "ToolSpec", "Usage"),
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Aborted",
    "Catalogue",
    "Client",
    "GenerateResult",
    "Grammar",
    "ModelInfo",
    "Pictures",
    "Preset",
    "RateLimit",
    "Request",
    "Response",
    "RetryPolicy",
    "StepFinish",
    "StepResult",
    "StreamAccumulator",
    "StreamEvent",
    "StreamResult",
    "Timeouts",
    "Tool",
    "ToolChoice",
    "ToolSpec",
    "UnsupportedToolChoice",
    "Usage",
    "cost",
    "generate",
    "generate_object",
    "set_default_client",
    "stream_object",
    "stream_text",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME_OF[name]}", __package__), name)
