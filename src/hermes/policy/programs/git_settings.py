"""Settings of git, many of which are commands that git runs, and orders that copy a repository."""

from __future__ import annotations

import re

from hermes.policy.call import Call, Options
from hermes.policy.patterns import regex
from hermes.policy.shell.state import SOME, UNKNOWN, Stream

# Settings whose value is a command or another server.
DANGEROUS_KEY = regex(
    r"""(?ix) ^( alias\. | core\.(pager|editor|sshcommand|hookspath|fsmonitor|askpass|gitproxy
    | worktree|attributesfile|alternaterefscommand) | pager\. | sequence\.editor | diff\.external
    | diff\..*\.(command|textconv) | difftool\. | mergetool\. | merge\..*\.driver | filter\.
    | credential\. | gpg\.(program|.*\.program) | ssh\.variant | url\. | include | protocol\.
    | http\..*(proxy|sslverify|extraheader) | http\.(proxy|sslverify) | remote\..*\.(uploadpack
    |receivepack|vcs|proxy) | uploadpack\. | receive\. | sendemail\. | man\. | browser\. | web\.
    | interactive\.difffilter | init\.templatedir | submodule\..*\.update | trailer\..*\.command
    | instaweb\. | guitool\. | core\.gitdir | safe\. | uploadarchive\. | tar\. )"""
)
# Personal preferences that run and trust nothing.
TASTE = regex(
    r"(?i)^(user\.(name|email)|init\.defaultbranch|pull\.(rebase|ff)|push\.(default|autosetupremote)"
    r"|fetch\.prune|color\.[\w.]+|core\.(autocrlf|eol|quotepath|filemode)|merge\.conflictstyle"
    r"|diff\.(algorithm|colormoved)|rerere\.enabled|column\.ui|branch\.sort|log\.\w+|rebase\.auto\w+"
    r"|advice\.\w+)$"
)
HARMLESS_VALUE = frozenset(
    ("cat", "", "less", "true", "false", "vim", "vi", "nano", "delta", "code")
)


def check_setting(call: Call, key: str, value: str) -> None:
    """Checks a setting for one run."""
    if UNKNOWN in key or DANGEROUS_KEY.match(key):
        if value in HARMLESS_VALUE and not key.lower().startswith("core.hookspath"):
            return
        call.ask("shell_escape", f"The setting {key} makes git run or use `{value}`.")
        if key.lower().startswith("alias.") and not value.startswith("!"):
            call.runs(["git", *value.split()])
        elif value:
            call.runs_text(value.removeprefix("!"))


def check_config(call: Call) -> Stream | None:
    options = call.options(call.record.values)
    words = options.operands
    if words[:1] and words[0] in ("get", "list", "set", "unset", "edit"):
        action, words = words[0], words[1:]
    else:
        action = "set" if len(words) > 1 else "get"
    asked = options.has(
        "--unset", "--unset-all", "--remove-section", "--rename-section", "--add", "--replace-all"
    )
    if options.has("--get", "--get-all", "--list", "-l", "--get-regexp") or (
        action in ("get", "list") and not asked and not options.has("-e", "--edit")
    ):
        if words[:1] and re.search(r"token|password|extraheader", words[0]):
            call.ask("credentials", "It shows a stored secret.")
        return Stream(text=SOME, origin="environment" if not words else "")
    if words:
        _stored(call, words[0], words[1] if len(words) > 1 else "")
    tasteful = options.has("--global") and words[:1] and TASTE.match(words[0])
    if not tasteful and (options.has("--global", "--system") or options.values("-f", "--file")):
        call.ask("persistence", "It changes git for all repositories.")
    call.work()
    return None


def _stored(call: Call, key: str, value: str) -> None:
    if key.lower().startswith("alias.") and re.match(r"[a-z]", value):
        # An alias for one of git's own commands.
        call.runs(["git", *value.split()])
    elif DANGEROUS_KEY.match(key):
        call.ask("persistence", f"The setting {key} makes git run or use `{value}` from now on.")
        if value:
            call.runs_text(value.removeprefix("!"))


LOST = "git_history"


def _makes(call: Call, name: str) -> None:
    """Writes a new folder; beside the project is fine, because git never overwrites one."""
    if re.fullmatch(r"\.\./[\w-][\w.-]*", name):
        call.touches(name)
    else:
        call.writes(name)


def check_clone(call: Call) -> Stream | None:
    options = call.options(call.record.values)
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


def check_worktree(call: Call) -> Stream | None:
    options = call.options(call.record.values)
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
