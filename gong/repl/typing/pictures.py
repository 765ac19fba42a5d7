"""Pictures for the model: from a file, from the clipboard; and when one is refused."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from ...agent.documents import AttachedDocument
from ...llm.picture_sources import detect_picture_type
from ...tools.limits import format_size
from ...tools.picture_resize import read_picture_size

if TYPE_CHECKING:
    from pathlib import Path

    from ...agent.model import AgentModel
    from ...config import Settings
    from ...env.protocol import ProgramRunner

_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What models take."""
_SUFFIX = re.compile(r"\.(?:png|jpe?g|gif|webp)\Z", re.IGNORECASE)
_CLIPBOARD_PROGRAMS = (
    ("wl-paste", "--no-newline", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-target", "image/png", "-out"),
    ("pngpaste", "-"),
)
_CLIPBOARD_SECONDS = 5.0


class PictureRules(NamedTuple):
    """Which pictures may be sent."""

    max_bytes: int
    """Largest picture in bytes."""
    is_blocked: bool
    """Whether the settings allow none."""
    blind_model: str = ""
    """The current model where it takes no pictures."""

    @classmethod
    def from_session(cls, settings: Settings, model: AgentModel) -> PictureRules:
        """Return the rules of a session's settings for its current model."""
        blind = "" if model.sees_images else model.name
        return cls(settings.max_image_size, settings.block_images, blind)


def attach_picture(
    path: Path, name: str, rules: PictureRules
) -> tuple[AttachedDocument | None, str]:
    """Return the picture in a file, None if it is refused, and what is said of it.

    Raises OSError if the file cannot be read.
    """
    size = path.stat().st_size
    if size > rules.max_bytes:
        return None, _refuse_large(name, size, rules.max_bytes)
    return build_picture(path.read_bytes(), name, rules)


def build_picture(
    data: bytes, name: str, rules: PictureRules
) -> tuple[AttachedDocument | None, str]:
    """Return the picture that bytes are, None if it is refused, and what is said of it."""
    mime = detect_picture_type(data[:64])
    if mime not in _TYPES:
        return None, f"{name} is not attached: models take PNG, JPEG, GIF and WebP"
    if rules.is_blocked:
        return None, f"{name} is not attached: block_images is set in config.toml"
    if rules.blind_model:
        return None, f"{name} is not attached: {rules.blind_model} takes no pictures"
    if len(data) > rules.max_bytes:
        return None, _refuse_large(name, len(data), rules.max_bytes)
    size = read_picture_size(data, mime)
    pixels = f", {size.width}x{size.height}" if size else ""
    about = f"{mime}{pixels}, {format_size(len(data))}"
    return AttachedDocument(f"[Picture {name}: {about}]", data, mime), f"attached {name}: {about}"


def _refuse_large(name: str, size: int, limit: int) -> str:
    return (
        f"{name} is not attached: it has {format_size(size)}, and max_image_size is"
        f" {format_size(limit)}; make it smaller, or raise the limit in config.toml"
    )


def find_dropped_picture(text: str) -> str | None:
    """Return the path if a pasted text is that of a picture, as terminals paste dropped files.

    They quote it, put backslashes before blanks, or make it a file:// address.
    """
    line = text.strip()
    if not line or "\n" in line:
        return None
    if line.startswith("file://"):
        line = unquote(line.removeprefix("file://").removeprefix("localhost"))
    elif line[0] in "'\"" and line[-1] == line[0] and len(line) > 1:
        line = line[1:-1]
    else:
        if re.search(r"(?<!\\)\s", line):
            return None
        line = re.sub(r"\\(.)", r"\1", line)
    is_path = line.startswith(("/", "~", "./", "../"))
    return line if is_path and _SUFFIX.search(line) else None


def read_clipboard_picture(env: ProgramRunner, folder: str) -> bytes | None:
    """Return the picture in the clipboard; None where there is none, or no program to read it.

    It blocks: call it in a thread.
    """
    env = getattr(env, "outside", env)  # a person asks, and a sandbox has no clipboard
    for argv in _CLIPBOARD_PROGRAMS:
        data = env.run_program(argv, folder, seconds=_CLIPBOARD_SECONDS)
        if data and detect_picture_type(data[:64]) is not None:
            return data
    return None


CLIPBOARD_ADVICE = (
    "no picture in the clipboard, or nothing that reads it: install wl-paste (wl-clipboard),"
    " xclip or pngpaste, or use /image PATH"
)
