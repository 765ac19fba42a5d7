"""`gong tool --jsonl` given lines that mean harm: each is answered, and nothing outside is touched.

Commands that the danger floor must refuse are classified first; none that it would let pass is run.
"""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from gong.policy.danger import check_command
from tests.e2e.conftest import BIN

NO_CALLS = [
    *(b"", b" ", b"{", b"}", b"null", b"[]", b"1", b'"x"', b"{}", b"NaN", b"\0", b"\xff\xfe\0"),
    *(b'{"tool":1}', b'{"tool":null,"args":{}}', b'{"tool":"ls","args":NaN}', b"{'tool':'ls'}"),
    *(b'{"tool":"ls"} more', b'{"tool":"read","args":{"path":"\\ud800"}}', b"[" * 100_000),
    b'\xef\xbb\xbf{"tool":"ls","args":{}}',
    b'{"tool":"read","args":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
]
WRONG = {
    "read": [
        *(None, [], 1, {}, {"path": True}, {"path": None}, {"path": "a", "limit": 0}),
        *({"path": "a", "offset": -1}, {"path": "a", "offset": 1.5}, {"path": "a", "limit": "x"}),
    ],
    "write": [{"path": "x"}, {"path": 1, "content": ""}, {"path": "x", "content": ["y"]}],
    "edit": [{"path": "a", "edits": []}, {"path": "a", "edits": [{"oldText": "a"}]}],
    "grep": [{"pattern": "("}, {"pattern": "a", "limit": -1}, {"pattern": "a", "context": -3}],
    "find": [{"pattern": "*", "limit": -1}, {"pattern": {}}],
    "ls": [{"limit": -1}, {"path": "pipe"}, {"path": "loop"}],
    "bash": [
        *({}, {"command": "echo \0"}, {"command": "x" * 300_000}, {"command": "("}),
        *({"command": "echo x", "timeout": -1}, {"command": "kill -9 $$"}),
        {"command": "kill -TERM 0"},
    ],
    "apply_patch": [{}, {"input": 7}, {"input": "nonsense"}],
    **{name: [{}] for name in ("nope", "", "__class__", "READ", "../read", "\0", "list")},
}
ODD_BUT_FINE = {
    # Names are folded before links are followed, so that this one stays inside.
    "write": [{"path": "link/../x", "content": "inside\n"}],
    "read": [{"path": "a", "offset": 0}, {"path": "./" * 900 + "a"}, '{"path": "a"}'],
    "grep": [{"pattern": ""}, {"pattern": "\n"}, {"pattern": "y" * 9000}, {"pattern": "(a+)+$"}],
    "find": [{"pattern": p} for p in ("", "[", "**/" * 200 + "x", "/etc/*", "../*", "{a,b", "\\")],
    "bash": [
        {"command": "cat; read x; true"},
        *({"command": "printf '\\xff\\x00'"}, {"command": "head -c 3000000 /dev/zero"}),
    ],
}
UNREADABLE = [
    *("loop", "zero", "pipe", "bin", "/dev/null", "/dev/stdin", "~nobody/x", "x" * 5000, "a\nb"),
    *("up", "a/b", "/" * 3000, "-rf", "--help", "*", "a\0", "~"),
]
OUTSIDE = [
    *("../x", "../../x", "link/new", "link/secret", "to_secret", "up/x", "up/out/secret"),
    *("../work/../out/n", "a/../../x", "./../x", "a/..", "..", "zero"),
]
NOWHERE = ["pipe", "loop", "x" * 300, "n\0"]
DANGEROUS = [
    *("git push --force origin main", "git push -f", "echo hi; git push --force"),
    *("bash -c 'git push --force'", "$(git push --force)", "env X=1 git push --force"),
    *("sudo git push --force", "timeout 5 git push --force", "true && git push --force | cat"),
    *("xargs git push --force </dev/null", "git  push \\\n --force", "(git push --force) &"),
]
PATCHES = [
    "*** Add File: {path}\n+HACKED",
    "*** Delete File: {path}",
    "*** Update File: {path}\n-secret\n+HACKED",
    "*** Update File: a\n*** Move to: {path}\n-a\n+HACKED",
]


def line(tool, args):
    return json.dumps({"tool": tool, "args": args}).encode()


def ways_to_write(path):
    """Return every way to put something at a path."""
    yield line("write", {"path": path, "content": "HACKED"})
    yield line("edit", {"path": path, "oldText": "secret", "newText": "HACKED"})
    for patch in PATCHES:
        text = f"*** Begin Patch\n{patch.format(path=path)}\n*** End Patch"
        yield line("apply_patch", {"input": text})


def refused():
    yield from NO_CALLS
    for tool, calls in WRONG.items():
        yield from (line(tool, args) for args in calls)
    yield from (line("read", {"path": path}) for path in UNREADABLE)
    for path in (*OUTSIDE, *NOWHERE):
        yield from ways_to_write(path)
    yield from (line("bash", {"command": command}) for command in DANGEROUS)


@pytest.fixture
def folder(place):
    """A working folder with links that lead out of it, and other things that are no files."""
    out = place.home / "out"
    out.mkdir()
    (out / "secret").write_text("secret\n")
    (place.folder / "a").write_text("a\n")
    (place.folder / "bin").write_bytes(bytes(range(256)) * 50)
    os.mkfifo(place.folder / "pipe")
    links = {"link": out, "to_secret": out / "secret", "up": "..", "loop": "loop"}
    for name, target in {**links, "zero": "/dev/zero"}.items():
        (place.folder / name).symlink_to(target)
    return place.folder


def state(folder):
    return {
        str(path): (path.lstat().st_mtime_ns, path.lstat().st_ino)
        for path in (folder, *folder.rglob("*"))
    }


def answers(place, lines):
    """Send all lines to one process; demand an answer to each and a good end."""
    done = subprocess.run(
        [BIN / "gong", "tool", "--jsonl"],
        cwd=place.folder,
        env={**place.env, "TMPDIR": str(place.home / "work")},
        input=b"".join(one + b"\n" for one in lines),
        capture_output=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    found = [json.loads(one) for one in done.stdout.split(b"\n")[:-1]]
    assert len(found) == len(lines)
    assert all(list(one) == ["content", "details", "is_error"] for one in found)
    return found


def test_every_line_that_means_harm_is_refused_and_nothing_has_changed(place, folder):
    """M045 M097: nothing harmful runs, and no line is answered with a traceback."""
    for command in DANGEROUS:
        assert not check_command(command, str(folder), str(place.home)).allowed, command
    lines = list(refused())
    assert len(lines) > 190
    before = state(place.home)
    found = answers(place, lines)
    passed = [sent for sent, got in zip(lines, found, strict=True) if not got["is_error"]]
    assert passed == []
    assert not any("Traceback" in str(got["content"]) for got in found)
    assert state(place.home) == before


def test_lines_that_are_only_odd_are_served(place, folder):
    lines = [line(tool, args) for tool, calls in ODD_BUT_FINE.items() for args in calls]
    found = answers(place, lines)
    failed = [
        (sent, got["content"]) for sent, got in zip(lines, found, strict=True) if got["is_error"]
    ]
    assert failed == []
    assert (folder / "x").read_text() == "inside\n"
    assert not (place.home / "x").exists()
