"""`tape files`: what is left of changes, as a patch that git applies, and files as they were."""

from __future__ import annotations

import os
import subprocess
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tape.index.library import open_store
from tape.model.entries import ChangedFile, Checkpoint, FileState, Meta, SavedFile
from tape.store.store import Beginning
from tests.tape import making
from tests.tape.changing import Session
from tests.tape.cli.conftest import Command

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ["a.py", "sub/b c.txt", 'q"\\uote', "line\nfeed", "\x1b[31mred", "é日本", "sub/deep/d"]
DATA = st.one_of(
    st.lists(st.sampled_from([b"1\n", b"2\n", b"\n", b"x\r\n"]), max_size=9).map(b"".join),
    st.sampled_from([b"", b"end", b"\0bin", b"\0binary\xff" * 40, b"\xff\xfe\n"]),
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "delete", "rename", "mode", "link", "cd", "undo"]),
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
        DATA,
    ),
    max_size=8,
)
Snapshot = dict[str, tuple[str, bytes]]
"""Path below the folder → mode and bytes."""


class World:
    """A folder that exists only here, and what a tape records of it."""

    def __init__(self, run: Session, folder: Path, now: Snapshot) -> None:
        self.run, self.folder, self.cwd = run, folder, folder
        self.now = dict(now)
        self.shots: dict[str, Snapshot] = {}

    def name(self, path: str) -> str:
        """Return a path as an entry names it."""
        whole = self.folder / path
        inside = whole.is_relative_to(self.cwd)
        return str(whole.relative_to(self.cwd)) if inside else str(whole)

    def change(self, path: str, after: tuple[str, bytes] | None, source: str | None = None):
        before = self.now.get(source or path)
        sides = before or (None, None), after or (None, None)
        modes = sides[0][0] or "100644", sides[1][0] or "100644"
        old = source and self.name(source)
        return self.run.change(self.name(path), sides[0][1], sides[1][1], source=old, modes=modes)

    def step(self, kind: str, path: str, other: str, data: bytes) -> None:
        if kind == "cd":
            self.cwd = self.folder / "sub" if self.cwd == self.folder else self.folder
            self.keep(self.run.writer.append(Meta(cwd=str(self.cwd))).id)
        elif kind == "undo" and self.shots:
            self.restore(list(self.shots.values())[len(data) % len(self.shots)])
        elif kind == "rename" and path in self.now and other not in self.now:
            self.record("bash", {"command": "mv"}, other, self.now[path], path)
        elif kind != "rename":
            self.change_one(kind, path, data)

    def change_one(self, kind: str, path: str, data: bytes) -> None:
        old = self.now.get(path)
        is_file = old is not None and old[0] != "120777"
        if kind == "write" and (is_file or old is None):
            after = (old[0] if old else "100644", data)
            self.record("write", {"path": path, "content": "?"}, path, after)
        elif kind == "link" and not is_file:
            self.record(
                "bash", {"command": "ln"}, path, ("120777", b"to/x" + data[:5].hex().encode())
            )
        elif kind == "delete" and old is not None:
            self.record("bash", {"command": "rm"}, path, None)
        elif kind == "mode" and is_file:
            flipped = "100755" if old[0] == "100644" else "100644"
            self.record("bash", {"command": "chmod"}, path, (flipped, old[1]))

    def record(self, tool, args, path, after, source=None) -> None:
        if source is None and self.now.get(path) == after:
            return
        record = self.change(path, after, source)
        self.now.pop(source or path, None)
        if after is not None:
            self.now[path] = after
        self.keep(self.run.run(tool, args, record))

    def restore(self, to: Snapshot) -> None:
        states = []
        for path in sorted({*self.now, *to}):
            saved = [
                one and SavedFile.from_blob(self.run.tape.blobs.put(one[1]))
                for one in (self.now.get(path), to.get(path))
            ]
            modes = [one and one[0] for one in (self.now.get(path), to.get(path))]
            states.append(FileState(self.name(path), saved[0], modes[0], saved[1], modes[1]))
        self.now = dict(to)
        self.keep(self.run.writer.append(Checkpoint(tuple(states), "restore")).id)

    def keep(self, entry: str) -> None:
        self.shots[entry] = dict(self.now)


