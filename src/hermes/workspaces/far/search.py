"""Searches remote files with the grep of the remote machine. Selection runs on this side, by the
rules for local files."""

from __future__ import annotations

import os
from collections.abc import Sequence

from hermes.core.errors import ToolError
from hermes.core.ports import SearchQuery, SearchResult
from hermes.workspaces.bash_text import shell_quote
from hermes.workspaces.far.calls import RemoteCalls
from hermes.workspaces.search.grep import OPTIONS, grep_regexp
from hermes.workspaces.search.limits import SearchLimits
from hermes.workspaces.search.lines import MatchReader
from hermes.workspaces.search.pattern import check_pattern
from hermes.workspaces.search.selection import Selection

_RG = (
    "rg --no-config --no-messages --color=never --null --no-require-git --no-ignore-parent "
    "--no-ignore-global --no-ignore-exclude --no-ignore-dot --glob='!.git' --files"
)
# Separates the parts of a listing; no path looks like it.
_BREAK = b"//"


class RemoteSearch:
    def __init__(self, calls: RemoteCalls, limits: SearchLimits) -> None:
        self._calls = calls
        self._limits = limits

    async def find(self, query: SearchQuery) -> SearchResult:
        limits = self._limits
        if query.target == "content":
            check_pattern(query.pattern)
        try:
            dated, cut = await self._list_selected(query)
            if query.target == "files":
                dated.sort(key=lambda pair: (-pair[0], pair[1]))
                names = tuple(name for _, name in dated[: limits.files])
                return SearchResult(files=names, cut=cut or len(dated) > limits.files)
            reader = MatchReader(most=limits.matches, line_bytes=limits.line_bytes)
            names = tuple(sorted((name for _, name in dated), key=lambda n: n.encode().split(b"/")))
            await self._lines(query, names, reader)
        except TimeoutError:
            return SearchResult(cut=True)
        return SearchResult(matches=tuple(reader.matches), cut=cut or reader.full)

    async def _list_selected(self, query: SearchQuery) -> tuple[list[tuple[float, str]], bool]:
        """Return all selected files with their times."""
        answer = await self._calls.answer(_listing_code(query), timeout=self._limits.seconds)
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
        most = self._limits.candidates
        return found[:most], len(found) > most

    async def _lines(self, query: SearchQuery, names: tuple[str, ...], reader: MatchReader) -> None:
        grep = f"grep {' '.join(OPTIONS)} --context={query.context}"
        # The first grep drops binary files. In a UTF-8 locale it would also drop Latin-1 text.
        body = (
            "LC_ALL=C xargs -0 -r grep -I --no-messages --null --files-with-matches '' -- | "
            f"LC_ALL=C.UTF-8 xargs -0 -r {grep} {shell_quote(grep_regexp(query.pattern))} --; true"
        )
        data = "".join(f"{name}\0" for name in names).encode()
        answer = await self._calls.answer(body, data, timeout=self._limits.seconds)
        if answer.errors:
            raise ToolError(f"Invalid regex {query.pattern!r}: {answer.errors}")
        reader.add(answer.out)


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
