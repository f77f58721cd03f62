"""The bash code around a command: where it starts, and what it passes on to the next command."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

# The kernel refuses a single argument of 128 KiB or more.
MAX_ARGUMENT_BYTES = 120_000
STATUS = "__hermes_status"
# Variables by which a shell runs code before the first word of its line.
_PASSED_ON, _LEFT_OUT = ("BASH_ENV", "ENV", "PS4"), ("SHELLOPTS", "BASHOPTS")


def shell_quote(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def shell_quote_line(text: str) -> str:
    """Quote without a line break, so that bash counts lines from 1."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"$'{escaped}'"


def start_code(cwd: str, old_cwd: str | None, definitions: str, preface: str = "") -> str:
    """Return bash that enters the folder, restores the target of `cd -` and the definitions."""
    back = f"={shell_quote(old_cwd)}" if old_cwd else ""
    line = f"builtin cd -- {shell_quote(cwd)} || exit 1; unset OLDPWD; export OLDPWD{back}; "
    line += f"{preface}shopt -s expand_aliases; "
    if definitions:
        line += f"builtin eval {shell_quote_line(definitions)}; "
        # A command_not_found handler is for people who mistype.
        line += "builtin unset -f command_not_found_handle; "
    return line


def pass_variables_inside(env: dict[str, str]) -> str:
    """Remove the variables that the shell around a command would obey itself, before the command is
    confined. Return bash that sets them for the command."""
    for name in _LEFT_OUT:
        env.pop(name, None)
    return "".join(
        f"export {name}={shell_quote(env.pop(name))}; " for name in _PASSED_ON if name in env
    )


def is_name(word: str) -> bool:
    return word.isascii() and word.isidentifier()


def record_state(script: str, note: str, secret_env: Iterable[str] = ()) -> str:
    """Run a script and write its final state to the file `note`, without the variables in
    `secret_env`. The trap covers `exit` and `set -e`; the code after the script covers scripts that
    set their own trap."""
    keep = _write_state(note, [name for name in secret_env if is_name(name)])
    once = shell_quote(f"[[ -s {shell_quote(note)} ]] || {keep}")
    return (
        f"builtin trap {once} EXIT; builtin eval {shell_quote(script)}\n"
        f"{{ {STATUS}=$?; {keep}; builtin set +x; }} 2>/dev/null; builtin exit ${STATUS}"
    )


def _write_state(note: str, secret_env: Sequence[str]) -> str:
    """Use only builtins, so that no process starts unless there are secrets. The last byte proves
    that the note is complete; `set -x` and `set -o noclobber` do not affect it."""
    zero = r'builtin printf "\0"'
    exports = "builtin export -p"
    if secret_env:
        exports = f"( builtin export -n {' '.join(secret_env)}; {exports} )"
    parts = (
        f"builtin pwd -P; {zero}; {exports}; {zero}; "
        f"builtin declare -f; builtin declare -Fx; builtin alias -p; {zero}; builtin printf ."
    )
    return f"{{ {parts}; }} >|{shell_quote(note)} 2>/dev/null"


def fit_argument(line: str, file: Path) -> str:
    """Return the line, or one that reads it from `file` when it is too long for an argument."""
    raw = line.encode("utf-8", "surrogatepass")
    if len(raw) <= MAX_ARGUMENT_BYTES:
        return line
    file.write_bytes(raw)
    return f"builtin . {shell_quote(str(file))}"
