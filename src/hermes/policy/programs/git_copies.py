"""Orders of git that make copies of a repository: clones, work trees, archives."""

from __future__ import annotations

import re

from hermes.policy.call import Call
from hermes.policy.options import Options
from hermes.policy.programs.git_settings import check_setting
from hermes.policy.shell.state import UNKNOWN, Stream

LOST = "git_history"


def _makes(call: Call, name: str) -> None:
    """git makes a new folder or refuses; beside the project is where people want it."""
    if re.fullmatch(r"\.\./[\w-][\w.-]*", name):
        call.touches(name)
    else:
        call.writes(name)


def check_clone(call: Call, options: Options) -> Stream | None:
    call.work("network", "It fetches a repository.")
    names = options.operands
    for setting in options.values("-c", "--config"):
        key, _, value = setting.partition("=")
        check_setting(call, key, value)
    if options.has("--template", "-u"):
        call.ask("shell_escape", "It takes programs for git from elsewhere.")
    if names:
        last = names[1] if len(names) > 1 else names[0].rstrip("/").rpartition("/")[2]
        target = last.removesuffix(".git") or UNKNOWN
        _makes(call, target)
        call.state.files[call.path(target)] = Stream(origin="network")
    return None


def check_worktree(call: Call, options: Options) -> Stream | None:
    verb = options.operands[0] if options.operands else "list"
    if verb in ("remove", "prune"):
        if options.has("-f", "--force"):
            call.ask(LOST, "It deletes a work tree with its changes.")
        call.work()
    elif verb != "list":
        call.work()
        for name in options.operands[1:2]:
            _makes(call, name)
    return None


def check_archive(call: Call, options: Options) -> Stream | None:
    call.work()
    call.writes(*options.values("-o", "--output"))
    return None
