"""What every remote has to keep, as tests: who brings one runs them on it.

    class TestMyRemote(RemoteConformance):
        @pytest.fixture
        def factory(self, tmp_path):
            return partial(MyRemote, "my://…")

The factory opens the same remote with every call, as another machine would; it is given to other
processes, so it must be picklable. The remote may hold other objects: each test has a prefix of its
own.
"""

from __future__ import annotations

import multiprocessing
import os
import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Barrier
from typing import TYPE_CHECKING

import pytest

from ..errors import NotFound
from ..remote.registry import probe_remote

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

    from ..remote.remote import Remote

    Factory = Callable[[], Remote]

_RACERS = 16
_MANY = 1_100
"""More than any server lists at once."""
_LARGE = 6 << 20
"""Bytes of an object that some libraries send in parts."""
_PIECE = 200_000
_ODD_KEYS = (
    "0",
    "00",
    "0-0",
    "0.0",
    "a-",
    "a.b",
    "a.jsonl",
    "a/b",
    "a/b-c",
    "a/b.c",
    "a/b0",
    "a0",
    "aa/b",
    f"b/{64 * 'c'}/{64 * 'd'}/{64 * 'e'}",
    "deep/1/2/3/4/5/6/7/8/9",
)
"""Keys in the order of their bytes: `-` and `.` come before `/`, and that before digits."""


