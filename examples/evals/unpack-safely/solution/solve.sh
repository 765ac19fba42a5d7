#!/bin/bash
cat > unpack.py <<'PY'
"""Unpacks archives of users."""

import os
import stat
import tarfile
import zipfile
import zlib
from pathlib import Path

MOST_MEMBERS = 1000


class Unsafe(Exception):
    """The archive is refused."""


def unpack(archive, folder, limit=10_000_000):
    """Unpack an archive into a folder; return the names of its files.

    Contents are read as far as the limit before anything is written.
    """
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as opened:
                members = collect(list_zip(opened), limit)
        else:
            with tarfile.open(archive) as opened:
                members = collect(list_tar(opened), limit)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        raise ValueError(f"{archive} is no archive: {error}") from error
    return write(members, Path(folder))


def list_zip(archive):
    for info in archive.infolist():
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise Unsafe(f"{info.filename} is no file")
        yield info.orig_filename, info.is_dir(), lambda info=info: archive.open(info)


def list_tar(archive):
    for info in archive:
        if not (info.isreg() or info.isdir()):
            raise Unsafe(f"{info.name} is no file")
        yield info.name, info.isdir(), lambda info=info: archive.extractfile(info)


def collect(members, limit):
    """Return name → content, None for a folder."""
    made = {}
    for number, (name, is_folder, open_member) in enumerate(members):
        if number >= MOST_MEMBERS:
            raise Unsafe("too many members")
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if name.startswith("/") or ".." in parts or set(name) & set("\\:\0") or not (parts or is_folder):
            raise Unsafe(f"{name!r} is no name below the folder")
        path = "/".join(parts)
        if is_folder:
            if made.setdefault(path, None) is not None:
                raise Unsafe(f"{path} is a file and a folder")
            continue
        if path in made:
            raise Unsafe(f"{path} occurs twice")
        with open_member() as file:
            made[path] = file.read(limit + 1)
        limit -= len(made[path])
        if limit < 0:
            raise Unsafe("too much content")
    files = {name for name, content in made.items() if content is not None}
    if any("/".join(name.split("/")[:end]) in files for name in made for end in range(1, name.count("/") + 1)):
        raise Unsafe("a name is a file and a folder")
    return made


def write(members, folder):
    """Write files and folders, if none of them is there; return the names of the files."""
    for name, content in members.items():
        path = folder / name
        if content is not None and os.path.lexists(path):
            raise FileExistsError(path)
        for above in [path, *path.parents][: len(Path(name).parts)]:
            if above.is_symlink() or (above != path and above.exists() and not above.is_dir()):
                raise Unsafe(f"{above} is in the way")
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in sorted(members.items()):
        path = folder / name
        make_folders(path if content is None else path.parent, folder)
        if content is not None:
            path.write_bytes(content)
            path.chmod(0o644)
    return sorted(name for name, content in members.items() if content is not None)


def make_folders(path, root):
    if path != root and not path.is_dir():
        make_folders(path.parent, root)
        path.mkdir()
        path.chmod(0o755)
PY
