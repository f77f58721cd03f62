"""The state that a shell passes to the next command, and the bash code that carries it."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from hermes.codec.atomic_files import replace_file
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value

# The kernel refuses a single argument of 128 KiB or more.
MAX_ARGUMENT_BYTES = 120_000
STATUS = "__hermes_status"
# Marks the processes of a foreground command.
MARKER = "HERMES_COMMAND"
# Variables by which a shell runs code before the first word of its line.
_PASSED_ON, _LEFT_OUT = ("BASH_ENV", "ENV", "PS4"), ("SHELLOPTS", "BASHOPTS")


def shell_quote(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def shell_quote_line(text: str) -> str:
    """Quote without a line break, so that bash counts lines from 1."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"$'{escaped}'"


def start_code(cwd: str, state: ShellState, preface: str = "") -> str:
    """Return bash that enters the folder, restores the target of `cd -` and the definitions."""
    old_cwd = state.changed.get("OLDPWD")
    back = f"={shell_quote(old_cwd)}" if old_cwd else ""
    line = f"builtin cd -- {shell_quote(cwd)} || exit 1; unset OLDPWD; export OLDPWD{back}; "
    line += f"{preface}shopt -s expand_aliases; "
    if state.definitions:
        line += f"builtin eval {shell_quote_line(state.definitions)}; "
        # A command_not_found handler is for people who mistype.
        line += "builtin unset -f command_not_found_handle; "
    return line


def pass_variables_inside(env: dict[str, str]) -> str:
    """Remove the variables that would affect the shell around a command, before the command is
    confined. Return bash that sets them for the command."""
    for name in _LEFT_OUT:
        env.pop(name, None)
    return "".join(
        f"export {name}={shell_quote(env.pop(name))}; " for name in _PASSED_ON if name in env
    )


def is_name(word: str) -> bool:
    return word.isascii() and word.isidentifier()


def record_state(script: str, note: str, secret_env: Iterable[str] = ()) -> str:
    """Return bash that runs a script and then writes the state of the shell to the file `note`,
    without the variables in `secret_env`. The trap covers `exit` and `set -e`; the code after the
    script covers scripts that set their own trap. Only builtins write, so that no process starts
    unless there are secrets. The last byte proves that the note is complete; `set -x` and
    `set -o noclobber` do not affect it."""
    zero, exports = r'builtin printf "\0"', "builtin export -p"
    if names := [name for name in secret_env if is_name(name)]:
        exports = f"( builtin export -n {' '.join(names)}; {exports} )"
    keep = (
        f"{{ builtin pwd -P; {zero}; {exports}; {zero}; "
        f"builtin declare -f; builtin declare -Fx; builtin alias -p; {zero}; builtin printf .; "
        f"}} >|{shell_quote(note)} 2>/dev/null"
    )
    once = shell_quote(f"[[ -s {shell_quote(note)} ]] || {keep}")
    return (
        f"builtin trap {once} EXIT; builtin eval {shell_quote(script)}\n"
        f"{{ {STATUS}=$?; {keep}; builtin set +x; }} 2>/dev/null; builtin exit ${STATUS}"
    )


def fit_argument(line: str, file: Path) -> str:
    """Return the line, or one that reads it from `file` when it is too long for an argument."""
    raw = line.encode("utf-8", "surrogatepass")
    if len(raw) <= MAX_ARGUMENT_BYTES:
        return line
    file.write_bytes(raw)
    return f"builtin . {shell_quote(str(file))}"


# Bash and the runner maintain these; they do not show what a command changed.
_BOOKKEEPING = frozenset(("_", "SHLVL", "PWD", STATUS, MARKER))

_EXPORT = re.compile(rb"(?:declare -[A-Za-z-]+|export) ([A-Za-z_]\w*)=(.*)")
_DOUBLE_QUOTED = re.compile(rb"\\([\"$`\\])")
_ANSI_QUOTED = re.compile(rb"\\([0-7]{1,3}|x[0-9A-Fa-f]{1,2}|.)", re.DOTALL)
_ANSI_LETTERS = {
    b"a": b"\a", b"b": b"\b", b"e": b"\x1b", b"E": b"\x1b", b"f": b"\f",
    b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v",
}  # fmt: skip


class ShellState(Value):
    """Variables are stored as differences from the start environment, so that a resumed session
    sees the current environment. `definitions` is bash code; `own` holds the definitions from the
    start files."""

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
    """Reads snapshots. Most commands export the same variables as the one before; those are not
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
    """Write the state. One with a name or value that is not UTF-8 cannot be written and stays in
    memory."""
    with contextlib.suppress(UnicodeEncodeError):
        replace_file(path, encode(state), durable=False, folders=False)
