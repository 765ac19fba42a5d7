"""The model calls of sub-agents, for sums: they are on branches or tapes of their own.

read                        calls that are added
--------------------------  ---------------------------------------------------------------
a path (`whole=False`)      those of every sub-agent that the path starts, where it starts it
a tape (`whole=True`)       those of sub-agents on tapes of their own; its branches are read
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tape.errors import TapeError
from tape.model.entries import AgentStart

from .costs import ModelCall, extract_model_call
from .handoff import read_path_entries, read_tape_entries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tape.model.line import Entry
    from tape.store.tape import Tape


def add_agent_calls(
    source: Iterable[tuple[str, Entry]],
    tape: Tape,
    open_tape: Callable[[str], Tape],
    warn: Callable[[str], None],
    *,
    whole: bool = False,
) -> Iterator[tuple[str, Entry]]:
    """Yield entries with their branch, and after each start of a sub-agent the calls of it.

    `open_tape` opens a tape by its id. A sub-agent that cannot be read is left out with a warning.
    """
    yield from _add_calls(source, tape, open_tape, warn, set(), whole=whole)


def list_tape_calls(tape: Tape, open_tape: Callable[[str], Tape]) -> list[ModelCall]:
    """Return the calls on all branches of a tape, and those of its sub-agents; reads all of it.

    What cannot be read is left out.
    """
    whole = read_tape_entries(tape, lambda _: None)
    entries = add_agent_calls(whole, tape, open_tape, lambda _: None, whole=True)
    return [call for _, entry in entries if (call := extract_model_call(entry)) is not None]


def _add_calls(
    source: Iterable[tuple[str, Entry]],
    tape: Tape,
    open_tape: Callable[[str], Tape],
    warn: Callable[[str], None],
    seen: set[str],
    *,
    whole: bool,
) -> Iterator[tuple[str, Entry]]:
    for branch, entry in source:
        yield branch, entry
        if not isinstance(started := entry.data, AgentStart):
            continue
        key = started.tape or f"{tape.id}:{started.branch}"
        if key in seen or (whole and started.tape is None):
            continue
        seen.add(key)
        try:
            yield from _read_agent_calls(started, tape, open_tape, warn, seen)
        except (TapeError, OSError) as error:
            warn(f"the calls of {started.agent} are left out: {error}")


def _read_agent_calls(
    started: AgentStart,
    tape: Tape,
    open_tape: Callable[[str], Tape],
    warn: Callable[[str], None],
    seen: set[str],
) -> Iterator[tuple[str, Entry]]:
    if started.tape is not None:
        with open_tape(started.tape) as own:
            calls = _add_calls(read_tape_entries(own, warn), own, open_tape, warn, seen, whole=True)
            yield from ((branch, entry) for branch, entry in calls if extract_model_call(entry))
        return
    path = read_path_entries(tape, tape.head(started.branch), warn)
    calls = _add_calls(path, tape, open_tape, warn, seen, whole=False)
    yield from ((branch, entry) for branch, entry in calls if extract_model_call(entry))
