"""Judges a shell script: known to change nothing, never to be run, or a question for a person."""

from __future__ import annotations

import os.path
import posixpath
from collections.abc import Callable

from hermes.core.effects import Allow, Ask, Decision, Deny, RunCommand
from hermes.policy import hardline
from hermes.policy.readonly import is_read_only
from hermes.policy.shell import Simple, Unclear, parse

# Commands that run another command: the options that take a value.
WRAPPERS: dict[str, str] = {
    "sudo": "ugpCDhRTU",
    "doas": "uC",
    "env": "uCS",
    "nohup": "",
    "nice": "n",
    "ionice": "cnp",
    "timeout": "ks",
    "time": "fo",
    "stdbuf": "ioe",
    "setsid": "",
    "command": "",
    "builtin": "",
    "exec": "a",
    "xargs": "aEILnPsd",
    "busybox": "",
}
SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash"))
TRUSTED_FOLDERS = ("/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/")
HARMLESS_VARIABLES = frozenset(("LC_ALL", "LANG", "TZ", "COLUMNS", "NO_COLOR", "TERM"))
DEEPEST = 4

Sensitive = Callable[[str], str]


class Commands:
    """Judges commands for one home folder. `sensitive(path)` says why reading a path needs a
    word, or nothing."""

    def __init__(self, home: str, sensitive: Sensitive) -> None:
        self._home = home
        self._sensitive = sensitive

    def judge(self, effect: RunCommand) -> Decision:
        return self._judge(effect.script, effect.cwd, 0)

    def _judge(self, script: str, cwd: str, depth: int) -> Decision:
        if depth > DEEPEST:
            return Ask(reason="It wraps commands too deeply to follow.", category="unclear")
        try:
            commands = parse(script, {"HOME": self._home, "PWD": cwd})
        except Unclear as unclear:
            if why := hardline.in_text(script):
                return _never(why)
            return Ask(
                reason=f"It uses {unclear}, so its effect is not certain.", category="unclear"
            )
        moved = False
        doubt: Ask | None = None
        for command in commands:
            decision = self._judge_one(command, cwd, depth)
            if isinstance(decision, Deny):
                return decision
            if isinstance(decision, Ask):
                doubt = doubt or decision
            if command.words[:1] == ("cd",):
                moved = True
                cwd = self._absolute(command.words[1] if len(command.words) > 1 else "~", cwd)
        return doubt or Allow(harmless=not moved, reason="It only reads.")

    def _judge_one(self, command: Simple, cwd: str, depth: int) -> Decision:
        words = command.words
        for redirect in command.redirects:
            if hardline.overwrites_disk(redirect.target):
                return _never("it overwrites a disk")
        words, odd = _without_assignments(words)
        if not words:
            return Ask(reason="It sets variables of the shell.", category="shell state")
        inner = _unwrapped(words)
        if inner is not None and (nested := self._judge_inner(inner, cwd, depth)):
            return nested
        bare = _bare_name(words)
        paths = tuple(self._absolute(word, cwd) for word in bare[1:] if not word.startswith("-"))
        if why := hardline.in_command(bare, paths, self._home):
            return _never(why)
        if odd or _writes(command):
            return Ask(
                reason=f"`{bare[0]}` writes a file or runs with changed variables.",
                category="write",
            )
        if bare[0] == "cd":
            return Allow()
        if "/" in bare[0] or not is_read_only(bare):
            return Ask(reason=f"`{bare[0]}` is not known to only read.", category="command")
        return self._reads(bare[0], paths)

    def _judge_inner(self, inner: tuple[str, ...] | str, cwd: str, depth: int) -> Decision | None:
        """A wrapped command is never less dangerous than it is alone, and never harmless."""
        script = inner if isinstance(inner, str) else _quoted(inner)
        decision = self._judge(script, cwd, depth + 1)
        return decision if isinstance(decision, Deny) else None

    def _reads(self, name: str, paths: tuple[str, ...]) -> Decision:
        if name in ("echo", "printf", "sleep", "seq", "expr", "test", "["):
            return Allow(harmless=True)
        for path in paths:
            # A link inside the workspace may lead to a credential outside of it.
            if why := self._sensitive(path) or self._sensitive(os.path.realpath(path)):
                return Ask(reason=why, category="credentials", scopes=("once",))
        return Allow(harmless=True)

    def _absolute(self, word: str, cwd: str) -> str:
        if word == "~" or word.startswith("~/"):
            word = self._home + word[1:]
        return posixpath.normpath(posixpath.join(cwd, word))


def _never(why: str) -> Deny:
    return Deny(reason=f"This is never run: {why}.", category="hardline", hardline=True)


def _without_assignments(words: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
    odd = False
    while words and "=" in words[0] and words[0].partition("=")[0].isidentifier():
        odd = odd or words[0].partition("=")[0] not in HARMLESS_VARIABLES
        words = words[1:]
    return words, odd


def _writes(command: Simple) -> bool:
    return any(
        ">" in each.operator
        and not each.target.startswith("&")
        and each.target not in ("/dev/null", "/dev/stdout", "/dev/stderr")
        for each in command.redirects
    )


def _bare_name(words: tuple[str, ...]) -> tuple[str, ...]:
    """/usr/bin/ls is ls; a program from any other folder keeps its path."""
    for folder in TRUSTED_FOLDERS:
        if words[0].startswith(folder) and "/" not in words[0].removeprefix(folder):
            return (words[0].removeprefix(folder), *words[1:])
    return words


def _unwrapped(words: tuple[str, ...]) -> tuple[str, ...] | str | None:
    """The command inside a wrapper, the script given to a shell, or None."""
    name, *rest = _bare_name(words)
    if name in SHELLS or name == "eval":
        return _shell_payload(name, rest)
    takes_value = WRAPPERS.get(name)
    if takes_value is None:
        return None
    while rest:
        first = rest[0]
        if first.startswith("-") and first != "-":
            value = len(first) == 2 and first[1] in takes_value
            del rest[: 2 if value else 1]
        elif "=" in first or (name in ("timeout", "nice") and first[:1].isdigit()):
            del rest[:1]
        else:
            return tuple(rest)
    return None


def _shell_payload(name: str, rest: list[str]) -> str | None:
    if name == "eval":
        return " ".join(rest)
    for index, word in enumerate(rest):
        if word.startswith("-") and "c" in word and not word.startswith("--"):
            return rest[index + 1] if index + 1 < len(rest) else None
    return None


def _quoted(words: tuple[str, ...]) -> str:
    # Patterns and the home sign keep their meaning; everything else is taken literally.
    return " ".join(
        word if _plain(word) else "'" + word.replace("'", "'\\''") + "'" for word in words
    )


def _plain(word: str) -> bool:
    return bool(word) and all(c.isalnum() or c in "/._-~*?=+,:@%" for c in word)
