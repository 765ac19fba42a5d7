"""A request as JSON → its answer as JSON: the same for standard input and for HTTP."""

from __future__ import annotations

import asyncio
import traceback
from typing import TYPE_CHECKING, Any

import msgspec

from tape.errors import TapeError
from tape.formats.wire import decode_json

from ..errors import GongError
from .methods import (
    FAILED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHODS,
    PARSE_ERROR,
    UNKNOWN_METHOD,
)

if TYPE_CHECKING:
    from ..hosting.hub import SessionHub


async def answer_request(  # noqa: PLR0911 (an error each)
    hub: SessionHub, line: bytes
) -> dict[str, Any]:
    """Return the answer to a request: {id, result} or {id, error}.

    What is not UTF-8 in it, and half a surrogate pair, becomes U+FFFD.
    """
    try:
        request = decode_json(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        return build_error(None, PARSE_ERROR, f"this line is not JSON: {error}")
    if not isinstance(request, dict):
        return build_error(None, INVALID_REQUEST, "a request is an object: {id, method, params}")
    identity = request.get("id")
    if not isinstance(identity, str | int) or isinstance(identity, bool):
        return build_error(None, INVALID_REQUEST, "a request has an id: a text or a whole number")
    name = request.get("method")
    method = METHODS.get(name) if isinstance(name, str) else None
    if method is None:
        known = ", ".join(METHODS)
        return build_error(identity, UNKNOWN_METHOD, f"no method {name!r}; there are: {known}")
    try:
        params = msgspec.convert(request.get("params") or {}, type=method.params)
    except (msgspec.ValidationError, RecursionError) as error:
        return build_error(identity, INVALID_PARAMS, f"{name}: {error}")
    try:
        return {"id": identity, "result": await method.run(hub, params)}
    except (GongError, TapeError) as error:
        data = {
            "class": getattr(error, "error_class", type(error).__name__),
            "exit_code": error.exit_code,
        }
        return build_error(identity, FAILED, str(error), data)
    except asyncio.CancelledError:
        return build_error(identity, FAILED, "the program ends", {"class": "Aborted"})
    except Exception as error:  # noqa: BLE001 (a fault of ours costs this request only)
        traceback.print_exc()
        return build_error(identity, INTERNAL_ERROR, f"{type(error).__name__}: {error}")


def build_error(
    identity: str | int | None, code: int, message: str, data: Any = None
) -> dict[str, Any]:
    """Return the answer to a request that failed."""
    error = {"code": code, "message": message}
    return {"id": identity, "error": error | ({"data": data} if data is not None else {})}
