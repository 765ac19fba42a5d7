"""`gong chat -v`: how the model is reached, and what each call to it did, on standard error."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ..agent import events
from ..credentials import Credentials
from ..llm.cloud_logins import describe_login
from ..llm.prices import count_prompt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..assembly.open_session import OpenSession


def describe_connection(host: OpenSession, environ: Mapping[str, str]) -> str:
    """Return in one line which model is called, by which API, where, and with which key."""
    model = host.session.setup.model
    parts = [f"{model.name}: {model.api} at {model.endpoint}"]
    if (preset := host.models.names.presets.get(model.provider)) is not None:
        key = Credentials.from_environ(environ).find(preset.key_name, preset.keys)
        login = describe_login(preset, environ)
        no_key = f"key from {login}" if login else "no key"
        parts.append(f"key {key.ending} from {key.source}" if key else no_key)
    limits = [
        f"{name} {count:,} tokens"
        for name, count in (("window", model.window), ("answers up to", model.max_output))
        if count is not None
    ]
    return ", ".join([*parts, *limits])


class CallReporter:
    """Writes a line when an answer begins, and one when it ends, from the events of a session."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._call, self._started_at = 0, 0.0

    def take_event(self, event: events.Event) -> None:
        """Write what an event says of a model call."""
        match event:
            case events.TurnStart(turn=turn):
                self._call, self._started_at = turn, time.monotonic()
            case events.MessageStart(model=model):
                self._write_line(f"{model} answers after {self._measure()}")
            case events.MessageEnd(stop_reason=stop, usage=usage):
                cached = f" ({usage.cache_read:,} cached)" if usage.cache_read else ""
                tokens = f"{count_prompt(usage):,} tokens in{cached}, {usage.output:,} out"
                self._write_line(f"{stop} after {self._measure()}, {tokens}")
            case events.RunFailure(error_class=kind, retryable=retryable):
                again = "another try may succeed" if retryable else "another try would fail, too"
                self._write_line(f"{kind} after {self._measure()}; {again}")
            case _:
                pass

    def _measure(self) -> str:
        return f"{time.monotonic() - self._started_at:.1f} s"

    def _write_line(self, text: str) -> None:
        self._write(f"call {self._call}: {text}")
