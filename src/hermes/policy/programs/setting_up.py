"""Programs that print the lines by which a shell is set up, as every start-up file uses them."""

from __future__ import annotations

import re

from hermes.policy.call import Call, Check
from hermes.policy.patterns import regex
from hermes.policy.shell.state import NOTHING, Stream

SHELL = r"(bash|zsh|fish|sh|posix|dash|ksh|-)"
PRINTING: dict[str, re.Pattern[str]] = {
    name: regex(pattern)
    for names, pattern in {
        "ssh-agent gpg-agent": r"(-[sc])?|--daemon",
        "pyenv rbenv nodenv goenv jenv plenv tfenv": rf"init( (--path|--no-rehash|{SHELL}))*",
        "direnv": rf"hook {SHELL}",
        "starship zoxide atuin": rf"init {SHELL}( --\S+)*",
        "oh-my-posh": rf"(init|prompt init) {SHELL}.*",
        "mise rtx": rf"activate( {SHELL})?( --shims)?",
        "brew": r"shellenv( \w+)?",
        "fnm": r"env( --\S+( \w+)?)*",
        "conda mamba micromamba": r"shell\.\w+ hook|shell hook( .*)?",
        "opam": r"env( --\S+)*|config env",
        "dircolors lesspipe": r"(-b)?|-b \S+",
        "minikube": r"(-p [\w-]+ )?docker-env",
        "luarocks": r"path( --\S+)*",
        "thefuck": r"--alias( \w+)?",
        "fzf": r"--(bash|zsh)",
        "register-python-argcomplete": r"[\w.-]+",
        "keychain": r"--eval( --\S+)*",
        "resize": "",
        "tset": r"-s",
    }.items()
    for name in names.split()
}
COMPLETING = frozenset(("completion", "completions", "generate-shell-completion", "shell-init"))


def prints_setup(call: Call) -> bool:
    words = call.arguments
    known = PRINTING.get(call.name)
    if known is not None and known.fullmatch(" ".join(words)):
        return True
    if not words or words[0] not in COMPLETING or not call.follower.knows(call.name):
        return False
    return len(words) == 1 or bool(re.fullmatch(rf"(-s|--shell)?=?\s*{SHELL}", " ".join(words[1:])))


def setting_up(check: Check) -> Check:
    """What such a program prints is run by the shell, and does what its name says."""

    def checked(call: Call) -> Stream | None:
        if prints_setup(call):
            call.work(reason="It sets up the shell as logging in does.")
            return NOTHING
        return check(call)

    return checked
