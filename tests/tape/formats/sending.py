"""Arrays as values, for tests to look into."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tape.formats.encoder import ArrayEncoder


def encode_with(build_encoder: Callable[..., ArrayEncoder]) -> Callable[..., list[Any]]:
    """Return a function from messages, options and a loader of blobs to the array of an API."""

    def encode_messages(messages, *options, **more) -> list[Any]:
        return json.loads(build_encoder(*options, **more).array(messages))

    return encode_messages
