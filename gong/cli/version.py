"""`gong version`: what a report of a fault needs to name."""

from __future__ import annotations

import platform
import sqlite3
import subprocess
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec
from msgspec import Struct

from tape.cli.output import as_json, format_examples, print_json
from tape.cli.terminal import print_lines

from .. import __version__

_ROOT = Path(__file__).parent.parent.parent


class VersionReport(Struct, frozen=True):
    """The versions of this program and of what it runs on."""

    version: str
    commit: str | None
    """None where it neither runs from a repository nor was installed from one."""
    built: str | None
    """When that commit was made, or else the package installed; UTC, RFC 3339."""
    python: str
    sqlite: str


@click.command(epilog=format_examples("gong version", "gong version --json"))
@as_json
def version(*, as_json: bool) -> None:
    """Print the version, its commit and time, and the versions of Python and SQLite.

    The commit is that of the repository it runs from, or was installed from with git; it is left
    out where it came as a package from an index. The time is that of the commit in a repository,
    else that of the installation. --json prints {version, commit, built, python, sqlite}.
    """
    report = VersionReport(
        __version__,
        find_commit(),
        find_build_time(),
        platform.python_version(),
        sqlite3.sqlite_version,
    )
    if as_json:
        print_json(report)
        return
    commit = f" ({report.commit[:12]})" if report.commit else ""
    built = [f"built {report.built}"] if report.built else []
    print_lines(
        [
            f"gong {report.version}{commit}",
            *built,
            f"Python {report.python}",
            f"SQLite {report.sqlite}",
        ]
    )


def find_commit() -> str | None:
    """Return the commit of the repository this runs from, or was installed from; else None."""
    if commit := _ask_git("rev-parse", "--verify", "HEAD"):
        return commit
    for note in _ROOT.glob("gong-*.dist-info/direct_url.json"):
        with suppress(OSError, msgspec.MsgspecError):
            return msgspec.json.decode(note.read_bytes(), type=_DirectUrl).vcs_info.commit_id
    return None


def find_build_time() -> str | None:
    """Return when the commit it runs from was made, else when it was installed; UTC, RFC 3339."""
    seconds = [float(commit_time)] if (commit_time := _ask_git("log", "-1", "--format=%ct")) else []
    with suppress(OSError):
        seconds += [record.stat().st_mtime for record in _ROOT.glob("gong-*.dist-info/RECORD")]
    return (
        datetime.fromtimestamp(seconds[0], UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if seconds else None
    )


def _ask_git(*words: str) -> str:
    """Return what git says of the repository this runs from; empty outside of one."""
    with suppress(OSError, subprocess.SubprocessError):
        if (_ROOT / ".git").exists():
            command = ["git", "-C", str(_ROOT), *words]
            done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=5)
            return done.stdout.strip()
    return ""


class _VcsInfo(Struct, frozen=True):
    commit_id: str


class _DirectUrl(Struct, frozen=True):
    """What an installer notes of an installation from a repository (PEP 610)."""

    vcs_info: _VcsInfo
