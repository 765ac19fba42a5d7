"""`tape ls` and `tape search` in each state that a store is found in, against the plain one.

plain               nothing changed since the last look
over a minute       the older tapes are compared with their files again
a writer is open    a session of another process is being recorded
a folder is gone    one of the listed sessions worked in a folder that was removed
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import startup
from measure import Row, Scale, by_turns

from tape import Beginning, Text, User, open_store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MAX_RATIO = 1.3
ROUNDS = 15


def states_rows(path: Path, scale: Scale) -> list[Row]:
    """Measure processor time in a store of a hundredth of a long session's length."""
    home = path / "states"
    home.mkdir()
    startup.fill(str(home), max(scale.large // 100, 100))
    rounds, rows = min(scale.rounds, ROUNDS), []
    rows += _measure_state(home, "over a minute since the last look", _forget_check, rounds)
    with ExitStack() as stack:
        store, _ = stack.enter_context(open_store(home / ".tape"))
        tape = stack.enter_context(store.create(Beginning(str(home), "bench/1", "open")))
        writer = stack.enter_context(tape.writer(durability="none"))
        writer.append(User((Text("Hello"),)))
        rows += _measure_state(home, "a writer is open", lambda _: None, rounds, is_plain=False)
    rows += _measure_state(home, "--project .", lambda _: None, rounds, "--project", ".")
    with open_store(home / ".tape") as (store, _):
        gone = Beginning(str(home / "gone"), "bench/1", "gone")
        with store.create(gone) as tape, tape.writer(durability="none") as writer:
            writer.append(User((Text("Hello"),)))
    rows += _measure_state(home, "a listed folder is gone", lambda _: None, rounds, is_plain=False)
    return rows


def _forget_check(home: Path) -> None:
    (home / ".tape/index.checked").unlink(missing_ok=True)


def _measure_state(
    home: Path,
    state: str,
    prepare: Callable[[Path], None],
    rounds: int,
    *options: str,
    is_plain: bool = True,
) -> list[Row]:
    """Measure both commands; where the store is no plain one now, against one that was copied."""
    tape, rows = str(startup.BIN / "tape"), []
    plain = home if is_plain else _make_plain(home)
    for name in ("ls",) if options else ("ls", "search"):
        words = [name] if name == "ls" else [name, "Hello"]

        def run(words: list[str] = words) -> float:
            prepare(home)
            return startup.seconds([tape, *words, *options], str(home))

        def run_plain(words: list[str] = words) -> float:
            return startup.seconds([tape, *words], str(plain))

        run(), run_plain()
        pair = by_turns(rounds, run, run_plain)
        shown = f"tape {name}, {state}"
        rows.append(Row(shown, "the plain case", pair.ratio, "×", MAX_RATIO, note="processor time"))
    return rows


def _make_plain(home: Path) -> Path:
    """Make a store of as many tapes in which nothing is special, once."""
    plain = home.with_name("states-plain")
    if not plain.exists():
        plain.mkdir()
        startup.fill(str(plain), sum(1 for _ in (home / ".tape/tapes").iterdir()))
        startup.seconds([str(startup.BIN / "tape"), "ls"], str(plain))
    return plain
