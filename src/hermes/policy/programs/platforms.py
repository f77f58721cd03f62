"""Platforms, forges and tools of operations, by their verbs: looking is free, changing is not."""

from __future__ import annotations

from hermes.policy.call import Call
from hermes.policy.patterns import regex
from hermes.policy.programs.subcommands import check_subcommands
from hermes.policy.shell.state import Stream

# Settings that hold no password, by their names.
PLAIN_SETTING = regex(r"(?i)[A-Z_]*(ENV|LEVEL|PORT|HOST|VERSION|MODE|DEBUG|TZ|LANG|CONCURRENCY)")


def check_watcher(call: Call) -> Stream | None:
    """Windows onto a cluster or a server: fine as long as they cannot be used to change it."""
    if call.name in ("k9s", "lazydocker", "ctop") and "--readonly" not in call.arguments:
        call.ask("remote_state", f"Whatever is done in `{call.name}` changes what others share.")
    call.work("network", f"`{call.name}` looks at what runs.")
    return None


def check_switch(call: Call) -> Stream | None:
    """kubectx and kubens: alone they tell, with a name they switch."""
    if call.options().operands or call.options().has("-d", "-u", "--unset"):
        call.ask("system_config", "It changes which cluster the next commands work on.")
    call.work("network", "It tells which clusters there are.")
    return None


def check_goreleaser(call: Call) -> Stream | None:
    if {"--snapshot", "--skip=publish"} & set(call.arguments):
        call.work(reason="It builds the project without publishing it.")
        return None
    return check_subcommands(call)


def check_heroku(call: Call) -> Stream | None:
    words = call.options("-a -r --app --remote").operands
    if words[:1] == ["config:get"] and not all(map(PLAIN_SETTING.fullmatch, words[1:])):
        call.ask("credentials", "It shows a setting that may hold a password.")
    return check_subcommands(call)
