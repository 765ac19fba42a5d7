"""What `gong chat` shows while it works, as a screen and as the bytes that draw it."""

from __future__ import annotations

import re
import time
from contextlib import contextmanager

import pytest

from tests.e2e.conftest import BIN
from tests.e2e.terminal import CTRL_D, Terminal
from tests.e2e.test_frames import FRAME, KNOWS_FRAMES, AnsweringTerminal

CTRL_O, CTRL_T = "\x0f", "\x14"
ANSWER = """\
# Plan

1. Read **all** of `a.py`, whose name is shorter than this sentence about it
2. Change it

```python
def add(a, b):
    return a + b
```

See [the docs](https://example.org/a/long/address/which/is/not/cut).
"""


class _Recorded(Terminal):
    """Keeps what the program wrote."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.written = b""
        feed = self._stream.feed

        def record(data):
            self.written += data
            feed(data)

        self._stream.feed = record


@pytest.fixture
def chat(place):
    @contextmanager
    def chat(*answers, columns=80, rows=24, **variables):
        model = place.script(*answers)
        with _Recorded(
            [str(BIN / "gong"), "chat", "-m", model, "--yolo"],
            cwd=place.folder,
            env={**place.env, **variables},
            columns=columns,
            rows=rows,
        ) as terminal:
            terminal.wait_for("ready", on_screen=True)
            terminal.wait_for_keys()
            yield terminal

    return chat


def assert_drawn_in_place(written, rows):
    """No clear-screen, no absolute position, never up beyond the screen."""
    assert not re.search(rb"\x1b\[[0-9;]*[Hf]|\x1b\[[123]J", written)
    assert b"\x1bc" not in written
    ups = [int(found or 1) for found in re.findall(rb"\x1b\[(\d*)A", written)]
    assert max(ups, default=0) < rows


def test_an_answer_streams_and_stays(chat):
    """M198: Markdown drawn while it arrives; finished lines are written once."""
    with chat({"text": ANSWER * 8, "chunk": 7, "chunk_delay_ms": 1}, columns=40) as now:
        now.say("begin")
        now.wait_for("main · ready", on_screen=True)
        page = (
            "Plan\n\n1. Read all of a.py, whose name is\n"
            "   shorter than this sentence about it\n2. Change it\n\n"
            "def add(a, b):\n    return a + b\n\nSee the docs\n"
            "(https://example.org/a/long/address/whic\nh/is/not/cut).\n"
        )
        pages = "\n".join([page.rstrip("\n")] * 8)
        # The status line may be read before the end of the frame that it is drawn in.
        now.wait_until(lambda: pages in now.text().replace("\n\n\n", "\n\n"), "all pages")
        assert_drawn_in_place(now.written, 24)


@pytest.mark.slow
def test_calls_show_what_they_do_and_what_they_did(chat, place):
    """M218, UX: a diff as it is written and as it was made; Ctrl+O, Ctrl+T."""
    (place.folder / "a.py").write_text("import os\nx = old(1)\n")
    read = [{"name": "read", "args": {"path": "a.py"}}, {"name": "ls", "args": {"path": "."}}]
    edit = {"path": "a.py", "oldText": "x = old(1)", "newText": "x = new(1)"}
    run = {"name": "bash", "args": {"command": "seq 30"}}
    with chat(
        {
            "thinking": "first I look",
            "tool_calls": [{"name": "read", "args": {"path": "a.py"}}, *read],
        },
        {"tool_calls": [{"name": "edit", "args": edit}]},
        {"tool_calls": [run]},
        {"text": "Done."},
    ) as now:
        now.say("begin")
        now.wait_for("main · ready", on_screen=True)
        assert (
            "\n\n● Explored: 2 files, 1 folder: a.py, .\n● edit a.py · +1 −1\n"
            "    1 import os\n  - 2 x = old(1)\n  + 2 x = new(1)\n"
            "● $ seq 30\n  1\n  2\n  3\n  4\n  5\n"
            "  … 25 more lines (Ctrl+O shows all)\n\nDone.\n"
        ) in now.text()
        now.type(CTRL_O)
        now.wait_for("\n  29\n  30\n")
        now.type(CTRL_T)
        now.wait_for("first I look")
        assert_drawn_in_place(now.written, 24)


@pytest.mark.slow
def test_five_hundred_calls_scroll_without_a_stall(place):
    """The last hundred calls take no longer than the first: nothing above is drawn again.

    All is drawn in marked frames, below what stands in the scrollback.
    """
    rounds = [
        {
            "tool_calls": [
                {"name": "bash", "args": {"command": f"echo call {first + number}"}}
                for number in range(5)
            ]
        }
        for first in range(0, 500, 5)
    ]
    rows = 24
    command = [str(BIN / "gong"), "chat", "-m", place.script(*rounds, {"text": "Done."}), "--yolo"]
    with AnsweringTerminal(
        command, cwd=place.folder, env=place.env, rows=rows, answers={"\x1b[?2026$p": KNOWS_FRAMES}
    ) as now:
        now.wait_for("ready", on_screen=True)
        now.wait_for_keys()
        now.say("begin")
        now.wait_for_bytes("\x1b[?2026h")
        first, sizes, times = now.bytes.index("\x1b[?2026h"), [], []
        for number in (99, 199, 299, 399, 499):
            now.wait_for(f"● $ echo call {number}\n  call {number}\n")
            sizes.append(len(now.bytes))
            times.append(time.monotonic())
        now.wait_for("Done.")
        now.wait_for(" · ready", on_screen=True)
        now.type(CTRL_D)
        now.wait_for_end()
    assert_drawn_in_place(now.bytes.encode(), rows)
    # how many bytes are drawn, and how long it takes, does not depend on how much is above
    # but for frames of the spinner, of which a busy machine draws more
    assert sizes[4] - sizes[3] < 2 * (sizes[1] - sizes[0])
    assert times[4] - times[3] < 3 * (times[1] - times[0])
    drawn = now.bytes[first:]
    assert FRAME.sub("", drawn[: drawn.rindex("\x1b[?2026l") + 8]) == ""
    # each stands there once, in order: nothing was drawn over what is above the live region
    shown = re.findall(r"^● \$ echo call (\d+)\n  call (\d+)$", now.text(), re.MULTILINE)
    assert shown == [(str(number), str(number)) for number in range(500)]
