"""The filter of system calls for programs inside the sandbox, as a program for the kernel's BPF.

Namespaces and mounts decide about files; the filter closes what they leave open: sockets of other
kinds, the memory of other processes, mounts, further namespaces, rings of requests (io_uring), and
files that run with the rights of their owner. It is classic BPF: the kernel calls it with the
number of a call and its arguments, of which it can follow no pointer, so a call that hides what
matters behind one is answered as if the kernel did not know it (ENOSYS): programs then use the
older call. Pure.
"""

from __future__ import annotations

import errno
import struct
from typing import NamedTuple

_LOAD, _JUMP_EQUAL, _JUMP_ANY_BIT, _JUMP_AT_LEAST = 0x20, 0x15, 0x45, 0x35
_AND, _RETURN = 0x54, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER_OFFSET, _ARCHITECTURE_OFFSET, _ARGUMENTS_OFFSET = 0, 4, 16

_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_NEW_NAMESPACES = 0x7E020000 | 0x80
"""The flags of clone and unshare that make a namespace."""
_TERMINAL_INPUT = (0x5412, 0x541C)
"""TIOCSTI types into a terminal, TIOCLINUX pastes into one."""
_SET_ID = 0o6000
_CREATES = 0x40 | 0x400000
"""O_CREAT and O_TMPFILE: only with them open has a mode."""
_FILE_TYPE, _CHARACTER_DEVICE, _BLOCK_DEVICE = 0o170000, 0o020000, 0o060000


class Machine(NamedTuple):
    """A kind of processor: its name for the audit, and its numbers of system calls."""

    architecture: int
    calls: dict[str, int]
    max_number: int | None = None
    """Numbers from here on belong to another set of calls, which is refused."""


_X86_64 = {
    "socket": 41, "socketpair": 53, "clone": 56, "clone3": 435, "unshare": 272, "setns": 308,
    "ioctl": 16, "chmod": 90, "fchmod": 91, "fchmodat": 268, "fchmodat2": 452, "open": 2,
    "creat": 85, "openat": 257, "openat2": 437, "mknod": 133, "mknodat": 259, "ptrace": 101,
    "process_vm_readv": 310, "process_vm_writev": 311, "pidfd_getfd": 438, "kcmp": 312,
    "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "move_mount": 429,
    "open_tree": 428, "open_tree_attr": 467, "fsopen": 430, "fsconfig": 431, "fsmount": 432,
    "fspick": 433, "mount_setattr": 442, "io_uring_setup": 425, "io_uring_enter": 426,
    "io_uring_register": 427, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323,
    "keyctl": 250, "add_key": 248, "request_key": 249, "kexec_load": 246, "kexec_file_load": 320,
    "init_module": 175, "finit_module": 313, "delete_module": 176, "reboot": 169, "swapon": 167,
    "swapoff": 168, "acct": 163, "syslog": 103, "settimeofday": 164, "clock_settime": 227,
    "sethostname": 170, "setdomainname": 171, "quotactl": 179, "quotactl_fd": 443, "iopl": 172,
    "ioperm": 173, "open_by_handle_at": 304, "fanotify_init": 300, "vhangup": 153,
    "nfsservctl": 180, "lookup_dcookie": 212,
}  # fmt: skip
_AARCH64 = {
    "socket": 198, "socketpair": 199, "clone": 220, "clone3": 435, "unshare": 97, "setns": 268,
    "ioctl": 29, "fchmod": 52, "fchmodat": 53, "fchmodat2": 452, "openat": 56, "openat2": 437,
    "mknodat": 33, "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271,
    "pidfd_getfd": 438, "kcmp": 272, "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51,
    "move_mount": 429, "open_tree": 428, "open_tree_attr": 467, "fsopen": 430, "fsconfig": 431,
    "fsmount": 432, "fspick": 433, "mount_setattr": 442, "io_uring_setup": 425,
    "io_uring_enter": 426, "io_uring_register": 427, "bpf": 280, "perf_event_open": 241,
    "userfaultfd": 282, "keyctl": 219, "add_key": 217, "request_key": 218, "kexec_load": 104,
    "kexec_file_load": 294, "init_module": 105, "finit_module": 273, "delete_module": 106,
    "reboot": 142, "swapon": 224, "swapoff": 225, "acct": 89, "syslog": 116, "settimeofday": 170,
    "clock_settime": 112, "sethostname": 161, "setdomainname": 162, "quotactl": 60,
    "quotactl_fd": 443, "open_by_handle_at": 265, "fanotify_init": 262, "vhangup": 58,
    "nfsservctl": 42, "lookup_dcookie": 18,
}  # fmt: skip
MACHINES = {
    "x86_64": Machine(0xC000003E, _X86_64, 0x40000000),
    "aarch64": Machine(0xC00000B7, _AARCH64),
}
"""Kinds of processor by the name that `platform.machine` gives them."""

