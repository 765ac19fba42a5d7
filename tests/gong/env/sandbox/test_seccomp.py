"""The filter of system calls, run by a small machine for classic BPF."""

import errno
import struct

import pytest

from gong.env.sandbox.seccomp import MACHINES, build_filter

ALLOW, ERRNO = 0x7FFF0000, 0x00050000


def run_filter(program, architecture, number, *arguments):
    """Return the code of the error with which a call is refused; None where it is allowed."""
    data = struct.pack(
        "=IIQ6Q", number, architecture, 0, *(*arguments, *[0] * (6 - len(arguments)))
    )
    steps = list(struct.iter_unpack("=HBBI", program))
    at = value = 0
    while True:
        code, when_true, when_false, operand = steps[at]
        at += 1
        match code:
            case 0x20:
                (value,) = struct.unpack_from("=I", data, operand)
            case 0x15:
                at += when_true if value == operand else when_false
            case 0x35:
                at += when_true if value >= operand else when_false
            case 0x45:
                at += when_true if value & operand else when_false
            case 0x54:
                value &= operand
            case 0x06:
                return None if operand == ALLOW else operand & ~ERRNO


CASES = [
    ("read", (0,), None),
    ("socket", (1, 1), errno.EPERM),
    ("socket", (2, 1), None),
    ("socket", (10, 2), None),
    ("socket", (16, 3), errno.EPERM),
    ("socket", (40, 1), errno.EPERM),
    ("socketpair", (1, 1), None),
    ("socketpair", (2, 1), errno.EPERM),
    ("clone", (0x01200011,), None),
    ("clone", (0x10000011,), errno.EPERM),
    ("clone3", (0, 0), errno.ENOSYS),
    ("unshare", (0x400,), None),
    ("unshare", (0x80,), errno.EPERM),
    ("setns", (3, 0), errno.EPERM),
    ("ioctl", (0, 0x5401), None),
    ("ioctl", (0, 0x5412), errno.EPERM),
    ("ioctl", (0, 0x5412 | 1 << 32), errno.EPERM),
    ("fchmod", (3, 0o755), None),
    ("fchmod", (3, 0o4755), errno.EPERM),
    ("fchmodat", (3, 0, 0o2755), errno.EPERM),
    ("openat", (3, 0, 0, 0o7777), None),
    ("openat", (3, 0, 0x41, 0o644), None),
    ("openat", (3, 0, 0x41, 0o4644), errno.EPERM),
    ("openat", (3, 0, 0x410001, 0o6644), errno.EPERM),
    ("openat2", (3, 0, 0, 24), errno.ENOSYS),
    ("mknodat", (3, 0, 0o10644), None),
    ("mknodat", (3, 0, 0o20644), errno.EPERM),
    ("mknodat", (3, 0, 0o60644), errno.EPERM),
    ("ptrace", (0,), errno.EPERM),
    ("bpf", (0,), errno.EPERM),
    ("io_uring_setup", (1, 0), errno.ENOSYS),
    ("mount", (), errno.EPERM),
]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("call", "arguments", "answer"), CASES)
def test_a_call_is_allowed_or_refused(machine, call, arguments, answer):
    """M220: what namespaces leave open is closed by the filter."""
    kind = MACHINES[machine]
    number = kind.calls.get(call, 0 if machine == "x86_64" else 63)
    assert run_filter(build_filter(kind), kind.architecture, number, *arguments) == answer


def test_calls_of_another_machine_are_unknown():
    for kind in MACHINES.values():
        assert run_filter(build_filter(kind), 0x40000003, 1) == errno.ENOSYS
    x86 = MACHINES["x86_64"]
    assert run_filter(build_filter(x86), x86.architecture, 0x40000000 + 41, 2) == errno.ENOSYS


def test_sockets_of_this_machine_are_allowed_where_the_settings_say_so():
    kind = MACHINES["x86_64"]
    program = build_filter(kind, unix_sockets=True)
    assert run_filter(program, kind.architecture, kind.calls["socket"], 1) is None
    assert run_filter(program, kind.architecture, kind.calls["socket"], 40) == errno.EPERM