def put(folder: Path, shot: Snapshot) -> None:
    folder.mkdir()
    for name, (mode, data) in shot.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if mode == "120777":
            path.symlink_to(os.fsdecode(data))
        else:
            path.write_bytes(data)
            path.chmod(int(mode, 8) & 0o777)


def look(folder: Path) -> Snapshot:
    found: Snapshot = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = ("120777", os.fsencode(path.readlink()))
        elif path.is_file():
            mode = "100755" if path.stat().st_mode & 0o100 else "100644"
            found[name] = (mode, path.read_bytes())
    return found


def apply(folder: Path, patch: bytes) -> None:
    git = {"GIT_DIR": "/nowhere", "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    command = ["git", "apply", "--whitespace=nowarn", "-"]
    if patch:
        subprocess.run(command, cwd=folder, input=patch, env=os.environ | git, check=True)


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    return iter(lambda: tmp_path_factory.mktemp("files"), None)


def check_contents(tape, identity, entry, shot, before, touched) -> None:
    """`--at` gives the bytes of each file; `before` is what the first call found."""
    for name in touched:
        ran = tape("files", "--at", f"{identity}@{entry}", tape.work / name, code=None)
        if name in shot and ran.code == 0:
            assert ran.out == shot[name][1]
        elif name in shot:
            assert "is not on the tape" in ran.err  # nothing on this branch ever touched it
            assert before.get(name) == shot[name]
        else:
            assert ran.code == 3, ran


def check_diff(tape, identity, folder) -> None:
    """Each file that differs between the branches is one that a side changed."""
    sides = tape("diff", f"{identity}:main", f"{identity}:other", "--json").json
    named = {one["path"] for side in "ab" for one in sides[side]["since"]["files"]}
    changed = tape("files", f"{identity}:main", f"{identity}:other", "--json").json
    paths = [path for row in changed for path in (row["path"], row.get("from")) if path]
    cwd = str(folder)
    assert {os.path.join(cwd, path) for path in paths} <= named  # noqa: PTH118 (absolute ones stay)


@pytest.mark.slow
@given(STEPS, STEPS, STEPS, st.data())
def test_files_patches_and_contents_agree_with_snapshots(places, first, one, two, data):
    place = next(places)
    home, work = place / "home", place / "work"
    home.mkdir()
    work.mkdir()
    tape = Command(home, work)
    store = making.store_in(tape.store)
    before: Snapshot = {"a.py": ("100644", b"was\n"), "sub/deep/d": ("100755", b"\0")}
    shots: dict[str, Snapshot] = {}
    begin = Beginning(str(work), "test/1", project=str(work))
    with store.create(begin) as made:
        made.writer().close()
        identity = made.id
        with made.writer() as writer:
            world = World(Session(made, writer), work, before)
            world.keep(writer.append(making.say("Begin")).id)
            for step in first:
                world.step(*step)
            shots |= world.shots
        fork = made.head()
        made.fork(fork, "other")
        for branch, steps in (("main", one), ("other", two)):
            with made.writer(branch) as writer:
                run = Session(made, writer)
                run.calls = 100
                side = World(run, work, world.now)
                side.cwd = world.cwd
                side.keep(writer.append(making.say(branch)).id)
                for step in steps:
                    side.step(*step)
                shots |= side.shots
    a, b = (data.draw(st.sampled_from(sorted(shots))) for _ in range(2))
    listed = tape("files", f"{identity}@{a}", f"{identity}@{b}", "--json").json
    for row in listed:
        assert list(row) in (
            ["path", "op", "before", "after", "entry"],
            ["path", "op", "from", "before", "after", "entry"],
        )
    patch = tape("files", f"{identity}@{a}", f"{identity}@{b}", "-p")
    assert patch.err == ""
    touched = {name for shot in shots.values() for name in shot}
    put(place / "copy", shots[a])
    apply(place / "copy", patch.out)
    assert look(place / "copy") == shots[b]
    assert bool(listed) == (shots[a] != shots[b])
    check_contents(tape, identity, b, shots[b], before, sorted(touched))
    check_diff(tape, identity, side.cwd)
    whole = tape("files", f"{identity}@{b}", "-p")
    put(place / "again", before)
    apply(place / "again", whole.out)
    assert look(place / "again") == shots[b]


@pytest.fixture
def session(tape):
    """A session in a project that goes on in another folder: its id, and entries by name."""
    store = open_store(tape.store).store
    found = {}
    begin = Beginning(str(tape.work / "app"), "test/1", "First", project=str(tape.work))
    with store.create(begin) as made, made.writer() as writer:
        run = Session(made, writer)
        found["first"] = writer.append(making.say("Begin")).id
        edited = run.change("a.py", b"one\ntwo\n", b"one\n2\n3\n")
        found["edit"] = run.run("edit", {"path": "a.py"}, edited)
        moved = run.change("c.py", b"x\n", b"x\n", source="b.py", modes=("100644", "100755"))
        made_new = run.change("tmp.txt", None, b"gone soon")
        found["make"] = run.run("bash", {"command": "make"}, moved, made_new)
        writer.append(making.say("More"))
        writer.append(Meta(cwd=str(tape.work / "lib")))
        gone = run.change(str(tape.work / "app/tmp.txt"), b"gone soon", None)
        picture = run.change("p.png", b"\0", b"\0\1")
        odd = run.change("new\nline\x1b[2J", None, b"")
        outside = run.change("/bin/odd", b"1\n", b"2\n")
        large = ChangedFile("big", "modified", before="ab" * 32, why="too large")
        found["last"] = run.run("bash", {"command": "make"}, gone, picture, odd, outside, large)
        found["id"] = made.id
    return found


def test_a_table_of_what_is_left(tape, session):
    shown = tape("files", session["id"]).text
    rows = [line.split() for line in shown.replace(str(tape.work), "WORK").split("\n")[:-1]]
    edit, make, last = (session[name][:8] for name in ("edit", "make", "last"))
    assert rows == [
        ["M", "WORK/app/a.py", "+2", "-1", "n=4", edit],
        ["R", "WORK/app/b.py", "→", "WORK/app/c.py", "100644", "→", "100755", "n=7", make],
        ["M", "/bin/odd", "+1", "-1", "n=12", last],
        ["M", "big", "too", "large", "n=12", last],
        ["A", "new", "line␛[2J", "n=12", last],
        ["M", "p.png", "binary", "n=12", last],
    ]
    none = tape("files", f"{session['id']}@{session['first']}")
    assert (none.text, none.err) == ("", "tape: no file changed\n")


def test_json_has_the_promised_keys(tape, session):
    found = tape("files", f"{session['id']}@{session['make']}", "--json").json
    assert found == [
        {
            "path": "a.py",
            "op": "modified",
            "before": sha(b"one\ntwo\n"),
            "after": sha(b"one\n2\n3\n"),
            "entry": session["edit"],
        },
        {
            "path": "c.py",
            "op": "renamed",
            "from": "b.py",
            "before": sha(b"x\n"),
            "after": sha(b"x\n"),
            "entry": session["make"],
        },
        {
            "path": "tmp.txt",
            "op": "created",
            "before": None,
            "after": sha(b"gone soon"),
            "entry": session["make"],
        },
    ]
    assert tape("files", f"{session['id']}@{session['first']}", "--json").json == []
    odd = tape("files", session["id"], "--json").out
    assert b'"path":"new\\nline\\u001b[2J"' in odd


def test_a_patch_is_from_the_project_and_says_what_it_lacks(tape, session):
    made = tape("files", "-p", session["id"])
    assert made.err == (
        "tape: /bin/odd is left out: it is outside of " + str(tape.work) + "\n"
        "tape: big is left out: too large\n"
    )
    assert b"diff --git a/app/b.py b/app/c.py\nold mode 100644\nnew mode 100755\n" in made.out
    assert b'diff --git "a/lib/new\\nline\\033[2J" "b/lib/new\\nline\\033[2J"\n' in made.out
    assert b"GIT binary patch\n" in made.out
    undone = tape("files", "-p", session["id"], f":main@{session['first']}").out
    assert b"rename from app/c.py\nrename to app/b.py\n" in undone


def test_a_file_as_it_was(tape, session):
    def at(entry, file, code=0):
        return tape("files", "--at", f"{session['id']}@{session[entry]}", file, code=code)

    (tape.work / "app").mkdir()
    for file in ("app/a.py", tape.work / "app/a.py"):
        assert at("first", file).out == b"one\ntwo\n"
        assert at("edit", file).out == b"one\n2\n3\n"
        assert at("last", file).out == b"one\n2\n3\n"
    assert at("first", "a.py").out == b"one\ntwo\n"  # in the folder of the session
    assert at("make", "app/tmp.txt").out == b"gone soon"
    assert at("last", "lib/p.png").out == b"\0\1"
    assert "there was no such file at" in at("last", "app/tmp.txt", code=3).err
    assert "there was no such file at" in at("last", "app/b.py", code=3).err
    assert "there was no such file at" in at("first", "app/c.py", code=3).err
    assert at("make", "app/c.py").out == b"x\n"
    assert "too large" in at("last", "lib/big", code=3).err
    assert "is not on the tape: no call recorded it" in at("last", "other", code=3).err
    for blob in tape.folder(session["id"]).glob("blobs/*/*"):
        blob.unlink()
    assert "blob " in at("first", "app/a.py", code=3).err


def test_a_checkpoint_tells_what_a_file_was_that_nothing_changed(tape):
    store = open_store(tape.store).store
    with store.create(Beginning(str(tape.work), "test/1")) as made, made.writer() as writer:
        early = writer.append(making.say("Begin")).id
        saved = SavedFile.from_blob(made.blobs.put(b"same"))
        writer.append(Checkpoint((FileState("a", saved), FileState("b")), call_id="c"))
        identity = made.id
    assert tape("files", "--at", identity, "a").out == b"same"
    assert tape("files", "--at", f"{identity}@{early}", "a").out == b"same"
    assert "no such file" in tape("files", "--at", identity, "b", code=3).err


def test_wrong_uses_are_reported(tape, session):
    told = tape("files", "--at", session["id"], b"\xff\x1b[2J.py", code=3).err
    assert told.count("\n") == 1
    assert "\x1b" not in told
    for args in (["--at", session["id"]], ["--at", session["id"], "a", "b"]):
        assert "--at takes a REF and one FILE" in tape.refused("files", *args, code=2)
    assert "--at takes" in tape.refused("files", "--at", session["id"], "a", "-p", code=2)


def test_what_only_calls_say_is_marked_as_such(tape):
    store = open_store(tape.store).store
    with store.create(Beginning(str(tape.work), "test/1")) as made, made.writer() as writer:
        run = Session(made, writer)
        run.run("write", {"path": "a.py", "content": "one\n"})
        run.run("edit", {"path": "b.py", "old_text": "x", "new_text": "y"})
        identity = made.id
    rows = [line.split()[:2] for line in tape("files", identity).text.split("\n")[:-1]]
    assert rows == [["M", "a.py"], ["M", "b.py"]]
    assert tape("files", "--at", identity, "a.py").out == b"one\n"
    assert tape("files", "-p", identity).out == b""


def sha(data: bytes) -> str:
    return sha256(data).hexdigest()
