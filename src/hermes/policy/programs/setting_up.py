"""Programs that print the lines by which a shell is set up, as every start-up file uses them."""

from __future__ import annotations

import re

from hermes.policy.call import Call

SHELL = r"(bash|zsh|fish|sh|posix|dash|ksh|-)"
COMPLETING = frozenset(("completion", "completions", "generate-shell-completion", "shell-init"))


def prints_setup(call: Call) -> bool:
    words = call.arguments
    setup = call.record.setup
    if setup and re.fullmatch(setup.replace("SHELL", SHELL), " ".join(words)):
        return True
    if not words or words[0] not in COMPLETING or not call.follower.knows(call.name):
        return False
    return len(words) == 1 or bool(re.fullmatch(rf"(-s|--shell)?=?\s*{SHELL}", " ".join(words[1:])))
