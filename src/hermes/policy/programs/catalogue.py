"""Judges a call by the record of its program."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module

from hermes.policy.call import Call, Check, Options
from hermes.policy.patterns import regex
from hermes.policy.programs.records import Runs
from hermes.policy.programs.running import check_path_program
from hermes.policy.programs.steps import apply_steps
from hermes.policy.shell.state import NOTHING, Stream


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
        return _check("unknown.unknown")(call)
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
