"""Judges a call by the record of its program."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module

from hermes.policy.call import Call, Check
from hermes.policy.patterns import regex
from hermes.policy.programs.environments import runs_chosen
from hermes.policy.programs.running import check_path_program
from hermes.policy.programs.setting_up import prints_setup
from hermes.policy.programs.steps import apply_steps
from hermes.policy.shell.state import NOTHING, Stream

REHEARSAL = regex(r"--dry-?run(=(client|server|true|all))?")


@cache
def _check(name: str) -> Check:
    module, _, function = name.partition(".")
    found: Check = getattr(import_module(f"hermes.policy.programs.{module}"), f"check_{function}")
    return found


def judge(call: Call) -> Stream | None:
    """Judges one call of a program by its record. A program by its path is the project's own or
    somebody else's; a name without a record is unknown."""
    if "/" in call.name:
        return check_path_program(call)
    record = call.record
    if record.runs is not None and runs_chosen(call):
        return None
    if "builtin" in record.flags:
        if record.steps:
            apply_steps(call)
        return _check(record.check)(call)
    if record.setup and prints_setup(call):
        call.work(reason="It sets up the shell as logging in does.")
        return NOTHING
    if not record.check:
        return _check("unknown.unknown")(call)
    if _tells_about_itself(call):
        return None
    if prints_setup(call):
        return NOTHING
    if is_dry_run(call):
        call.work("network", "It only shows what it would do.")
        return None
    if record.steps and apply_steps(call):
        return None
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
    """An option of this name means nothing to programs without the flag."""
    return "dry_run" in call.record.flags and any(map(REHEARSAL.fullmatch, call.arguments))
