"""Machines with a store each, and remotes that count their requests and break."""

from tape.errors import RemoteUnavailable
from tape.remote.cursor import Cursor
from tape.remote.folder import FolderRemote
from tape.remote.pull import pull_tapes
from tape.remote.push import Pusher
from tape.remote.remote import Remote
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
        self.requests, self.left, self.later = [], None, 0

    def now(self):
        return super().now() + self.later

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


class BreakingRemote(Remote):
    """Any remote, until it breaks after so many requests."""

    def __init__(self, remote):
        self.remote, self.url, self.left = remote, remote.url, None

    def count(self):
        if self.left is not None:
            if self.left <= 0:
                raise RemoteUnavailable("the connection was cut")
            self.left -= 1

    def create(self, key, data):
        self.count()
        return self.remote.create(key, data)

    def read(self, key, start=0, end=None):
        self.count()
        return self.remote.read(key, start, end)

    def list(self, prefix, after=""):
        self.count()
        return self.remote.list(prefix, after)

    def replace(self, key, data):
        self.count()
        self.remote.replace(key, data)

    def now(self):
        self.count()
        return self.remote.now()

    def create_many(self, objects):
        self.count()
        return self.remote.create_many(objects)

    def read_many(self, keys):
        self.count()
        return self.remote.read_many(keys)
