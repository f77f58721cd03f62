"""The seccomp filter of confined commands: refuses sockets, key rings and io_uring."""

from __future__ import annotations

import platform
import struct
from collections.abc import Sequence

from hermes.codec.values import Value

UNIX, INET, INET6, PACKET, VSOCK = 1, 2, 10, 17, 40

_LOAD, _EQUAL, _GREATER, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | 1  # the latter fail with "operation not permitted"
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
# A second numbering of system calls on the same machine, which would bypass the filter.
_X32 = 0x40000000


class _Calls(Value):
    audit: int
    socket: int
    refused: tuple[int, ...]


# Key rings (add_key, request_key, keyctl), and io_uring, which can create sockets.
_MACHINES = {
    "x86_64": _Calls(audit=0xC000003E, socket=41, refused=(248, 249, 250, 425)),
    "aarch64": _Calls(audit=0xC00000B7, socket=198, refused=(217, 218, 219, 425)),
}


def filter_program(domains: Sequence[int]) -> bytes | None:
    """Refuse sockets of these kinds; None for architectures with unknown call numbers."""
    calls = _MACHINES.get(platform.machine())
    if calls is None:
        return None
    lines = [
        _line(_LOAD, _ARCHITECTURE),
        _line(_EQUAL, calls.audit, skip_true=1),
        _line(_RETURN, _REFUSE),
        _line(_LOAD, _NUMBER),
        _line(_GREATER, _X32, skip_false=1),
        _line(_RETURN, _REFUSE),
    ]
    for number in calls.refused:
        lines += [_line(_EQUAL, number, skip_false=1), _line(_RETURN, _REFUSE)]
    lines += [
        _line(_EQUAL, calls.socket, skip_true=1),
        _line(_RETURN, _ALLOW),
        _line(_LOAD, _FIRST_ARGUMENT),
    ]
    for domain in domains:
        lines += [_line(_EQUAL, domain, skip_false=1), _line(_RETURN, _REFUSE)]
    return b"".join((*lines, _line(_RETURN, _ALLOW)))


def _line(code: int, value: int, *, skip_true: int = 0, skip_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, skip_true, skip_false, value)
