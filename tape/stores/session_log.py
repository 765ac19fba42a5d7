"""What another SDK keeps of one session, item by item, on a tape: the part all adapters share.

An item is any JSON value and comes back equal. It is a `custom` entry; what people and models can
read of it follows as usual entries, so that `tape log`, `tape search` and `gong chat --fork` work:

    custom openai-agents.item {"role":"user","content":"Hi"}      the item
    user "Hi"                                                     its reading

Taking items back moves the branch; the entries stay where they are, and a REF still finds them:

    entries        1 a b c      add d       pop         clear       add e
    branch ends    c            d           c           1           e (after 1)
    items          a b c        a b c d     a b c       –           e
"""

from __future__ import annotations

import json
import os
import re
from contextlib import contextmanager, nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Raw

from ..clock import parse_timestamp
from ..errors import Busy, NotFound, TapeError, UsageError
from ..folders import locate_repository
from ..ids import compute_tape_id
from ..model.entries import Custom, ImportedSession
from ..model.line import BLOB_KEY, JSON_ERRORS, decode_line, read_type
from ..remote.opening import open_store
from ..repository import find_work_facts
from ..store.recorded_tape import find_existing_folder, record_tape
from ..store.refs import MAIN_BRANCH
from ..store.store import Beginning
from ..version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..model.entries import Payload
    from ..store.refs import Head
    from ..store.store import Store
    from ..store.tape import Tape
    from ..store.writer import Writer


class Item(NamedTuple):
    """A value to record, and its reading; `kind` tells items of one session apart."""

    value: Any
    payloads: tuple[Payload, ...] = ()
    kind: str = "item"


class LoggedItem(NamedTuple):
    """A value as it was recorded."""

    kind: str
    value: Any


def require_package(module: str, extra: str) -> None:
    """Raise UsageError where the package of an SDK is not installed."""
    if find_spec(module) is None:
        raise UsageError(f"tape.stores needs the package {module}: pip install 'gong[{extra}]'")


