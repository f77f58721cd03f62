"""Judges programs that no record names."""

from __future__ import annotations

import re

from hermes.policy.call import Call
from hermes.policy.patterns import regex
from hermes.policy.programs.catalogue import is_dry_run
from hermes.policy.programs.records import flagged, record_of
from hermes.policy.programs.running import is_project_tool
from hermes.policy.programs.windows import LOOKING_VERBS, check_shows, check_windows
from hermes.policy.shell.state import Stream

SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "csh", "tcsh", "rbash", "mksh", "yash")
RUN_BY_WRAPPERS = frozenset(
    (*SHELLS, "rm", "dd", "find", "chmod", "chown", "mv", "shred", "sudo", "env", "xargs", "eval")
)
# Cross tools begin with the name of their target.
CROSS = regex(r"^(arm|aarch64|avr|riscv\d*|x86_64|i[3-6]86|mips\w*|powerpc\w*|xtensa|llvm|sparc)-")
ONLY_TELLING = (["--version"], ["--help"], ["-V"], ["-version"], ["-h"])


def check_unknown(call: Call) -> Stream | None:
    """A program without a record."""
    lower = call.name.lower()
    if lower != call.name and record_of(lower).check == "windows.windows":
        return check_windows(call)
    if LOOKING_VERBS.match(call.name) and "-" in call.name:
        return check_shows(call)
    asked = call.arguments[-1:] == ["--help"] and len(call.arguments) < 5
    if asked or call.arguments in ONLY_TELLING:
        call.work(reason="It tells about itself.")
    elif is_dry_run(call):
        call.work("network", "It only shows what it would do.")
    elif words := _sibling(call):
        return call.runs(words)
    elif is_project_tool(call, call.name):
        call.work(reason=f"It runs {call.name}, a tool of the project.")
        call.reads(*(word for word in call.arguments if word[:1] in "/~."))
    elif call.name.startswith(("mkfs", "mkfs.")):
        call.never("disk", "it formats a disk")
    else:
        call.unknown(f"Nothing is known about `{call.name}`")
        _perhaps_wrapper(call)
    return None


def _sibling(call: Call) -> list[str]:
    """A known program under a longer name: gcc-13, curl.exe, arm-none-eabi-objdump."""
    plain = re.sub(r"(\.exe|-?\d+(\.\d+)*)$", "", call.name, flags=re.IGNORECASE)
    last = call.name.rpartition("-")[2]
    crossed = CROSS.match(call.name) and last in flagged("cross")
    name = last if crossed else plain
    longer = name != call.name and len(name) > 2
    return [name, *call.arguments] if longer and call.follower.knows(name) else []


def _perhaps_wrapper(call: Call) -> None:
    """Follows the command that an unknown program may run."""
    if words := _wrapped(call):
        call.runs(words)


def _wrapped(call: Call) -> list[str]:
    """A command among the arguments: behind `--`, or one that wrappers often run."""
    behind = call.arguments[call.arguments.index("--") + 1 :] if "--" in call.arguments else []
    if behind and call.follower.knows(behind[0].rpartition("/")[2]):
        return behind
    for place, word in enumerate(call.arguments[:6]):
        if word.rpartition("/")[2] in RUN_BY_WRAPPERS:
            return call.arguments[place:]
    return []
