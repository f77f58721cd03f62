"""Finds words of a command that name, show or look for credentials."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hermes.policy.call import Call
from hermes.policy.shell.state import State
from hermes.policy.shell.tree import Variable, Word

SIGNS = re.compile(r"[=,:@;]")
# For these a path is a word to print, to compare, to list or to look up, not a file to show.
UNREAD = frozenset(
    """
    echo printf print test [ ls exa eza dir stat tree du cd pushd find locate which type command
    basename dirname realpath readlink export declare local readonly typeset read set unset
    git gh grep egrep fgrep rg ag ack sed awk gawk mawk perl ruby python python3 node cp rm mv ln
    touch mkdir chmod chown ssh ssh-keygen ssh-add true false : trap alias eval xargs env sudo
    sh bash zsh dash timeout nohup nice time exec parallel watch man
    """.split()
)
# They show what they are given.
SHOWS = frozenset("echo printf print cat tee printenv".split())
SECRET_NAME = re.compile(
    r"(?i)(^|_)(secret|token|passw(or)?d|passphrase|credentials?|private_?key|api_?key|access_?key"
    r"|auth_?key|signing_?key|encryption_?key)(_|$|s$)|_(key|pat|pwd|psk)$|_key_id$"
)
FROM_ENVIRONMENT = re.compile(
    r"(?:\bENV|\benviron(?:\.get)?|\bgetenv|\bprocess\.env|\bENVIRON|\bSys\.getenv|\$ENV|_ENV"
    r"|\bDeno\.env\.get)\W{0,4}(\w+)"
)
# A search of the environment for one of these is a search for credentials.
SECRET_PATTERN = re.compile(
    r"(?i)secret|token|pass(w|\b|_)|credential|api.?key|\bkey\b|_key|private"
)


def named_files(call: Call) -> None:
    """A credential named anywhere in the arguments, also inside an option or after a sign."""
    if call.name in UNREAD:
        return
    for argument in call.arguments:
        if 3 < len(argument) < 400 and " " not in argument:
            for piece in SIGNS.split(argument):
                if piece[:1] in ("/", "~") or piece.rpartition("/")[2].startswith((".env", "id_")):
                    call.reads(piece)


def shown_secrets(call: Call, code: str) -> None:
    """Code that takes a variable named like a secret from the environment."""
    for found in FROM_ENVIRONMENT.finditer(code):
        if SECRET_NAME.search(found[1]):
            call.ask("credentials", f"It uses the secret that ${found[1]} holds.")


def shown_variables(call: Call, words: Iterable[Word], state: State) -> None:
    """Variables named like secrets that the environment gives and the command prints."""
    if call.name not in SHOWS:
        return
    names = [
        part.name
        for word in words
        for part in word
        if isinstance(part, Variable)
        and part.prefix != "#"
        and part.operator not in (":+", "+", ":?", "?")
        and part.name not in state.variables
    ]
    if call.name == "printenv":
        names += call.arguments
    for name in names:
        if SECRET_NAME.search(name):
            call.ask("credentials", f"It shows the secret that ${name} holds.")
