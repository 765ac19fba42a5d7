"""Work inside the sandbox: commits, worktrees, Python, node; and what it leaves behind."""

import ctypes
import os
import shutil
import sys
import threading

import pytest

from tests.gong.env.sandbox.world import make_world, needs_bubblewrap

pytestmark = [needs_bubblewrap]


@pytest.fixture
def world():
    with make_world() as world:
        yield world


def run(world, *commands, **task):
    """Return the outputs of commands that all have to end well."""
    answer = world.run_inside(commands, **task)
    for command, (code, output, *_) in zip(commands, answer["results"], strict=True):
        assert code == 0, (command, output)
    return [result[1].strip() for result in answer["results"]]


def test_commits_are_made_in_a_repository_and_its_submodule(world):
    """M220: the sandbox protects git's settings, and commits work."""
    outputs = run(
        world,
        "echo 2 > new && git add new && git commit -qm second && git log --format=%s",
        "cd sub && echo 2 > b && git add b && git commit -qm inner && git log --format=%s",
        "git checkout -q -b side && git branch -q other && git stash list && git status --short",
        "git add sub && git commit -qm 'with the submodule' && git gc -q && git fsck",
    )
    assert outputs[:3] == ["second\nfirst", "inner\none", "M sub\n?? .gong/\n?? .mcp.json"]
    assert world.run_outside("git log --format=%s -1") == "with the submodule\n"


def test_a_worktree_is_added_inside_and_commits_work_in_one_of_outside(world):
    run(
        world,
        "git worktree add -q ./tree -b tree && cd tree && touch t && git add t && git commit -qm t",
    )
    world.run_outside(f"git worktree add -q {world.base}/linked -b linked")
    linked = f"{world.base}/linked"
    outputs = run(
        world,
        "touch x && git add x && git commit -qm linked && git log -1 --format=%s",
        folder=linked,
    )
    assert outputs == ["linked"]
    results = world.run_inside(
        [
            "echo x > .git",
            f"echo x > {world.project}/.git/worktrees/linked/commondir",
            f"echo x > {world.project}/.git/worktrees/tree/gitdir",
            f"echo x >> {world.project}/.git/config",
            f"mv {world.project}/.git/worktrees/tree {world.project}/.git/worktrees/tree2",
        ],
        folder=linked,
    )["results"]
    assert [result[0] != 0 for result in results] == [True] * 5


def test_commits_are_made_where_objects_are_elsewhere():
    """M220: a repository that borrows the objects of another one (alternates)."""
    with make_world(folder="/var/tmp") as world:  # inside, /dev/shm is another
        world.run_outside(f"git clone -q --shared {world.outside}/other shared")
        outputs = run(
            world,
            "cat .git/objects/info/alternates && git log --format=%s",
            "touch b && git add b && git commit -qm two && git fsck && git log --format=%s",
            folder=str(world.project / "shared"),
        )
    assert outputs[0].split("\n")[1:] == ["one"]
    assert outputs[1].endswith("two\none")


@pytest.mark.slow
def test_tests_and_packages_work_inside(world):
    """M220: pytest with its own files, and npm where there is one."""
    (world.project / "test_a.py").write_text(
        "def test_a(tmp_path):\n    assert tmp_path.exists()\n"
    )
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    words = f"PYTHONPATH={packages} {world.python} -m pytest -q test_a.py"
    (output,) = run(world, words)
    assert output.endswith("[100%]") or "1 passed" in output
    if shutil.which("npm"):
        (world.project / "pkg").mkdir()
        (world.project / "pkg/package.json").write_text('{"name": "pkg", "version": "1.0.0"}')
        run(world, "npm install --offline --no-audit --no-fund ./pkg && ls node_modules/pkg/")


def test_a_folder_of_a_repository_has_its_git_folder(world):
    folder = world.project / "conf"
    outputs = run(
        world,
        "touch y && git add y && git commit -qm y && git log -1 --format=%s",
        folder=str(folder),
    )
    assert outputs == ["y"]
    (code, output, *_), *_ = world.run_inside(["echo x > ../Makefile"], folder=str(folder))[
        "results"
    ]
    assert (code != 0, "Read-only file system" in output) == (True, True)


@pytest.mark.slow
def test_python_works_inside(world):
    run(
        world,
        f"{world.python} -m venv --without-pip env && env/bin/python -c 'import ssl, sqlite3'",
        f"{world.python} -c 'from multiprocessing import Pool; print(Pool(2).map(abs, [-1]))'",
        f"{world.python} -c 'import asyncio, subprocess; asyncio.run(asyncio.sleep(0));"
        ' subprocess.run(["true"], check=True)\'',
        "cat <(echo process substitution) | grep process",
        "mkdir -p $TMPDIR/a && echo 1 > /tmp/b && test -e $TMPDIR/b",
    )


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_node_works_inside(world):
    script = "require('child_process').execSync('true'); console.log(require('os').tmpdir())"
    (output,) = run(world, f'node -e "{script}"')
    assert "/gong-sandbox-" in output


