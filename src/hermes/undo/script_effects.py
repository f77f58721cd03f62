"""Reads from the text of a script which files it will change."""

from __future__ import annotations

import glob
import os.path
import posixpath
import re
import tempfile
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Literal

from hermes.codec.values import Value, replace
from hermes.core.effects import RunCommand
from hermes.core.ports import ShellSetup
from hermes.policy.shell.simple_commands import executed, simple_commands
from hermes.undo.scanner import inside

How = Literal["any", "deleted", "mode"]


class PathEffect(Value):
    """A path with everything below it, and what can happen to it."""

    path: str
    how: How = "any"


class ScriptEffects(Value):
    """What a script can do to files and to other machines."""

    touches: tuple[PathEffect, ...] = ()
    names: tuple[str, ...] = ()  # the paths in the script itself
    complete: bool = False  # whether nothing but `touches` can change
    sends: tuple[str, ...] = ()  # descriptions of what leaves the machine

    @property
    def reads_only(self) -> bool:
        return self.complete and not self.touches

    def with_policy(self, *, reads_only: bool, touched: Iterable[str], root: str) -> ScriptEffects:
        """Add what the policy knows about every command: that it only reads, or which paths outside
        `root` it changes. Everything inside is scanned in any case."""
        if reads_only:
            return ScriptEffects(complete=True, sends=self.sends)
        outside = (path for path in touched if not inside(path, root))
        return replace(self, names=tuple(dict.fromkeys((*self.names, *outside))))

    def may_change(self, path: str) -> bool:
        """Return whether the script can change this path, or something below it."""
        if not self.complete:
            return True
        touched = (touch.path for touch in self.touches)
        return any(inside(path, each) or inside(each, path) for each in touched)

    def can_explain(self, path: str, kind: str, *, mode_only: bool) -> bool:
        """Return whether such a change of the path can come from this script."""
        if not self.complete:
            return True
        for touch in self.touches:
            fits = touch.how == "any" or (touch.how == "deleted" and kind == "deleted")
            fits = fits or (touch.how == "mode" and mode_only)
            # A folder changes with the files that are created or removed in it.
            if fits and (inside(path, touch.path) or inside(touch.path, path)):
                return True
        return False


READERS = frozenset(
    """: [ [[ basename cat cd cksum cmp column comm cut date diff dirname du df echo egrep exit
    export false fgrep file fold free grep head hostname id jq ls lsof md5sum nl nproc od pgrep popd
    printf printenv ps pushd pwd readlink realpath rg seq set sha1sum sha256sum sleep sort stat
    strings tac tail test tr true type uname uniq uptime wc which whoami yes""".split()
)
# What makes a reading program write.
_WRITING = {"sort": re.compile(r"-[a-zA-Z]*o|--output"), "file": re.compile(r"-C|--compile")}
GIT_READS = frozenset(
    """blame cat-file describe diff for-each-ref grep log ls-files ls-remote ls-tree merge-base
    name-rev rev-list rev-parse shortlog show show-ref status var version
    whatchanged""".split()
)
GIT_SENDS = frozenset(("push", "send-email"))
SENDERS: dict[str, str] = {
    **dict.fromkeys(("curl", "wget", "ssh", "scp", "sftp", "rsync", "nc", "ftp"), "a host"),
    **dict.fromkeys(("mail", "sendmail", "mutt", "msmtp"), "a person"),
    **dict.fromkeys(("psql", "mysql", "mongosh", "redis-cli"), "a database server"),
    **dict.fromkeys(("kubectl", "helm", "aws", "gcloud", "az", "terraform", "gh"), "a service"),
}
# Options that take the next word, by program: it is not a changed path.
VALUES = {"truncate": "srR", "touch": "dtr", "install": "mogS", "mkdir": "mZ", "shred": "ns"}
VALUES |= {"cp": "S", "mv": "S", "ln": "S", "sed": "efl"}
_UNSURE = re.compile(
    r"[$`]|\{[^}]*(?:,|\.\.)|\b(?:eval|exec|source|alias|trap)\b|^\s*\.\s|[<>]\(|(?:^|\s)~\w"
)
_SED_WRITES = re.compile(r"(?:^|[;/{}\s\d])[we]\s")
_TO_FOLDER = re.compile(r"-[a-zA-Z]*t|--target-directory")
_GLOB = re.compile(r"[*?[]")
_PATHS = re.compile(r"(?:~|\.{0,2}/|[\w.-]+/)[\w./~@+%-]*")


