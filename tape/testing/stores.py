"""What a store keeps whose tapes are at a remote, as tests: who brings a remote runs them on it.

    class TestStoresAtMyRemote(StoreConformance):
        @pytest.fixture
        def factory(self, tmp_path):
            return partial(MyRemote, "my://…")

The factory is that of `remotes.RemoteConformance`, but for this: nothing else may be in the remote.
Each store of a test is that of another machine. Its writers publish at each barrier, as with
`--store URL`.
"""

from __future__ import annotations

import multiprocessing
import random
from collections import Counter
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

import pytest

from ..check.finding import Counts
from ..check.verify import verify
from ..errors import Busy, Overtaken, RemoteUnavailable, UsageError
from ..model.entries import Anchor, Text, User
from ..model.line import decode_line, read_id
from ..remote.cursor import Cursor
from ..remote.merging import merge_chunks
from ..remote.objects import TAPES_PREFIX, decode_chunk
from ..remote.publish import Publisher
from ..remote.pull import pull_tapes
from ..remote.push import Pusher
from ..remote.remote import Remote
from ..store.maintenance.upkeep import redact
from ..store.store import Beginning, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection
    from pathlib import Path

    from ..remote.push import PushOutcome
    from ..store.tape import Tape
    from ..unite.stores import TapeOutcome
    from .remotes import Factory

_NAME = "team"
_LARGE = 70_000
"""Characters that are kept as a blob."""
_WORDS = "nobody else may read this"
_STEPS = 60


class TeamMachine:
    """A store of its own whose tapes are at a remote that others have, too."""

    def __init__(self, path: Path, factory: Factory, name: str) -> None:
        self.store, self.remote = Store(path / name, durable=False), factory()
        self.store.open_tapes_folder().close()
        self.store.projection = Publisher(
            self.store, _NAME, lambda: self.remote, None, lambda: f"{name} <{name}@example.org>"
        )

    def begin(self, *texts: str) -> str:
        """Begin a tape, write prompts, and return its id."""
        with self.store.create(Beginning("/src", "test/1")) as tape:
            self.write(tape, *texts)
            return tape.id

    def write(self, tape: Tape, *texts: str, branch: str | None = None) -> None:
        """Write prompts, with a barrier after each."""
        with tape.writer(branch) as writer:
            for text in texts:
                writer.append(User((Text(text),)))
                writer.barrier()

    def push(self, tapes: Sequence[str] | None = None) -> list[PushOutcome]:
        """Push tapes, or all."""
        if tapes is None:
            tapes = [self.store.read_tape_id(name) for name in self.store.folders()]
        with self.hold_publishing(), Cursor.open(self.store.path, _NAME) as cursor:
            return [*Pusher(self.store, self.remote, cursor, raw=True).push(tapes)]

    def pull(self) -> list[TapeOutcome]:
        """Pull all that is new."""
        with self.hold_publishing(), Cursor.open(self.store.path, _NAME) as cursor:
            return [*pull_tapes(self.store, self.remote, cursor)]

    def hold_publishing(self) -> _HeldPublishing:
        """Let what is written in a block not go to the remote by itself."""
        return _HeldPublishing(self.store)

    def read_texts(self, tape: str, branch: str = "main") -> list[str]:
        """Return the prompts on a branch."""
        with self.store.open(tape) as opened:
            return [
                block.text
                for entry in opened.entries(opened.head(branch))
                if isinstance(entry.data, User)
                for block in entry.data.content
                if isinstance(block, Text)
            ]

    def describe(self) -> dict[str, Any]:
        """Return heads, names and lines of all tapes, each of which has to verify."""
        state: dict[str, Any] = {}
        for name in self.store.folders():
            with self.store.open_folder(name) as tape:
                assert [*verify(tape, Counts())] == []
                refs = tape.refs()
                heads = {branch: tape.head(branch).entry for branch in refs.branches}
                lines = {read_id(line): line for _, _, line in tape.phases.read_all_lines()}
                state[tape.id] = heads, refs.title, refs.labels, refs.current, lines
        return state


class _HeldPublishing:
    def __init__(self, store: Store) -> None:
        self._store, self._projection = store, store.projection

    def __enter__(self) -> None:
        self._store.projection = None

    def __exit__(self, *_: object) -> None:
        self._store.projection = self._projection


