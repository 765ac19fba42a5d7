"""A git repository as a remote: its branches stay, replaced bytes leave, and a cache is kept."""

import subprocess

import pytest

from tape.errors import NotFound, RemoteUnavailable, UsageError
from tape.remote.git import REF
from tape.remote.registry import open_remote
from tests.tape import making
from tests.tape.remote.machines import Machine

SECRET = b"the password is hunter2"


def git(folder, *words, **options):
    done = subprocess.run(
        ["git", "-C", folder, *words], check=True, capture_output=True, errors="replace", **options
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "tapes.git"
    subprocess.run(["git", "init", "-q", "--bare", folder], check=True)
    return folder


@pytest.fixture
def address(repository):
    return f"git+{repository.as_uri()}"


def test_branches_of_the_repository_stay_as_they_are(repository, address):
    tree = git(repository, "hash-object", "-t", "tree", "-w", "--stdin", input="")
    author = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a", "GIT_COMMITTER_NAME": "a"}
    env = {**author, "GIT_COMMITTER_EMAIL": "a", "PATH": "/usr/bin:/bin"}
    commit = git(repository, "commit-tree", tree, "-m", "work", env=env)
    git(repository, "update-ref", "refs/heads/main", commit)
    with open_remote(address) as remote:
        remote.create("a/b", b"x")
        remote.replace("a/b", b"y")
    lines = git(repository, "for-each-ref", "--format=%(refname) %(objectname)").split("\n")
    assert lines[0] == f"refs/heads/main {commit}"
    assert [line.split()[0] for line in lines] == ["refs/heads/main", REF]
    assert git(repository, "show", f"{REF}:a/b") == "y"


def test_a_batch_is_one_commit(tmp_path, repository, address):
    with open_remote(address) as remote:
        machine = Machine(tmp_path / "one", remote)
        for number in range(30):
            with machine.store.create(making.beginning(str(number))) as tape:
                making.write(tape, "hello")
        machine.push()
        assert git(repository, "rev-list", "--count", REF) == "2"  # and the push log
    with open_remote(address) as remote:
        other = Machine(tmp_path / "other", remote)
        assert len(other.pull()) == 30
        assert other.store.folders() == machine.store.folders()


def test_replaced_bytes_leave_the_history_and_every_cache(tmp_path, repository, address):
    with open_remote(address, tmp_path / "one") as one, open_remote(address) as other:
        one.create("a", SECRET)
        one.create("b", b"after")
        assert other.read("a") == SECRET
        one.replace("a", b"blank")
        assert [item.key for item in other.list("")] == ["a", "b"]
        assert (other.read("a"), other.read("b")) == (b"blank", b"after")
        for folder in (other._folder, one._folder):
            objects = git(folder, "cat-file", "--batch-all-objects", "--batch")
            assert SECRET.decode() not in objects
        assert git(repository, "rev-list", "--count", REF) == "1"
        one.create("c", b"later")
        assert git(repository, "rev-list", "--count", REF) == "2"


def test_a_cache_is_used_again(tmp_path, address):
    cache = tmp_path / "cache"
    with open_remote(address, cache) as remote:
        remote.create("a", b"x")
    (cache / f"{REF}.lock").touch()  # of a process that was killed
    with open_remote(address, cache) as remote:
        assert remote.read("a") == b"x"
        assert [item.key for item in remote.list("")] == ["a"]
        assert not remote.create("a", b"y")
        assert remote.create("b", b"y")


def test_each_process_has_a_cache_that_no_other_one_reads(tmp_path, address):
    """What one replaces is deleted from its own repository only, where the other one reads."""
    cache = tmp_path / "cache"
    with open_remote(address, cache) as one:
        one.create("a", b"1")
        with open_remote(address, cache) as other, open_remote(address, cache) as third:
            assert third.read("a") == b"1"
            for turn in range(3):
                assert other.read("a") == b"1" if turn == 0 else other.create(f"o{turn}", b"x")
                one.replace("a", b"%d" % (turn + 2))
                assert one.create(f"n{turn}", b"y")
                assert other.create(f"m{turn}", b"z")
                assert third.create(f"p{turn}", b"z")
            keys = [item.key for item in one.list("")]
            assert keys == [item.key for item in other.list("")]
            assert {one.read("a"), other.read("a")} == {b"4"}
            assert len(keys) == 1 + 3 * 3 + 2
    folders = [path.name for path in tmp_path.iterdir() if path.name.startswith("cache")]
    assert sorted(folders) == ["cache", "cache.2", "cache.3"]
    with open_remote(address, cache) as remote:
        assert remote.read("a") == b"4"


def test_a_repository_that_was_made_again_is_empty(repository, address, tmp_path):
    with open_remote(address, tmp_path / "cache") as remote:
        remote.create("a", b"x")
        git(repository, "update-ref", "-d", REF)
        assert [*remote.list("")] == []
        with pytest.raises(NotFound):
            remote.read("a")
        assert remote.create("a", b"y")


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("git+ssh://-oProxyCommand=x/y", "a repository is"),
        ("git+file:relative", "a repository is"),
        ("git+https://me:secret@host/x", "credential helper"),
    ],
)
def test_a_wrong_address_is_explained(url, complaint):
    with pytest.raises(UsageError, match=complaint):
        open_remote(url)


def test_a_repository_that_is_away_is_unavailable(tmp_path):
    with open_remote(f"git+{tmp_path.as_uri()}/none.git") as remote:
        for call in (lambda: remote.create("a", b""), lambda: [*remote.list("")]):
            with pytest.raises(RemoteUnavailable, match="does not appear to be a git repo") as said:
                call()
            assert "\n" not in str(said.value)


def test_a_key_that_could_leave_its_place_is_refused(address):
    with open_remote(address) as remote:
        for key in ("../a", "a/../b", "a\nM 100644 inline b", '"a"', ".git/config", ""):
            with pytest.raises(UsageError):
                remote.create(key, b"")
            with pytest.raises(UsageError):
                remote.read(key)
