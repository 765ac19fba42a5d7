"""The sandbox where bubblewrap cannot work: the kernel's Landlock, started as a program of its own.

Landlock only adds rules that allow, so it is weaker, and gong says so: what is in a folder that may
be written can all be written (git's hooks, too), nothing that this user can read is hidden, and
TCP is refused but UDP and sockets of this machine are not. Run as a file, with

    NETWORK FOLDER… -- PROGRAM ARGUMENT…        NETWORK is `off` or `on`

it restricts itself to writing below the folders and becomes the program. `gong` imports it only to
ask for `find_version`.
"""

from __future__ import annotations

import ctypes
import os
import sys

TYPE_CHECKING = False  # the module that has this name loads slowly
if TYPE_CHECKING:
    from collections.abc import Sequence

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG, _RULE_PATH_BENEATH = 1, 1
_SET_NO_NEW_PRIVILEGES = 38  # linux/prctl.h
_EXECUTE, _READ_FILE, _READ_FOLDER = 1 << 0, 1 << 2, 1 << 3
_READS = _EXECUTE | _READ_FILE | _READ_FOLDER
_WRITE_FILE, _REFER, _TRUNCATE, _IOCTL = 1 << 1, 1 << 13, 1 << 14, 1 << 15
_FILE_RIGHTS = {1: (1 << 13) - 1, 2: _REFER, 3: _TRUNCATE, 5: _IOCTL}
"""The version of Landlock → the rights about files that it brought."""
_OF_FILES = _READ_FILE | _EXECUTE | _WRITE_FILE | _TRUNCATE | _IOCTL
_BIND_TCP, _CONNECT_TCP, _NETWORK_VERSION = 1 << 0, 1 << 1, 4
_SCOPE_SOCKETS, _SCOPE_SIGNALS, _SCOPE_VERSION = 1 << 0, 1 << 1, 6
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
_FAILED = 126


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("files", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def find_version() -> int:
    """Return the version of Landlock that this kernel has; 0 for none."""
    if sys.platform != "linux":
        return 0
    return max(int(_get_library().syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG)), 0)


def list_rights(version: int) -> tuple[int, int, int]:
    """Return what is restricted under a version: rights about files, network, other processes."""
    files = 0
    for first, rights in _FILE_RIGHTS.items():
        files |= rights if version >= first else 0
    network = _BIND_TCP | _CONNECT_TCP if version >= _NETWORK_VERSION else 0
    scoped = _SCOPE_SOCKETS | _SCOPE_SIGNALS if version >= _SCOPE_VERSION else 0
    return files, network, scoped


def restrict_self(folders: Sequence[str], *, network: bool) -> None:
    """Let this process, and all that come of it, write below some folders only; for good.

    With `network` it stays as it is. Raises OSError.
    """
    files, ports, scoped = list_rights(find_version())
    size = 8 if not ports else 16 if not scoped else 24
    rules = _Ruleset(files, 0 if network else ports, scoped)
    library = _get_library()
    handle = library.syscall(_CREATE_RULESET, ctypes.byref(rules), size, 0)
    _check_result(handle)
    _add_path_rule(handle, "/", _READS)
    for folder in folders:
        _add_path_rule(handle, folder, files)
    for path in (*_DEVICES, "/dev/shm", "/dev/pts"):
        if os.path.exists(path):
            _add_path_rule(handle, path, files if os.path.isdir(path) else files & _OF_FILES)
    _check_result(library.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _check_result(library.syscall(_RESTRICT_SELF, handle, 0))
    os.close(handle)


def _add_path_rule(ruleset: int, path: str, rights: int) -> None:
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = _PathRule(rights, handle)
        library = _get_library()
        _check_result(
            library.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, ctypes.byref(rule), 0)
        )
    finally:
        os.close(handle)


def _get_library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check_result(result: int) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def run_restricted(arguments: Sequence[str]) -> None:
    """Restrict this process and become the program."""
    end = arguments.index("--")
    network, *folders = arguments[:end]
    program = arguments[end + 1 :]
    try:
        restrict_self(folders, network=network == "on")
        os.execvp(program[0], list(program))  # noqa: S606 (the words of a session)
    except OSError as error:
        os.write(2, f"gong sandbox: {program[0]}: {error.strerror}\n".encode())
        os._exit(_FAILED)


if __name__ == "__main__":
    run_restricted(sys.argv[1:])
