"""What a model server on this machine says of its models: their names and context windows.

| server | asked for its models | for the context window of one |
|---|---|---|
| Ollama | `/v1/models` | `/api/show` (`num_ctx`), `/api/ps`, then the model's own length |
| LM Studio | `/v1/models` | `/api/v0/models`: as loaded, else the longest |
| llama.cpp | `/v1/models` | `/props`, else what the list says |
| vLLM and others | `/v1/models` | `max_model_len` and the like in the list |

A server that is not there, or says something else, is no error: then nothing is known.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import msgspec

from ..http_requests import RequestFailed, send_request
from .addresses import find_endpoint

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .models import Preset

_SECONDS = 2.0
_MAX_WINDOW = 1 << 31
_FIELDS = (
    *("max_model_len", "loaded_context_length", "context_length", "context_window"),
    *("max_context_length", "n_ctx", "n_ctx_train"),
)
"""What servers call the length of a context, the likeliest to hold first."""


class LocalModel(NamedTuple):
    """A model that a server has."""

    id: str
    window: int | None


def list_local_models(endpoint: str, key: str = "") -> tuple[LocalModel, ...] | None:
    """Return the models of a server; None where there is none that says."""
    values = _fetch_json(f"{endpoint}/models", key)
    rows = values.get("data") if isinstance(values, dict) else None
    if not isinstance(rows, list):
        return None
    objects = [row for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)]
    return tuple(LocalModel(row["id"], _read_window(row)) for row in objects)


def find_local_window(endpoint: str, model: str, key: str = "") -> int | None:
    """Return the context window of a model as its server runs it; None where it does not say."""
    models = list_local_models(endpoint, key)
    if models is None:
        return None
    server = _get_server(endpoint)
    listed = next((each.window for each in models if each.id == model), None)
    own = (_ask_ollama, _ask_lm_studio, _ask_llama_cpp)
    return next(filter(None, (ask(server, model, key) for ask in own)), listed)


def find_served_window(preset: Preset, model: str, environ: Mapping[str, str]) -> int | None:
    """Return the context window of a model of a provider on this machine, as its server says."""
    key = get_local_key(preset, environ)
    return find_local_window(find_endpoint(preset, environ), model, key)


def get_local_key(preset: Preset, environ: Mapping[str, str]) -> str:
    """Return the key that a server on this machine may want, from its variables."""
    values = (environ.get(name, "").strip() for name in preset.keys)
    return next(filter(None, values), "")


def _ask_ollama(server: str, model: str, key: str) -> int | None:
    values = _fetch_json(f"{server}/api/show", key, {"model": model})
    if not isinstance(values, dict):
        return None
    parameters = values.get("parameters")
    match = (
        re.search(r"^num_ctx\s+(\d+)", parameters, re.MULTILINE)
        if isinstance(parameters, str)
        else None
    )
    if match:
        return _check_window(int(match[1]))
    running = _fetch_json(f"{server}/api/ps", key)
    for row in _list_objects(running, "models"):
        if model in (row.get("name"), row.get("model")) and (window := _read_window(row)):
            return window
    facts = values.get("model_info")
    lengths = facts.items() if isinstance(facts, dict) else ()
    own = (value for name, value in lengths if name.endswith(".context_length"))
    return _check_window(next(own, None))


def _ask_lm_studio(server: str, model: str, key: str) -> int | None:
    rows = _list_objects(_fetch_json(f"{server}/api/v0/models", key), "data")
    return next((_read_window(row) for row in rows if row.get("id") == model), None)


def _ask_llama_cpp(server: str, _model: str, key: str) -> int | None:
    values = _fetch_json(f"{server}/props", key)
    settings = values.get("default_generation_settings") if isinstance(values, dict) else None
    return _read_window(settings) if isinstance(settings, dict) else None


def _list_objects(values: Any, name: str) -> Iterator[dict[str, Any]]:
    rows = values.get(name) if isinstance(values, dict) else None
    yield from (row for row in (rows if isinstance(rows, list) else ()) if isinstance(row, dict))


def _read_window(row: dict[str, Any]) -> int | None:
    meta = row.get("meta")
    places = (row, meta) if isinstance(meta, dict) else (row,)
    windows = (_check_window(place.get(name)) for name in _FIELDS for place in places)
    return next(filter(None, windows), None)


def _check_window(value: Any) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return value if is_count and 0 < value < _MAX_WINDOW else None


def _get_server(endpoint: str) -> str:
    parts = urlsplit(endpoint)
    return urlunsplit((parts.scheme, parts.netloc, "", "", ""))


def _fetch_json(url: str, key: str, body: dict[str, Any] | None = None) -> Any:
    headers = {"accept": "application/json"}
    if key:
        headers["authorization"] = f"Bearer {key}"
    if body is not None:
        headers["content-type"] = "application/json"
    data = None if body is None else msgspec.json.encode(body)
    try:
        answer = send_request(url, headers, data, seconds=_SECONDS)
        return msgspec.json.decode(answer.body) if answer.is_success else None
    except (RequestFailed, msgspec.DecodeError, UnicodeError, RecursionError):
        return None
