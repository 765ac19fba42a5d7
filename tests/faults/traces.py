"""A real command under strace, read as the changes and syncs that `power` knows."""

from __future__ import annotations

import ast
import os
import re
from typing import TYPE_CHECKING

from tests.faults.power import (
    ROOT,
    Change,
    Disk,
    Name,
    Recording,
    Rename,
    Said,
    Size,
    Step,
    Sync,
    Write,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CALLS = {
    *("openat", "write", "pwrite64", "ftruncate", "fsync", "fdatasync"),
    *("mkdir", "mkdirat", "rename", "renameat", "renameat2", "unlink", "unlinkat"),
}
"""What is watched. A call that changes files in another way would show as a difference between the
model and the folder, which `record` compares at the end."""
_DERIVED = re.compile(r"(^|/)(index\.(db[^/]*|writers)$|locks/)")
"""The index, made anew from entries, and lock files, which hold nothing."""


def seen(folder: Path) -> dict[str, bytes | None]:
    """Return what stands in a real folder, as `Disk.tree` does."""
    paths = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*"))}
    return {
        name: None if path.is_dir() else path.read_bytes()
        for name, path in paths.items()
        if not _DERIVED.search(name)
    }


def disk_of(folder: Path) -> Disk:
    """Return a disk that holds what stands in a real folder, all of it synced long ago."""
    disk = Disk()
    for path, data in seen(folder).items():
        parent, _, name = path.rpartition("/")
        disk.apply(disk.add(disk.find(parent) or ROOT, name, data))
    return disk


def record(folder: Path, run: Callable[[list[str]], None]) -> Recording:
    """Trace a command; `run` is given the options of strace, and waits for its end."""
    trace = folder.parent / f"{folder.name}.trace"
    before = disk_of(folder)
    run(
        [
            *("-qq", "-y", "-s", "1000000", "-o", str(trace)),
            f"--trace={','.join(sorted(CALLS))}",
        ]
    )
    reader = _Reader(folder, before.copy())
    steps = [step for line in trace.read_text("latin-1").split("\n") for step in reader.line(line)]
    model, real = reader.disk.tree(), seen(folder)
    other = {name for name in model | real if model.get(name, 0) != real.get(name, 0)}
    assert not other, f"something changed by a call that is not watched: {sorted(other)}"
    return Recording(before, reader.disk, steps)


_CALL = re.compile(r"(\w+)\((.*)\) += (-?\d+)(?:<([^>]*)>)?.*")
_ARGUMENT = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|[\w-]+<([^>]*)>|([^,]+))')


class _Reader:
    """strace's lines, read as steps on a disk that follows them."""

    def __init__(self, folder: Path, disk: Disk) -> None:
        self.folder, self.disk = str(folder), disk

    def line(self, line: str) -> Iterator[Step]:
        """Yield what one line did to the folder; failed calls and other places are nothing."""
        call = _CALL.fullmatch(line)
        if call is None or int(call[3]) < 0:
            return
        if line.startswith("write(1<"):
            _, data, _ = _arguments(call[2])
            yield Said(_bytes(data)[: int(call[3])])
        name, given, result = call[1], list(_arguments(call[2])), int(call[3])
        for step in (
            *self._bytes_changed(name, given, result),
            *self._names_changed(name, given, call[4] or ""),
        ):
            if isinstance(step, Change):
                self.disk.apply(step)
            yield step

    def _bytes_changed(self, name: str, given: list[str], result: int) -> Iterator[Step]:
        for node in self._nodes(given[0]):
            match name, given:
                case (("fsync" | "fdatasync"), _):
                    yield Sync(node)
                case "write", [_, data, _]:  # files are only written at their end
                    yield Write(node, len(self.disk.files[node]), _bytes(data)[:result])
                case "pwrite64", [_, data, _, offset]:
                    yield Write(node, int(offset), _bytes(data)[:result])
                case "ftruncate", [_, size]:
                    yield Size(node, int(size))

    def _names_changed(self, name: str, given: list[str], opened: str) -> Iterator[Step]:
        match name, given:
            case "openat", [_, _, flags, *_] if "O_CREAT" in flags:
                yield from self._made(opened, b"")
            case (("mkdir" | "mkdirat"), [*place, path, _]):
                yield from self._made(_joined(place, path), None)
            case "rename", [old, new]:
                yield from self._renamed(old, new)
            case (("renameat" | "renameat2"), [place, old, to, new, *_]):
                yield from self._renamed(_joined([place], old), _joined([to], new))
            case "unlink", [path]:
                yield from self._unlinked(path)
            case "unlinkat", [place, path, _]:
                yield from self._unlinked(_joined([place], path))

    def _nodes(self, path: str) -> list[int]:
        inside = self._inside(path)
        node = None if inside is None else self.disk.find(inside)
        return [] if node is None else [node]

    def _inside(self, path: str) -> str | None:
        """Return a path inside the folder; None for another one, and for what is derived."""
        if path != self.folder and not path.startswith(f"{self.folder}/"):
            return None
        inside = path[len(self.folder) + 1 :]
        return None if _DERIVED.search(inside) else inside

    def _place(self, path: str) -> tuple[int, str] | None:
        """Return the folder and the name in it that a path means."""
        inside = self._inside(path)
        if not inside:
            return None
        parent, _, name = inside.rpartition("/")
        node = self.disk.find(parent)
        assert node is not None, path
        return node, name

    def _made(self, path: str, data: bytes | None) -> Iterator[Step]:
        place = self._place(path)
        if place is not None and place[1] not in self.disk.folders[place[0]]:
            yield self.disk.add(*place, data)

    def _renamed(self, old: str, new: str) -> Iterator[Step]:
        source, target = self._place(old), self._place(new)
        if source is not None and target is not None:
            means = self.disk.folders[source[0]][source[1]]
            yield Rename(*target, means, *source)

    def _unlinked(self, path: str) -> Iterator[Step]:
        place = self._place(path)
        if place is not None:
            yield Name(*place, None)


def _arguments(text: str) -> Iterator[str]:
    """Yield a call's arguments: strings without quotes, descriptors as their paths."""
    for found in _ARGUMENT.finditer(text):
        yield next(group for group in found.groups() if group is not None)


def _bytes(text: str) -> bytes:
    """Return the bytes of a string as strace writes it."""
    return ast.literal_eval(f'b"{text}"')


def _joined(folder: list[str], path: str) -> str:
    if path.startswith("/") or not folder:
        return path
    return os.path.normpath(f"{folder[-1]}/{path}")
