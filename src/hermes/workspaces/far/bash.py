"""The bash code that runs on a remote machine."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.workspaces.bash_text import is_name, shell_quote
from hermes.workspaces.child import PASSWORD_FD
from hermes.workspaces.far.calls import report_code
from hermes.workspaces.shell_state import ShellState

_LONGEST_ARGUMENT = 100_000
# Secrets travel under unique names, so that they are in the environment of a command and never in
# the arguments of a process or in a file.
_LENT = "__lent_"
_TAKE_LENT = (
    f'for __n in "${{!{_LENT}@}}"; do export "${{__n#{_LENT}}}=${{!__n}}"; unset "$__n"; done; '
)

# A folder of this session that nobody else can have prepared.
HOME_FOLDER = (
    '__base="${HOME:-/}/.cache/hermes/far"; builtin umask 077; '
    'mkdir -p "$__base" 2>/dev/null || { __base="/tmp/hermes-far-$UID"; mkdir -p "$__base"; '
    "[[ -O $__base ]] || builtin exit 9; }; "
)

# An ended process may stay in the process table until it is reaped.
ALIVE = """__alive() {
  local line
  { IFS= read -r line </proc/$1/stat; } 2>/dev/null || return 1
  line=${line##*) }
  [[ $line != [ZX]* ]]
}
"""
# Everything that belongs to a process: its group, its session and whatever these started.
_TREE = """__tree() {
  local root=$1 again=1 file line pid fields
  __found=([$root]=1)
  while ((again)); do
    again=0
    for file in /proc/[0-9]*/stat; do
      { IFS= read -r line <"$file"; } 2>/dev/null || continue
      pid=${line%% *} fields=(${line##*) })
      [[ ${fields[0]} == [ZX] || ${__found[$pid]} || $pid == $$ || $pid == 1 ]] && continue
      if [[ ${__found[${fields[1]}]} || ${fields[2]} == $root || ${fields[3]} == $root ]]; then
        __found[$pid]=1 again=1
      fi
    done
  done
}
__living() {
  local pid
  for pid in "${!__found[@]}"; do __alive $pid && return; done
  return 1
}
"""
# The start time of a process on this boot tells it from a later one with its pid.
IDENTITY = """__identity() {
  local line fields
  { IFS= read -r line </proc/$1/stat; } 2>/dev/null || return 1
  fields=(${line##*) })
  { IFS= read -r __boot </proc/sys/kernel/random/boot_id; } 2>/dev/null
  __who="$__boot:${fields[19]}"
}
"""


def end_tree_code(pid: int, *, grace_seconds: float, identity: str = "") -> str:
    """Terminate a tree, then kill it; no effect if the pid belongs to another process by now."""
    check = ""
    if identity:
        check = f"__identity {pid} && [[ $__who == {shell_quote(identity)} ]] || builtin exit 3; "
    rounds = round(grace_seconds / 0.02)
    return f"""{IDENTITY}{ALIVE}{_TREE}{check}declare -a __found; __tree {pid}
builtin kill -TERM -- -{pid} "${{!__found[@]}}" 2>/dev/null
for ((__n = 0; __n < {rounds}; __n++)); do __living || break; sleep 0.02; done
for __n in 1 2 3; do
  builtin kill -KILL -- -{pid} "${{!__found[@]}}" 2>/dev/null
  __living || break
  sleep 0.02; __tree {pid}
done
true"""


def restore_variables_code(start: Mapping[str, str]) -> str:
    """Return bash that makes the environment exactly this one."""
    kept = "".join(f"export {name}={shell_quote(value)}\n" for name, value in start.items())
    spared = f'[[ $__n == {_LENT}* ]] || unset "$__n"'
    return f"for __n in $(compgen -e); do {spared}; done 2>/dev/null\n{kept}"


def pass_secrets_code(values: Mapping[str, str]) -> str:
    """Return bash that passes these variables to whatever it starts; `variables` reads them
    there."""
    return "".join(
        f"export {_LENT}{name}={shell_quote(value)}; "
        for name, value in values.items()
        if is_name(name)
    )


def set_variables_code(state: ShellState, file: str) -> str:
    """Return bash that replaces the remote environment, by way of `file`, with the session's
    variables and secrets."""
    unset = "".join(f"unset {name}; " for name in state.removed)
    changed = (f"export {name}={shell_quote(value)}; " for name, value in state.changed.items())
    return f"builtin . {shell_quote(file)}; {unset}{''.join(changed)}{_TAKE_LENT}"


def supervise_code(
    line: str, cwd: str, note: str, mark: str, *, pty: bool, secret_env: Mapping[str, str]
) -> str:
    """Run a line in its own process group and report on the side channel: its pid at once, at the
    end the content of the file `note`, and last its exit code, marked when leftovers still run. Job
    messages of bash itself are dropped."""
    word, prepare = shell_quote(line), ""
    if len(line) > _LONGEST_ARGUMENT:
        file = shell_quote(f"{note}.sh")
        word, prepare = (
            shell_quote(f"builtin . {file}"),
            f"builtin printf %s {shell_quote(line)} >{file}; ",
        )
    inner = f"bash --norc --noprofile -c {word}"
    command = terminal_code(inner) if pty else f"{inner} </dev/null"
    nowhere = report_code(mark, "nowhere 1 0", out=4, side=3)
    return f"""exec 3>&2 4>&1 2>&1
builtin cd -- {shell_quote(cwd)} 2>/dev/null || {{ {nowhere}; builtin exit; }}
{prepare}{pass_secrets_code(secret_env)}set -m
exec >/dev/null 2>&1
{command} {PASSWORD_FD}<&0 >&4 2>&1 3>&- 4>&- &
__pid=$!
builtin printf 'pid %s ;\\n' $__pid >&3
exec </dev/null
builtin wait $__pid; __code=$?
builtin kill -0 -- -$__pid && __left=1
cat {shell_quote(note)} >&3; rm -f {shell_quote(note)} {shell_quote(note)}.sh
{report_code(mark, "ended $__code ${__left:-0}", out=4, side=3)}"""


def terminal_code(inner: str) -> str:
    """Return a line that runs on a pseudo-terminal with end-of-file at once, or when its input
    ends."""
    shell = 'SHELL="$(type -P bash)"'
    settings = "stty cols 120 rows 40 2>/dev/null; "
    line = f"[[ ${{TERM:-dumb}} == dumb ]] && export TERM=xterm-256color; {settings}exec {inner}"
    return f"{shell} script -qefc {shell_quote(line)} /dev/null </dev/null"
