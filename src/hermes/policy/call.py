"""One command as a check sees it: its words, options and input, and the findings that the check
reports."""

from __future__ import annotations

import os.path
import posixpath
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from hermes.codec.values import replace
from hermes.policy.findings import Finding, Level
from hermes.policy.path_effects import (
    HARMLESS_DEVICE,
    Paths,
    judge_delete,
    judge_read,
    judge_write,
    normalize,
    spelled_from_home,
)
from hermes.policy.patterns import regex
from hermes.policy.programs.records import UNKNOWN_PROGRAM, Program
from hermes.policy.shell.state import SOME, UNKNOWN, State, Stream

if TYPE_CHECKING:
    from hermes.policy.walk import ScriptWalk


@cache
def split_words(text: str) -> frozenset[str]:
    """Split a constant into its words."""
    return frozenset(text.split())


class Options:
    """The parsed arguments of a command. `taking` names the options that take a value, as words:
    "-o --output". Short options may be combined, long ones abbreviated; after `--` everything is an
    operand."""

    def __init__(self, arguments: Sequence[str], taking: str = "", *, permute: bool = True) -> None:
        self._takes = split_words(taking)
        self.pairs: list[tuple[str, str | None]] = []
        self.operands: list[str] = []
        rest = list(arguments)
        while rest:
            word = rest.pop(0)
            if word == "--":
                self.operands += rest
                break
            if word[:1] != "-" or word == "-":
                self.operands.append(word)
                if not permute:
                    self.operands += rest
                    break
            elif word.startswith("--"):
                self._long(word, rest)
            else:
                self._short(word, rest)

    def _long(self, word: str, rest: list[str]) -> None:
        name, equals, value = word.partition("=")
        if equals:
            self.pairs.append((name, value))
        elif name in self._takes and rest:
            self.pairs.append((name, rest.pop(0)))
        else:
            self.pairs.append((name, None))

    def _short(self, word: str, rest: list[str]) -> None:
        if word in self._takes:
            self.pairs.append((word, rest.pop(0) if rest else None))
            return
        for index in range(1, len(word)):
            name = "-" + word[index]
            if name in self._takes:
                value = word[index + 1 :]
                self.pairs.append((name, value or (rest.pop(0) if rest else None)))
                return
            self.pairs.append((name, None))

    def has(self, *names: str) -> bool:
        return any(_matches_option(option, name) for option, _ in self.pairs for name in names)

    def value(self, *names: str) -> str | None:
        """Return the last value of the option."""
        return next(iter(reversed(self.values(*names))), None)

    def values(self, *names: str) -> list[str]:
        return [
            value
            for option, value in self.pairs
            for name in names
            if value is not None and _matches_option(option, name)
        ]


def _matches_option(option: str, name: str) -> bool:
    """Whether the word is the option or its beginning: GNU programs accept abbreviated long
    options."""
    return option == name or (len(option) > 3 and option[:2] == "--" and name.startswith(option))


USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

TRUSTED_FOLDERS = tuple(
    ("/bin/ /usr/bin/ /usr/local/bin/ /sbin/ /usr/sbin/ /opt/homebrew/bin/").split()
)


# The dynamic loader runs the program that it is given.
LOADER = regex(
    r"/(?:usr/|nix/store/[^/]+/)?lib\w*/(?:[\w-]+/)?ld(?:64|-linux|-musl)?[\w-]*\.so\.\d"
)


def new_program(name: str, state: State) -> tuple[str, Stream] | None:
    """Return the file in PATH that was written in this session or by this script and runs under the
    name. Older files are the person's own programs."""
    for value in state.variables.get("PATH", ()):
        if value == USUAL_PATH:
            continue
        for folder in value.split(":"):
            path = posixpath.normpath(posixpath.join(state.cwd, folder, name))
            if UNKNOWN in path:
                continue
            if (stream := state.files.get(path)) is not None:
                return path, stream
            if os.path.exists(path):  # noqa: PTH110
                break
    return None


def bare_name(name: str) -> str:
    """Return the name without its folder for programs of the system: /usr/bin/ls is ls."""
    folder, slash, last = name.rpartition("/")
    if not slash:
        return name
    if LOADER.fullmatch(name):
        return "ld.so"
    folder += slash
    while "//" in folder or "/./" in folder:
        folder = folder.replace("//", "/").replace("/./", "/")
    return last if last and folder in TRUSTED_FOLDERS else name


NOT_CERTAIN = regex(f"[*?\\[{UNKNOWN}{SOME}]")
CONFINED = "it runs confined: no network, writes only in the workspace, undo on."
PLAIN = regex(r"[\w/.~*?=+,:@%{}\[\]!^#…-]+")


def quote_words(words: Sequence[str]) -> str:
    """Return the words as they could be typed, with `…` for unknown parts."""
    return " ".join(_quote(word) for word in words)


def _quote(word: str) -> str:
    word = word.replace(UNKNOWN, "…").replace(SOME, "…")
    if word and PLAIN.fullmatch(word):
        return word
    return "'" + word.replace("'", "'\\''") + "'"


def known_part(path: str) -> str:
    """Return the certain part of a path: of `build/*.o` the folder, of an unknown path nothing."""
    found = NOT_CERTAIN.search(path)
    if found is None:
        return path
    return path[: found.start()].rpartition("/")[0] if found.start() else ""


