"""A small store with everything in it, and what both readers say of one; for the fault tests."""

from __future__ import annotations

import shutil
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from tape.check.finding import Counts
from tape.check.verify import verify
from tape.model.entries import Anchor, Note
from tape.store.store import Beginning, Store
from tests.tape import making

if TYPE_CHECKING:
    from pathlib import Path

    from tape.check.finding import Finding

LONG = "long " * 14_000
"""A text that becomes a blob."""


class Small(NamedTuple):
    """A store with a tape of two branches, a blob and an anchor, and a tape forked from it."""

    store: Store
    tape: str
    child: str

    def folder(self, identity: str) -> Path:
        """Return the folder of a tape."""
        (found,) = self.store.path.glob(f"tapes/*-{identity[:8]}")
        return found


def small(path: Path) -> Small:
    """Make the store in `path`, with a clock that goes on and ids that repeat."""
    ticks, random = count(making.DAY, 1000), making.numbered()
    store = Store(path, clock=lambda: next(ticks), random=random, durable=False)
    with store.create(Beginning("/src", "test/1", "Small")) as tape:
        making.write(tape, "one", LONG)
        tape.fork(tape.find_ancestor(tape.head(), 1).head, "side")
        with tape.writer("side") as writer:
            writer.append(Note("aside"))
            writer.append(Note("more"))
        with tape.writer() as writer:
            writer.append(making.say("two"))
            writer.anchor(Anchor(kind="compaction", summary="one and two"))
            writer.append(making.say("three"))
            writer.append(making.say("four"))
        with store.create(making.beginning("child"), origin=(tape, tape.head("side"))) as child:
            making.write(child, "of the child")
            return Small(store, tape.id, child.id)


def found(store: Store, name: str) -> list[Finding]:
    """Return what verify finds in the tape of a folder, but for notes."""
    with store.open_folder(name) as tape:
        return [finding for finding in verify(tape, Counts()) if finding.level != "note"]


def restore(folder: Path, copy: Path) -> None:
    """Make a folder what its copy is."""
    shutil.rmtree(folder)
    shutil.copytree(copy, folder)
