"""Finds tainted files that a program runs although the command does not name them, and checks their
content."""

from __future__ import annotations

import os
import posixpath
import shlex
from collections.abc import Callable, Iterable, Iterator
from functools import cache

from hermes.codec.json import DecodeError, decode
from hermes.codec.values import replace
from hermes.policy.findings import OUTWARD, Finding, Level
from hermes.policy.patterns import load_regex, regex, vocabulary, word_list, word_set
from hermes.policy.programs.records import language_of
from hermes.policy.session_files import SessionFiles

# What a tainted file must not do. Whether other code runs at all is not known.
SERIOUS = OUTWARD | {"credentials", "remote_code", "obfuscated", "own_state"}
MOST_FILES = 100
_REACHES = load_regex("compiled_network_access")
SHELLS = frozenset("bash sh dash zsh ksh".split())
_VERSIONED = regex(r"^(python|pypy|pip)\d[\d.]*$")
HOOK_FOLDERS = (".git/hooks", ".husky", ".githooks")


_TALKS = Finding(
    level=Level.ASKED, category="network_out", reason="Its code connects to another machine."
)
Follow = Callable[[str, str], tuple[Finding, ...]]


class ImpliedFiles:
    """Finds tainted files that the commands of one session run without naming them. `follow`
    returns the findings about a script in a folder. Findings about a file are cached while its
    content stays the same."""

    def __init__(self, written: SessionFiles, root: str, follow: Follow) -> None:
        self._session_files = written
        self._root = root
        self._follow = follow
        self._looked: dict[tuple[str, int, int], tuple[Finding, ...]] = {}

    def of(self, commands: Iterable[str], cwd: str) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
        """Return the findings in tainted files that these commands run, and the files."""
        if not self._session_files.has_tainted_files():
            return (), ()
        unique_commands = tuple(dict.fromkeys(commands))
        kinds = {kind: command for command in unique_commands for kind in _kinds(command)}
        if not kinds:
            return (), ()
        found, files = list[Finding](), list[str]()
        for path in self._candidates(kinds, cwd):
            if findings := self._inside(path):
                command = next((kinds[kind] for kind in _kinds_of(path) if kind in kinds), "")
                found += (replace(each, command=command) for each in findings)
                files.append(path)
        return tuple(found), tuple(files)

    def _candidates(self, kinds: Iterable[str], cwd: str) -> list[str]:
        folders = tuple(dict.fromkeys((cwd, self._root)))
        wanted = frozenset(kinds)
        usual = [
            f"{folder}/{name}" for folder in folders for name in word_list("implicit_project_files")
        ]
        if "hooks" in wanted:
            usual += _hooks(folders)
        named = self._session_files.tainted_files(*folders)
        near = dict.fromkeys(path for path in (*usual, *named) if _kinds_of(path) & wanted)
        return [path for path in near if self._session_files.sources(path)][:MOST_FILES]

    def _inside(self, path: str) -> tuple[Finding, ...]:
        stamp = self._session_files.stamp(path)
        if stamp is None:
            return ()
        if stamp not in self._looked:
            # A fetch by tainted code sends data to a host that the author of the text chose.
            self._looked[stamp] = tuple(
                replace(each, category="network_out") if each.category == "network" else each
                for each in self._follow_file(path)
                if each.level >= Level.DENIED
                or (each.level is not Level.HARMLESS and each.category in SERIOUS)
            )
        return self._looked[stamp]

    def _follow_file(self, path: str) -> tuple[Finding, ...]:
        """Follow the file as if a command ran it."""
        kind = next(iter(_kinds_of(path)))
        if kind == "compiled":
            return (_TALKS,) if _REACHES.search(self._session_files.text(path) or "") else ()
        if kind == "package.json":
            script = _scripts(self._session_files.text(path) or "")
        else:
            program = "bash" if kind == "hooks" else kind
            script = f"{program}{' -f' if kind == 'make' else ''} {shlex.quote(path)}"
        return self._follow(script, posixpath.dirname(path)) if script else ()


def _kinds(command: str) -> frozenset[str]:
    """Return the kinds of files that a command may run without naming them."""
    words = command.split(None, 3) or [""]
    program = words[0].rpartition("/")[2]
    if found := _VERSIONED.match(program):
        program = found[1]
    second = words[1] if len(words) > 1 else ""
    if program == "git":
        hooked = not word_set("git_hook_commands").isdisjoint(words[1:])
        return frozenset({"hooks"}) if hooked else frozenset()
    if second in word_set("reporting_words") or (
        program in SHELLS and (not second or second.startswith("-"))
    ):
        return frozenset()
    kind = language_of(program)
    if kind == "any" or ("/" in words[0] and "bin/" not in words[0]):
        return frozenset((*vocabulary().code_files, "package.json"))
    return frozenset({kind}) if kind else frozenset()


@cache
def _languages() -> dict[str, str]:
    """Return languages by the names and suffixes of files."""
    files = vocabulary().code_files
    return {name: kind for kind, names in files.items() for name in names.split()}


def _kinds_of(path: str) -> frozenset[str]:
    folder, _, name = path.rpartition("/")
    if folder.endswith(HOOK_FOLDERS):
        return frozenset({"hooks"})
    if name in ("package.json", "composer.json", "deno.json"):
        return frozenset({"package.json"})
    kind = _languages().get(name) or _languages().get(posixpath.splitext(name)[1])
    return frozenset({kind}) if kind else frozenset()


def _hooks(folders: Iterable[str]) -> Iterator[str]:
    for folder in folders:
        for place in HOOK_FOLDERS:
            try:
                names = sorted(os.listdir(f"{folder}/{place}"))  # noqa: PTH208
            except OSError:
                continue
            yield from (f"{folder}/{place}/{name}" for name in names if "." not in name)


def _scripts(text: str) -> str:
    try:
        whole = decode(dict, text)
    except DecodeError:
        return ""
    scripts = whole.get("scripts") or whole.get("tasks")
    return "\n".join(str(each) for each in scripts.values()) if isinstance(scripts, dict) else ""
