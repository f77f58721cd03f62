"""Remote files, by bash and standard Linux programs."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Literal

from hermes.core.ports import FileInfo
from hermes.workspaces.bash_text import shell_quote
from hermes.workspaces.far.calls import RemoteAnswer, RemoteCalls
from hermes.workspaces.files import MAX_READ_BYTES, explain_errors, refuse_special, too_large_error

_ERRORS = (
    errno.ENOENT, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR, errno.ENOTEMPTY,
    errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ELOOP, errno.ENAMETOOLONG, errno.EEXIST,
)  # fmt: skip
_LOOK = "stat -L -c '%f %s %.9Y' --"


class RemoteFiles:
    def __init__(self, calls: RemoteCalls) -> None:
        self._calls = calls

    async def _do(self, body: str, data: bytes = b"", *, timeout: float = 60) -> RemoteAnswer:
        """Programs print errors in English, because they are parsed here."""
        return await self._calls.answer(f"export LC_ALL=C; {body}", data, timeout=timeout)

    async def stat(self, path: str) -> FileInfo | None:
        answer = await self._do(f"{_LOOK} {shell_quote(path)}")
        with explain_errors(path):
            if answer.code == 0:
                return _info(path, answer.out.decode())
            error = _error(answer, path)
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                return None
            raise error

    async def list_folder(self, path: str) -> tuple[FileInfo, ...]:
        where = shell_quote(path)
        answer = await self._do(
            f"[[ -d {where} ]] || {{ ls -d {where}/ >/dev/null; builtin exit $?; }}; "
            f"cd {where} && shopt -s nullglob dotglob && for __f in *; do "
            f'__line=$({_LOOK} "./$__f" 2>/dev/null); '
            'builtin printf "%s\\0%s\\0" "$__f" "$__line"; done'
        )
        with explain_errors(path):
            if answer.code:
                raise _error(answer, path)
        parts = answer.out.split(b"\0")
        names = sorted(
            (os.fsdecode(name), line.decode())
            for name, line in zip(parts[::2], parts[1::2], strict=False)
        )
        return tuple(_info(str(PurePosixPath(path, name)), line) for name, line in names)

    async def read_bytes(self, path: str) -> bytes:
        where = shell_quote(path)
        answer = await self._do(
            f'__line=$({_LOOK} {where}) || builtin exit 1; builtin echo "$__line"; '
            f"__size=${{__line#* }}; [[ -f {where} && ${{__size% *}} -le {MAX_READ_BYTES} ]] "
            f"&& cat -- {where}",
            timeout=600,
        )
        with explain_errors(path):
            line, _, data = answer.out.partition(b"\n")
            if not line:
                raise _error(answer, path)
            info = _info(path, line.decode())
            refuse_special(path, info.kind)
            if info.size > MAX_READ_BYTES:
                raise too_large_error(path, info.size)
            if answer.code:
                raise _error(answer, path)
            return data

    async def write_bytes(self, path: str, data: bytes) -> None:
        """The file appears only when all of it has arrived."""
        answer = await self._do(
            f"""__t=$(readlink -f -- {shell_quote(path)} || builtin printf %s {shell_quote(path)})
if [[ -e $__t && ! -f $__t ]]; then {_LOOK} "$__t"; builtin exit 9; fi
__d=${{__t%/*}}; __d=${{__d:-/}}; mkdir -p -- "$__d" || builtin exit 1
__new="$__d/.${{__t##*/}}.$$-$RANDOM.tmp"
__drop() {{ rm -f -- "$__new"; builtin exit 1; }}
cat >"$__new" && [[ $(stat -c %s -- "$__new") == {len(data)} ]] || __drop
[[ ! -e $__t ]] || chmod "$(stat -c %a -- "$__t")" "$__new"
sync "$__new" 2>/dev/null
mv -fT -- "$__new" "$__t" || __drop""",
            data,
            timeout=600,
        )
        with explain_errors(path):
            if answer.code == 9:
                refuse_special(path, _info(path, answer.out.decode()).kind)
            if answer.code:
                raise _error(answer, path)

    async def delete(self, path: str) -> None:
        where = shell_quote(path)
        answer = await self._do(
            f"if [[ -d {where} && ! -L {where} ]]; then rmdir -- {where}; else rm -- {where}; fi"
        )
        with explain_errors(path):
            if answer.code:
                raise _error(answer, path)


def _info(path: str, line: str) -> FileInfo:
    words = line.split()
    if len(words) != 3:
        return FileInfo(path=path, kind="other", size=0, modified_ns=0)
    seconds, _, rest = words[2].partition(".")
    return FileInfo(
        path=path,
        kind=_kind(int(words[0], 16)),
        size=int(words[1]),
        modified_ns=int(seconds) * 1_000_000_000 + int(rest.ljust(9, "0")[:9] or 0),
    )


def _kind(mode: int) -> Literal["file", "folder", "other"]:
    if stat.S_ISREG(mode):
        return "file"
    return "folder" if stat.S_ISDIR(mode) else "other"


def _error(answer: RemoteAnswer, path: str) -> OSError:
    """Map the error message of a program to a system error."""
    for number in _parse_message(answer.errors):
        return OSError(number, os.strerror(number), path)
    return OSError(errno.EIO, answer.errors or "failed", path)


def _parse_message(text: str) -> Iterator[int]:
    for number in _ERRORS:
        if os.strerror(number).lower() in text.lower():
            yield number