class Call:
    """One simple command: name, arguments, input and shell state, and the record of its program."""

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        state: State,
        stdin: Stream,
        follower: ScriptWalk,
        record: Program = UNKNOWN_PROGRAM,
    ) -> None:
        self._whole: tuple[str, ...] = (name, *arguments)
        self._quoted = ""
        self.name = name
        self.arguments = list(arguments)
        self.state = state
        self.stdin = stdin
        self.follower = follower
        self.record = record

    def part(self, arguments: Sequence[str], state: State | None = None, name: str = "") -> Call:
        """Return the same command with fewer words, for example those behind a subcommand. Findings
        are about the whole command."""
        inner = Call(
            name or self.name,
            arguments,
            state or self.state,
            self.stdin,
            self.follower,
            self.record,
        )
        inner._whole = self._whole
        return inner

    @property
    def paths(self) -> Paths:
        return self.follower.paths

    def options(self, taking: str = "", *, permute: bool = True) -> Options:
        return Options(self.arguments, taking, permute=permute)

    # What is found about it.

    def ask(self, category: str, reason: str) -> None:
        self._say(Level.ASKED, category, reason)

    def never(self, category: str, reason: str) -> None:
        self._say(Level.NEVER, category, reason)

    def deny(self, category: str, reason: str) -> None:
        self._say(Level.DENIED, category, reason)

    def work(self, category: str = "", reason: str = "It works in the workspace.") -> None:
        self._say(Level.WORK, category, reason)

    def unknown(self, what: str) -> None:
        """Report an unknown program. Where commands run confined, it counts as ordinary work."""
        if self.follower.confined():
            self.work(reason=f"{what}; {CONFINED}")
        else:
            self.ask("unknown_program", f"{what}, and commands do not run confined here.")

    def _say(self, level: Level, category: str, reason: str) -> None:
        command = self._command()
        self.follower.add(Finding(level=level, category=category, reason=reason, command=command))

    def _add(self, finding: Finding | None) -> None:
        if finding is not None:
            self.follower.add(replace(finding, command=self._command()))

    def _command(self) -> str:
        if self.name and not self._quoted:
            self._quoted = quote_words(self._whole)
        return self._quoted

    # What it does to files.

    def path(self, text: str) -> str:
        """Return the absolute path, with links followed that this script made."""
        if text == "~" or text.startswith("~/"):
            text = self.paths.home + text[1:]
        if not text.startswith(("/", UNKNOWN)) and UNKNOWN in self.state.cwd:
            return UNKNOWN + "/" + text
        if text.startswith(UNKNOWN):
            return text
        path = normalize(posixpath.join(self.state.cwd, text))
        for link, target in self.state.links.items():
            if path == link or path.startswith(link + "/"):
                path = normalize(target + path[len(link) :])
        return path

    def reads(self, *texts: str) -> None:
        for text in texts:
            if text not in ("", "-"):
                self._add(judge_read(self.paths, self.path(text)))

    def reads_all(self, *texts: str) -> None:
        """Report that folders are read with everything in them."""
        for text in texts:
            if self.paths.covers_credentials(self.path(text)):
                self.ask("credentials", f"It reads all of {self.path(text)}, keys included.")
        self.reads(*texts)

    def writes(self, *texts: str, append: bool = False, content: Stream | None = None) -> None:
        """Report that files are written; `content` is what they hold afterwards, if it is known."""
        for text in texts:
            if text not in ("", "-"):
                path = self.path(text)
                self._touch(path)
                from_home = spelled_from_home(self.paths, text)
                self._add(judge_write(self.paths, path, append=append, from_home=from_home))
                if content is not None:
                    self.state.files[path] = content

    def deletes(self, *texts: str, recursive: bool = False) -> None:
        for text in texts:
            path = self.path(text)
            self._touch(path)
            from_home = spelled_from_home(self.paths, text)
            self._add(judge_delete(self.paths, path, recursive=recursive, from_home=from_home))

    def touches(self, *texts: str) -> None:
        """Record paths whose change is checked elsewhere."""
        for text in texts:
            self._touch(self.path(text))

    def _touch(self, path: str) -> None:
        if (known := known_part(path)) and not HARMLESS_DEVICE.match(known):
            self.follower.touched[known] = None

    def here(self, text: str) -> bool:
        """Whether the path lies in the workspace."""
        path = self.path(text)
        return UNKNOWN not in path and self.paths.place(path) == "workspace"

    # What it runs.

    def runs(self, words: Sequence[str], stdin: Stream | None = None) -> Stream:
        return self.follower.outside(words, self.state, stdin or self.stdin)

    def runs_text(self, script: str, stdin: Stream | None = None) -> Stream:
        return self.follower.text(script, self.state, stdin or self.stdin)

    def probes(self, script: str, keep: Callable[[Finding], bool] | None = None) -> bool:
        """Follow a text that may run or may be data. Only `NEVER` findings count, and those that
        `keep` selects; return whether there are any. Its writes and links are undone afterwards."""
        findings, before = self.follower.findings, len(self.follower.findings)
        state = self.state
        files, links, own = dict(state.files), dict(state.links), set(state.own)
        self.follower.text(script, state.copy(), Stream())
        _put_back(state, files, links, own)
        kept = [
            each
            for each in findings[before:]
            if each.level is Level.NEVER or (keep is not None and keep(each))
        ]
        findings[before:] = kept
        return bool(kept)


def _put_back(state: State, files: dict[str, Stream], links: dict[str, str], own: set[str]) -> None:
    """Restore files and links in place, because subshells share them."""
    state.files.clear()
    state.files.update(files)
    state.links.clear()
    state.links.update(links)
    state.own.clear()
    state.own.update(own)


Check = Callable[[Call], Stream | None]
