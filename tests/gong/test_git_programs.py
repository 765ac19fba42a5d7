"""What a repository names for git to run is found, and does not run before the user trusts it."""

import os
import subprocess

import pytest

from gong import trust
from gong.config import PermissionSettings
from gong.git_programs import (
    GitProgram,
    build_git_variables,
    build_overrides,
    list_git_programs,
    may_name_programs,
)
from gong.policy.permissions import build_policy
from gong.subagents.worktree import add_worktree, read_git
from gong.workflow.worktrees import TaskRepository


@pytest.fixture
def environ(tmp_path):
    (tmp_path / "home").mkdir()
    return {"HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}


@pytest.fixture
def git(tmp_path, environ):
    """Run git in a folder of a repository that has one commit."""
    root = tmp_path / "project"

    def run(*words, folder=root):
        done = subprocess.run(
            ["git", "-c", "user.name=n", "-c", "user.email=e@x", *words],
            cwd=folder,
            env=environ,
            check=True,
            capture_output=True,
        )
        return done.stdout

    root.mkdir()
    run("init", "-q", "-b", "main")
    (root / "a.txt").write_text("one\n")
    run("add", ".")
    run("commit", "-qm", "one")
    return run


@pytest.fixture
def root(tmp_path, git):
    return tmp_path / "project"


@pytest.fixture
def find(root, environ):
    def list_them(folder=root):
        def ask(argv):
            done = subprocess.run(argv, cwd=folder, env=environ, check=False, capture_output=True)
            return None if done.returncode else done.stdout

        return list_git_programs(str(folder), ask)

    return list_them


KEYS = [
    "filter.x.clean",
    "filter.x.smudge",
    "filter.x.process",
    "filter.a b=c.clean",
    "diff.external",
    "diff.x.command",
    "diff.x.textconv",
    "merge.x.driver",
    "gpg.program",
    "gpg.ssh.program",
    "core.sshCommand",
    "core.gitProxy",
    "core.askPass",
    "credential.helper",
    "credential.https://x.helper",
    "remote.origin.uploadpack",
    "remote.origin.vcs",
    "core.fsmonitor",
    "core.pager",
    "pager.log",
    "core.editor",
    "core.alternateRefsCommand",
    "protocol.ext.allow",
    "protocol.allow",
    "man.x.cmd",
    "browser.x.path",
    "gc.recentObjectsHook",
    "trailer.x.cmd",
    "lfs.extension.x.clean",
    "lfs.customtransfer.x.path",
]


@pytest.mark.parametrize("key", KEYS)
def test_each_setting_that_names_a_program_is_found(root, git, find, key):
    assert (may_name_programs(str(root)), find()) == (False, ())
    git("config", key, "./evil")
    section, _, name = key.rpartition(".")
    assert find() == (GitProgram(f"{section}.{name.lower()}", "./evil"),)


PLAIN = {
    "core.fsmonitor": "true",
    "core.pager": "less -R",
    "pager.log": "false",
    "core.editor": "code --wait",
    "alias.st": "status --short",
    "credential.helper": "cache --timeout=60",
    "merge.ours.driver": "true",
    "remote.origin.uploadpack": "git-upload-pack",
    "protocol.ext.allow": "never",
    "submodule.x.update": "rebase",
    "core.hooksPath": ".husky/_",
    "extensions.partialClone": "origin",
    "commit.gpgSign": "true",
    "core.worktree": "..",
}


@pytest.mark.parametrize("key", PLAIN)
def test_settings_of_ordinary_repositories_name_none(git, find, key):
    git("config", key, PLAIN[key])
    assert find() == ()


@pytest.mark.parametrize("value", ["!./evil", "-c core.fsmonitor=./evil status"])
def test_an_alias_that_runs_something_is_found(git, find, value):
    git("config", "alias.st", value)
    assert find() == (GitProgram("alias.st", value),)


@pytest.mark.parametrize("hook", ["reference-transaction", "pre-auto-gc"])
def test_hooks_that_fetch_runs_are_found(root, find, hook):
    file = root / ".git/hooks" / hook
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    assert [one.key for one in find()] == [hook]


@pytest.fixture
def other(tmp_path, git):
    """Another repository beside the project, with one commit."""
    folder = tmp_path / "other"
    folder.mkdir()
    git("init", "-q", folder=folder)
    (folder / "o.txt").write_text("o\n")
    git("add", ".", folder=folder)
    git("commit", "-qm", "o", folder=folder)
    return folder


def test_repositories_that_git_enters_are_part_of_it(root, git, find, other):
    """A submodule, one inside it, and one that is only a folder with a `.git`."""
    allow = ("-c", "protocol.file.allow=always")
    git(*allow, "submodule", "add", "-q", str(other), "sub")
    git(*allow, "submodule", "add", "-q", str(other), "deep", folder=root / "sub")
    git("clone", "-q", str(other), str(root / "plain"), folder=root)
    git("add", "plain")
    assert (may_name_programs(str(root)), find()) == (False, ())
    for number, folder in enumerate(("sub", "sub/deep", "plain"), 1):
        git("config", f"filter.{number}.clean", "./evil", folder=root / folder)
    assert sorted(find()) == [GitProgram(f"filter.{one}.clean", "./evil") for one in (1, 2, 3)]
    assert [one.key for one in find(root / "sub")] == ["filter.1.clean", "filter.2.clean"]
    git("update-index", "--index-version", "4")
    assert len(find()) == 3


def test_a_repository_whose_files_are_elsewhere_is_named(tmp_path, root, git, find):
    (tmp_path / "out").mkdir()
    git("config", "core.worktree", str(tmp_path / "out"))
    assert find() == (GitProgram("core.worktree", str(tmp_path / "out")),)


def test_a_repository_that_takes_its_history_from_elsewhere_is_named(root, git, find, other):
    moved = root / ".git"
    moved.rename(root / "away")
    (root / ".git").write_text(f"gitdir: {other}/.git\n")
    assert find() == (GitProgram("gitdir", f"{other}/.git"),)
    (root / ".git").unlink()
    (root / ".git").symlink_to(other / ".git")
    assert [one.key for one in find()] == ["gitdir"]
    (root / ".git").unlink()
    (root / "away").rename(root / ".git")
    (root / ".git/commondir").write_text(f"{other}/.git\n")
    assert find()[0] == GitProgram("gitdir", f"{other}/.git")


def test_a_folder_git_that_is_none_hides_nothing_above(root, git, find):
    (root / "in/.git").mkdir(parents=True)
    git("config", "core.fsmonitor", "./evil")
    assert find(root / "in") == (GitProgram("core.fsmonitor", "./evil"),)


def test_included_settings_and_those_of_a_worktree_are_found(tmp_path, root, git, find):
    (tmp_path / "more").write_text('[filter "y"]\n\tclean = ./evil\n')
    git("config", "include.path", "../../more")
    assert find() == (GitProgram("filter.y.clean", "./evil"),)
    git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    assert find(tmp_path / "side") == (GitProgram("filter.y.clean", "./evil"),)
    git("config", "extensions.worktreeConfig", "true")
    git("config", "--worktree", "diff.external", "./evil", folder=tmp_path / "side")
    assert GitProgram("diff.external", "./evil") in find(tmp_path / "side")
    assert GitProgram("diff.external", "./evil") not in find()


@pytest.mark.parametrize("folder", [None, ".husky"])
def test_a_hook_that_reading_commands_run_is_found(root, git, find, folder):
    hooks = root / (folder or ".git/hooks")
    hooks.mkdir(exist_ok=True)
    if folder:
        git("config", "core.hooksPath", folder)
    (hooks / "pre-commit").write_text("#!/bin/sh\n")
    (hooks / "pre-commit").chmod(0o755)
    assert find() == ()
    (hooks / "post-index-change").write_text("#!/bin/sh\n")
    (hooks / "post-index-change").chmod(0o755)
    ((key, path),) = find()
    assert (key, os.path.realpath(path)) == ("post-index-change", str(hooks / "post-index-change"))


def test_settings_of_the_user_and_the_filters_of_git_lfs_count_as_the_users_own(
    tmp_path, git, find
):
    (tmp_path / "home/.gitconfig").write_text('[filter "mine"]\n\tclean = ./mine\n')
    git("config", "filter.lfs.clean", "git-lfs clean -- %f")
    git("config", "filter.lfs.process", "git-lfs filter-process")
    assert find() == ()
    git("config", "filter.lfs.process", "./evil")
    assert find() == (GitProgram("filter.lfs.process", "./evil"),)


def test_a_folder_without_a_repository_names_none(tmp_path, find):
    assert (may_name_programs(str(tmp_path)), find(tmp_path)) == (False, ())


def test_options_leave_filters_out_or_are_impossible():
    programs = (GitProgram("filter.x.clean", "./evil"), GitProgram("merge.y.driver", "./evil"))
    assert build_overrides(programs) == (
        *("-c", "filter.x.clean=", "-c", "filter.x.required=false"),
        *("-c", "merge.y.driver=false"),
    )
    assert build_overrides((GitProgram("core.sshCommand", "./evil"),)) == (
        *("-c", "protocol.allow=never"),
    )
    for key in ("filter.a=b.clean", "core.worktree", "gitdir"):
        assert build_overrides((GitProgram(key, "./evil"),)) is None


def arm(root, git):
    """Let a repository name programs that leave a trace; return what would show it."""
    canary = root.parent / "canary"
    (root / ".gitattributes").write_text("* filter=x diff=x merge=x\n")
    for key in ("filter.x.clean", "filter.x.smudge", "filter.x.process", "diff.x.textconv"):
        git("config", key, f"touch '{canary}-{key}'; cat")
    git("config", "diff.external", f"touch '{canary}-external'")
    git("config", "core.fsmonitor", f"touch '{canary}-fsmonitor'; false")
    git("config", "merge.x.driver", f"touch '{canary}-merge'")
    hook = root / ".git/hooks/post-index-change"
    hook.write_text(f"#!/bin/sh\ntouch '{canary}-hook'\n")
    hook.chmod(0o755)
    os.utime(root / "a.txt", (0, 0))  # git has to read it again
    return lambda: sorted(one.name for one in root.parent.glob("canary*"))


async def test_our_own_git_runs_none_of_them(root, git, environ):
    traces = arm(root, git)
    variables = build_git_variables(environ, str(root))
    assert "?? .gitattributes" in await read_git(variables, str(root), "status", "--porcelain")
    made = await add_worktree(str(root), environ, "x")
    (root.parent / "project/b.txt").write_text("b\n")
    tasks = TaskRepository(str(root), environ)
    await tasks.commit(made.folder, "nothing")
    await made.remove()
    assert traces() == []


def test_commands_of_git_ask_until_the_user_trusts_them(root, git, environ):
    traces = arm(root, git)
    policy = build_policy(PermissionSettings(), str(root), environ)
    commands = [
        "git status",
        "git diff",
        "git log -p",
        "git show",
        "git blame a.txt",
        "ls; git log",
    ]
    rulings = [policy.judge("bash", {"command": one}) for one in commands]
    assert {(one.decision, one.offered) for one in rulings} == {("ask", ())}
    named = build_policy(PermissionSettings(allow=("Bash(git status)",)), str(root), environ)
    assert named.judge("bash", {"command": "git status"}).decision == "ask"
    assert all("filter.x.clean" in one.why and "gong trust" in one.why for one in rulings)
    assert policy.judge("bash", {"command": "ls"}).decision == "allow"
    plan = build_policy(PermissionSettings(mode="plan"), str(root), environ)
    assert plan.judge("bash", {"command": "git status"}).decision == "deny"
    trust.trust_project(trust.read_project(str(root), environ), environ)
    assert policy.judge("bash", {"command": "git status"}).decision == "allow"
    git("config", "filter.x.clean", "./other")
    assert policy.judge("bash", {"command": "git status"}).decision == "ask"
    assert traces() == []


def test_a_script_that_a_filter_names_is_part_of_what_is_trusted(root, git, environ):
    (root / "clean.sh").write_text("cat\n")
    git("config", "filter.x.clean", "./clean.sh")
    trust.trust_project(trust.read_project(str(root), environ), environ)
    assert trust.list_untrusted_git_programs(str(root), environ) == ()
    (root / "clean.sh").write_text("curl evil\n")
    assert trust.list_untrusted_git_programs(str(root), environ) == (
        GitProgram("filter.x.clean", "./clean.sh"),
    )
