"""Plugins that are npm packages: fetched by `npm pack`, which runs no script, and unpacked.

Their dependencies are not installed.
"""

from __future__ import annotations

import os
import re
import subprocess
import tarfile
from typing import TYPE_CHECKING

from ..errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_PACKAGE = re.compile(r"(?:@[a-z0-9~][\w.~-]*/)?[a-z0-9~][\w.~-]*", re.IGNORECASE)
_VERSION = re.compile(r"[\w.^~<>=|*+ -]+")
"""A version, a range of them, or a tag; no URL, folder or repository."""
_REGISTRY = re.compile(r"https?://\S+")
_FETCH_SECONDS = 300
_MAX_BYTES = 256 << 20
"""Size of what a package may unpack to."""


def fetch_npm_package(source: Mapping[str, str], place: Path, environ: Mapping[str, str]) -> Path:
    """Unpack a package into a folder that does not exist yet, and return that of its files.

    `source` has the package's name in `package`, and perhaps `version` and `registry`. Raises
    ConfigurationError.
    """
    name, version = source.get("package", ""), source.get("version", "")
    registry = source.get("registry", "")
    if not _PACKAGE.fullmatch(name):
        raise ConfigurationError(f"{name!r} is no name of an npm package")
    if version and not _VERSION.fullmatch(version):
        raise ConfigurationError(f"{version!r} is no version of {name}")
    if registry and not _REGISTRY.fullmatch(registry):
        raise ConfigurationError(f"{registry!r} is no registry: write its https:// address")
    spec = f"{name}@{version}" if version else name
    place.mkdir()
    words = ["pack", spec, "--ignore-scripts", "--silent", f"--pack-destination={place}"]
    _run_npm([*words, *([f"--registry={registry}"] if registry else [])], spec, place, environ)
    (archive, *_) = [*place.glob("*.tgz"), None]
    if archive is None:
        raise ConfigurationError(f"{spec} cannot be fetched: npm wrote no package")
    return _unpack_archive(archive, place / "unpacked", spec)


def _run_npm(words: list[str], spec: str, place: Path, environ: Mapping[str, str]) -> None:
    try:
        subprocess.run(
            ["npm", *words],  # noqa: S607 (as the person's PATH has it)
            cwd=place,
            env={**environ, "PATH": environ.get("PATH", os.defpath)},
            stdin=subprocess.DEVNULL,
            check=True,
            capture_output=True,
            text=True,
            timeout=_FETCH_SECONDS,
        )
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"{spec} is a package of npm, which is not installed: install Node.js with npm"
        ) from error
    except subprocess.CalledProcessError as error:
        reason = " ".join(error.stderr.split()) or f"npm ended with {error.returncode}"
        raise ConfigurationError(f"{spec} cannot be fetched: {reason}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigurationError(f"{spec} cannot be fetched: {error}") from error


def _unpack_archive(archive: Path, place: Path, spec: str) -> Path:
    """Unpack a package; what leads out of the folder, and devices, are refused."""
    try:
        with tarfile.open(archive) as files:
            if sum(entry.size for entry in files) > _MAX_BYTES:
                raise ConfigurationError(f"{spec} is larger than {_MAX_BYTES >> 20} MiB")
            files.extractall(place, filter="data")
    except (OSError, tarfile.TarError) as error:
        raise ConfigurationError(f"{spec} cannot be unpacked: {error}") from error
    folders = [entry for entry in place.iterdir() if entry.is_dir()]
    return folders[0] if len(folders) == 1 else place