IN_CHANGES = 0x2 | 0x4 | 0x40 | 0x80 | 0x100 | 0x200  # what linux/inotify.h calls modify … delete


def watch_status(world, seen, ended):
    """Collect what `git status` says outside meanwhile."""
    while not ended.is_set():
        seen.add(world.run_outside("git --no-optional-locks status --porcelain --ignored"))


@pytest.mark.parametrize("count", [50, pytest.param(200, marks=pytest.mark.slow)])
def test_no_file_appears_because_of_the_sandbox(world, count):
    """M220: names that are protected and missing stay missing, during commands, too."""
    listing = "git status --porcelain --ignored; ls -A . .git sub .git/modules/sub"
    before = world.run_outside(listing)
    library = ctypes.CDLL(None)
    handle = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    for folder in (".", ".git", "sub", ".git/modules", ".git/modules/sub", "conf", ".gong"):
        path = os.fsencode(world.project / folder)
        assert library.inotify_add_watch(handle, path, IN_CHANGES) >= 0
    seen, ended = set(), threading.Event()
    watching = threading.Thread(target=watch_status, args=(world, seen, ended))
    watching.start()
    try:
        outputs = run(world, *["ls -A . .git"] * count)
    finally:
        ended.set()
        watching.join()
    with pytest.raises(BlockingIOError):  # nothing happened
        os.read(handle, 4096)
    os.close(handle)
    assert seen == {world.run_outside("git status --porcelain --ignored")}
    assert world.run_outside(listing) == before
    assert len({*outputs}) == 1
    names = {path.name for place in (".", ".git") for path in (world.project / place).iterdir()}
    assert {name for name in outputs[0].split("\n") if name and ":" not in name} == names


def test_a_sandbox_that_only_reads_writes_nothing(world):
    results = world.run_inside(
        ["echo x > new", "echo x > /tmp/x && cat /tmp/x", "git status"], writes=False
    )["results"]
    assert [result[0] for result in results] == [1, 0, 0]
    assert results[0][2] == ["writing new"]


def test_what_was_refused_is_named(world):
    results = world.run_inside(
        [
            "touch /etc/marker",
            "git config a.b c",
            "cat ~/.ssh/id_fake",
            "echo x > .gong/config.toml; exit 1",
            "exit 3",
            "echo x > /etc/marker; true",
            "echo 'a: Read-only file system'",
        ]
    )["results"]
    assert [result[2] for result in results] == [
        ["writing /etc/marker"],
        ["writing .git/config"],
        [],
        ["writing .gong/config.toml"],
        [],
        ["writing /etc/marker"],
        [],
    ]


FORK = """import os, signal
try:
    for _ in range(300):
        if os.fork() == 0:
            signal.pause()
except BlockingIOError:
    pass"""


def test_a_limit_that_was_met_is_named(world):
    """M179: where a group of the kernel's counts; otherwise the program's own words tell."""
    answer = world.run_inside(
        [
            "true",
            f"{world.python} -c 'bytearray(700 << 20).hex()'",
            f"{world.python} -c '{FORK}'",
            "true",
        ],
        limits=[400 << 20, 100],
    )
    if "cgroup" not in answer["limits"]:
        pytest.skip("no cgroup is delegated here")
    memory, processes = "more memory than 0.4 GB in all", "more processes than 100"
    assert [result[2] for result in answer["results"]] == [[], [memory], [processes], []]


def test_a_worktree_among_gongs_own_files_has_a_border_around_it(world):
    """M220: that is where sub-agents with a worktree work; the rest of that folder is hidden."""
    place = world.home / ".local/state/gong/worktrees/project/agent"
    place.parent.mkdir(parents=True)
    (world.home / ".local/state/gong/trust.json").write_text("FAKE-ANSWER")
    world.run_outside(f"git worktree add -q -b gong/agent {place}")
    results = world.run_inside(
        [
            "echo x > new && git add new && git commit -qm agent && git log -1 --format=%s",
            f"cat {world.home}/.local/state/gong/trust.json",
            f"echo x > {world.project}/Makefile",
            f"echo x >> {world.project}/.git/config",
        ],
        folder=str(place),
    )["results"]
    assert results[0][:2] == [0, "agent\n"]
    assert [results[1][0] != 0, results[3][0] != 0] == [True, True]
    assert (world.project / "Makefile").read_text() == "all:\n"
