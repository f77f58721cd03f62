"""Judges a call by the record of its program."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module

from hermes.policy.call import Call, Check, Options
from hermes.policy.patterns import regex
from hermes.policy.programs.records import Runs, Step, flagged, record_of
from hermes.policy.programs.running import check_path_program, is_project_tool
from hermes.policy.shell.state import ANYTHING, NOTHING, SOME, UNKNOWN, Stream

# A cmdlet of PowerShell that only reads.
READING_CMDLET = regex(
    r"(?i)^(get|select|sort|where|measure|test|format|convertto|convertfrom|compare|show|find|group"
    r"|resolve|split|join|out|write|import|tee)-(?!credential|clipboard|secret|file$|printer$)[a-z]+$"
    r"|^invoke-(pester|scriptanalyzer)$"
)


def follow_chosen_command(call: Call) -> bool:
    """Whether the call runs another command by its record's `runs`; it is followed then."""
    runs = call.record.runs
    if runs is None:
        return False
    verb = (call.options(runs.values, permute=False).operands or [""])[0]
    if not verb or verb not in runs.verbs.split():
        return False
    _follow(call, runs, verb)
    return True


def _follow(call: Call, chooser: Runs, verb: str) -> None:
    words = call.arguments[call.arguments.index(verb) + 1 :]
    if chooser.marked:
        for text in Options(words, chooser.values).values("-c", "--command"):
            call.runs_text(text)
            return
    if "--" in words and (chooser.marked or not _command(words, chooser)):
        at = words.index("--")
        inner = words[at + 1 :]
        if verb == "run" and chooser.named:
            # `proto run node -- -e …`: the words behind `--` are for the named program.
            inner = [*words[:at][:1], *inner]
    else:
        inner = [] if chooser.marked else _command(words, chooser)
    call.work(reason=f"`{call.name} {verb}` works in the project.")
    if not inner or (chooser.script and not call.follower.knows(inner[0])):
        return
    call.runs(inner)


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
    if not words or words[0] not in COMPLETING or not call.follower.knows(call.name):
        return False
    return len(words) == 1 or bool(re.fullmatch(rf"(-s|--shell)?=?\s*{SHELL}", " ".join(words[1:])))


REHEARSAL = regex(r"--dry-?run(=(client|server|true|all))?")


@cache
def _check(name: str) -> Check:
    module, _, function = name.partition(".")
    found: Check = getattr(import_module(f"hermes.policy.programs.{module}"), f"check_{function}")
    return found


def judge(call: Call) -> Stream | None:
    """Judges one call by the record of its program."""
    if "/" in call.name:
        return check_path_program(call)
    record = call.record
    if record.runs is not None and follow_chosen_command(call):
        return None
    if "builtin" in record.flags:
        return judge_record(call)
    if record.setup and prints_shell_setup(call):
        call.work(reason="It sets up the shell as logging in does.")
        return NOTHING
    if not record.check:
        return check_unknown(call)
    if _tells_about_itself(call):
        return None
    if prints_shell_setup(call):
        return NOTHING
    if is_dry_run(call):
        call.work("network", "It only shows what it would do.")
        return None
    return judge_record(call)


def judge_record(call: Call) -> Stream | None:
    """Applies the steps of the record, and then its check."""
    if call.record.steps and apply_steps(call):
        return None
    return _check(call.record.check)(call)


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
    """Only programs with the flag know such an option."""
    return "dry_run" in call.record.flags and any(map(REHEARSAL.fullmatch, call.arguments))


_SLICE = re.compile(r"(-?\d*)(:?)(-?\d*)")


def check_steps(call: Call) -> Stream | None:
    """The check of records that need only steps; returns the record's output."""
    match call.record.output:
        case "some":
            return Stream(text=SOME)
        case "file":
            return Stream(text=UNKNOWN, origin="file")
        case "same":
            return Stream(text=UNKNOWN, origin=call.stdin.origin)
        case "environment":
            return Stream(origin="environment")
        case "nothing":
            return NOTHING
        case "anything":
            return ANYTHING
    return None


def apply_steps(call: Call) -> bool:
    """Applies the steps of the record. True when a step with `stop` applied."""
    options = call.options(call.record.values, permute=not call.record.command)
    for step in call.record.steps:
        if _holds(step, call, options):
            _apply(step, call, options)
            if step.stop:
                return True
    return False


def _holds(step: Step, call: Call, options: Options) -> bool:
    words = options.operands
    if step.options and not options.has(*step.options.split()):
        return False
    if step.without and options.has(*step.without.split()):
        return False
    if step.verbs and not _verbs(words) & set(step.verbs.split()):
        return False
    if step.any and not set(step.any.split()) & set(call.arguments):
        return False
    if step.none and set(step.none.split()) & set(call.arguments):
        return False
    if len(words) < step.least or (step.below and len(words) >= step.below):
        return False
    if step.here and not (words and all(map(call.here, words))):
        return False
    if step.word and not _matching(step.word, call.arguments):
        return False
    if step.operand and not _matching(step.operand, words):
        return False
    if step.operands and not (words and all(re.fullmatch(step.operands, each) for each in words)):
        return False
    return not step.text or re.search(step.text, " ".join(call.arguments)) is not None


def _verbs(words: list[str]) -> set[str]:
    return {":".join(words[:count]) for count in (1, 2, 3) if len(words) >= count}


def _matching(pattern: str, words: list[str]) -> str:
    return next((word for word in words if re.fullmatch(pattern, word)), "")


def _apply(step: Step, call: Call, options: Options) -> None:
    word = _matching(step.word, call.arguments) if step.word else ""
    reason = step.reason.replace("{name}", call.name).replace("{word}", word)
    call.reads(*_select(step.reads, call, options))
    call.reads_all(*_select(step.reads_all, call, options))
    call.writes(*_select(step.writes, call, options))
    call.deletes(*_select(step.deletes, call, options), recursive=True)
    if step.ask:
        call.ask(step.ask, reason)
    if step.never:
        call.never(step.never, reason)
    if step.work is not None:
        call.work(step.work, reason)
    for script in _select(step.runs, call, options):
        call.runs_text(script)
    if command := list(_select(step.runs_words, call, options)):
        call.runs(command)


def _select(selectors: str, call: Call, options: Options) -> Iterator[str]:
    """`-o` is the value of an option, `0` an operand, `1:` some, `:` all of them, `.` the current
    folder and `stdin` the input if it is known."""
    for each in selectors.split():
        if each.startswith("-") and not each[1:].isdigit():
            yield from options.values(each)
        elif each == "stdin":
            yield from (call.stdin.text,) if call.stdin.known and call.stdin.text else ()
        elif each == ".":
            yield each
        elif found := _SLICE.fullmatch(each):
            start, colon, end = found.groups()
            first = int(start) if start else None
            last = (int(end) if end else None) if colon else (first or 0) + 1
            yield from options.operands[first:last]


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
        return _check("windows.windows")(call)
    if READING_CMDLET.match(call.name):
        return _check("windows.shows")(call)
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
