import os
import shutil
import subprocess

import pytest

from gong.context.system import GitRepository, GitStatusReader, find_repository
from gong.env.local import LocalEnvironment
from gong.env.wrappers import ConfinedEnvironment


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
        found = await find_repository(env, environ)
        return found and GitRepository(*found[:3])

    yield find
    for env in environments:
        await env.cleanup()


async def test_a_folder_outside_of_all_repositories_has_none(found, home):
    (home / "plain" / ".git").mkdir(parents=True)
    assert await found(home / "plain") is None


async def test_git_is_not_started_where_no_files_show_a_repository(found, home, repository):
    """Unless a variable names one that is elsewhere."""
    folder, _ = repository
    (home / "plain").mkdir()
    (home / "bin" / "git").write_text(f"#!/bin/sh\ntouch {home}/started\nexit 128\n")
    (home / "bin" / "git").chmod(0o755)
    path = f"{home}/bin{os.pathsep}{os.environ['PATH']}"
    assert await found(home / "plain", PATH=path) is None
    assert not (home / "started").exists()
    elsewhere = await found(home / "plain", GIT_DIR=str(folder / ".git"))
    assert elsewhere.branch == "main"
    assert elsewhere.dirty  # nothing of it is in this folder


async def test_git_finds_what_the_environment_may_not_read(home, repository):
    folder, commit = repository
    (folder / "inside").mkdir()
    environ = {"PATH": os.environ["PATH"], "HOME": str(home)}
    inner = LocalEnvironment(str(folder / "inside"), environ)
    found = await find_repository(ConfinedEnvironment(inner, [str(folder / "inside")]), environ)
    await inner.cleanup()
    assert (found.branch, found.commit) == ("main", commit)


async def test_a_branch_its_commit_and_changes(found, repository):
    folder, commit = repository
    assert await found(folder) == GitRepository("main", commit, dirty=False)
    (folder / "new").touch()
    assert await found(folder) == GitRepository("main", commit, dirty=True)


async def test_a_folder_inside(found, repository):
    folder, commit = repository
    (folder / "x" / "y").mkdir(parents=True)
    assert await found(folder / "x" / "y") == GitRepository("main", commit, dirty=False)


async def test_a_detached_head_is_described_by_its_commit(found, git, repository):
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


async def test_the_snapshot_counts_changes_and_names_the_newest_commits(git, home, repository):
    """M135: branch, modified and untracked counts, the last commits."""
    folder, _ = repository
    for number in range(12):
        git(folder, "commit", "-q", "--allow-empty", "-m", f"commit {number}")
    (folder / "a").write_text("b")
    (folder / "new").touch()
    (folder / "newer").touch()
    env = LocalEnvironment(str(folder), {"PATH": os.environ["PATH"], "HOME": str(home)})
    found = await find_repository(env, {})
    await env.cleanup()
    assert (found.branch, found.modified, found.untracked) == ("main", 1, 2)
    assert 5 <= len(found.commits) <= 10
    assert [one.partition(" ")[2] for one in found.commits[:2]] == ["commit 11", "commit 10"]


@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_the_output_of_git_may_come_in_any_pieces(size):
    output = (
        "abc1234 one\ndef5678 t\u001b[31mwo\n-- status --\n"
        "# branch.oid 1234\n# branch.head main\n1 .M N... a\nu UU N... b\n? new\n"
    ).encode()
    reader = GitStatusReader()
    for start in range(0, len(output), size):
        reader.read_chunk(output[start : start + size])
    found = reader.build_repository()
    assert found[:5] == ("main", "1234", True, 2, 1)
    assert found.commits[0] == "abc1234 one"
    assert "\u001b" not in found.commits[1]


async def test_nothing_that_a_repository_names_is_run(git, home, repository):
    """A repository comes from anywhere: its settings must not start programs."""
    folder, _ = repository
    trap = home / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {home}/sprung\n")
    trap.chmod(0o755)
    git(folder, "config", "core.fsmonitor", str(trap))
    git(folder, "config", "log.showSignature", "true")
    git(folder, "config", "gpg.program", str(trap))
    git(folder, "config", "core.pager", str(trap))
    env = LocalEnvironment(str(folder), {"PATH": os.environ["PATH"], "HOME": str(home)})
    assert (await find_repository(env, {})).commits
    bare = folder / "hidden"
    git(home, "clone", "-q", "--bare", str(folder), str(bare))
    git(bare, "config", "core.fsmonitor", str(trap))
    inside = LocalEnvironment(str(bare), {"PATH": os.environ["PATH"], "HOME": str(home)})
    assert (await find_repository(inside, {})).commits == ()
    await env.cleanup()
    await inside.cleanup()
    assert not (home / "sprung").exists()


async def test_a_slow_git_leaves_the_commits_and_what_the_files_say(home, repository, monkeypatch):
    folder, commit = repository
    real = shutil.which("git")
    (home / "bin" / "git").write_text(
        f'#!/bin/sh\ncase "$*" in *status*) sleep 30;; *) exec {real} "$@";; esac\n'
    )
    (home / "bin" / "git").chmod(0o755)
    monkeypatch.setattr("gong.context.system._STATUS_TIMEOUT_MS", 500)
    path = f"{home}/bin{os.pathsep}{os.environ['PATH']}"
    env = LocalEnvironment(str(folder), {"PATH": path, "HOME": str(home)})
    found = await find_repository(env, {})
    await env.cleanup()
    assert found[:5] == ("main", commit, None, None, None)
    assert [one.partition(" ")[2] for one in found.commits] == ["one"]
