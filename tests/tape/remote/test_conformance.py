"""Each remote of ours keeps what every remote has to keep, and so do the stores that use it."""

import os
import subprocess
from functools import partial

import pytest

from tape.remote.registry import open_remote
from tape.testing.remotes import RemoteConformance
from tape.testing.stores import StoreConformance
from tests.tape.remote.servers import KEYS, make_bucket


class OfFolder:
    @pytest.fixture
    def factory(self, tmp_path):
        (tmp_path / "team").mkdir()
        return partial(open_remote, (tmp_path / "team").as_uri())


class OfS3:
    @pytest.fixture
    def factory(self, endpoint, monkeypatch):
        pytest.importorskip("obstore", reason="the extra `s3` is not installed")
        for name, value in KEYS.items():
            monkeypatch.setenv(name, value)
        make_bucket(endpoint, "tapes")
        prefix = os.urandom(4).hex()
        return partial(open_remote, f"s3://tapes/{prefix}?endpoint={endpoint}&region=us-east-1")


class OfMinistack(OfS3):
    @pytest.fixture
    def endpoint(self, ministack):
        return ministack


class TestLocalbucket(OfS3, RemoteConformance):
    """It ignores If-Match, which nothing of ours asks for; 16 at once take it a second."""

    rounds = 2

    @pytest.fixture
    def endpoint(self, localbucket):
        return localbucket


class OfPostgres:
    @pytest.fixture
    def factory(self, postgres):
        pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")
        team = os.urandom(4).hex()
        return partial(open_remote, f"postgresql://tape@127.0.0.1:{postgres}/postgres?team={team}")


class TestPostgresThatAsksToRepeat(OfPostgres, RemoteConformance):
    """Where every transaction is serializable, the server refuses some that meet others."""

    @pytest.fixture
    def factory(self, postgres):
        isolation = "-c%20default_transaction_isolation%3Dserializable"
        team = os.urandom(4).hex()
        url = f"postgresql://tape@127.0.0.1:{postgres}/postgres?options={isolation}&team={team}"
        return partial(open_remote, url)


class OfGit:
    """Each object that is created alone is a push, and so a race takes a second."""

    rounds = 2

    @pytest.fixture
    def factory(self, tmp_path):
        subprocess.run(["git", "init", "-q", "--bare", tmp_path / "tapes.git"], check=True)
        return partial(open_remote, f"git+{(tmp_path / 'tapes.git').as_uri()}")


class TestFolder(OfFolder, RemoteConformance):
    pass


class TestMinistack(OfMinistack, RemoteConformance):
    pass


class TestPostgres(OfPostgres, RemoteConformance):
    pass


@pytest.mark.slow
class TestGit(OfGit, RemoteConformance):
    pass


class TestStoresInFolder(OfFolder, StoreConformance):
    pass


@pytest.mark.slow
class TestStoresInMinistack(OfMinistack, StoreConformance):
    pass


@pytest.mark.slow
class TestStoresInPostgres(OfPostgres, StoreConformance):
    pass


@pytest.mark.slow
class TestStoresInGit(OfGit, StoreConformance):
    pass
