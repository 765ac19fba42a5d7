import os
import subprocess

import pytest

from gong.context.system import GitRepository, find_repository
from gong.env.local import LocalEnvironment


@pytest.fixture
def home(tmp_path):
    """A folder above no repository, and a home without settings."""
    (tmp_path / "bin").mkdir()
    return tmp_path


@pytest.fixture
def git(home):
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        **{
            f"GIT_{who}_{what}": "a@b"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        },
    }

    def run(folder, *argv):
        folder.mkdir(exist_ok=True)
        done = subprocess.run(
            ["git", *argv], cwd=folder, env=environ, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    return run


@pytest.fixture
def repository(git, home):
    """A repository with a commit on main; returns its folder and the commit."""
    folder = home / "repository"
    git(folder, "init", "-qb", "main")
    (folder / "a").write_text("a")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    return folder, git(folder, "rev-parse", "HEAD")


@pytest.fixture
async def found(home):
    """Return what is found in a folder, with a PATH and more variables."""
    environments = []

    async def find(folder, **variables):
        environ = {"PATH": os.environ["PATH"], "HOME": str(home), **variables}
        env = LocalEnvironment(str(folder), environ)
        environments.append(env)
        return await find_repository(env)

    yield find
    for env in environments:
        await env.cleanup()


async def test_a_folder_outside_of_all_repositories_has_none(found, home):
    (home / "plain" / ".git").mkdir(parents=True)
    assert await found(home / "plain") is None


async def test_a_branch_its_commit_and_changes(found, repository):
    folder, commit = repository
    assert await found(folder) == GitRepository("main", commit, dirty=False)
    (folder / "new").touch()
    assert await found(folder) == GitRepository("main", commit, dirty=True)


async def test_a_folder_inside(found, repository):
    folder, commit = repository
    (folder / "x" / "y").mkdir(parents=True)
    assert await found(folder / "x" / "y") == GitRepository("main", commit, dirty=False)


async def test_a_detached_head_is_told_by_its_commit(found, git, repository):
    folder, commit = repository
    git(folder, "checkout", "-q", "--detach")
    assert await found(folder) == GitRepository(None, commit, dirty=False)


async def test_no_commit_yet(found, git, home):
    git(home / "new", "init", "-qb", "trunk")
    assert await found(home / "new") == GitRepository("trunk", None, dirty=False)


async def test_another_worktree(found, git, home, repository):
    folder, commit = repository
    git(folder, "worktree", "add", "-qb", "side", str(home / "side"))
    assert await found(home / "side") == GitRepository("side", commit, dirty=False)
    assert await found(home / "side", PATH=str(home / "bin")) == GitRepository("side", None, None)


async def test_a_bare_repository(found, git, home, repository):
    folder, _ = repository
    git(home, "clone", "-q", "--bare", str(folder), "bare")
    assert await found(home / "bare") == GitRepository("main", None, dirty=False)


async def test_more_changes_than_output_that_is_kept(found, git, repository):
    folder, commit = repository
    for number in range(1500):
        (folder / f"{number:0120}").touch()
    assert await found(folder) == GitRepository("main", commit, dirty=True)


async def test_warnings_are_no_changes(found, home, repository):
    folder, commit = repository
    assert await found(folder, GIT_TRACE="1") == GitRepository("main", commit, dirty=False)


@pytest.mark.parametrize("why", ["git is missing", "bash is missing", "refused", "broken"])
async def test_where_git_cannot_tell_the_files_do(found, git, home, repository, why):
    folder, commit = repository
    (home / "bin" / "git").write_text(
        "#!/bin/sh\necho 'fatal: detected dubious ownership'\nexit 128\n"
    )
    (home / "bin" / "git").chmod(0o755)
    path = {
        "git is missing": f"{home}/none",
        "bash is missing": f"{home}/none",
        "refused": f"{home}/bin{os.pathsep}{os.environ['PATH']}",
        "broken": os.environ["PATH"],
    }[why]
    if why == "git is missing":
        (home / "none").mkdir()
        (home / "none" / "bash").symlink_to("/bin/bash")
    if why == "broken":
        (folder / ".git" / "HEAD").write_text("nonsense")
        assert await found(folder) == GitRepository(None, None, None)
        return
    (folder / "x").mkdir()
    assert await found(folder / "x", PATH=path) == GitRepository("main", commit, None)
    git(folder, "checkout", "-q", "--detach")
    assert await found(folder / "x", PATH=path) == GitRepository(None, commit, None)
    assert (await found(folder, PATH=path)).recorded is None
