"""The bash that is put around a command: where it starts, and what it leaves for the next one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

# The kernel takes no single argument of 128 KiB or more.
MAX_ARGUMENT_BYTES = 120_000
STATUS = "__hermes_status"
# By these a shell runs something before the first word of its line.
_PASSED_ON, _LEFT_OUT = ("BASH_ENV", "ENV", "PS4"), ("SHELLOPTS", "BASHOPTS")


def quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def quoted_line(text: str) -> str:
    """Quoted without a line break, so that bash goes on counting lines from 1."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"$'{escaped}'"


def opening(cwd: str, old_cwd: str | None, definitions: str, preface: str = "") -> str:
    """Goes to the folder, with `cd -` still leading where it led, and defines what was defined."""
    back = f"={quoted(old_cwd)}" if old_cwd else ""
    line = f"builtin cd -- {quoted(cwd)} || exit 1; unset OLDPWD; export OLDPWD{back}; "
    line += f"{preface}shopt -s expand_aliases; "
    if definitions:
        line += f"builtin eval {quoted_line(definitions)}; "
        # What a shell does with unknown names is for people who mistype.
        line += "builtin unset -f command_not_found_handle; "
    return line


def given_inside(env: dict[str, str]) -> str:
    """Takes out of an environment what the shell around a command would obey itself, in whatever
    folder it begins and before it is confined; the bash that comes back gives it to the command."""
    for name in _LEFT_OUT:
        env.pop(name, None)
    return "".join(f"export {name}={quoted(env.pop(name))}; " for name in _PASSED_ON if name in env)


def is_name(word: str) -> bool:
    """Whether bash takes it for the name of a variable."""
    return word.isascii() and word.isidentifier()


def recorded(script: str, note: str, lent: Iterable[str] = ()) -> str:
    """Runs a script and writes what it leaves to the file `note`, but for the variables that it was
    lent. The trap covers `exit` and `set -e`; the words after the script cover scripts that set a
    trap of their own."""
    keep = _keeping(note, [name for name in lent if is_name(name)])
    once = quoted(f"[[ -s {quoted(note)} ]] || {keep}")
    return (
        f"builtin trap {once} EXIT; builtin eval {quoted(script)}\n"
        f"{{ {STATUS}=$?; {keep}; builtin set +x; }} 2>/dev/null; builtin exit ${STATUS}"
    )


def _keeping(note: str, lent: Sequence[str]) -> str:
    """Nothing but builtins, so it costs no process unless something is lent. The last byte proves
    that it is complete; traces of `set -x` go nowhere, and `set -o noclobber` is outvoted."""
    zero = r'builtin printf "\0"'
    exports = "builtin export -p"
    if lent:
        exports = f"( builtin export -n {' '.join(lent)}; {exports} )"
    parts = (
        f"builtin pwd -P; {zero}; {exports}; {zero}; "
        f"builtin declare -f; builtin declare -Fx; builtin alias -p; {zero}; builtin printf ."
    )
    return f"{{ {parts}; }} >|{quoted(note)} 2>/dev/null"


def argument(line: str, file: Path) -> str:
    """The line itself, or one that reads it from `file` when it is too long for an argument."""
    raw = line.encode("utf-8", "surrogatepass")
    if len(raw) <= MAX_ARGUMENT_BYTES:
        return line
    file.write_bytes(raw)
    return f"builtin . {quoted(str(file))}"
