"""Provenance: which effects bring untrusted text into view, and from where."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

from hermes.core.effects import CallServer, Effect, FetchUrl, ReadPath, RunCommand, SignalProcess
from hermes.policy.findings import Verdict
from hermes.policy.outgoing import host_of, is_local, urls_in
from hermes.policy.patterns import regex, word_list
from hermes.policy.places.places import is_inside
from hermes.policy.programs.records import flagged

# How effects name plugins; open ones may pass data on.
PLUGIN, OPEN = "plugin:", " (open)"
TRUSTED = frozenset(("user", "workspace", "hermes"))
MAIL = (".eml", ".mbox", ".msg", ".emlx", ".ics", ".vcf")
_WORD = regex(r"'((?:[^']|'\\'')*)'|(\S+)")


def is_trusted(origin: str) -> bool:
    return origin in TRUSTED or origin.startswith("process:")


def untrusted_origins(origins: Iterable[str]) -> tuple[str, ...]:
    """Return the untrusted ones of these origins, sorted."""
    return tuple(sorted(each for each in origins if not is_trusted(each)))


class Sources:
    """Tells which effects of one session bring untrusted text into view. If there are `trusted`
    folders, files elsewhere are untrusted, also those of the workspace."""

    def __init__(self, root: str, home: str, trusted: tuple[str, ...]) -> None:
        self._downloads = posixpath.join(home, "Downloads")
        self._trusted = tuple(
            posixpath.normpath(re.sub(r"^~(?=/|$)", lambda _: home, each)) for each in trusted
        )
        self.from_start: tuple[str, ...] = ()
        if not self._is_trusted_place(root):
            # Its project files are read before the first message.
            self.from_start = (f"folder:{root}",)

    def of(self, effect: Effect, verdict: Verdict | None = None) -> str:
        """Return the source of the text that an effect brings in; "" for trusted text."""
        match effect:
            case FetchUrl(url=url):
                return f"web:{host_of(url)}"
            case CallServer(server=server):
                plugin = server.removesuffix(OPEN)
                return plugin if server.startswith(PLUGIN) else f"mcp:{server}"
            case ReadPath(path=path):
                return self.of_path(path)
            case RunCommand() | SignalProcess() if verdict is not None:
                found = (self._of_command(each) for each in verdict.commands)
                return ", ".join(dict.fromkeys(each for each in found if each))
            case _:
                return ""

    def of_path(self, path: str) -> str:
        name = posixpath.basename(path)
        if name.lower().endswith(MAIL):
            return f"mail:{name}"
        if name.lower().endswith(word_list("document_suffixes")):
            return f"document:{name}"
        if is_inside(path, self._downloads):
            return f"download:{name}"
        return "" if self._is_trusted_place(path) else f"file:{name}"

    def _is_trusted_place(self, path: str) -> bool:
        return not self._trusted or any(is_inside(path, each) for each in self._trusted)

    def _of_command(self, command: str) -> str:
        words = [plain or quoted for quoted, plain in _WORD.findall(command)]
        program = words[0] if words else ""
        if program in flagged("prints_foreign_text") or words[:2] == ["git", "clone"]:
            hosts = [host_of(url) for url in urls_in(command)]
            if hosts and all(is_local(host) for host in hosts):
                return ""
            return f"web:{hosts[0]}" if hosts else f"web:{program}"
        files = (*MAIL, *word_list("document_suffixes"))
        named = (word for word in words[1:] if word[0:1] == "/" or word.lower().endswith(files))
        return next(filter(None, (self.of_path(word) for word in named if word[:1] != "-")), "")
