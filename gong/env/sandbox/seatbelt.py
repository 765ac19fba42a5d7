"""The sandbox of macOS: a border as a profile for `sandbox-exec`; pure.

Of several rules about one file the last one counts, so rules are sorted as mounts are elsewhere:
everything may be read and nothing written, then from the root down what may be written, what is
hidden or shown in it, and what is fixed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .binds import Border

PROGRAM = "/usr/bin/sandbox-exec"
_HEAD = """(version 1)
(deny default)
(allow process-exec)
(allow process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow mach-lookup)
(deny mach-lookup (global-name "com.apple.coreservices.launchservicesd"))
(allow ipc-posix-sem)
(allow ipc-posix-shm)
(allow pseudo-tty)
(allow file-read*)
(allow file-write* file-ioctl (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty")
  (literal "/dev/ptmx") (regex #"^/dev/ttys[0-9]+$") (regex #"^/dev/fd/"))"""


def build_profile(border: Border, *, proxy_port: int | None, unix_sockets: bool) -> str:
    """Return the profile; of the network only the port of the proxy can be reached, if any."""
    rules: list[tuple[str, int, str]] = []
    for places, order, action in (
        ((border.temporary, *border.roots), 0, "allow file-read* file-write*"),
        ((*border.hidden_folders, *border.hidden_files), 1, "deny file-read* file-write*"),
        (border.visible, 2, "allow file-read*"),
        (border.fixed, 3, "deny file-write*"),
    ):
        rules += [(place, order, f"({action} (subpath {_quote_path(place)}))") for place in places]
    rules.sort(key=lambda rule: (rule[0].count("/"), rule[0], rule[1]))
    lines = [_HEAD, *(text for _, _, text in rules)]
    # Whoever moves a folder moves what is fixed in it.
    for place in dict.fromkeys((*border.roots, *border.pinned)):
        lines.append(f"(deny file-write-unlink (literal {_quote_path(place)}))")  # noqa: PERF401 (as above)
    if unix_sockets:
        lines.append("(allow network* (local unix) (remote unix))")
    if proxy_port is not None:
        lines.append(f'(allow network-outbound (remote ip "localhost:{proxy_port}"))')
    return "\n".join(lines) + "\n"


def build_command(profile: str, argv: Sequence[str]) -> list[str]:
    """Return the command that runs a program inside a profile."""
    return [PROGRAM, "-p", profile, *argv]


def _quote_path(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
