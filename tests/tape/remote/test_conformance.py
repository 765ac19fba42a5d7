"""Each remote of ours keeps what every remote has to keep."""

import os
import subprocess
from functools import partial

import pytest

from tape.remote.registry import open_remote
from tape.testing.remotes import RemoteConformance
from tests.tape.remote.servers import KEYS, make_bucket


class TestFolder(RemoteConformance):
    @pytest.fixture
    def factory(self, tmp_path):
        return partial(open_remote, tmp_path.as_uri())


class OfS3(RemoteConformance):
    @pytest.fixture
    def factory(self, endpoint, monkeypatch):
        pytest.importorskip("obstore", reason="the extra `s3` is not installed")
        for name, value in KEYS.items():
            monkeypatch.setenv(name, value)
        make_bucket(endpoint, "tapes")
        prefix = os.urandom(4).hex()
        return partial(open_remote, f"s3://tapes/{prefix}?endpoint={endpoint}&region=us-east-1")


class TestMinistack(OfS3):
    @pytest.fixture
    def endpoint(self, ministack):
        return ministack


class TestLocalbucket(OfS3):
    """It ignores If-Match, which nothing of ours asks for; 16 at once take it a second."""

    rounds = 2

    @pytest.fixture
    def endpoint(self, localbucket):
        return localbucket


class TestPostgres(RemoteConformance):
    @pytest.fixture
    def factory(self, postgres):
        pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")
        team = os.urandom(4).hex()
        return partial(open_remote, f"postgresql://tape@127.0.0.1:{postgres}/postgres?team={team}")


class TestPostgresThatAsksToRepeat(TestPostgres):
    """Where every transaction is serializable, the server refuses some that meet others."""

    @pytest.fixture
    def factory(self, postgres):
        isolation = "-c%20default_transaction_isolation%3Dserializable"
        team = os.urandom(4).hex()
        url = f"postgresql://tape@127.0.0.1:{postgres}/postgres?options={isolation}&team={team}"
        return partial(open_remote, url)


@pytest.mark.slow
class TestGit(RemoteConformance):
    """Each object that is created alone is a push, and so a race takes a second."""

    rounds = 2

    @pytest.fixture
    def factory(self, tmp_path):
        subprocess.run(["git", "init", "-q", "--bare", tmp_path / "tapes.git"], check=True)
        return partial(open_remote, f"git+{(tmp_path / 'tapes.git').as_uri()}")
