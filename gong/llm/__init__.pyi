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
from .apis import register_api
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
    "register_api",
    "set_default_client",
    "stream_object",
    "stream_text",
]
