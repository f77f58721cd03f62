"""The state that a shell passes to the next command: folder, variables, functions and aliases."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value
from hermes.codec.whole_files import replace_file
from hermes.workspaces.bash_text import STATUS

# Bash maintains these itself; they do not show what a command changed.
_BOOKKEEPING = frozenset(("_", "SHLVL", "PWD", STATUS))

_EXPORT = re.compile(rb"(?:declare -[A-Za-z-]+|export) ([A-Za-z_]\w*)=(.*)")
_DOUBLE_QUOTED = re.compile(rb"\\([\"$`\\])")
_ANSI_QUOTED = re.compile(rb"\\([0-7]{1,3}|x[0-9A-Fa-f]{1,2}|.)", re.DOTALL)
_ANSI_LETTERS = {
    b"a": b"\a", b"b": b"\b", b"e": b"\x1b", b"E": b"\x1b", b"f": b"\f",
    b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v",
}  # fmt: skip


class ShellState(Value):
    """Variables are stored as a difference to the start environment, so that a resumed session sees
    the current environment. `definitions` is bash; `own` are those from the start files."""

    cwd: str
    changed: dict[str, str] = {}
    removed: tuple[str, ...] = ()
    definitions: str = ""
    own: str = ""

    def environment(self, start: Mapping[str, str]) -> dict[str, str]:
        return {k: v for k, v in start.items() if k not in self.removed} | self.changed


class ShellSnapshot(Value):
    """What one command left: its folder, exported variables, functions and aliases."""

    cwd: str
    exports: dict[str, str]
    definitions: str


class SnapshotReader:
    """Reads aftermaths. Most commands export the same variables as the one before; those are not
    parsed again."""

    def __init__(self) -> None:
        self._raw = b""
        self._exports: dict[str, str] = {}

    def take(self, path: Path) -> ShellSnapshot | None:
        """Read and remove the note; None when the command was killed or replaced its shell. The
        script file of a very long command is removed too."""
        path.with_suffix(".sh").unlink(missing_ok=True)
        try:
            raw = path.read_bytes()
            path.unlink()
        except FileNotFoundError:
            return None
        return self.read(raw)

    def read(self, raw: bytes) -> ShellSnapshot | None:
        """Return None for an incomplete note."""
        parts = raw.split(b"\0")
        if len(parts) != 4 or parts[3] != b".":
            return None
        cwd, exports, definitions, _ = parts
        if exports != self._raw:
            self._raw, self._exports = exports, parse_exports(exports)
        return ShellSnapshot(
            cwd=os.fsdecode(cwd.removesuffix(b"\n")),
            exports=self._exports,
            definitions=os.fsdecode(definitions),
        )


def parse_exports(exports: bytes) -> dict[str, str]:
    """Parse the output of `export -p`: one variable per line, whatever its value contains."""
    found = {}
    for line in exports.split(b"\n"):
        if (match := _EXPORT.fullmatch(line)) and (name := match[1].decode()) not in _BOOKKEEPING:
            found[name] = os.fsdecode(_unquote(match[2]))
    return found


def _unquote(word: bytes) -> bytes:
    if word.startswith(b"$'"):
        return _ANSI_QUOTED.sub(_ansi_byte, word[2:-1])
    if word.startswith(b'"'):
        return _DOUBLE_QUOTED.sub(rb"\1", word[1:-1])
    return word


def _ansi_byte(match: re.Match[bytes]) -> bytes:
    code = match[1]
    if code[:1].isdigit():
        return bytes((int(code, 8) & 0xFF,))
    if code[:1] == b"x" and len(code) > 1:
        return bytes((int(code[1:], 16),))
    return _ANSI_LETTERS.get(code, code)


def merge_states(
    now: ShellState, before: ShellState, after: ShellSnapshot, *, cwd: str, start: Mapping[str, str]
) -> ShellState:
    """Merge into `now` what a command changed that began in `cwd` with the state `before`. Commands
    may overlap: one that changed nothing undoes nothing of the others."""
    old = before.environment(start)
    set_now = {k: v for k, v in after.exports.items() if old.get(k) != v}
    unset_now = {k for k in old if k not in after.exports and k not in _BOOKKEEPING}
    changed = {k: v for k, v in {**now.changed, **set_now}.items() if k not in unset_now}
    redefined = after.definitions != before.definitions
    return ShellState(
        cwd=after.cwd if after.cwd and after.cwd != cwd else now.cwd,
        changed={k: v for k, v in changed.items() if start.get(k) != v},
        removed=tuple(sorted(({*now.removed} | unset_now & start.keys()) - changed.keys())),
        definitions=after.definitions if redefined else now.definitions,
        own=now.own,
    )


def load_state(path: Path) -> ShellState | None:
    try:
        return decode(ShellState, path.read_bytes())
    except (FileNotFoundError, DecodeError):
        return None


def save_state(path: Path, state: ShellState) -> None:
    """A state with a name or value that is not UTF-8 cannot be written and stays in memory."""
    with contextlib.suppress(UnicodeEncodeError):
        replace_file(path, encode(state), durable=False, folders=False)