_UNKNOWN_CALLS = ("clone3", "openat2", "io_uring_setup", "io_uring_enter", "io_uring_register")
"""Answered as if the kernel did not have them: programs then do without."""
_ARGUMENT_RULES = {
    *("socket", "socketpair", "clone", "unshare", "ioctl", "chmod", "fchmod", "fchmodat"),
    *("fchmodat2", "open", "creat", "openat", "mknod", "mknodat"),
}
"""Calls that are refused with some arguments only; all others of the tables always are."""

Instruction = tuple[int, int, int, int]
"""Code, jump if true, jump if false, value."""


def build_filter(machine: Machine, *, unix_sockets: bool = False) -> bytes:
    """Return the filter for a kind of processor; `unix_sockets` allows sockets of this machine."""
    return b"".join(struct.pack("=HBBI", *step) for step in list_steps(machine, unix_sockets))


def list_steps(machine: Machine, unix_sockets: bool) -> list[Instruction]:
    """Return the instructions of the filter."""
    steps: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE_OFFSET),
        (_JUMP_EQUAL, 1, 0, machine.architecture),
        _build_refusal(errno.ENOSYS),
        (_LOAD, 0, 0, _NUMBER_OFFSET),
    ]
    if machine.max_number is not None:
        steps += [(_JUMP_AT_LEAST, 0, 1, machine.max_number), _build_refusal(errno.ENOSYS)]
    families = (_AF_INET, _AF_INET6, *[_AF_UNIX] * unix_sockets)
    rules = {
        "socket": _allow_only(0, families),
        "socketpair": _allow_only(0, (_AF_UNIX,)),
        "clone": _refuse_bits(0, _NEW_NAMESPACES),
        "unshare": _refuse_bits(0, _NEW_NAMESPACES),
        "ioctl": _refuse_values(1, _TERMINAL_INPUT),
        "chmod": _refuse_bits(1, _SET_ID),
        "fchmod": _refuse_bits(1, _SET_ID),
        "fchmodat": _refuse_bits(2, _SET_ID),
        "fchmodat2": _refuse_bits(2, _SET_ID),
        "creat": _refuse_bits(1, _SET_ID),
        "open": _refuse_created(1, 2),
        "openat": _refuse_created(2, 3),
        "mknod": _refuse_devices(1),
        "mknodat": _refuse_devices(2),
    }
    for name, number in machine.calls.items():
        code = errno.ENOSYS if name in _UNKNOWN_CALLS else errno.EPERM
        body = rules[name] if name in _ARGUMENT_RULES else [_build_refusal(code)]
        steps += [(_JUMP_EQUAL, 0, len(body), number), *body]
    return [*steps, _PASS]


_PASS: Instruction = (_RETURN, 0, 0, _ALLOW)


def _build_refusal(code: int) -> Instruction:
    return (_RETURN, 0, 0, _ERRNO | code)


def _load_argument(position: int) -> Instruction:
    """Return what loads the lower half of an argument: the kernel ignores the other one."""
    return (_LOAD, 0, 0, _ARGUMENTS_OFFSET + 8 * position)


def _allow_only(position: int, values: tuple[int, ...]) -> list[Instruction]:
    tests = [step for value in values for step in ((_JUMP_EQUAL, 0, 1, value), _PASS)]
    return [_load_argument(position), *tests, _build_refusal(errno.EPERM)]


def _refuse_values(position: int, values: tuple[int, ...]) -> list[Instruction]:
    refusal = _build_refusal(errno.EPERM)
    tests = [step for value in values for step in ((_JUMP_EQUAL, 0, 1, value), refusal)]
    return [_load_argument(position), *tests, _PASS]


def _refuse_bits(position: int, bits: int) -> list[Instruction]:
    return [
        _load_argument(position),
        (_JUMP_ANY_BIT, 0, 1, bits),
        _build_refusal(errno.EPERM),
        _PASS,
    ]


def _refuse_created(flags: int, mode: int) -> list[Instruction]:
    """Refuse to create a file with the rights of its owner."""
    return [
        _load_argument(flags),
        (_JUMP_ANY_BIT, 1, 0, _CREATES),
        _PASS,
        *_refuse_bits(mode, _SET_ID),
    ]


def _refuse_devices(mode: int) -> list[Instruction]:
    refusal = _build_refusal(errno.EPERM)
    return [
        _load_argument(mode),
        (_JUMP_ANY_BIT, 0, 1, _SET_ID),
        refusal,
        (_AND, 0, 0, _FILE_TYPE),
        (_JUMP_EQUAL, 0, 1, _CHARACTER_DEVICE),
        refusal,
        (_JUMP_EQUAL, 0, 1, _BLOCK_DEVICE),
        refusal,
        _PASS,
    ]