def read_script_effects(effect: RunCommand, home: str = "") -> ScriptEffects:
    return _EffectReader(effect, home).intent()


class _EffectReader:
    def __init__(self, effect: RunCommand, home: str) -> None:
        self._script = effect.script
        # A `cd` may fail or end with its subshell, so earlier folders stay possible.
        self._folders = [effect.cwd]
        self._home = home
        self._touches: list[PathEffect] = []
        self._names: list[str] = []
        self._sends: list[str] = []
        self._unsure = bool(_UNSURE.search(effect.script))

    def intent(self) -> ScriptEffects:
        for command in simple_commands(self._script):
            if words := executed(command.words):
                self._command(words)
            for target in command.written:
                if target not in ("/dev/null", "-") and not target.rstrip("-").isdecimal():
                    self._touch((target,))
            self._unsure = self._unsure or command.nested
        if self._unsure:
            # Every existing path in the text.
            for match in _PATHS.finditer(self._script):
                self._names += [path for path in self._paths(match[0]) if os.path.lexists(path)]
        return ScriptEffects(
            touches=tuple(self._touches),
            names=tuple(dict.fromkeys(self._names)),
            complete=not self._unsure,
            sends=tuple(dict.fromkeys(self._sends)),
        )

    def _command(self, words: tuple[str, ...]) -> None:
        name, arguments = words[0], words[1:]
        plain = _arguments(arguments, VALUES.get(name, ""))
        match name:
            case "cd" | "pushd":
                self._folders += self._paths(plain[0]) if plain else [self._home or "/"]
            case "rm" | "rmdir" | "unlink":
                self._touch(plain, "deleted")
            case "chmod" | "chown" | "chgrp":
                self._touch(plain, "mode")
            case "mv" | "touch" | "truncate" | "mkdir" | "tee" | "shred" | "mkfifo":
                self._touch(plain)
            case "cp" | "ln" | "install" | "link":
                self._touch(plain[-1:])
            case "dd":
                self._touch(tuple(each[3:] for each in arguments if each.startswith("of=")))
            case "sed":
                self._sed(arguments, plain)
            case "find":
                self._find(arguments)
            case "git":
                self._git(arguments)
            case _ if name not in READERS:
                self._unsure = True
        if name in SENDERS:
            self._sends.append(f"`{name}` reaches {SENDERS[name]}; that cannot be undone.")
        into_folder = name in ("cp", "mv", "ln", "install")
        option = _TO_FOLDER if into_folder else _WRITING.get(name)
        if option and any(option.match(each) for each in arguments):
            self._unsure = True
        if name == "uniq" and len(plain) > 1:
            self._unsure = True

    def _sed(self, arguments: tuple[str, ...], plain: tuple[str, ...]) -> None:
        if any(_SED_WRITES.search(each) for each in arguments):
            self._unsure = True
        in_place = [e for e in arguments if re.match(r"-[a-zA-Z]*i|--in-place", e)]
        if not in_place:
            return
        scripted = any(re.match(r"-[a-zA-Z]*[ef]|--(expression|file)", each) for each in arguments)
        files = plain if scripted else plain[1:]
        self._touch(files)
        if any(not each.endswith(("i", "--in-place")) for each in in_place):
            # A backup copy stays beside each file.
            self._touch(tuple(posixpath.dirname(each) or "." for each in files))

    def _find(self, arguments: tuple[str, ...]) -> None:
        acts = [each for each in arguments if each in ("-delete", "-exec", "-execdir", "-ok")]
        places = []
        for each in arguments:
            if each.startswith(("-", "(", "!")):
                break
            places.append(each)
        if acts:
            self._touch(tuple(places) or (".",), "deleted")
        if set(acts) - {"-delete"} or any(each.startswith("-f") for each in arguments):
            self._unsure = True

    def _git(self, arguments: tuple[str, ...]) -> None:
        rest = list(arguments)
        folders = list(self._folders)
        while rest and rest[0].startswith("-"):
            if rest[0] == "-C" and len(rest) > 1:
                folders = self._paths(rest[1])
            rest = rest[2:] if rest[0] in ("-C", "-c") else rest[1:]
        action = rest[0] if rest else ""
        if action in GIT_SENDS:
            self._sends.append(f"`git {action}` changes what others see; it cannot be undone.")
        if not action or (action in GIT_READS and "--output" not in " ".join(rest)):
            return
        how: How = "deleted" if action == "clean" else "any"
        self._touches += [PathEffect(path=_repository(folder), how=how) for folder in folders]

    def _touch(self, texts: tuple[str, ...], how: How = "any") -> None:
        for text in texts:
            for path in self._expand(text):
                self._names.append(path)
                self._touches.append(PathEffect(path=path, how=how))

    def _expand(self, text: str) -> Iterator[str]:
        for path in self._paths(text):
            found = [path]
            if _GLOB.search(text):
                hidden = posixpath.join(posixpath.dirname(path), "." + posixpath.basename(path))
                found += glob.glob(path, recursive=True) + glob.glob(hidden)  # noqa: PTH207
            for each in found:
                yield each
                # Through a link, the change appears at its target.
                folder, name = posixpath.split(each)
                beside = posixpath.join(os.path.realpath(folder), name)
                yield from {beside, os.path.realpath(each)} - {each}

    def _paths(self, text: str) -> list[str]:
        if text == "~" or text.startswith("~/"):
            text = self._home + text[1:]
        joined = (posixpath.join(folder, text) for folder in self._folders)
        return list(dict.fromkeys(posixpath.normpath(each) for each in joined))


