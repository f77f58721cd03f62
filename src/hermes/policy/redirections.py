"""Checks the redirections of a command, and variables that control other programs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from hermes.policy.call import Call
from hermes.policy.outgoing import is_remote
from hermes.policy.patterns import load_regex, regex, word_set
from hermes.policy.shell.expansion import Expander
from hermes.policy.shell.state import (
    ANYTHING,
    ENDLESS_FILES,
    NOTHING,
    SOME,
    UNKNOWN,
    State,
    Stream,
)
from hermes.policy.shell.tree import Assignment, Redirect

if TYPE_CHECKING:
    from hermes.policy.walk import ScriptWalk

# More variables that hold commands, recognised by the end of their names.
RUN_NAMES = regex(r"(EDITOR|PAGER|ASKPASS|BROWSER|_WRAPPER|_RUNNER|_OPENER|_SSH_COMMAND)$")
SOURCES = load_regex("source_variable")
BUILT_WITH = load_regex("build_program_variable")
UNPROTECTED = load_regex("verification_variable")
SWITCHED = frozenset(("0", "1", "false", "true", "no", "yes", "off", "on"))
RECORDS = frozenset("HISTFILE HISTSIZE HISTFILESIZE HISTCONTROL HISTIGNORE".split())
TOOL_FOLDERS = load_regex("tool_folder")
# A shell prints these again and again, and runs the commands in them.
PROMPTS = frozenset(("PS0", "PS1", "PS2", "PS3", "PS4", "PROMPT", "RPROMPT"))
OWN = ("HERMES_YOLO", "HERMES_HOME", "HERMES_KILL", "HERMES_TESTING")
PLAIN_VIEWERS = frozenset(("", "cat", "less", "more", "true", ":", "vi", "vim", "nano", "code"))


def assign(follower: ScriptWalk, assignment: Assignment, expander: Expander, state: State) -> None:
    """Set a variable as the script says."""
    name = assignment.name
    if assignment.items is not None:
        items = tuple(each for words in expander.commands(assignment.items) for each in words)
        before = state.arrays.get(name, ()) if assignment.append else ()
        state.arrays[name] = (*before, *items)
        return
    values = expander.texts(assignment.value)
    if assignment.append:
        olds = state.variables.get(name, (UNKNOWN,))
        values = tuple(old + new for old in olds for new in values)
    check_variable(follower, name, values, state)
    state.set(name, values)


def check_variable(follower: ScriptWalk, name: str, values: Iterable[str], state: State) -> None:
    if name.startswith(OWN):
        follower.ask("own_state", f"It changes {name}, a setting of Hermes itself.")
    elif name in RECORDS:
        follower.ask("system_config", f"{name} controls the shell history.")
    elif UNPROTECTED.search(name) and _disables_check(name, values):
        follower.ask("network_out", f"{name} disables a protection of connections.")
    elif SOURCES.search(name) and any(is_remote(value) or UNKNOWN in value for value in values):
        follower.ask("network_out", f"`{name}` redirects network connections of programs.")
    elif name in word_set("command_variables") or name in PROMPTS or RUN_NAMES.search(name):
        for value in values:
            _check_command(follower, name, value, state)
    elif BUILT_WITH.match(name):
        call = Call(name, (), state, ANYTHING, follower)
        for value in values:
            place = call.paths.place(call.path(value)) if value[:1] in ("/", "~") else "system"
            if place in ("scratch", "outside", "home"):
                follower.ask("shell_escape", f"{name} makes builds run {value}.")
    elif name in word_set("code_path_variables"):
        call = Call(name, (), state, ANYTHING, follower)
        for value in values:
            _check_places(call, name, value)


def _disables_check(name: str, values: Iterable[str]) -> bool:
    """Whether verification is off: the value says so, or the name does and the value is on."""
    off = re.search(r"(?i)no_?verify|insecure|nosum|trusted_host", name)
    on = {"1", "true", "yes", "on"}
    return any(
        (value.lower() in on or value not in SWITCHED | {""})
        if off
        else value.lower() in SWITCHED - on
        for value in values
    )


def _check_command(follower: ScriptWalk, name: str, value: str, state: State) -> None:
    if value in PLAIN_VIEWERS:
        return
    if name in PROMPTS:
        if "$(" in value or "`" in value:
            follower.ask("shell_escape", f"{name} makes the shell run `{value}`.")
            follower.text(f': "{value}"', state.copy(), ANYTHING)
        return
    follower.ask("shell_escape", f"{name} makes other programs run `{value}`.")
    follower.text(value, state.copy(), ANYTHING)


def _check_places(call: Call, name: str, value: str) -> None:
    """Ask about folders in a variable that are neither in the project nor known before."""
    loads = any(word in value for word in ("-r", "--require", "--import", "agent", "exec", "-I"))
    for folder in value.split(":"):
        if folder in ("", UNKNOWN) and name in ("PATH", "PYTHONPATH", "NODE_PATH"):
            continue
        known = folder in call.state.variables.get("PATH", ("",))[0].split(":")
        options = name.endswith(("OPTIONS", "OPT", "FLAGS"))
        if options and name not in word_set("injecting_variables") and not loads:
            continue
        allowed = name not in word_set("injecting_variables") and (
            folder != "." or name in ("PYTHONPATH", "NODE_PATH")
        )
        known = known or (name == "PATH" and bool(TOOL_FOLDERS.search(folder)))
        if not (known or (allowed and call.here(folder) and "://" not in folder and not options)):
            call.follower.ask("shell_escape", f"{name} makes programs load code from `{folder}`.")


def open_files(
    follower: ScriptWalk,
    expander: Expander,
    redirects: Iterable[Redirect],
    state: State,
    stdin: Stream,
) -> tuple[Stream, list[str]]:
    """Return the input that the redirections give, and the files that receive the output."""
    call = Call("", (), state, stdin, follower)
    written: list[str] = []
    for redirect in redirects:
        if redirect.here is not None:
            stdin = Stream(text=expander.texts(redirect.here.body)[0])
            continue
        for target in expander.texts(redirect.target):
            if redirect.operator == "<<<":
                stdin = Stream(text=target + "\n")
            elif redirect.operator in ("<", "<>"):
                stdin = _source(call, target, both=redirect.operator == "<>")
            elif redirect.operator not in (">&", "<&") or not (
                target.rstrip("-").isdigit() or target == "-"
            ):
                call.writes(target, append=redirect.operator in (">>", "&>>"))
                if redirect.descriptor in ("", "1"):
                    written.append(call.path(target))
    return stdin, [path for path in written if path != "/dev/null"]


def _source(call: Call, target: str, *, both: bool) -> Stream:
    path = call.path(target)
    if path.startswith(("/dev/tcp/", "/dev/udp/")):
        call.writes(target)
        return Stream(origin="network")
    if both:
        call.writes(target, append=True)
    call.reads(target)
    if path == "/dev/null":
        return NOTHING
    if path in ENDLESS_FILES:
        return ENDLESS_FILES[path]
    written = call.state.files.get(path)
    if written is None and call.here(target) and path != call.state.cwd and SOME not in path:
        return Stream(origin="own")
    return written or Stream(origin="file")
