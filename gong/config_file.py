"""A config.toml as a document that is changed in place: comments and order stay.

It is replaced as a whole or not at all, so that a reader never sees half of it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from .errors import ConfigurationError


def read_document(file: Path) -> Any:
    """Return a TOML file as a document that keeps its comments; empty where there is none.

    Raises ConfigurationError for a file that is not TOML or cannot be read.
    """
    import tomlkit  # only to change the file
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(file.read_bytes().decode())
    except FileNotFoundError:
        return tomlkit.document()
    except (TOMLKitError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} is not TOML: {error}") from error
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}") from error


def write_document(file: Path, document: Any) -> None:
    """Replace a TOML file by the document; a link is followed.

    A temporary file beside it is written, synced and renamed. Raises ConfigurationError where that
    fails.
    """
    import tomlkit

    place = Path(os.path.realpath(file))
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        mode = stat.S_IMODE(place.stat().st_mode) if place.exists() else 0o600
        beside = place.with_name(f".{place.name}.{os.getpid()}")
        with beside.open("w", encoding="utf-8", newline="") as out:
            out.write(tomlkit.dumps(document))
            out.flush()
            os.fsync(out.fileno())
        beside.chmod(mode)
        beside.replace(place)
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be written: {error.strerror}") from error
