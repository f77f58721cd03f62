"""Irrevocable limits of a plugin process: rlimits and seccomp. Standard library only."""

from __future__ import annotations

import ctypes
import platform
import resource
import struct
import sys
from collections.abc import Mapping
from typing import Any

_NO_NEW_PRIVILEGES, _SECCOMP, _SECCOMP_FILTER = 38, 22, 2
_DIE_WITH_PARENT, _KILL = 1, 9
_LOAD, _EQUAL, _GREATER, _HAS_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _REFUSE, _MISSING = 0x7FFF0000, 0x00050000 | 1, 0x00050000 | 38
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_THREAD = 0x00010000
_X32 = 0x40000000
_INET, _INET6 = 2, 10

# Per architecture: audit value and numbers of relevant system calls.
_MACHINES: dict[str, dict[str, Any]] = {
    "x86_64": {
        "audit": 0xC000003E,
        "socket": 41,
        "prctl": 157,
        "clone": 56,
        "clone3": 435,
        # fork, vfork, execve, execveat
        "starting": (57, 58, 59, 322),
        # kill, tkill, tgkill, rt_sigqueueinfo, rt_tgsigqueueinfo, pidfd_send_signal
        "signals": (62, 200, 234, 129, 297, 424),
        # ptrace, reading and writing of other processes, pidfd_getfd, namespaces, mounts, keys,
        # bpf, io_uring, userfaultfd, perf, kexec, modules, reboot, swap
        "never": (
            101, 310, 311, 438, 272, 308, 165, 166, 155, 428, 429, 430, 431, 432, 442,
            248, 249, 250, 321, 425, 426, 427, 323, 298, 246, 320, 175, 313, 176, 169, 167,
        ),
    },
    "aarch64": {
        "audit": 0xC00000B7,
        "socket": 198,
        "prctl": 167,
        "clone": 220,
        "clone3": 435,
        "starting": (221, 281),
        "signals": (129, 130, 131, 138, 240, 424),
        "never": (
            117, 270, 271, 438, 97, 268, 40, 39, 41, 428, 429, 430, 431, 432, 442,
            217, 218, 219, 280, 425, 426, 427, 282, 241, 104, 294, 105, 273, 106, 142, 224,
        ),
    },
}  # fmt: skip

LIMITS = {
    "address_space": resource.RLIMIT_AS,
    "files": resource.RLIMIT_NOFILE,
    "file_size": resource.RLIMIT_FSIZE,
    "cpu_seconds": resource.RLIMIT_CPU,
    "processes": getattr(resource, "RLIMIT_NPROC", -1),
    "core": resource.RLIMIT_CORE,
}


def apply_limits(limits: Mapping[str, int], *, network: bool, processes: bool) -> None:
    """Apply the limits to this process and its children."""
    for name, most in limits.items():
        if (kind := LIMITS[name]) >= 0:
            _, hard = resource.getrlimit(kind)
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(kind, (most, most))
    if sys.platform != "linux":
        return
    library = ctypes.CDLL(None, use_errno=True)
    # The process dies with the host even if it ignores the closed socket.
    library.prctl(_DIE_WITH_PARENT, _KILL, 0, 0, 0)
    if library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot set no_new_privs")
    if code := filter_code(network=network, processes=processes):
        program = _Filter(length=len(code) // 8, lines=code)
        if library.prctl(_SECCOMP, _SECCOMP_FILTER, ctypes.byref(program), 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "the seccomp filter was rejected")


def filter_code(*, network: bool, processes: bool) -> bytes:
    """Return the seccomp filter; empty on unknown architectures."""
    calls = _MACHINES.get(platform.machine())
    if calls is None:
        return b""
    lines = [
        _line(_LOAD, _ARCHITECTURE),
        _line(_EQUAL, calls["audit"], skip_true=1),
        _line(_RETURN, _REFUSE),
        _line(_LOAD, _NUMBER),
        _line(_GREATER, _X32, skip_false=1),
        _line(_RETURN, _REFUSE),
    ]
    refused = calls["never"] if processes else (*calls["never"], *calls["starting"])
    for number in refused if processes else (*refused, *calls["signals"]):
        lines += [_line(_EQUAL, number, skip_false=1), _line(_RETURN, _REFUSE)]
    lines += [
        _line(_EQUAL, calls["prctl"], skip_false=4),
        _line(_LOAD, _FIRST_ARGUMENT),
        _line(_EQUAL, _DIE_WITH_PARENT, skip_false=1),
        _line(_RETURN, _REFUSE),
        _line(_RETURN, _ALLOW),
    ]
    if not processes:
        # Threads and processes use the same call. clone3 hides its flags from filters; libraries
        # fall back to clone when it is missing.
        lines += [_line(_EQUAL, calls["clone3"], skip_false=1), _line(_RETURN, _MISSING)]
        lines += [
            _line(_EQUAL, calls["clone"], skip_false=4),
            _line(_LOAD, _FIRST_ARGUMENT),
            _line(_HAS_BITS, _THREAD, skip_true=1),
            _line(_RETURN, _REFUSE),
            _line(_RETURN, _ALLOW),
        ]
    if network:
        # IP sockets, never Unix sockets.
        lines += [
            _line(_EQUAL, calls["socket"], skip_false=5),
            _line(_LOAD, _FIRST_ARGUMENT),
            _line(_EQUAL, _INET, skip_true=2),
            _line(_EQUAL, _INET6, skip_true=1),
            _line(_RETURN, _REFUSE),
            _line(_RETURN, _ALLOW),
        ]
    else:
        lines += [_line(_EQUAL, calls["socket"], skip_false=1), _line(_RETURN, _REFUSE)]
    return b"".join((*lines, _line(_RETURN, _ALLOW)))


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("lines", ctypes.c_char_p))


def _line(code: int, value: int, *, skip_true: int = 0, skip_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, skip_true, skip_false, value)