class SessionLog:
    """One session of one SDK, in the store at `folder`; its first item creates the tape."""

    def __init__(self, folder: str | Path, tool: str, session: str) -> None:
        self.folder, self.tool, self.session = Path(folder), tool, session
        self.tape_id = compute_tape_id(tool, session)
        """Id of its tape; `TOOL:SESSION` is a REF of it."""

    def read(self, kinds: Iterable[str] = ("item",)) -> list[LoggedItem]:
        """Return the items of these kinds, oldest first; empty where nothing was recorded."""
        with self._open() as tape:
            return [] if tape is None else self.read_path(tape, tape.head(MAIN_BRANCH), kinds)

    def read_path(self, tape: Tape, head: Head, kinds: Iterable[str]) -> list[LoggedItem]:
        """Return the items of these kinds up to a head."""
        wanted_kinds, items = set(kinds), []
        for line in tape.lines(head):
            if read_type(line) == Custom.entry_type:
                item = self._decode_item(decode_line(line, tape.blobs.text).data)
                items += [item] if item is not None and item.kind in wanted_kinds else []
        return items

    def read_newest(self, kind: str) -> tuple[int, Any] | None:
        """Return when the session was written, in µs since 1970, and the newest item of a kind.

        None where it has no entries but the first; the item is None where there is none.
        """
        with self._open() as tape:
            if tape is None:
                return None
            head = tape.head(MAIN_BRANCH)
            newest = next(self._walk_back(tape, head, kind), None)
            if head.header.n == 0:
                return None
            return parse_timestamp(head.header.time), None if newest is None else newest[1].value

    def append(self, items: Iterable[Item]) -> None:
        """Record items, durably; raise WriteFailed where the disk refuses."""
        self.update(lambda _: items)

    def update(self, choose: Callable[[list[LoggedItem]], Iterable[Item]], *kinds: str) -> None:
        """Record what `choose` makes of the items of `kinds` so far; nobody writes between."""
        with self._write() as (tape, writer):
            so_far = self.read_path(tape, writer.head, kinds) if kinds else []
            for item in choose(so_far):
                writer.append(Custom(*self._encode_item(item)))
                for payload in item.payloads:
                    writer.append(payload)

    def pop(self) -> Any:
        """Take the newest item back and return it; raise NotFound where there is none."""
        with self._open() as tape:
            if tape is not None:
                with tape.writer(MAIN_BRANCH, wait=True) as writer:
                    newest = next(self._walk_back(tape, writer.head, "item"), None)
                    if newest is not None:
                        steps, item = newest
                        writer.rewind(tape.find_ancestor(writer.head, steps + 1).head, "undo")
                        return item.value
        raise NotFound(f"the session {self.session!r} has no items")

    def clear(self) -> None:
        """Take all items back: the branch goes to the first entry of the tape."""
        with self._open() as tape:
            if tape is None:
                return
            with tape.writer(MAIN_BRANCH, wait=True) as writer:
                count = writer.head.header.n
                if count:
                    writer.rewind(tape.find_ancestor(writer.head, count).head)

    def _walk_back(self, tape: Tape, head: Head, kind: str) -> Iterator[tuple[int, LoggedItem]]:
        """Yield the items of a kind, newest first, with the number of entries after each."""
        steps = 0
        for segment in tape.walk_path_back(head):
            with segment.source.phases.open(segment.phase) as file:
                for offset, line in file.read_lines_back(segment.end):
                    if offset < segment.start:
                        break
                    if read_type(line) == Custom.entry_type:
                        item = self._decode_item(decode_line(line, tape.blobs.text).data)
                        if item is not None and item.kind == kind:
                            yield steps, item
                    steps += 1

    def _encode_item(self, item: Item) -> tuple[str, Raw]:
        """Return kind and data of an item's entry; what JSON of a tape cannot hold is its text."""
        text = json.dumps(item.value, ensure_ascii=False, separators=(",", ":"))
        try:
            data = text.encode()
            if BLOB_KEY not in data:
                msgspec.json.decode(data)
                return f"{self.tool}.{item.kind}", Raw(data)
        except (UnicodeEncodeError, *JSON_ERRORS):  # half a surrogate pair, or NaN
            pass
        quoted = msgspec.json.encode(json.dumps(item.value))
        return f"{self.tool}.{item.kind}.text", Raw(quoted)

    def _decode_item(self, payload: Payload) -> LoggedItem | None:
        if not isinstance(payload, Custom) or not payload.kind.startswith(f"{self.tool}."):
            return None
        kind, is_text, _ = payload.kind[len(self.tool) + 1 :].partition(".text")
        value = json.loads(bytes(payload.data))
        return LoggedItem(kind, json.loads(value) if is_text else value)

    @contextmanager
    def _open(self) -> Iterator[Tape | None]:
        """Open the tape; None where the session was never written.

        The store is opened for each call, for the next one may come from another thread.
        """
        with open_store(self.folder) as (store, _):
            name = find_existing_folder(store, self.tape_id)
            with nullcontext() if name is None else store.open_folder(name) as tape:
                yield tape

    @contextmanager
    def _write(self) -> Iterator[tuple[Tape, Writer]]:
        """Open the tape for writing, and create it where it is missing."""
        with open_store(self.folder) as (store, _), suppress(Busy):  # another one just created it
            if find_existing_folder(store, self.tape_id) is None:
                beginning = self._build_beginning(store)
                record_tape(store, self.tape_id, beginning, lambda _tape, _writer: None)
        with self._open() as tape:
            if tape is None:
                raise NotFound(f"the tape of {self.session!r} was removed while it was written")
            with tape.writer(MAIN_BRANCH, wait=True) as writer:
                yield tape, writer

    def _build_beginning(self, store: Store) -> Beginning:
        """Return the facts of the session: it works here and now."""
        cwd, replica = str(Path.cwd()), store.replica()
        project = locate_repository(cwd)
        return Beginning(
            cwd=cwd,
            program=f"tape/{__version__} (store of {self.tool})",
            slug=f"{self.tool} {self.session}",
            project=project,
            imported=ImportedSession(self.tool, f"{self.tool}.item", "", self.session, ""),
            machine=None if replica is None else replica.machine,
            **find_work_facts(project, os.environ)._asdict(),
        )


_RECORDED_BY = re.compile(r"tape/\S+ \(store of (?P<tool>.+)\)\Z")
"""What the tapes of an SDK's sessions have as the program that recorded them."""


def list_sessions(folder: str | Path, tool: str) -> list[SessionLog]:
    """Return the sessions of an SDK in a store, cleared ones too."""
    logs = []
    with open_store(Path(folder)) as (store, _):
        for name in store.folders():
            with suppress(OSError, TapeError), store.open_folder(name) as tape:  # else `tape fsck`
                recorded = _RECORDED_BY.match(tape.info.by)
                if recorded and recorded["tool"] == tool:
                    first = tape.phases.read_first_lines(tape.phases.names()[0])[0]
                    imported = getattr(decode_line(first).data, "imported", None)
                    if isinstance(imported, ImportedSession):
                        logs.append(SessionLog(folder, tool, imported.session))
    return logs
