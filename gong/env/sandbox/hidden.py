"""Which files and folders programs inside the sandbox cannot read: keys, and gong's own files.

Only what is there counts. What a program of gong's own folders needs (plugins, skills) is shown.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from ..protocol import is_inside_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SECRET_PLACES = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".config/gh",
    ".config/op", ".config/hub", ".config/glab-cli", ".config/containers/auth.json", ".netrc",
    ".git-credentials", ".config/git/credentials", ".pypirc", ".npmrc",
    ".cargo/credentials.toml", ".cargo/credentials", ".gem/credentials", ".m2/settings.xml",
    ".terraform.d/credentials.tfrc.json", ".vault-token", ".pgpass", ".my.cnf",
    ".password-store", ".local/share/keyrings", ".mozilla", ".config/google-chrome",
    ".config/chromium", "Library/Keychains",
)  # fmt: skip
"""Keys and passwords, from the home folder."""
_SHOWN_NAMES = ("plugins", "skills", "agents", "commands", "AGENTS.md")
"""What of gong's own folders programs need to read."""


class HiddenPlaces(NamedTuple):
    """What cannot be read; real paths of what is there."""

    folders: tuple[str, ...]
    files: tuple[str, ...]
    visible: tuple[str, ...]
    """What in hidden folders can be read all the same."""


def find_hidden(
    home: str,
    own_folders: Sequence[str],
    further: Sequence[str] = (),
    visible: Sequence[str] = (),
) -> HiddenPlaces:
    """Return what is hidden; `visible` is not, though it is usual to hide it."""
    exposed = {os.path.realpath(path) for path in visible}
    usual = (f"{home}/{name}" for name in SECRET_PLACES)
    places = [
        path
        for path in dict.fromkeys(map(os.path.realpath, (*usual, *own_folders, *further)))
        if os.path.lexists(path) and path not in exposed and path != "/"
    ]
    places = [path for path in places if not _is_below_another(path, places)]
    folders = tuple(path for path in places if os.path.isdir(path))
    files = tuple(path for path in places if path not in folders)
    inside = (
        os.path.realpath(f"{folder}/{name}") for folder in own_folders for name in _SHOWN_NAMES
    )
    seen = (
        path
        for path in (*inside, *exposed)
        if os.path.exists(path) and any(is_inside_folder(path, folder) for folder in folders)
    )
    return HiddenPlaces(folders, files, tuple(dict.fromkeys(seen)))


def _is_below_another(path: str, places: Iterable[str]) -> bool:
    return any(path != place and is_inside_folder(path, place) for place in places)
