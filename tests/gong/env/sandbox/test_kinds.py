"""The other kinds of sandbox: Landlock, tried here; the profile of Seatbelt; limits; errors."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gong.env.sandbox import landlock
from gong.env.sandbox.binds import Border, build_arguments
from gong.env.sandbox.limits import (
    NO_GROUPS,
    LimitGroups,
    UsageLimits,
    build_inner_script,
    build_limit_script,
    describe_limits,
    make_groups,
)
from gong.env.sandbox.protected import find_protection
from gong.env.sandbox.sandbox import SandboxRequest, SandboxUnavailable, open_sandbox
from gong.env.sandbox.seatbelt import build_profile
from gong.errors import ConfigurationError
from tests.gong.env.sandbox.world import list_users, make_world

needs_landlock = pytest.mark.skipif(landlock.find_version() == 0, reason="no Landlock here")


@needs_landlock
@pytest.mark.parametrize("user", list_users())
def test_landlock_keeps_writing_in_the_folders(user):
    """M220: where bubblewrap cannot work."""
    connect = 'import socket; socket.create_connection(("127.0.0.1", 9), 3)'
    with make_world(user, "/var/tmp") as world:
        world.variables = {"LD_PRELOAD": ""}
        answer = world.run_inside(
            [
                "echo x > new && mkdir d && mv new d/ && echo y > $TMPDIR/t && echo z > /dev/null",
                f"echo x > {world.outside}/marker",
                f"ln {world.outside}/file hard && echo evil >> hard",
                "echo x > ~/.bashrc",
                f"{world.python} -c '{connect}'",
                f'{world.python} -c \'open("e", "w").truncate(1)\'',
            ],
            without_bubblewrap=True,
        )
        assert answer["kind"] == "landlock"
        codes = [result[0] != 0 for result in answer["results"]]
        assert codes == [False, True, True, True, True, False]
        assert "PermissionError" in answer["results"][4][1]
        assert (world.outside / "file").read_text() == "plain"
        assert (world.home / ".bashrc").read_text() == "plain"


def test_rights_are_those_that_a_version_of_landlock_has():
    write, refer, truncate, ioctl = 1 << 1, 1 << 13, 1 << 14, 1 << 15
    first = landlock.list_rights(1)
    assert (first[0] & (write | refer | truncate | ioctl), *first[1:]) == (write, 0, 0)
    assert landlock.list_rights(3)[0] & (refer | truncate | ioctl) == refer | truncate
    assert landlock.list_rights(4)[1:] == (3, 0)
    assert landlock.list_rights(7) == ((1 << 16) - 1, 3, 3)


BORDER = Border(
    roots=("/w",),
    pinned=("/w/.git",),
    fixed=("/w/.git/config", '/w/a b"c'),
    hidden_folders=("/h/.ssh", "/h/.config/gong"),
    hidden_files=("/h/.netrc",),
    visible=("/h/.config/gong/skills",),
    temporary="/t/tmp",
)


def test_a_profile_of_seatbelt_has_its_rules_from_the_root_down():
    """M220: the border as a profile of macOS."""
    lines = build_profile(BORDER, proxy_port=3128, unix_sockets=False).split("\n")
    rules = [line for line in lines if "subpath" in line or "unlink" in line or "network" in line]
    assert rules == [
        '(allow file-read* file-write* (subpath "/w"))',
        '(deny file-read* file-write* (subpath "/h/.netrc"))',
        '(deny file-read* file-write* (subpath "/h/.ssh"))',
        '(allow file-read* file-write* (subpath "/t/tmp"))',
        '(deny file-write* (subpath "/w/a b\\"c"))',
        '(deny file-read* file-write* (subpath "/h/.config/gong"))',
        '(deny file-write* (subpath "/w/.git/config"))',
        '(allow file-read* (subpath "/h/.config/gong/skills"))',
        '(deny file-write-unlink (literal "/w"))',
        '(deny file-write-unlink (literal "/w/.git"))',
        '(allow network-outbound (remote ip "localhost:3128"))',
    ]
    assert lines[:2] == ["(version 1)", "(deny default)"]
    assert "network" not in build_profile(BORDER, proxy_port=None, unix_sockets=False)


def test_mounts_are_made_from_the_root_down():
    words = " ".join(build_arguments(BORDER, {"A": "b"}, filter_handle=3))
    steps = [
        "--bind /t/tmp /tmp",
        "--bind /w /w",
        "--tmpfs /h/.ssh",
        "--bind /w/.git /w/.git",
        "--tmpfs /h/.config/gong",
        "--ro-bind /w/.git/config /w/.git/config",
        "--ro-bind /h/.config/gong/skills /h/.config/gong/skills",
        "--remount-ro /h/.ssh",
        "--seccomp 3",
        "--setenv A b",
    ]
    assert sorted(steps, key=words.index) == steps
    assert BORDER.may_write("/w/x")
    assert BORDER.may_write("/w/.git/index")
    assert not BORDER.may_write("/w/.git/config")
    assert not BORDER.may_write("/wx")
    assert not BORDER.may_write("/h/.config/gong/skills/a")


def test_limits_are_set_by_the_shell_where_there_is_no_group(tmp_path):
    """M179: memory, processes, processor time and file sizes are limited."""
    limits = UsageLimits(300 << 20, 50, 2, 1 << 20)
    script = build_limit_script(limits, NO_GROUPS)
    assert script.split("\n") == ["ulimit -d 307200", "ulimit -t 2", "ulimit -f 2048"]
    inner = build_inner_script(limits, NO_GROUPS)
    assert inner == "ulimit -u 50 2>/dev/null || ulimit -p 50"
    text = f"{script}\n{inner}\nexec {sys.executable} -c 'print(len(bytearray(700 << 20)))'"
    assert subprocess.run(("sh", "-c", text), capture_output=True, check=False).returncode != 0
    text = f"{script}\nhead -c 3000000 /dev/zero > {tmp_path}/large"
    assert subprocess.run(("sh", "-c", text), capture_output=True, check=False).returncode != 0
    assert (tmp_path / "large").stat().st_size == 1 << 20
    text = f"{script}\nexec {sys.executable} -c 'while True: pass'"
    assert subprocess.run(("sh", "-c", text), capture_output=True, check=False).returncode in {
        -9,
        -24,
    }
    described = "memory 0.3 GB each (rlimit), processes 50 (rlimit), CPU 2 s each (rlimit)"
    assert describe_limits(limits, NO_GROUPS, counts_processes=True) == (
        f"{described}, files 1.0 MB each (rlimit)"
    )
    without = describe_limits(UsageLimits(processes=9), NO_GROUPS, counts_processes=False)
    assert without == "processes not limited (that needs a cgroup here)"
    groups = LimitGroups(("/g",), frozenset(("memory", "processes")))
    assert build_limit_script(limits, groups).startswith("echo $$ >/g/cgroup.procs")
    assert build_inner_script(limits, groups) == ""


def test_groups_are_made_where_the_kernel_lets_us_and_leave_nothing():
    limits = UsageLimits(300 << 20, 50)
    groups = make_groups(limits, f"gong-test-{os.getpid()}")
    if not groups.folders:
        pytest.skip("no cgroup is delegated here")
    probe = "for i in $(seq 60); do sleep 1 & done; wait"
    script = build_limit_script(limits, groups)
    done = subprocess.run(("sh", "-c", f"{script}\n{probe}"), capture_output=True, check=False)
    assert b"ork" in done.stderr  # "Cannot fork", "fork: retry"
    end = time.monotonic() + 20
    while any(Path(folder).exists() for folder in groups.folders):
        assert time.monotonic() < end
        groups.remove()


def test_what_is_protected_is_found_in_nested_repositories(tmp_path):
    for place in (".git", "a/b/.git"):
        folder = tmp_path / place
        (folder / "refs").mkdir(parents=True)
        (folder / "objects").mkdir()
        (folder / "HEAD").write_text("ref: refs/heads/main\n")
        (folder / "config").write_text("[core]\n\thooksPath = ../tools/hooks\n")
    (tmp_path / "tools/hooks").mkdir(parents=True)
    (tmp_path / ".envrc").write_text("")
    (tmp_path / "link").symlink_to("/etc")
    root = str(tmp_path)
    found = find_protection((root,), root)
    assert {path.removeprefix(root) for path in found.fixed} == {
        *("/.envrc", "/.git/config", "/a/b/.git/config", "/tools/hooks")
    }
    assert {path.removeprefix(root) for path in found.pinned} == {
        *("/.git", "/a/b/.git", "/a/b", "/a", "/tools")
    }
    assert f"{root}/.git/commondir" in found.watched
    assert found.remarks == ()
    (tmp_path / ".venv").mkdir()
    found = find_protection((root,), root, (f"{root}/.venv", f"{root}/gong"))
    assert f"{root}/.venv" in found.fixed
    assert found.remarks == (f"{root}/gong is gong's own code, which commands can change",)


@pytest.mark.parametrize("folder", ["", "/", "own", "missing/../.."])
def test_a_folder_that_holds_too_much_is_an_error(tmp_path, folder):
    home = tmp_path / "home"
    (home / "own").mkdir(parents=True)
    environ = {"HOME": str(home), "PATH": os.environ["PATH"]}
    place = folder if folder == "/" else str(home / folder)
    request = SandboxRequest(place, environ, writes=True, own_folders=(str(home / "own"),))
    with pytest.raises(ConfigurationError, match=r"^sandbox: ") as error:
        open_sandbox(request)
    assert not isinstance(error.value, SandboxUnavailable)
