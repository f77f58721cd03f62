"""All that is known about programs, by name."""

from __future__ import annotations

import re

from hermes.policy.call import Call, Check
from hermes.policy.patterns import regex
from hermes.policy.programs.archives import ARCHIVES
from hermes.policy.programs.building import BUILDING
from hermes.policy.programs.builtins import BUILTINS
from hermes.policy.programs.databases import DATABASES
from hermes.policy.programs.environments import CHOOSERS, choosing
from hermes.policy.programs.files import FILES
from hermes.policy.programs.filters import FILTERS
from hermes.policy.programs.git import check_git
from hermes.policy.programs.interpreters import INTERPRETERS
from hermes.policy.programs.launchers import LAUNCHERS
from hermes.policy.programs.machine import MACHINE
from hermes.policy.programs.network import NETWORK
from hermes.policy.programs.packages import PACKAGES, installed
from hermes.policy.programs.platforms import PLATFORMS
from hermes.policy.programs.processes import PROCESSES
from hermes.policy.programs.running import check_path_program, check_shell
from hermes.policy.programs.services import SERVICES
from hermes.policy.programs.setting_up import PRINTING, prints_setup, setting_up
from hermes.policy.programs.toolchains import TOOLCHAINS
from hermes.policy.programs.windows import LOOKING_VERBS, WINDOWS, check_shows, check_windows
from hermes.policy.programs.wrappers import WRAPPERS
from hermes.policy.shell.state import NOTHING, Stream

SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "csh", "tcsh", "rbash", "mksh", "yash")
RUN_BY_WRAPPERS = frozenset(
    (*SHELLS, "rm", "dd", "find", "chmod", "chown", "mv", "shred", "sudo", "env", "xargs", "eval")
)
# Names of tools for another machine begin with the name of that machine.
CROSS = regex(r"^(arm|aarch64|avr|riscv\d*|x86_64|i[3-6]86|mips\w*|powerpc\w*|xtensa|llvm|sparc)-")
TARGETED = frozenset(
    "gcc g++ cc c++ clang ld as ar nm size objdump objcopy readelf strip strings addr2line".split()
)
ONLY_TELLING = (["--version"], ["--help"], ["-V"], ["-version"], ["-h"])


def _unknown(call: Call) -> Stream | None:
    """A program that no table names."""
    lower = call.name.lower()
    if lower != call.name and lower in WINDOWS:
        return check_windows(call)
    if LOOKING_VERBS.match(call.name) and "-" in call.name:
        return check_shows(call)
    asked = call.arguments[-1:] == ["--help"] and len(call.arguments) < 5
    if asked or call.arguments in ONLY_TELLING:
        call.work(reason="It tells about itself.")
    elif call.name in REHEARSING and any(map(REHEARSAL.fullmatch, call.arguments)):
        call.work("network", "It only shows what it would do.")
    elif words := _sibling(call):
        return call.runs(words)
    elif installed(call, call.name):
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
    crossed = CROSS.match(call.name) and last in TARGETED
    name = last if crossed else plain
    longer = name != call.name and len(name) > 2
    return [name, *call.arguments] if longer and call.follower.knows(name) else []


def _perhaps_wrapper(call: Call) -> None:
    """What is not known may run another command, so the worst of that counts too."""
    if words := _wrapped(call):
        call.runs(words)


def _wrapped(call: Call) -> list[str]:
    """A command among the words of another one: behind `--`, or one that others often run."""
    behind = call.arguments[call.arguments.index("--") + 1 :] if "--" in call.arguments else []
    if behind and call.follower.knows(behind[0].rpartition("/")[2]):
        return behind
    for place, word in enumerate(call.arguments[:6]):
        if word.rpartition("/")[2] in RUN_BY_WRAPPERS:
            return call.arguments[place:]
    return []


# Their dry runs are what they say. An option with this name means nothing to others.
REHEARSING = frozenset(
    """
    npm pnpm yarn bun cargo helm kubectl oc aws poetry uv deno restic borg rclone apt apt-get
    aptitude zypper brew conda mamba composer wrangler firebase eksctl istioctl semantic-release
    changeset release-it standard-version docker podman docker-compose mix velero kopia s5cmd jsr
    """.split()
)
REHEARSAL = regex(r"--dry-?run(=(client|server|true|all))?")


def _telling(check: Check, *, words: bool = False) -> Check:
    """Any program that is only asked about itself does nothing else; most with `words`, the
    subcommands it is asked about, too."""

    def asked(call: Call) -> Stream | None:
        if call.arguments in (["--version"], ["--help"]):
            return None
        if prints_setup(call):
            return NOTHING
        last = call.arguments[-1:] in (["--help"], ["-h"]) and 1 < len(call.arguments) < 5
        if call.name in REHEARSING and any(map(REHEARSAL.fullmatch, call.arguments)):
            call.work("network", "It only shows what it would do.")
            return None
        if words and last and all(re.fullmatch(r"[\w:-]+", word) for word in call.arguments):
            return None
        return check(call)

    return asked


def catalogue() -> dict[str, Check]:
    """Programs by name; "" is for names that are not known, "/" for programs by path."""
    tables = (
        WINDOWS,
        MACHINE,
        BUILDING,
        SERVICES,
        PLATFORMS,
        PACKAGES,
        TOOLCHAINS,
        PROCESSES,
        DATABASES,
        NETWORK,
        ARCHIVES,
        FILTERS,
        FILES,
        INTERPRETERS,
        WRAPPERS,
        LAUNCHERS,
    )
    programs: dict[str, Check] = {}
    for table in tables:
        words = table not in (FILES, INTERPRETERS, WRAPPERS, LAUNCHERS, WINDOWS)
        programs.update({name: _telling(check, words=words) for name, check in table.items()})
    programs.update(BUILTINS)
    programs.update(dict.fromkeys(SHELLS, _telling(check_shell)))
    programs["git"] = _telling(check_git)
    for name in PRINTING:
        programs[name] = setting_up(programs.get(name, _unknown))
    for name in CHOOSERS:
        programs[name] = choosing(programs.get(name, _unknown))
    programs[""] = _unknown
    programs["/"] = check_path_program
    return programs
