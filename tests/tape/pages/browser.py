"""Chromium without a window, driven over a pipe: messages of its protocol end with NUL."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Browser:
    """A running browser with one tab."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading = os.fdopen(reading, "rb")
        self._writing = os.fdopen(writing, "wb")
        self._ids = count(1)
        self._events: list[dict[str, Any]] = []
        self._session: str | None = None
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")

    def close(self) -> None:
        """End the browser."""
        self._session = None
        self._call("Browser.close")
        self._reading.close()
        self._writing.close()

    def read(self, page: Path, width: int, height: int, look: str) -> dict[str, Any]:
        """Open a page, wait until it is loaded, and return what a function in it returns."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._call("Emulation.setDeviceMetricsOverride", **size)
        self._events.clear()
        self._call("Page.navigate", url=page.as_uri())
        while not any(one["method"] == "Page.loadEventFired" for one in self._events):
            self._receive()
        asked = {"awaitPromise": True, "returnByValue": True}
        done = self._call("Runtime.evaluate", expression=f"({look})()", **asked)
        assert "exceptionDetails" not in done, done
        bad = ("Runtime.exceptionThrown", "Log.entryAdded")
        errors = [one["params"] for one in self._events if one["method"] in bad]
        return {**done["result"]["value"], "errors": errors}

    def _call(self, method: str, **parameters: Any) -> Any:
        number = next(self._ids)
        message = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        self._writing.write(json.dumps(message).encode() + b"\0")
        self._writing.flush()
        while (answer := self._receive()) is None or answer["id"] != number:
            pass
        assert "error" not in answer, answer
        return answer["result"]

    def _receive(self) -> dict[str, Any] | None:
        """Return the next answer; None for an event, which is kept."""
        data = bytearray()
        while (byte := self._reading.read(1)) != b"\0":
            assert byte, "the browser has ended"
            data += byte
        message: dict[str, Any] = json.loads(data)
        if "id" in message:
            return message
        self._events.append(message)
        return None


@contextmanager
def open_browser(program: str | None, profile: Path) -> Iterator[Browser]:
    """Start Chromium with a profile of its own."""
    assert program is not None
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()

    def place_pipes() -> None:  # it reads from 3 and writes to 4
        one, two = (fcntl.fcntl(fd, fcntl.F_DUPFD, 64) for fd in (theirs_in, theirs_out))
        os.dup2(one, 3)
        os.dup2(two, 4)

    options = ("--headless=shell", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe")
    process = subprocess.Popen(
        [program, *options, f"--user-data-dir={profile}"],
        preexec_fn=place_pipes,  # noqa: PLW1509 (no threads here)
        pass_fds=(3, 4),
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        browser = Browser(ours_in, ours_out)
        yield browser
        browser.close()
    finally:
        process.kill()
        process.wait()
