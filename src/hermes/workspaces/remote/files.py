"""Remote files and search, by bash and standard Linux programs."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import PurePosixPath

from hermes.core.errors import ToolError
from hermes.core.ports import FileInfo, SearchQuery, SearchResult
from hermes.workspaces.files import (
    EXPLANATIONS,
    MAX_READ_BYTES,
    explain_errors,
    kind_of,
    refuse_special,
    too_large_error,
)
from hermes.workspaces.remote.calls import RemoteAnswer, RemoteCalls
from hermes.workspaces.search.engines import (
    GREP_OPTIONS,
    WALK_OPTIONS,
    MatchReader,
    SearchLimits,
    grep_regexp,
)
from hermes.workspaces.search.selection import Selection
from hermes.workspaces.search.worker import check_pattern
from hermes.workspaces.shell_state import shell_quote

_LOOK = "stat -L -c '%f %s %.9Y' --"


_RG = f"rg {' '.join(WALK_OPTIONS)} --glob='!.git' --files"
# Separates the parts of a listing; no path looks like it.
_BREAK = b"//"
LIMITS = SearchLimits()
# Reading and writing may move many megabytes.
_TRANSFER_SECONDS = 600


class RemoteFiles:
    def __init__(self, calls: RemoteCalls) -> None:
        self._calls = calls

    async def _do(self, body: str, data: bytes = b"", *, timeout: float = 60) -> RemoteAnswer:
        """Run a line in which programs print errors in English, because they are parsed here."""
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
            timeout=_TRANSFER_SECONDS,
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
        """Write a file. It appears only when all of it has arrived."""
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
            timeout=_TRANSFER_SECONDS,
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

    async def search(self, query: SearchQuery) -> SearchResult:
        if query.target == "content":
            check_pattern(query.pattern)
        try:
            dated, cut = await self._list_selected(query)
            if query.target == "files":
                dated.sort(key=lambda pair: (-pair[0], pair[1]))
                names = tuple(name for _, name in dated[: LIMITS.files])
                return SearchResult(files=names, cut=cut or len(dated) > LIMITS.files)
            reader = MatchReader(most=LIMITS.matches, line_bytes=LIMITS.line_bytes)
            names = tuple(sorted((name for _, name in dated), key=lambda n: n.encode().split(b"/")))
            await self._lines(query, names, reader)
        except TimeoutError:
            return SearchResult(cut=True)
        return SearchResult(matches=tuple(reader.matches), cut=cut or reader.full)

    async def _list_selected(self, query: SearchQuery) -> tuple[list[tuple[float, str]], bool]:
        """Return all selected files with their times."""
        answer = await self._calls.answer(_listing_code(query), timeout=LIMITS.seconds)
        if answer.code == 7:
            raise ToolError(f"{query.root} does not exist. Check the path.")
        parts = answer.out.split(b"\0")
        at = parts.index(_BREAK)
        selection = Selection(query, ignore_files=RemoteIgnoreFiles(parts[at + 1 :]))
        found = []
        for entry in parts[:at]:
            when, _, name = os.fsdecode(entry).partition(" ")
            if name and selection.includes(name):
                found.append((float(when), name))
        most = LIMITS.candidates
        return found[:most], len(found) > most

    async def _lines(self, query: SearchQuery, names: tuple[str, ...], reader: MatchReader) -> None:
        grep = f"grep {' '.join(GREP_OPTIONS)} --context={query.context}"
        # The first grep drops binary files. In a UTF-8 locale it would also drop Latin-1 text.
        body = (
            "LC_ALL=C xargs -0 -r grep -I --no-messages --null --files-with-matches '' -- | "
            f"LC_ALL=C.UTF-8 xargs -0 -r {grep} {shell_quote(grep_regexp(query.pattern))} --; true"
        )
        data = "".join(f"{name}\0" for name in names).encode()
        answer = await self._calls.answer(body, data, timeout=LIMITS.seconds)
        if answer.errors:
            raise ToolError(f"Invalid regex {query.pattern!r}: {answer.errors}")
        reader.add(answer.out)


def _info(path: str, line: str) -> FileInfo:
    fields = line.split()
    if len(fields) != 3:
        return FileInfo(path=path, kind="other", size=0, modified_ns=0)
    seconds, _, rest = fields[2].partition(".")
    return FileInfo(
        path=path,
        kind=kind_of(int(fields[0], 16)),
        size=int(fields[1]),
        modified_ns=int(seconds) * 1_000_000_000 + int(rest.ljust(9, "0")[:9] or 0),
    )


def _error(answer: RemoteAnswer, path: str) -> OSError:
    """Map the error message of a program to a system error."""
    for number in EXPLANATIONS:
        if os.strerror(number).lower() in answer.errors.lower():
            return OSError(number, os.strerror(number), path)
    return OSError(errno.EIO, answer.errors or "failed", path)


def _listing_code(query: SearchQuery) -> str:
    """Return bash that prints the files, then ignore files and repository roots, below and above.
    It may print too much; `Selection` decides."""
    root = shell_quote(query.root)
    hide = "-name .git" if query.hidden else "-name '.*'"
    more = " --hidden" if query.hidden else ""
    return f"""[[ -e {root} ]] || builtin exit 7
if [[ -f {root} ]]; then stat --printf '%.9Y %n\\0' -- {root}
elif type -P rg >/dev/null; then
  {_RG}{more} -- {root} | xargs -0 -r stat --printf '%.9Y %n\\0' --
else find {root} -mindepth 1 {hide} -prune -o -type f -printf '%T@ %p\\0'; fi
builtin printf '\\0%s\\0' {_BREAK.decode()}
__show() {{ if [[ $1 == */.git ]]; then builtin printf '%s\\0\\0' "$1"
  else builtin printf '%s\\0' "$1"; tr -d '\\0' <"$1"; builtin printf '\\0'; fi; }}
find {root} '(' -name .git -prune -o -name .gitignore ')' -print0 2>/dev/null |
  while IFS= read -rd '' __f; do __show "$__f"; done
__d={root}
while [[ $__d == /?* ]]; do
  __d=${{__d%/*}}
  for __f in "$__d/.git" "$__d/.gitignore"; do [[ -e $__f ]] && __show "$__f"; done
done; true"""


class RemoteIgnoreFiles:
    """The ignore files that the machine printed, as pairs of path and text."""

    def __init__(self, parts: Sequence[bytes]) -> None:
        self._texts = {
            os.fsdecode(name): text.decode("utf-8", "surrogateescape")
            for name, text in zip(parts[::2], parts[1::2], strict=False)
        }

    def text(self, folder: str) -> str:
        return self._texts.get(f"{folder.rstrip('/')}/.gitignore", "")

    def is_repository(self, folder: str) -> bool:
        return f"{folder.rstrip('/')}/.git" in self._texts
