"""Names of repositories: one for every form of a remote, as git itself resolves it."""

from __future__ import annotations

import os
import subprocess

import pytest

from tape.folders import locate_repository
from tape.repository import WorkFacts, find_work_facts, name_repository

APP = "example.org/team/app"

URLS = [
    ("git@example.org:team/app.git", APP),
    ("example.org:team/app", APP),
    ("git@Example.org:/team/app/", APP),
    ("[git@example.org:2222]:team/app.git", APP),
    ("ssh://git@example.org/team/app.git", APP),
    ("ssh://git@example.org:2222/team/app/", APP),
    ("git+ssh://example.org//team//app.git/", APP),
    ("git://example.org:9418/team/app.git", APP),
    ("https://example.org/team/app", APP),
    ("https://user:to%40ken@example.org:8443/team/app.git?access_token=x#y", APP),
    ("HTTPS://user@name@EXAMPLE.ORG./team/app.git", APP),
    ("https://example.org/team/an%20app", "example.org/team/an app"),
    ("ssh://git@ssh.github.com:443/team/app.git", "github.com/team/app"),
    ("git@[2001:db8::1]:team/app.git", "[2001:db8::1]/team/app"),
    ("[::1]:team/app.git", "[::1]/team/app"),
    ("ssh://git@[2001:db8::1]:22/team/app.git", "[2001:db8::1]/team/app"),
    ("git@work:team/app.git", "work/team/app"),
    ("https://example.org/a/b/c/app.git", "example.org/a/b/c/app"),
    ("/srv/git/app.git", "/srv/git/app"),
    ("file:///srv/git/app.git/", "/srv/git/app"),
    ("/srv/app/.git", "/srv/app"),
    ("../app.git", "/work/app"),
    ("./a:b", "/work/here/a:b"),
    ("https://example.org", None),
    ("https:///team/app", None),
    ("git@example.org:", "/work/here/git@example.org:"),
    ("ext::sh -c 'x'", None),
    ("codecommit::eu-west-1://app", None),
    ("C:\\work\\app", None),
    ("https://exa mple.org/app", None),
    ("https://example.org/a\nb", None),
    ("x" * 2000, None),
    ("", None),
]


@pytest.mark.parametrize(("url", "name"), URLS)
def test_every_form_of_a_remote_has_one_name_without_credentials(url, name):
    assert name_repository(url, "/work/here") == name


@pytest.fixture
def git(tmp_path, monkeypatch):
    """Run git in a folder, with the settings of nobody but the test."""
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, str(tmp_path / name))

    def run(folder, *words):
        folder.mkdir(exist_ok=True, parents=True)
        words = ("-c", "protocol.file.allow=always", "-C", folder, *words)
        return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout

    return run


def find(folder, person=None):
    return find_work_facts(locate_repository(str(folder)), os.environ, person)


def test_the_remote_is_that_of_the_branch_or_origin_or_the_only_one(git, tmp_path):
    """Each rule applies where the one before it finds nothing."""
    at = tmp_path / "app"
    git(at, "init", "-q", "-b", "main")
    assert find(at).repository is None
    git(at, "remote", "add", "far", "https://me:pw@example.org/far/app.git")
    assert find(at).repository == "example.org/far/app"
    git(at, "remote", "add", "near", "git@example.org:near/app.git")
    assert find(at).repository is None
    git(at, "remote", "add", "origin", "git@example.org:team/app.git")
    assert find(at).repository == APP
    git(at, "config", "branch.main.remote", "near")
    assert find(at / "below").repository == "example.org/near/app"
    for upstream, name in (
        (".", APP),
        ("gone", APP),
        ("https://example.org/by/url", "example.org/by/url"),
    ):
        git(at, "config", "branch.main.remote", upstream)
        assert find(at).repository == name


def test_a_url_is_rewritten_as_git_rewrites_it(git, tmp_path):
    """The longest `insteadOf` counts, as in `git remote get-url`."""
    at = tmp_path / "app"
    git(at, "init", "-q")
    git(at, "config", "--global", "url.https://example.org/.insteadOf", "ex:")
    git(at, "config", "--global", "url.ssh://git@other.org/.insteadOf", "ex:team/")
    for url in ("ex:team/app", "ex:me/app", "else:x/y"):
        git(at, "remote", "remove", "origin") if url != "ex:team/app" else None
        git(at, "remote", "add", "origin", url)
        resolved = git(at, "remote", "get-url", "origin").strip()
        assert find(at).repository == name_repository(resolved)
    assert find(at).repository == "else/x/y"


def test_worktrees_submodules_and_clones_of_a_folder_have_their_remote(git, tmp_path):
    """A worktree is its repository, a submodule its own."""
    git(tmp_path, "config", "--global", "user.name", "Ann  Lee")
    git(tmp_path, "config", "--global", "user.email", "ann@example.org")
    inner, at = tmp_path / "inner", tmp_path / "app"
    for folder in (inner, at):
        git(folder, "init", "-q", "-b", "main")
        git(folder, "commit", "-q", "--allow-empty", "-m", "x")
    git(at, "remote", "add", "origin", "https://example.org/team/app")
    git(at, "submodule", "add", "-q", str(inner), "part")
    git(at, "worktree", "add", "-q", str(tmp_path / "tree"))
    ann = "Ann Lee <ann@example.org>"
    assert find(tmp_path / "tree") == WorkFacts(APP, ann)
    assert find(at / "part") == WorkFacts(str(inner), ann)
    git(tmp_path, "clone", "-q", str(inner), "copy")
    assert find(tmp_path / "copy") == WorkFacts(str(inner), ann)


def test_the_person_is_named_or_asked_of_git_or_left_out(git, tmp_path):
    """`off` records nobody."""
    assert find(tmp_path) == WorkFacts(None, None)
    git(tmp_path, "config", "--global", "user.email", "ann@example.org")
    assert find(tmp_path).person == "<ann@example.org>"
    assert find(tmp_path, "Bo <b@x>").person == "Bo <b@x>"
    assert find(tmp_path, "off").person is None


def test_without_git_nothing_is_known(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find(tmp_path) == WorkFacts(None, None)
