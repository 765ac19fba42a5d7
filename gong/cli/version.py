"""`gong version`: what a report of a fault needs to name."""

from __future__ import annotations

import platform
import sqlite3
import subprocess
from contextlib import suppress
from pathlib import Path

import click
import msgspec
from msgspec import Struct

from tape.cli.output import as_json, format_examples, print_json
from tape.cli.terminal import print_lines

from .. import __version__


class VersionReport(Struct, frozen=True):
    """The versions of this program and of what it runs on."""

    version: str
    commit: str | None
    """None where it neither runs from a repository nor was installed from one."""
    python: str
    sqlite: str


@click.command(epilog=format_examples("gong version", "gong version --json"))
@as_json
def version(*, as_json: bool) -> None:
    """Print the version and commit, and the versions of Python and SQLite.

    The commit is that of the repository it runs from, or was installed from with git; it is left
    out where it came as a package from an index. --json prints {version, commit, python, sqlite}.
    """
    report = VersionReport(
        __version__, find_commit(), platform.python_version(), sqlite3.sqlite_version
    )
    if as_json:
        print_json(report)
        return
    commit = f" ({report.commit[:12]})" if report.commit else ""
    print_lines(
        [f"gong {report.version}{commit}", f"Python {report.python}", f"SQLite {report.sqlite}"]
    )


def find_commit() -> str | None:
    """Return the commit of the repository this runs from, or was installed from; else None."""
    root = Path(__file__).parent.parent.parent
    with suppress(OSError, subprocess.SubprocessError):
        if (root / ".git").exists():
            command = ["git", "-C", str(root), "rev-parse", "--verify", "HEAD"]
            done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=5)  # noqa: S603 (fixed words)
            return done.stdout.strip()
    for note in root.glob("gong-*.dist-info/direct_url.json"):
        with suppress(OSError, msgspec.MsgspecError):
            return msgspec.json.decode(note.read_bytes(), type=_DirectUrl).vcs_info.commit_id
    return None


class _VcsInfo(Struct, frozen=True):
    commit_id: str


class _DirectUrl(Struct, frozen=True):
    """What an installer notes of an installation from a repository (PEP 610)."""

    vcs_info: _VcsInfo
