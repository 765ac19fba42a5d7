"""A plugin of pytest: every store that a test makes has its tapes at a remote as well.

    TAPE_ENGINE=postgresql python -m pytest -p tests.tape.remote.elsewhere tests/tape/store

Writers publish at each barrier, as with `--store URL`. After each test the remote is pulled into an
empty store: what is there verifies, and holds what the tapes here do. Requests go through a process
of its own, as tests fork themselves.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from multiprocessing.connection import Client, Listener
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tape.check.finding import Counts
from tape.check.verify import verify
from tape.errors import TapeError
from tape.index import library
from tape.remote.cursor import REMOTES_NAME, Cursor
from tape.remote.publish import Publisher
from tape.remote.pull import pull_tapes
from tape.remote.registry import open_remote
from tape.remote.remote import Remote
from tape.store import store as stores
from tests.tape.remote.servers import KEYS, make_bucket, serving_ministack, serving_postgres

ROOT = Path(__file__).parents[3]
ENGINE = os.environ.get("TAPE_ENGINE", "folder")
MAX_OPENED = 20
LISTS = {"list", "create_many", "read_many"}
_PLAIN_STORE, _PLAIN_COPY, _PLAIN_OPEN = stores.Store, shutil.copytree, library.open_store
_HOMES: dict[str, object] = {}
"""The stores of the test that runs, by the remotes that they have."""
CHECKED = {"tapes": 0}


class ServedRemote(Remote):
    """A remote that another process asks, by a connection of its own for each request."""

    def __init__(self, address, place):
        self._address, self._place, self.url = address, place, f"{ENGINE}:{place}"

    def _ask(self, *request):
        with Client(self._address, "AF_UNIX") as connection:
            connection.send((self._place, *request))
            answer = connection.recv()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def create(self, key, data):
        return self._ask("create", key, data)

    def read(self, key, start=0, end=None):
        return self._ask("read", key, start, end)

    def list(self, prefix, after=""):
        yield from self._ask("list", prefix, after)

    def replace(self, key, data):
        self._ask("replace", key, data)

    def now(self):
        return self._ask("now")

    def create_many(self, objects):
        return self._ask("create_many", objects)

    def read_many(self, keys):
        return self._ask("read_many", keys)


@contextmanager
def building_addresses(folder):
    """Yield what gives the address of a place, while the server of the engine runs."""
    match ENGINE:
        case "folder":

            def build(place):
                (folder / place).mkdir(exist_ok=True)
                return (folder / place).as_uri()

            yield build
        case "git":

            def build(place):
                path = folder / f"{place}.git"
                subprocess.run(["git", "init", "-q", "--bare", path], check=True)
                return f"git+{path.as_uri()}"

            yield build
        case "s3":
            os.environ.update(KEYS)
            with serving_ministack(folder) as endpoint:
                make_bucket(endpoint, "tapes")
                yield lambda place: f"s3://tapes/{place}?endpoint={endpoint}&region=us-east-1"
        case "postgresql":
            with serving_postgres() as port:
                yield lambda place: f"postgresql://tape@127.0.0.1:{port}/postgres?team={place}"


def serve(address):
    """Answer requests until the process that asks ends."""
    with TemporaryDirectory() as folder, building_addresses(Path(folder)) as build:
        lock, opened = threading.Lock(), {}

        def get(place):
            with lock:
                if place not in opened:
                    opened[place] = open_remote(build(place))
                if ENGINE == "postgresql" and len(opened) > MAX_OPENED:  # a connection for each
                    opened.pop(next(iter(opened))).close()
                return opened[place]

        def answer(connection):
            with connection, suppress(EOFError, OSError):
                place, name, *arguments = connection.recv()
                try:
                    result = getattr(get(place), name)(*arguments)
                    connection.send([*result] if name in LISTS else result)
                except TapeError as error:
                    connection.send(error)

        with Listener(address, "AF_UNIX", backlog=64) as listener:
            print("ready", flush=True)
            threading.Thread(target=lambda: (sys.stdin.read(), os.kill(os.getpid(), signal.SIGINT)),
                             daemon=True).start()  # fmt: skip
            with suppress(KeyboardInterrupt):
                while True:
                    threading.Thread(target=answer, args=(listener.accept(),), daemon=True).start()
        for remote in opened.values():  # that of a repository has a folder of its own
            remote.close()


@cache
def find_server():
    """Start the process that asks the remotes, and return where it listens."""
    folder = _RESOURCES.enter_context(TemporaryDirectory(prefix="tape-engine-"))
    address = f"{folder}/socket"
    process = _RESOURCES.enter_context(
        subprocess.Popen(
            [sys.executable, "-m", __name__, address],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT,
        )
    )  # fmt: skip
    _RESOURCES.callback(process.stdin.close)
    assert process.stdout.readline() == b"ready\n"
    return address


_RESOURCES = ExitStack()


def find_place(home):
    """Return the file that names the remote of a store, and whose it is."""
    return Path(home, REMOTES_NAME, "place")


def connect(home):
    """Return the remote of a store; a copy of its folder begins with a copy of the remote."""
    path, owner, place = find_place(home), "", ""
    if path.exists():
        owner, place = os.fsdecode(path.read_bytes()).split("\n")
    if owner != str(home):
        before, place = place, os.urandom(12).hex()
        remote = ServedRemote(find_server(), place)
        if before:
            other = ServedRemote(find_server(), before)
            keys = [listed.key for listed in other.list("")]
            remote.create_many([*zip(keys, other.read_many(keys), strict=True)])
        path.write_bytes(os.fsencode(f"{home}\n{place}"))
    return ServedRemote(find_server(), place)


def copy_tree(source, target, *arguments, **options):
    """Copy a folder; the copy of a store has a copy of its remote, as both were at that time."""
    copied = _PLAIN_COPY(source, target, *arguments, **options)
    if find_place(target).exists():
        connect(target)
    return copied


class StoreElsewhere(_PLAIN_STORE):
    """A store whose writers publish, unless a test observes them itself."""

    def __init__(self, home, *, projection=None, anonymous=False, **options):
        super().__init__(home, projection=projection, anonymous=anonymous, **options)
        if projection is None and not anonymous:
            self.projection = Publisher(self, "origin", lambda: connect(home), None)
            _HOMES[os.fspath(home)] = self


def open_store_elsewhere(path, **options):
    """Open a store and its index; its writers publish, as those of `opening.open_store` do."""
    opened = _PLAIN_OPEN(path, **options)
    if opened.index is not None:
        store = opened.store
        store.projection = Publisher(store, "origin", lambda: connect(path), store.projection)
        _HOMES[os.fspath(path)] = store
    return opened


if "TAPE_ENGINE" in os.environ:  # before a test, or a conftest, imports it
    stores.Store, shutil.copytree = StoreElsewhere, copy_tree
    library.open_store = open_store_elsewhere


def pytest_unconfigure():
    _RESOURCES.close()
    print(f"\n{CHECKED['tapes']} tapes were the same at {ENGINE}")


@pytest.fixture(autouse=True)
def _compare_remotes(tmp_path):  # whose end comes after ours
    _HOMES.clear()
    yield
    for home in _HOMES:
        if find_place(home).exists() and is_store(home):
            compare(home)


def is_store(home):
    """Return whether a store can still be opened: some tests damage that itself."""
    try:
        _PLAIN_STORE(home).check()
    except (TapeError, OSError):
        return False
    return True


def compare(home):
    """Check that a store made of the remote alone holds what is here, where that verifies."""
    with TemporaryDirectory() as folder:
        clone, here = _PLAIN_STORE(folder, durable=False), _PLAIN_STORE(home)
        clone.open_tapes_folder().close()
        with Cursor.open(clone.path, "origin") as cursor:
            outcomes = [*pull_tapes(clone, connect(home), cursor)]
        errors = {done.tape: done.error for done in outcomes if done.error}
        for name in here.folders():
            lines = read_lines(here, name)
            identity = here.read_tape_id(name)
            if lines is None or not any(done.tape == identity for done in outcomes):
                continue
            assert identity not in errors, errors
            with clone.open(identity) as tape:
                there = read_lines(clone, tape.folder.name)
            assert there is not None
            assert there.keys() <= lines.keys()
            CHECKED["tapes"] += there.keys() == lines.keys()


def read_lines(store, name):
    """Return the lines of a tape by their ids; None for one that does not verify."""
    try:
        with store.open_folder(name) as tape:
            if [one for one in verify(tape, Counts()) if one.level != "note"]:
                return None
            return {line[:48]: line for _, _, line in tape.phases.read_all_lines()}
    except (TapeError, OSError):
        return None


if __name__ == "__main__":
    serve(sys.argv[1])
