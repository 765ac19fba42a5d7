"""Which files a command line reads and writes, as far as its words tell."""

from __future__ import annotations

import pytest

from gong.evals.check.commands import list_command_files
from gong.evals.check.paths import is_outside, resolve_path

WRITES = {
    "cat > a.py <<'E'\nx\nE": {"/home/u/w/a.py"},
    "echo x >> ../log 2>/dev/null": {"/home/u/log"},
    "cp a /etc/b; mv c /d": {"/etc/b", "/home/u/w/c", "/d"},
    "cd sub && touch z": {"/home/u/w/sub/z"},
    "sed -i 's/a/b/' x y": {"/home/u/w/x", "/home/u/w/y"},
    "sed -i -e '/a/d' -e '/b/d' x": {"/home/u/w/x"},
    "sed -E -i '/a/d' x": {"/home/u/w/x"},
    "sed -i '' '/a/d' x": {"/home/u/w/x"},
    "perl -0pi -e 's/a/b/' x": {"/home/u/w/x"},
    "sed -n '/a/p' x": set(),
    "tar -C /opt -xf a.tar": {"/opt"},
    "tar -C /opt -czf a.tgz .": set(),
    "dd if=/dev/zero of=/tmp/z": {"/tmp/z"},
    "bash -lc 'echo > /etc/q'": {"/etc/q"},
    "echo x > $UNKNOWN/y; cd $UNKNOWN && echo > z": {"/home/u/w/z | /home/u/z"},
    "echo x > ~/.bashrc": {"/home/u/.bashrc"},
    "curl -o /tmp/f http://x/y; wget -O g http://x": {"/tmp/f", "/home/u/w/g"},
    "find . -name '*.pyc'; ls > /dev/null": set(),
    "for i in 1 2; do echo > out$i; done": {"/home/u/w/out1", "/home/u/w/out2"},
}
READS = {
    "cat a.py | head": {"/w/a.py"},
    "sed -n 1,5p src/a.py; nl -ba b.py": {"/w/src/a.py", "/w/b.py"},
    "cd src && cat *.py": {"/w/src/*.py"},
    "git show HEAD:a.py; git diff b.py": {"/w/a.py", "/w/b.py"},
    "for f in a b; do cat $f; done": {"/w/a", "/w/b"},
    "head -5 < in.txt": {"/w/in.txt"},
    "ls a.py; wc -l b.py; python c.py; rm d.py; git add e.py": set(),
}


@pytest.mark.parametrize("command", WRITES)
def test_files_that_are_written_and_removed(command: str) -> None:
    written = list_command_files(command, "/home/u/w").writes
    assert {" | ".join(sorted(paths)) for paths in written} == WRITES[command]


@pytest.mark.parametrize("command", READS)
def test_files_that_are_shown(command: str) -> None:
    assert READS[command] <= set(list_command_files(command, "/w").reads)
    for name in ("a.py", "b.py", "c.py", "d.py", "e.py"):
        if not READS[command]:
            assert f"/w/{name}" not in list_command_files(command, "/w").reads


def test_what_a_command_wrote_is_known_to_it() -> None:
    assert list_command_files("echo x | tee a.py > b.py; rm c.py", "/w").makes == (
        "/w/b.py",
        "/w/a.py",
    )


def test_paths_are_made_plain_by_their_letters() -> None:
    assert resolve_path("../a/./b", "/w/x") == "/w/a/b"
    assert resolve_path("a//b", "") == "a/b"
    assert resolve_path("~/x", "/Users/ada/app") == "/Users/ada/x"
    assert resolve_path("~/x", "/app") == "/root/x"
    assert resolve_path("C:\\src\\a.py", "c:\\src") == "/c:/src/a.py"
    assert resolve_path("lib\\a.py", "C:\\src") == "/c:/src/lib\\a.py"
    assert not is_outside("/c:/src/a.py", [resolve_path("C:\\src", "")])
    assert is_outside("/application", ["/app"])
    assert not is_outside("/etc/x", [])
    assert is_outside("../x", [])
