"""Checks a call by the record of its program."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module

from hermes.policy.call import Call, Check, Options
from hermes.policy.patterns import load_regex, regex
from hermes.policy.programs.records import Runs, flagged, is_known, record_of
from hermes.policy.programs.running import check_path_program, is_project_tool
from hermes.policy.programs.steps import apply_steps
from hermes.policy.shell.state import NOTHING, Stream

READING_CMDLET = load_regex("reading_cmdlet")


def follow_chosen_command(call: Call, runs: Runs) -> bool:
    """Follow the command that the call runs, if `runs` of its record says so; return whether it
    does."""
    verb = (call.options(runs.values, permute=False).operands or [""])[0]
    if not verb or verb not in runs.verbs.split():
        return False
    words = call.arguments[call.arguments.index(verb) + 1 :]
    text = Options(words, runs.values).value("-c", "--command") if runs.marked else None
    if text is not None:
        call.runs_text(text)
        return True
    inner = [] if runs.marked else _command(words, runs)
    if "--" in words and not inner:
        at = words.index("--")
        # `proto run node -- -e …`: the words behind `--` are for the named program.
        named = words[:at][:1] if verb == "run" and runs.named else []
        inner = [*named, *words[at + 1 :]]
    call.work(reason=f"`{call.name} {verb}` works in the project.")
    if inner and not (runs.script and not is_known(inner[0])):
        call.runs(["python", *inner] if inner[0].endswith(".py") else inner)
    return True


def _command(words: list[str], chooser: Runs) -> list[str]:
    operands = Options(words, chooser.values, permute=False).operands
    if chooser.named and operands and not operands[0][:1].isdigit() and operands[0][:1] != "v":
        # Without a version, the project's version is meant.
        return operands
    return operands[chooser.named :]


SHELL = r"(bash|zsh|fish|sh|posix|dash|ksh|-)"
COMPLETING = frozenset(("completion", "completions", "generate-shell-completion", "shell-init"))


def prints_shell_setup(call: Call) -> bool:
    words = call.arguments
    setup = call.record.setup
    if setup and re.fullmatch(setup.replace("SHELL", SHELL), " ".join(words)):
        return True
    if not words or words[0] not in COMPLETING or not is_known(call.name):
        return False
    return len(words) == 1 or bool(re.fullmatch(rf"(-s|--shell)?=?\s*{SHELL}", " ".join(words[1:])))


REHEARSAL = regex(r"--dry-?run(=(client|server|true|all))?")


@cache
def _check(name: str) -> Check:
    module, _, function = name.partition(".")
    found: Check = getattr(import_module(f"hermes.policy.programs.{module}"), f"check_{function}")
    return found


def check_call(call: Call) -> Stream | None:
    """Check a call by the record of its program."""
    if "/" in call.name:
        return check_path_program(call)
    record = call.record
    if record.runs is not None and follow_chosen_command(call, record.runs):
        return None
    if "builtin" in record.flags:
        return apply_record(call)
    if record.setup and prints_shell_setup(call):
        call.work(reason="It starts a login shell.")
        return NOTHING
    if not record.check:
        return check_unknown(call)
    if _tells_about_itself(call):
        return None
    if prints_shell_setup(call):
        return NOTHING
    if is_dry_run(call):
        call.work("network", "It is a dry run.")
        return None
    return apply_record(call)


def apply_record(call: Call) -> Stream | None:
    """Apply the steps of the record, and then its check."""
    record = call.record
    if record.steps or record.check == "steps":
        done, output = apply_steps(call)
        if done or record.check == "steps":
            return output
    return _check(record.check)(call)


def _tells_about_itself(call: Call) -> bool:
    words = call.arguments
    if words in (["--version"], ["--help"]):
        return True
    if (
        "no_help" in call.record.flags
        or not 1 < len(words) < 5
        or words[-1] not in ("--help", "-h")
    ):
        return False
    return all(re.fullmatch(r"[\w:-]+", word) for word in words)


def is_dry_run(call: Call) -> bool:
    """Whether an option asks for a dry run. Only programs with the flag know such an option."""
    return "dry_run" in call.record.flags and any(map(REHEARSAL.fullmatch, call.arguments))


SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "csh", "tcsh", "rbash", "mksh", "yash")
RUN_BY_WRAPPERS = frozenset(
    (*SHELLS, "rm", "dd", "find", "chmod", "chown", "mv", "shred", "sudo", "env", "xargs", "eval")
)
# Cross tools begin with the name of their target.
CROSS = regex(r"^(arm|aarch64|avr|riscv\d*|x86_64|i[3-6]86|mips\w*|powerpc\w*|xtensa|llvm|sparc)-")
ONLY_TELLING = (
    *(["--version"], ["--help"], ["-V"], ["-version"], ["-h"]),
    *(["-help"], ["-?"]),
)


def check_unknown(call: Call) -> Stream | None:
    """Check a program without a record."""
    lower = call.name.lower()
    if lower != call.name and record_of(lower).check == "windows.windows":
        return _check("windows.windows")(call)
    if READING_CMDLET.match(call.name):
        call.reads(*(word for word in call.arguments if not word.startswith("-")))
        call.work(reason="It only looks.")
        return None
    asked = call.arguments[-1:] == ["--help"] and len(call.arguments) < 5
    if asked or call.arguments in ONLY_TELLING:
        call.work(reason="It tells about itself.")
    elif is_dry_run(call):
        call.work("network", "It is a dry run.")
    elif words := _find_sibling(call):
        return call.runs(words)
    elif is_project_tool(call, call.name):
        call.work(reason=f"It runs {call.name}, a tool of the project.")
        call.reads(*(word for word in call.arguments if word[:1] in "/~."))
    elif call.name.startswith(("mkfs", "mkfs.")):
        call.never("disk", "it formats a disk")
    else:
        call.unknown(f"Nothing is known about `{call.name}`")
        if words := _find_inner_command(call):
            call.runs(words)
    return None


def _find_sibling(call: Call) -> list[str]:
    """Find a known program under a longer name: gcc-13, curl.exe, arm-none-eabi-objdump."""
    plain = re.sub(r"(\.exe|-?\d+(\.\d+)*)$", "", call.name, flags=re.IGNORECASE)
    last = call.name.rpartition("-")[2]
    crossed = CROSS.match(call.name) and last in flagged("cross")
    name = last if crossed else plain
    longer = name != call.name and len(name) > 2
    return [name, *call.arguments] if longer and is_known(name) else []


def _find_inner_command(call: Call) -> list[str]:
    """Find a command among the arguments: behind `--`, or one that wrappers often run."""
    behind = call.arguments[call.arguments.index("--") + 1 :] if "--" in call.arguments else []
    if behind and is_known(behind[0].rpartition("/")[2]):
        return behind
    for place, word in enumerate(call.arguments[:6]):
        if word.rpartition("/")[2] in RUN_BY_WRAPPERS:
            return call.arguments[place:]
    return []
