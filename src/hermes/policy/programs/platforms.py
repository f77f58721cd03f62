"""Platforms, forges and tools of operations, by their verbs: looking is free, changing is not."""

from __future__ import annotations

from hermes.policy.call import Call
from hermes.policy.patterns import regex
from hermes.policy.programs.subcommands import check_subcommands
from hermes.policy.shell.state import Stream

# Settings that hold no password, by their names.
PLAIN_SETTING = regex(r"(?i)[A-Z_]*(ENV|LEVEL|PORT|HOST|VERSION|MODE|DEBUG|TZ|LANG|CONCURRENCY)")


def check_heroku(call: Call) -> Stream | None:
    words = call.options("-a -r --app --remote").operands
    if words[:1] == ["config:get"] and not all(map(PLAIN_SETTING.fullmatch, words[1:])):
        call.ask("credentials", "It shows a setting that may hold a password.")
    return check_subcommands(call)
