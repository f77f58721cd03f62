"""Provenance: which effects bring text of others into view, and from where."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice

from hermes.core.effects import CallServer, Effect, FetchUrl, ReadPath, RunCommand, SignalProcess
from hermes.core.messages import WORKSPACE, split_origins
from hermes.policy.findings import Verdict
from hermes.policy.outgoing import host_of, is_local, urls_in
from hermes.policy.patterns import regex, word_list
from hermes.policy.places.places import is_inside
from hermes.policy.programs.records import flagged
from hermes.policy.session_files import SessionFiles

# How effects name plugins; open ones may pass data on.
PLUGIN, OPEN = "plugin:", " (open)"
TRUSTED = frozenset(("user", "workspace", "hermes"))
# Text of files and programs: trusted for work, but not to send, persist or escalate.
LOCAL = (WORKSPACE, "process:")
MAIL = (".eml", ".mbox", ".msg", ".emlx", ".ics", ".vcf")
_WORD = regex(r"'((?:[^']|'\\'')*)'|(\S+)")
# Scripts that read files which they do not name.
_READS_UNNAMED = regex(
    r"[*\[]|\$\(|`|\b(?:rg|ag|ack|grep|find|fd|tar|xargs|read)\b"
    r"|\bgit\b.*\b(?:log|show|diff|grep|blame|stash|cat-file|archive|format-patch)\b"
)
MOST_TAINTED = 100
MOST_SOURCES = 3


def is_trusted(origin: str) -> bool:
    """Whether text of this origin may influence ordinary work."""
    if ", " in origin:
        return all(map(is_trusted, origin.split(", ")))
    return origin in TRUSTED or origin.startswith(LOCAL)


def untrusted_origins(origins: Iterable[str]) -> tuple[str, ...]:
    """Return the untrusted ones of these origins, sorted."""
    return _classify(frozenset(origins))[0]


def local_origins(origins: Iterable[str]) -> tuple[str, ...]:
    """Return those of these origins that are files and programs, sorted."""
    return _classify(frozenset(origins))[1]


def foreign_origins(origins: Iterable[str]) -> tuple[str, ...]:
    """Return the untrusted ones of these origins; if there are none, files and programs."""
    return untrusted_origins(origins) or local_origins(origins)[:MOST_SOURCES]


@lru_cache(maxsize=32)
def _classify(origins: frozenset[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    trusted = {each for each in origins if is_trusted(each)}
    local = sorted(each for each in trusted if each.startswith(LOCAL))
    return tuple(sorted(origins - trusted)), tuple(local)


class Sources:
    """Tells which effects of one session bring text of others into view. If there are `trusted`
    folders, files elsewhere are untrusted, also those of the workspace. A tainted file in `files`
    has the sources that were in view when it was written."""

    def __init__(
        self, root: str, home: str, trusted: tuple[str, ...], files: SessionFiles | None = None
    ) -> None:
        self._root = root
        self._files = files or SessionFiles()
        self._downloads = posixpath.join(home, "Downloads")
        self._trusted = tuple(
            posixpath.normpath(re.sub(r"^~(?=/|$)", lambda _: home, each)) for each in trusted
        )
        self.from_start: tuple[str, ...] = ()
        if not self._is_trusted_place(root):
            # Its project files are read before the first message.
            self.from_start = (f"folder:{root}",)

    def of(self, effect: Effect, verdict: Verdict | None = None) -> str:
        """Return the source of the text that an effect brings in; "" if it brings none or the
        person trusts it."""
        match effect:
            case FetchUrl(url=url):
                return f"web:{host_of(url)}"
            case CallServer(server=server):
                plugin = server.removesuffix(OPEN)
                return plugin if server.startswith(PLUGIN) else f"mcp:{server}"
            case ReadPath(path=path):
                return self.of_path(path)
            case RunCommand(script=script, cwd=cwd) if verdict is not None:
                return self._of_script(script, cwd, verdict)
            case SignalProcess(text=text, cwd=cwd) if verdict is not None:
                return self._of_script(text, cwd, verdict)
            case _:
                return ""

    def of_path(self, path: str) -> str:
        if untrusted := self._of_untrusted_path(path):
            return untrusted
        return "" if self._trusted else WORKSPACE + posixpath.basename(path)

    def _of_untrusted_path(self, path: str) -> str:
        name = posixpath.basename(path)
        if name.lower().endswith(MAIL):
            return f"mail:{name}"
        if name.lower().endswith(word_list("document_suffixes")):
            return f"document:{name}"
        if is_inside(path, self._downloads):
            return f"download:{name}"
        if not self._is_trusted_place(path):
            return f"file:{name}"
        return ", ".join(sorted(split_origins(self._files.sources(path)) - {""}))

    def _is_trusted_place(self, path: str) -> bool:
        return not self._trusted or any(is_inside(path, each) for each in self._trusted)

    def _of_script(self, script: str, cwd: str, verdict: Verdict) -> str:
        found = dict.fromkeys(self._of_command(each, cwd) for each in verdict.commands)
        if self._files.has_tainted_files():
            found |= dict.fromkeys(self._tainted_in(script, cwd))
        found.pop("", None)
        if found or self._trusted or not verdict.commands:
            return ", ".join(sorted(split_origins(found)))
        return WORKSPACE + verdict.commands[-1].partition(" ")[0]

    def _tainted_in(self, script: str, cwd: str) -> Iterator[str]:
        """Yield the sources of tainted files that a script may show, also without their names."""
        all_of_them = _READS_UNNAMED.search(script) is not None
        near = self._files.tainted_files(*dict.fromkeys((cwd, self._root)))
        named = (path for path in near if all_of_them or posixpath.basename(path) in script)
        for path in islice(named, MOST_TAINTED):
            yield from self._files.sources(path)

    def _of_command(self, command: str, cwd: str) -> str:
        words = [plain or quoted for quoted, plain in _WORD.findall(command)]
        program = words[0] if words else ""
        if program in flagged("prints_foreign_text") or words[:2] == ["git", "clone"]:
            hosts = [host_of(url) for url in urls_in(command)]
            if hosts and all(is_local(host) for host in hosts):
                return ""
            return f"web:{hosts[0]}" if hosts else f"web:{program}"
        operands = [word for word in words[1:] if word[:1] != "-"]
        if not self._files.has_tainted_files():
            # Only these can be untrusted by their name or place.
            files = (*MAIL, *word_list("document_suffixes"))
            operands = [e for e in operands if e[:1] == "/" or e.lower().endswith(files)]
        paths = (posixpath.join(cwd, word) for word in operands)
        return next(filter(None, map(self._of_untrusted_path, paths)), "")
