"""Pushes and pulls: their requests, and their time against bare creates of as many objects.

Servers are those of the tests, on loopback; without them the group is left out. Alone:

    .venv/bin/python bench/remotes.py [TAPES]
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from measure import Row, by_turns, seconds, table

sys.path.insert(0, str(Path(__file__).parent.parent))

from tape.index.library import list_tapes, open_store
from tape.model.entries import Text, User
from tape.remote.changed import find_changed
from tape.remote.cursor import Cursor
from tape.remote.folder import FolderRemote
from tape.remote.merging import merge_chunks
from tape.remote.opening import open_store as open_writing_store
from tape.remote.pull import pull_tapes
from tape.remote.push import Pusher
from tape.remote.registry import (
    KnownRemote,
    Registry,
    begin_remote,
    open_remote,
    write_registry,
)
from tape.store.store import Beginning, Store
from tests.tape import making
from tests.tape.remote.proxy import proxying_http
from tests.tape.remote.servers import KEYS, make_bucket, serving_ministack, serving_postgres

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from measure import Scale

    from tape.remote.remote import Remote

TAPES, ROUNDS = 1_000, 5
BARRIERS, CHUNKS = 200, 500
_BATCH = 50


def make_store(path: Path, tapes: int) -> Store:
    """Return a store of small tapes."""
    store = Store(path, durable=False)
    for number in range(tapes):
        with store.create(Beginning("/src", "bench/1", slug=str(number))) as tape:
            making.write(tape, "a prompt", "an answer of some length " * 20)
    return store


def push(store: Store, remote: Remote, name: str) -> int:
    """Push what the index says has changed, as `tape push` does; return how many chunks it took."""
    with open_store(store.path) as library, Cursor.open(store.path, name) as cursor:
        stamps = find_changed(library, cursor)
        pusher = Pusher(store, remote, cursor, stamps=stamps)
        return sum(done.chunks for done in pusher.push([*stamps]))


def pull(store: Store, remote: Remote, name: str) -> int:
    """Pull what is new, and return how many tapes that is."""
    store.open_tapes_folder().close()
    with Cursor.open(store.path, name) as cursor:
        return sum(done.error is None for done in pull_tapes(store, remote, cursor))


def create_together(remote: Remote, tapes: int, data: bytes) -> None:
    """Create as many objects as tapes, of the same size, by batches as a push does."""
    stem = f"bare/{os.urandom(6).hex()}"
    for start in range(0, tapes, _BATCH):
        remote.create_many([(f"{stem}/{start + at}", data) for at in range(_BATCH)])


def create_singly(remote: Remote, tapes: int, data: bytes) -> None:
    """Create as many objects as tapes, one after the other."""
    stem = f"bare/{os.urandom(6).hex()}"
    for number in range(tapes):
        remote.create(f"{stem}/{number}", data)


def compare(
    store: Store,
    build: Callable[[str], Remote],
    create_bare: Callable[[Remote, int, bytes], None],
    tapes: int,
    rounds: int,
) -> float:
    """Return how many times a push takes what bare creates do."""

    def push_all() -> float:
        name = f"p{os.urandom(4).hex()}"
        with build(name) as remote:
            remote.create("remote.json", b"{}")  # connected, with tables
            return seconds(lambda: push(store, remote, name))

    def create_all() -> float:
        with build(f"b{os.urandom(4).hex()}") as remote:
            remote.create("remote.json", b"{}")
            return seconds(lambda: create_bare(remote, tapes, os.urandom(size)))

    with tempfile.TemporaryDirectory() as folder:
        push(store, FolderRemote(Path(folder)), f"s{os.urandom(4).hex()}")
        size = next(path.stat().st_size for path in Path(folder).glob("t/*/*"))
    return by_turns(rounds, push_all, create_all).ratio


def s3_rows(store: Store, endpoint: str, place: Path, tapes: int, rounds: int) -> list[Row]:
    """Measure pushes to and pulls from a bucket."""
    build_address = "s3://tapes/{}?endpoint={}&region=us-east-1".format
    open_bucket = lambda name: open_remote(build_address(name, endpoint))  # noqa: E731
    ratio = compare(store, open_bucket, create_together, tapes, rounds)
    many = f"{tapes:,} tapes"
    rows = [Row(f"push of {many} to S3", "bare creates, 16 at once", ratio, "×", 1.4)]
    with proxying_http(endpoint) as (proxy, faults), ExitStack() as stack:
        remote = stack.enter_context(open_remote(build_address("counted", proxy)))
        other = Store(place / "pulled", durable=False)
        for what, target, work in (
            (f"push of {many} to S3", tapes + 10, lambda: push(store, remote, "counted")),
            (f"push with nothing new, {many}", 0, lambda: push(store, remote, "counted")),
            (f"pull of {many} from S3", tapes + 20, lambda: pull(other, remote, "counted")),
            (f"pull with nothing new, {many}", 1, lambda: pull(other, remote, "counted")),
        ):
            faults.reset()
            work()
            rows.append(Row(what, "requests", len(faults.requests), "", target))
    return rows


def postgres_rows(store: Store, port: int, tapes: int, rounds: int) -> list[Row]:
    """Measure pushes to PostgreSQL."""
    address = f"postgresql://tape@127.0.0.1:{port}/postgres"
    open_team = lambda name: open_remote(f"{address}?team={name}")  # noqa: E731
    ratio = compare(store, open_team, create_singly, tapes, rounds)
    many = f"{tapes:,} tapes"
    rows = [Row(f"push of {many} to PostgreSQL", "bare inserts, one by one", ratio, "×", 2)]
    with open_remote(f"{address}?team=counted") as remote:
        push(store, remote, "transactions")
    with psycopg.connect(address) as connection:
        asked = "SELECT count(DISTINCT xmin::text) FROM tape.objects WHERE team = 'counted'"
        ((count,),) = connection.execute(asked).fetchall()
    rows.append(Row(f"push of {many} to PostgreSQL", "transactions", count, "", 40))
    return rows


def nothing_new_row(store: Store, tapes: int, rounds: int) -> Row:
    """Measure a push with nothing new against a list of the same store."""
    with tempfile.TemporaryDirectory() as folder, open_store(store.path) as library:
        list_tapes(*library)
        remote, name = FolderRemote(Path(folder)), "nothing"
        with Cursor.open(store.path, name) as cursor:
            stamps = find_changed(library, cursor)
            for _ in Pusher(store, remote, cursor, stamps=stamps).push([*stamps]):
                pass

            def push_nothing() -> None:
                assert find_changed(library, cursor) == {}

            pair = by_turns(
                rounds,
                lambda: seconds(push_nothing),
                lambda: seconds(lambda: list_tapes(*library)),
            )
    return Row(f"push with nothing new, {tapes:,} tapes", "list of them", pair.ratio, "×", 2)


@contextmanager
def writing(path: Path, known: KnownRemote | None) -> Iterator[Callable[[], None]]:
    """Yield what appends an entry of 1 KB and waits for its barrier, to a store with a remote."""
    Store(path).open_tapes_folder().close()
    if known is not None:
        with open_remote(known.url) as remote:
            begin_remote(remote)
        write_registry(path, Registry({"team": known}))
    numbers = count()
    with (
        open_writing_store(path) as (store, _),
        store.create(Beginning("/src", "bench/1")) as tape,
        tape.writer() as writer,
    ):

        def append() -> None:
            writer.append(User((Text(f"{next(numbers)} {'a prompt ' * 110}"),)))
            writer.barrier()

        append()
        if known is not None and known.mode == "async":
            writer.barrier()
            with Cursor.open(path, "team") as cursor, open_remote(known.url) as remote:
                assert not [
                    done.error
                    for done in Pusher(store, remote, cursor).push([tape.id])
                    if done.error
                ]
        yield append


def barrier_rows(place: Path, endpoint: str, port: int, rounds: int) -> list[Row]:
    """Measure what a barrier costs with a remote."""
    rows, data = [], os.urandom(900)
    (place / "mirror").mkdir()
    addresses = {
        "S3": f"s3://tapes/barrier?endpoint={endpoint}&region=us-east-1",
        "PostgreSQL": f"postgresql://tape@127.0.0.1:{port}/postgres?team=barrier",
    }
    with ExitStack() as stack:
        local = stack.enter_context(writing(place / "none", None))
        for name, url in addresses.items():
            known = KnownRemote(url, raw=True, mode="barrier")
            both = stack.enter_context(writing(place / f"barrier-{name}", known))
            remote, keys = stack.enter_context(open_remote(url)), count()

            def write_both(remote: Remote = remote, keys: Iterator[int] = keys) -> None:
                local()
                remote.create(f"bare/{next(keys)}", data)

            pair = by_turns(
                rounds, lambda both=both: seconds(both), lambda bare=write_both: seconds(bare)
            )
            floor = "a local one and a bare create"
            rows.append(Row(f"barrier with {name}", floor, pair.ratio, "×", 1.3))
        known = KnownRemote((place / "mirror").as_uri())
        mirrored = stack.enter_context(writing(place / "async", known))
        pair = by_turns(rounds, lambda: seconds(mirrored), lambda: seconds(local))
        rows.append(Row("barrier with a mirror in the background", "none", pair.ratio, "×", 1.1))
    return rows


def merged_row(place: Path, endpoint: str) -> Row:
    """Measure how many requests a tape of many chunks takes once they were merged."""
    store, address = (
        Store(place / "chunks", durable=False),
        "s3://tapes/merged?endpoint={}&region=us-east-1",
    )
    with proxying_http(endpoint) as (proxy, faults), open_remote(address.format(proxy)) as remote:
        begin_remote(remote)
        with (
            store.create(Beginning("/src", "bench/1")) as tape,
            Cursor.open(store.path, "m") as cursor,
        ):
            for number in range(CHUNKS):
                making.write(tape, f"prompt {number}")
                assert [done.chunks for done in Pusher(store, remote, cursor).push([tape.id])] == [
                    1
                ]
            merge_chunks(remote, tape.id)
        faults.reset()
        assert pull(Store(place / "unchunked", durable=False), remote, "m") == 1
    what = f"pull of a tape of {CHUNKS} chunks, merged"
    return Row(what, "requests", len(faults.requests), "", 3)


@contextmanager
def serving(place: Path) -> Iterator[tuple[str, int]]:
    """Yield the endpoint of an S3 server and the port of PostgreSQL."""
    with ExitStack() as stack:
        (place / "s3").mkdir(parents=True)
        endpoint = stack.enter_context(serving_ministack(place / "s3"))
        make_bucket(endpoint, "tapes")
        yield endpoint, stack.enter_context(serving_postgres())


def remotes_rows(path: Path, scale: Scale) -> list[Row]:
    """Measure a store of a thousand small tapes, or of a hundred in a quick run."""
    return measure(path / "remotes", min(scale.small, TAPES), min(scale.rounds, ROUNDS))


def measure(place: Path, tapes: int, rounds: int) -> list[Row]:
    os.environ.update(KEYS)
    with serving(place) as (endpoint, port):
        store = make_store(place / "store", tapes)
        return [
            *s3_rows(store, endpoint, place, tapes, rounds),
            *postgres_rows(store, port, tapes, rounds),
            nothing_new_row(store, tapes, rounds),
            *barrier_rows(place, endpoint, port, BARRIERS if rounds >= ROUNDS else rounds),
            merged_row(place, endpoint),
        ]


def main() -> int:
    tapes = int(sys.argv[1]) if len(sys.argv) > 1 else TAPES
    with tempfile.TemporaryDirectory(prefix="tape-remotes-") as folder:
        rows = measure(Path(folder), tapes, ROUNDS)
    print("\n".join(table(rows)))
    return int(any(row.met is False for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
