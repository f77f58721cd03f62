"""Bash that inspects and ends processes of a remote machine."""

from __future__ import annotations

from hermes.workspaces.shell_state import MARKER, shell_quote

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


def record_command_code(pid: str, file: str) -> str:
    """Return bash that records a command, so that `end_command_code` finds it."""
    return f'{IDENTITY}__identity {pid}; builtin echo {pid} "$__who" >{shell_quote(file)}'


def end_command_code(token: str, file: str = "/dev/null") -> str:
    """Return bash that kills every process of a command until none is left, and prints how many
    there were. They are known by the token in their environment, and, since a program may clear
    that, by the pid in `file`. A pid is not used again while its group has members."""
    quoted, entry = shell_quote(file), shell_quote(f"{MARKER}={token}")
    return f"""{IDENTITY}{ALIVE}{_TREE}declare -a __found __all __roots; __roots=(); __all=()
if {{ IFS=' ' read -r __pid __was <{quoted}; }} 2>/dev/null; then
  __identity $__pid || __who=$__was
  [[ $__who == "$__was" ]] && __roots=($__pid)
fi
for __n in {{1..20}}; do
  __now=()
  for __file in $(grep -lzxF -- {entry} /proc/[0-9]*/environ 2>/dev/null); do
    __file=${{__file#/proc/}}; __roots+=(${{__file%%/*}})
  done
  for __root in "${{__roots[@]}}"; do
    __tree $__root
    for __pid in "${{!__found[@]}}"; do __alive $__pid && __now+=($__pid) && __all[$__pid]=1; done
  done
  ((${{#__now[@]}})) || break
  builtin kill -STOP "${{__now[@]}}" 2>/dev/null
  builtin kill -KILL "${{__now[@]}}" 2>/dev/null
  sleep 0.02
done
[[ -f {quoted} ]] && rm -f {quoted}; builtin echo ${{#__all[@]}}"""
