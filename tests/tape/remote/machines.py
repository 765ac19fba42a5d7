"""Machines with a store each, and a remote in a folder that counts its requests and breaks."""

from tape.errors import RemoteUnavailable
from tape.remote.cursor import Cursor
from tape.remote.folder import FolderRemote
from tape.remote.pull import pull_tapes
from tape.remote.push import Pusher
from tape.store.store import Store
from tests.tape import making
from tests.tape.unite.test_tapes import Clock, describe


class Machine:
    """A store, and what it knows of a remote."""

    def __init__(self, path, remote):
        self.store, self.remote = Store(path, clock=Clock(), durable=False), remote

    def push(self, **options):
        tapes = [self.store.read_tape_id(name) for name in self.store.folders()]
        with Cursor.open(self.store.path, "team") as cursor:
            done = [*Pusher(self.store, self.remote, cursor, **options).push(tapes)]
        assert [outcome.error for outcome in done if outcome.error] == []
        return done

    def pull(self):
        self.store.open_tapes_folder().close()
        with Cursor.open(self.store.path, "team") as cursor:
            return [*pull_tapes(self.store, self.remote, cursor)]

    def write(self, *texts, branch=None):
        with self.store.open("") as tape:
            return making.write(tape, *texts, branch=branch)

    def describe(self):
        return describe(self.store)


class CountedRemote(FolderRemote):
    """A folder that counts its requests, and breaks after so many."""

    def __init__(self, path):
        super().__init__(path)
        self.requests, self.left = [], None

    def count(self, kind, key):
        if self.left is not None:
            if self.left <= 0:
                raise RemoteUnavailable("the connection was cut")
            self.left -= 1
        self.requests.append((kind, key))

    def create(self, key, data):
        self.count("create", key)
        return super().create(key, data)

    def read(self, key, start=0, end=None):
        self.count("read", key)
        return super().read(key, start, end)

    def list(self, prefix, after=""):
        self.count("list", prefix)
        return super().list(prefix, after)