class _BreakingRemote(Remote):
    """A remote that does not answer any more after some requests."""

    def __init__(self, remote: Remote, left: int) -> None:
        self._remote, self.url, self.left = remote, remote.url, left

    def _count(self) -> None:
        if self.left <= 0:
            raise RemoteUnavailable("the connection was cut")
        self.left -= 1

    def create(self, key: str, data: bytes) -> bool:
        self._count()
        return self._remote.create(key, data)

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        self._count()
        return self._remote.read(key, start, end)

    def list(self, prefix: str, after: str = "") -> Iterator[Any]:
        self._count()
        return self._remote.list(prefix, after)

    def replace(self, key: str, data: bytes) -> None:
        self._count()
        self._remote.replace(key, data)

    def now(self) -> int:
        self._count()
        return self._remote.now()


class StoreConformance:
    """Subclass it with a fixture `factory`: see above."""

    @pytest.fixture
    def enter(self, factory: Factory, tmp_path: Path) -> Iterator[Callable[[str], TeamMachine]]:
        """Return what makes a machine of a name."""
        machines: list[TeamMachine] = []

        def make(name: str) -> TeamMachine:
            machines.append(TeamMachine(tmp_path, factory, name))
            return machines[-1]

        yield make
        for machine in machines:
            machine.remote.close()

    def settle(self, *machines: TeamMachine) -> dict[str, Any]:
        """Let machines push and pull until they have the same, and return it."""
        for machine in machines * 3:
            assert [done.error for done in machine.push() if done.error] == []
            assert [done.error for done in machine.pull() if done.error] == []
        for machine in machines:
            machine.pull()
        states = [machine.describe() for machine in machines]
        assert all(state == states[0] for state in states)
        return states[0]

    def test_what_a_barrier_acknowledged_is_elsewhere(
        self, enter: Callable[[str], TeamMachine]
    ) -> None:
        first, other = enter("one"), enter("other")
        tape = first.begin("first")
        with first.store.open(tape) as opened, opened.writer() as writer:
            for number in range(3):
                writer.append(User((Text(f"more {number}"),)))
                writer.barrier()
                other.pull()
                assert other.read_texts(tape)[-1] == f"more {number}"
        assert enter("late").pull()[0].is_new

    def test_every_kind_of_change_comes_over(self, enter: Callable[[str], TeamMachine]) -> None:
        first, other = enter("one"), enter("other")
        tape = first.begin("first", "x" * _LARGE)
        with first.store.open(tape) as opened:
            opened.rename("A title")
            opened.label("here", opened.head().entry)
            opened.fork(opened.head(), "beside", switch=True)
            first.write(opened, "on a branch", branch="beside")
            with opened.writer("main") as writer:
                writer.anchor(Anchor(kind="compaction", summary="what was said"))
                writer.append(User((Text("after that"),)))
                writer.barrier()
                writer.rewind(opened.head("beside"), "undo")
                writer.append(User((Text("elsewhere"),)))
        with first.store.open(tape) as opened:
            child = first.store.create(Beginning("/src", "test/1"), (opened, opened.head("main")))
            first.write(child, "in a tape of its own")
            child.close()
        other.pull()
        assert other.describe() == first.describe()
        assert len(other.describe()) == 2

    def test_machines_continue_a_session_in_turn(self, enter: Callable[[str], TeamMachine]) -> None:
        machines = [enter(name) for name in ("one", "two", "three")]
        tape = machines[0].begin("0")
        for turn in range(1, 9):
            machine = machines[turn % 3]
            machine.pull()
            with machine.store.open(tape) as opened:
                machine.write(opened, str(turn), branch="main")  # nobody else holds it
        self.settle(*machines)
        assert machines[0].read_texts(tape) == [*map(str, range(9))]

    def test_who_comes_second_keeps_an_end_of_its_own(
        self, enter: Callable[[str], TeamMachine]
    ) -> None:
        first, other = enter("one"), enter("other")
        tape = first.begin("first")
        other.pull()
        for machine, text in ((first, "mine"), (other, "theirs")):
            with machine.hold_publishing(), machine.store.open(tape) as opened:
                machine.write(opened, text)
        assert [done.kept for done in first.push()] == [()]
        (done,) = other.push()
        (end,) = done.kept
        assert end.branch == "main"
        self.settle(first, other)
        assert first.read_texts(tape) == ["first", "mine"]
        assert first.read_texts(tape, end.other) == ["first", "theirs"]

    def test_a_branch_that_is_held_is_left_alone(self, enter: Callable[[str], TeamMachine]) -> None:
        first, other = enter("one"), enter("other")
        tape = first.begin("first")
        with first.store.open(tape) as opened, opened.writer() as writer:
            writer.append(User((Text("one"),)))
            writer.barrier()
            other.pull()
            with other.store.open(tape) as theirs:
                with pytest.raises(Busy, match=r"one <one@example\.org>"):
                    theirs.writer("main")
                with theirs.writer() as beside:
                    assert beside.instead_of == "main"
                    for _ in range(2):
                        beside.append(User((Text("beside"),)))
                        beside.barrier()
                        writer.append(User((Text("two"),)))
                        writer.barrier()
        self.settle(first, other)
        assert other.read_texts(tape) == ["first", "one", "two", "two"]

    def test_without_the_remote_a_writer_stops_and_nothing_is_lost(
        self, enter: Callable[[str], TeamMachine]
    ) -> None:
        first, other = enter("one"), enter("other")
        tape, whole = first.begin("first"), first.remote
        first.remote = _BreakingRemote(whole, 0)
        first.store.projection = Publisher(first.store, _NAME, lambda: first.remote, None)
        with first.store.open(tape) as opened:
            writer = opened.writer()
            writer.append(User((Text("second"),)))
            with pytest.raises(RemoteUnavailable):
                writer.barrier()
            with pytest.raises(RemoteUnavailable):
                writer.close()
        first.remote = whole
        first.push()
        other.pull()
        assert other.read_texts(tape) == ["first", "second"]

    def test_a_push_that_was_cut_anywhere_is_completed(
        self, enter: Callable[[str], TeamMachine]
    ) -> None:
        first, other = enter("one"), enter("other")
        whole, left = first.remote, -1
        is_cut = True
        while is_cut:
            left += 1
            with first.hold_publishing():
                tape = first.begin(f"first {left}", "y" * _LARGE)
            first.remote = _BreakingRemote(whole, left)
            is_cut = False
            try:
                first.push([tape])
            except RemoteUnavailable:
                is_cut = True
            first.remote = whole
            with first.hold_publishing(), first.store.open(tape) as opened:
                first.write(opened, "meanwhile")
            first.push([tape])
            other.pull()
            assert other.read_texts(tape)[-1] == "meanwhile"
        assert left >= 3
        assert other.describe() == first.describe()

    def test_what_was_redacted_is_in_no_object(self, enter: Callable[[str], TeamMachine]) -> None:
        first, other, remote = enter("one"), enter("other"), enter("third").remote
        tape = first.begin("first", _WORDS, f"{_WORDS} {'z' * _LARGE}")
        other.pull()
        assert any(_WORDS.encode() in data for data in _read_objects(remote))
        with first.store.open(tape) as opened:
            hidden = [
                read_id(line)
                for line in opened.lines(opened.head())
                if _WORDS in str(decode_line(line, opened.blobs.text).data)
            ]
            redact(opened, hidden, "a password")
        other.pull()
        assert not any(_WORDS.encode() in data for data in _read_objects(remote))
        for path in other.store.path.rglob("*"):
            assert not path.is_file() or _WORDS.encode() not in path.read_bytes()
        self.settle(first, other)

    def test_a_tape_that_was_taken_back_goes_to_the_trash(
        self, enter: Callable[[str], TeamMachine]
    ) -> None:
        first, other = enter("one"), enter("other")
        tape, kept = first.begin(_WORDS), first.begin("another")
        other.pull()
        with first.hold_publishing(), Cursor.open(first.store.path, _NAME) as cursor:
            pusher = Pusher(first.store, first.remote, cursor)
            pusher.hold(tape, "an audit")
            with pytest.raises(UsageError, match="an audit"):
                pusher.unpush(tape)
            pusher.hold(tape, held=False)
            pusher.unpush(tape, "by mistake")
        assert [done.error is None for done in other.pull()] == [False]
        assert [trashed.id for trashed in other.store.trash()] == [tape]
        assert [*other.describe()] == [kept]
        assert {done.tape for done in first.push() if done.error} == {tape}
        assert not any(_WORDS.encode() in data for data in _read_objects(first.remote))

    def test_merged_chunks_say_the_same(self, enter: Callable[[str], TeamMachine]) -> None:
        first, other = enter("one"), enter("other")
        tape = first.begin(*map(str, range(12)))
        other.pull()
        assert merge_chunks(other.remote, tape) >= 11
        with first.store.open(tape) as opened:
            first.write(opened, "later")
        late = enter("late")
        for machine in (other, late):
            machine.pull()
            assert machine.describe() == first.describe()

    def test_after_a_kill_everything_acknowledged_is_elsewhere(
        self, factory: Factory, enter: Callable[[str], TeamMachine], tmp_path: Path
    ) -> None:
        context = multiprocessing.get_context("spawn")
        chance = random.Random(4)
        for turn in range(2):
            ours, theirs = context.Pipe(duplex=False)
            arguments = (tmp_path, factory, f"killed{turn}", theirs)
            process = context.Process(target=_write_forever, args=arguments)
            process.start()
            theirs.close()
            acknowledged = [ours.recv() for _ in range(chance.randrange(2, 8))]
            process.kill()
            process.join()
            with suppress(EOFError):
                while ours.poll():
                    acknowledged.append(ours.recv())
            ours.close()
            fresh = enter(f"fresh{turn}")
            fresh.pull()
            there = {name for _, _, _, _, lines in fresh.describe().values() for name in lines}
            assert {*acknowledged} <= there

    def test_three_machines_come_to_the_same(self, enter: Callable[[str], TeamMachine]) -> None:
        chance = random.Random(5)
        machines = [enter(name) for name in ("one", "two", "three")]
        tape = machines[0].begin("first")
        for machine in machines:
            machine.pull()
        written: Counter[str] = Counter()
        for number in range(_STEPS):
            machine = chance.choice(machines)
            with ExitStack() as stack:
                stack.enter_context(suppress(Overtaken))
                if chance.random() < 0.5:
                    stack.enter_context(machine.hold_publishing())
                opened = stack.enter_context(machine.store.open(tape))
                _take_step(machine, opened, chance, str(number))
            with machine.store.open(tape) as opened:
                written.update(read_id(line) for _, _, line in opened.phases.read_all_lines())
            if chance.random() < 0.3:
                machine.push()
            if chance.random() < 0.3:
                machine.pull()
        ((*_, lines),) = self.settle(*machines).values()
        assert {*written} <= {*lines}