def _arguments(words: tuple[str, ...], with_value: str) -> tuple[str, ...]:
    """Return the words that are not options."""
    found: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return (*found, *rest)
        if not word.startswith("-") or word == "-":
            found.append(word)
        elif not word.startswith("--") and word[-1] in with_value and rest:
            rest.pop(0)
    return tuple(found)


def _repository(folder: str) -> str:
    """Return the folder with the `.git` of this one."""
    here = folder
    while here not in ("/", ""):
        if os.path.lexists(posixpath.join(here, ".git")):
            return here
        here = posixpath.dirname(here)
    return folder


_OBEYED = r"PATH|BASH_ENV|ENV|LD_\w+|GIT_\w+|\w*PAGER|LESSOPEN|LESSCLOSE|RIPGREP_CONFIG_PATH"
_SET_HERE = re.compile(rf"\b(?:{_OBEYED})\+?=")
_SET_BEFORE = re.compile(_OBEYED)
_DEFINED = re.compile(r"^(?:(\S+) \(\) *$|alias (?:-- )?([^=\n]+)=)", re.MULTILINE)
_WORD = re.compile(r"[^\s;&|()<>'\"`$]+")


def has_redefined_names(script: str, shell: ShellSetup, *, cwd: str, root: str) -> bool:
    if _SET_HERE.search(script):
        return True
    if any(_SET_BEFORE.fullmatch(name) and name != "PATH" for name in shell.variables):
        return True
    if shell.definitions != shell.own and any(n in script for n in _names(shell.definitions)):
        return True
    return any(
        os.path.lexists(posixpath.join(folder, word))
        for folder in _writable_path_folders(shell.path, cwd, root)
        for word in _WORD.findall(script)
    )


@lru_cache(maxsize=8)
def _names(definitions: str) -> frozenset[str]:
    return frozenset(one or two for one, two in _DEFINED.findall(definitions))


def _writable_path_folders(path: str, cwd: str, root: str) -> list[str]:
    """Return the folders in PATH that an agent writes to."""
    if not path:
        return []
    found = [posixpath.normpath(posixpath.join(cwd, each)) for each in path.split(":")]
    places = (root, "/tmp", tempfile.gettempdir())
    return [each for each in found if any(inside(each, place) for place in places)]
