"""A model of a power cut: what a disk may hold when a program's writes were not all synced.

`traces.record` runs a real command under strace and reads off what it did to the files of a folder,
and what it said meanwhile. `cuts` goes through that: at every point the power fails, and of what no
sync had covered anything may be missing. `Cut.write` makes the folder that is found afterwards.

The model is harsher than a file system. An operation is there for certain only when

- it changed a file's bytes or length, and that very file was synced after it;
- it changed the names in a folder, and that very folder was synced after it.

All others may be there or not, whatever their order, each for itself; a write may be there in part,
and where a later one is there without an earlier one, zeros stand between.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROOT = 0
"""Number of the folder itself."""


class Write(NamedTuple):
    """Bytes put into a file at an offset."""

    node: int
    offset: int
    data: bytes


class Size(NamedTuple):
    """A file cut to a length."""

    node: int
    size: int


class Name(NamedTuple):
    """A name in a folder that now means this node; a new file or folder, or nothing any more."""

    node: int
    """The folder."""
    name: str
    means: int | None


class Rename(NamedTuple):
    """A node that got another name, in the same folder or elsewhere."""

    node: int
    """The folder it goes to."""
    name: str
    means: int
    old_folder: int
    old_name: str


Change = Write | Size | Name | Rename


class Sync(NamedTuple):
    """All earlier changes of a file or folder are on the disk from here on."""

    node: int


class Said(NamedTuple):
    """What the command told on standard output."""

    text: bytes


Step = Change | Sync | Said


@dataclass
class Disk:
    """Files and folders by number, and the names by which they are reached."""

    files: dict[int, bytearray] = field(default_factory=dict)
    folders: dict[int, dict[str, int]] = field(default_factory=lambda: {ROOT: {}})

    def apply(self, change: Change) -> None:
        """Make one change."""
        match change:
            case Write(node, offset, data):
                file = self.files[node]
                file.extend(bytes(max(0, offset - len(file))))
                file[offset : offset + len(data)] = data
            case Size(node, size):
                file = self.files[node]
                file.extend(bytes(max(0, size - len(file))))
                del file[size:]
            case Name(node, name, None):
                self.folders[node].pop(name, None)
            case Name(node, name, int(means)):
                self.folders[node][name] = means
            case Rename(node, name, means, old_folder, old_name):
                self.folders[old_folder].pop(old_name, None)
                self.folders[node][name] = means

    def find(self, path: str) -> int | None:
        """Return the node a path leads to."""
        node: int | None = ROOT
        for name in filter(None, path.split("/")):
            node = self.folders[node].get(name) if node in self.folders else None
        return node

    def tree(self, node: int = ROOT, path: str = "") -> dict[str, bytes | None]:
        """Return path → bytes of all that can be reached by a name; None is a folder."""
        found: dict[str, bytes | None] = {}
        for name, means in self.folders[node].items():
            here = f"{path}{name}"
            if means in self.files:
                found[here] = bytes(self.files[means])
            else:
                found |= {here: None, **self.tree(means, f"{here}/")}
        return found

    def copy(self) -> Disk:
        """Return the same disk apart from this one."""
        files = {node: bytearray(data) for node, data in self.files.items()}
        return Disk(files, {node: dict(names) for node, names in self.folders.items()})

    def add(self, parent: int, name: str, data: bytes | None) -> Name:
        """Make a file of these bytes, or a folder, that has no name yet; return its naming."""
        node = len(self.files) + len(self.folders)
        if data is None:
            self.folders[node] = {}
        else:
            self.files[node] = bytearray(data)
        return Name(parent, name, node)


class Cut(NamedTuple):
    """What is found after a power cut."""

    tree: dict[str, bytes | None]
    said: bytes
    """All that the command had told before."""
    in_order: bool
    """The bytes of each file got there in the order in which they were written."""
    when: str
    """Where it was cut and what is missing, for people."""

    def write(self, folder: Path) -> None:
        """Make a real folder of it."""
        folder.mkdir(mode=0o700)
        for path, data in sorted(self.tree.items()):
            if data is None:
                (folder / path).mkdir(mode=0o700)
            else:
                (folder / path).write_bytes(data)
                (folder / path).chmod(0o600)


class Recording(NamedTuple):
    """What a folder held, and all that happened to it."""

    before: Disk
    nodes: Disk
    """Every node there ever was, without the changes."""
    steps: list[Step]


def cuts(recording: Recording, more: int = 0, *, at_the_end: bool = False) -> Iterator[Cut]:
    """Yield each different folder that may be found after a power cut, with what was told.

    At each step: everything loose is there, all of it is missing, one alone is missing or there,
    the last write is there in part; and `more` times any of it is missing. With `at_the_end` the
    power only fails when all was done.
    """
    known = set()
    for end in range(len(recording.steps) if at_the_end else 0, len(recording.steps) + 1):
        steps = recording.steps[:end]
        said = b"".join(step.text for step in steps if isinstance(step, Said))
        for left, when in _losses(steps, more):
            tree = _found(recording, left)
            key = hash((tuple(sorted(tree.items())), said))
            if key not in known:
                known.add(key)
                yield Cut(tree, said, _in_order(steps, left), f"after step {end}: {when}")


Left = list[Step | None]
"""Steps of which those that are missing are None."""


def _losses(steps: list[Step], more: int) -> Iterator[tuple[Left, str]]:
    """Yield the steps that are left, and words for those that are not."""
    loose = _loose(steps)
    yield list(steps), "all is there"
    yield _without(steps, loose), f"{sorted(loose)} are missing"
    for one in sorted(loose):
        yield _without(steps, {one}), f"{one} is missing, {steps[one]!r:.100}"
        yield _without(steps, loose - {one}), f"{sorted(loose)} are missing, but not {one}"
    draw = Random(len(steps))
    for _ in range(more if len(loose) > 1 else 0):
        some = {one for one in loose if draw.random() < draw.choice((0.2, 0.5, 0.8))}
        yield _without(steps, some), f"{sorted(some)} are missing"
    if loose and isinstance(write := steps[max(loose)], Write):
        for torn in _torn(write):
            left = [*steps[: max(loose)], torn, *steps[max(loose) + 1 :]]
            yield list(left), f"{max(loose)} is torn, {torn!r:.100}"
            rest = loose - {max(loose)}
            yield _without(left, rest), f"{max(loose)} is torn, {sorted(rest)} are missing"


def _in_order(steps: list[Step], left: Left) -> bool:
    """Tell whether no write to a file is there without an earlier one to the same file."""
    missing: set[int] = set()
    for step, there in zip(steps, left, strict=True):
        if isinstance(step, Write):
            if there is not None and step.node in missing:
                return False
            if there is None:
                missing.add(step.node)
    return True


def _torn(write: Write) -> Iterator[Write]:
    """Yield what may be there of a write: its beginning, or only the length it gave the file."""
    for size in sorted({1, len(write.data) // 2, len(write.data) - 1}):
        yield write._replace(data=write.data[:size])
    yield write._replace(data=bytes(len(write.data)))


def _without(steps: list[Step], missing: set[int]) -> Left:
    return [None if at in missing else step for at, step in enumerate(steps)]


def _loose(steps: list[Step]) -> set[int]:
    """Return the steps that no later sync covers."""
    synced: set[int] = set()
    loose: set[int] = set()
    for at, step in reversed(list(enumerate(steps))):
        if isinstance(step, Sync):
            synced.add(step.node)
        elif isinstance(step, Change) and synced.isdisjoint(_touched(step)):
            loose.add(at)
    return loose


def _touched(change: Change) -> set[int]:
    """Return what can be synced to keep a change."""
    return {change.node, change.old_folder} if isinstance(change, Rename) else {change.node}


def _found(recording: Recording, left: Left) -> dict[str, bytes | None]:
    disk = recording.before.copy()
    for node in recording.nodes.files.keys() - disk.files.keys():
        disk.files[node] = bytearray()
    for node in recording.nodes.folders.keys() - disk.folders.keys():
        disk.folders[node] = {}
    for step in left:
        if isinstance(step, Change):
            disk.apply(step)
    return disk.tree()