def _take_step(machine: TeamMachine, tape: Tape, chance: random.Random, text: str) -> None:
    """Change a tape in one of the ways that there are."""
    match chance.randrange(7):
        case 0:
            tape.fork(tape.head(), f"b{text}", switch=True)
        case 1:
            tape.rename(text)
        case 2:
            tape.label(chance.choice("xyz"), tape.head().entry)
        case 3:
            with tape.writer() as writer:
                writer.anchor(Anchor(kind="compaction", summary=text))
        case 4:
            tape.switch(chance.choice([*tape.refs().branches]))
        case _:
            machine.write(tape, text)


def _read_objects(remote: Remote) -> Iterator[bytes]:
    """Yield the bytes of every object, chunks unpacked."""
    for listed in remote.list(""):
        data = remote.read(listed.key)
        chunk = decode_chunk(listed.key, data) if listed.key.startswith(TAPES_PREFIX) else None
        yield data if chunk is None else chunk.data


def _write_forever(path: Path, factory: Factory, name: str, acknowledge: Connection) -> None:
    """Write prompts, and tell the id of each that a barrier acknowledged."""
    machine = TeamMachine(path, factory, name)
    with machine.store.create(Beginning("/src", "test/1")) as tape, tape.writer() as writer:
        for number in range(9_999):
            entry = writer.append(User((Text(f"{number} {'w' * 200}"),)))
            writer.barrier()
            acknowledge.send(entry.id)