class RemoteConformance:
    """Subclass it with a fixture `factory`: see above."""

    rounds = 12
    """How often objects are raced for."""

    @pytest.fixture
    def stem(self) -> str:
        """Return a prefix that no other test uses."""
        return f"probe/{os.urandom(8).hex()}"

    def test_an_object_is_created_once(self, factory: Factory, stem: str) -> None:
        with factory() as first, factory() as other:
            assert first.create(f"{stem}/a", b"first")
            assert not other.create(f"{stem}/a", b"second")
            assert not first.create(f"{stem}/a", b"first")
            assert other.read(f"{stem}/a") == b"first"

    def test_one_of_sixteen_creates_an_object(self, factory: Factory, stem: str) -> None:
        start = Barrier(_RACERS)
        data = [b"%d" % number for number in range(_RACERS)]
        with ExitStack() as stack, ThreadPoolExecutor(_RACERS) as pool:
            remotes = [stack.enter_context(factory()) for _ in range(_RACERS)]

            def create(number: int, key: str) -> bool:
                start.wait()
                return remotes[number].create(key, data[number])

            for turn in range(self.rounds):
                key = f"{stem}/{turn}"
                won = [*pool.map(create, range(_RACERS), [key] * _RACERS)]
                assert sum(won) == 1, f"{sum(won)} of {_RACERS} created one object"
                assert remotes[0].read(key) == data[won.index(True)]

    def test_of_several_objects_each_is_created_once(self, factory: Factory, stem: str) -> None:
        with factory() as remote:
            remote.create(f"{stem}/03", b"before")
            keys = [f"{stem}/{number:02d}" for number in range(20)]
            assert [*remote.create_many([(key, key.encode()) for key in keys])] == [
                key != f"{stem}/03" for key in keys
            ]
            assert remote.read(f"{stem}/03") == b"before"
            twice = [(f"{stem}/twice", b"1"), (f"{stem}/twice", b"2")]
            won = [*remote.create_many(twice)]
            assert sum(won) == 1
            assert remote.read(f"{stem}/twice") == twice[won.index(True)][1]
            assert [*remote.create_many([])] == []

    def test_a_part_of_an_object_is_read(self, factory: Factory, stem: str) -> None:
        key, data = f"{stem}/a", bytes(range(256))
        with factory() as remote:
            remote.create(key, data)
            places = [(0, None), (0, 10), (5, None), (5, 9), (250, 999), (256, None), (300, 310)]
            for start, end in [*places, (0, 0), (9, 5)]:
                assert remote.read(key, start, end) == (
                    data[start:] if end is None else data[start : max(start, end)]
                )

    def test_an_object_that_is_not_there_is_not_found(self, factory: Factory, stem: str) -> None:
        with factory() as remote:
            for start, end in [(0, None), (0, 5), (3, None), (0, 0)]:
                with pytest.raises(NotFound):
                    remote.read(f"{stem}/none", start, end)

    def test_several_objects_are_read_in_order(self, factory: Factory, stem: str) -> None:
        with factory() as remote:
            keys = [f"{stem}/{number:02d}" for number in range(30)]
            remote.create_many([(key, key.encode()) for key in keys[::2]])
            assert [*remote.read_many(keys)] == [
                None if number % 2 else key.encode() for number, key in enumerate(keys)
            ]
            assert [*remote.read_many([])] == []

    def test_objects_are_empty_or_large(self, factory: Factory, stem: str) -> None:
        large = random.Random(1).randbytes(_LARGE)
        with factory() as remote:
            for name, data in (("empty", b""), ("large", large)):
                assert remote.create(f"{stem}/{name}", data)
                assert not remote.create(f"{stem}/{name}", b"other")
                assert remote.read(f"{stem}/{name}") == data
            assert remote.read(f"{stem}/large", _LARGE - 3) == large[-3:]
            assert [item.size for item in remote.list(f"{stem}/")] == [0, _LARGE]

    def test_keys_come_in_the_order_of_their_bytes(self, factory: Factory, stem: str) -> None:
        keys = sorted(f"{stem}/{name}" for name in _ODD_KEYS)
        with factory() as remote, factory() as other:
            for key in random.Random(2).sample(keys, len(keys)):
                assert remote.create(key, key.encode())
            assert [item.key for item in other.list(f"{stem}/")] == keys
            assert [item.size for item in other.list(f"{stem}/")] == [len(key) for key in keys]
            for key in keys:
                assert other.read(key) == key.encode()
                assert [item.key for item in other.list(f"{stem}/", key)] == [
                    later for later in keys if later > key
                ]
            for prefix in ("a", "a/", "a/b", "0", "b/c", "deep/1/2/", "none", "none/"):
                begin = f"{stem}/{prefix}"
                assert [item.key for item in other.list(begin)] == [
                    key for key in keys if key.startswith(begin)
                ]

    def test_a_list_is_whole_where_it_is_long(self, factory: Factory, stem: str) -> None:
        keys = [f"{stem}/{number:05d}" for number in range(_MANY)]
        with factory() as remote:
            assert all(remote.create_many([(key, b"x") for key in keys]))
            assert [item.key for item in remote.list(f"{stem}/")] == keys
            assert [item.key for item in remote.list(f"{stem}/", keys[1_000])] == keys[1_001:]
            assert [*remote.list(f"{stem}/", keys[-1])] == []
            assert next(remote.list(f"{stem}/")).key == keys[0]

    def test_others_see_an_object_immediately(self, factory: Factory, stem: str) -> None:
        with factory() as first, factory() as other:
            for number in range(5):
                key = f"{stem}/{number:02d}"
                with pytest.raises(NotFound):
                    other.read(key)
                first.create(key, b"x")
                assert [item.key for item in other.list(f"{stem}/")][-1] == key
                assert other.read(key) == b"x"

    def test_a_replaced_object_keeps_its_key(self, factory: Factory, stem: str) -> None:
        with factory() as first, factory() as other:
            first.create(f"{stem}/a", b"long before")
            for data in (b"after", b""):
                first.replace(f"{stem}/a", data)
                assert first.read(f"{stem}/a") == data
                assert [item.size for item in other.list(f"{stem}/")] == [len(data)]
                assert other.read(f"{stem}/a") == data
                assert not other.create(f"{stem}/a", b"new")

    def test_its_clock_never_goes_back(self, factory: Factory) -> None:
        with factory() as first, factory() as other:
            before, after = first.now(), other.now()
        assert isinstance(before, int)
        assert before <= after < before + 600_000_000
        assert before > 1_700_000_000_000_000  # µs, not seconds

    def test_a_killed_creator_leaves_whole_objects(self, factory: Factory, stem: str) -> None:
        context = multiprocessing.get_context("spawn")
        chance = random.Random(3)
        for turn in range(3):
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(target=_create_forever, args=(factory, stem, turn, theirs))
            process.start()
            theirs.close()
            acknowledged = [ours.recv() for _ in range(chance.randrange(1, 6))]
            process.kill()
            process.join()
            while ours.poll():
                try:
                    acknowledged.append(ours.recv())
                except EOFError:
                    break
            ours.close()
            with factory() as remote:
                listed = {item.key: item.size for item in remote.list(f"{stem}/{turn}-")}
                assert {*acknowledged} <= {*listed}
                for key, size in listed.items():
                    assert size == _PIECE
                    assert remote.read(key) == _make_piece(key)
                    assert not remote.create(key, b"other")
                assert remote.create(f"{stem}/{turn}-9999", _make_piece("later"))

    def test_it_is_closed_twice(self, factory: Factory) -> None:
        remote = factory()
        remote.close()
        remote.close()

    def test_its_address_has_no_password(self, factory: Factory) -> None:
        with factory() as remote:
            assert "secret" not in remote.url

    def test_it_is_accepted(self, factory: Factory) -> None:
        with factory() as remote:
            probe_remote(remote)


def _make_piece(key: str) -> bytes:
    return key.encode() * (_PIECE // len(key)) + b"x" * (_PIECE % len(key))


def _create_forever(factory: Factory, stem: str, turn: int, acknowledge: Connection) -> None:
    """Create objects one after the other, and tell each that is there."""
    with factory() as remote:
        for number in range(9_999):
            key = f"{stem}/{turn}-{number:04d}"
            if remote.create(key, _make_piece(key)):
                acknowledge.send(key)
