"""git: asks about lost work, what is sent out, and settings that run commands."""

from __future__ import annotations

import re

from hermes.policy.call import Call
from hermes.policy.findings import Level
from hermes.policy.outgoing import is_remote
from hermes.policy.path_effects import REGENERABLE
from hermes.policy.patterns import load_regex, word_list
from hermes.policy.programs.catalogue import apply_record
from hermes.policy.programs.records import record_of
from hermes.policy.shell.state import SOME, UNKNOWN, Stream

DANGEROUS_KEY = load_regex("git_dangerous_setting")
TASTE = load_regex("git_personal_setting")
HARMLESS_VALUE = frozenset(
    ("cat", "", "less", "true", "false", "vim", "vi", "nano", "delta", "code")
)


def check_setting(call: Call, key: str, value: str) -> None:
    """Check a setting for one run."""
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
        if words and re.search(r"token|password|extraheader", words[0]):
            call.ask("credentials", "It shows a stored secret.")
        return Stream(text=SOME, origin="environment" if not words else "")
    key, value = (words[0], words[1] if len(words) > 1 else "") if words else ("", "")
    if key.lower().startswith("alias.") and re.match(r"[a-z]", value):
        # An alias for one of git's own commands.
        call.runs(["git", *value.split()])
    elif DANGEROUS_KEY.match(key):
        call.ask("persistence", f"The setting {key} makes git run or use `{value}` from now on.")
        if value:
            call.runs_text(value.removeprefix("!"))
    tasteful = options.has("--global") and TASTE.match(key)
    if not tasteful and (options.has("--global", "--system") or options.values("-f", "--file")):
        call.ask("persistence", "It changes git for all repositories.")
    call.work()
    return None


LOST = "git_history"


def check_clone(call: Call) -> None:
    options = call.options(call.record.values)
    call.work("network", "It fetches a repository.")
    names = options.operands
    for setting in options.values("-c", "--config"):
        key, _, value = setting.partition("=")
        check_setting(call, key, value)
    if options.has("--template", "-u"):
        call.ask("shell_escape", "It installs programs for git from another source.")
    if names:
        last = names[1] if len(names) > 1 else names[0].rstrip("/").rpartition("/")[2]
        target = last.removesuffix(".git") or UNKNOWN
        # Beside the project is fine, because git never overwrites a folder.
        beside = re.fullmatch(r"\.\./[\w-][\w.-]*", target)
        (call.touches if beside else call.writes)(target)
        call.state.files[call.path(target)] = Stream(origin="network")


# Common aliases.
USUAL_ALIASES = {"st": "status", "co": "checkout", "ci": "commit", "br": "branch", "df": "diff"}
GLOBAL = "-C -c --git-dir --work-tree --namespace --exec-path --super-prefix --config-env"


def check_git(call: Call) -> Stream | None:
    options = call.options(GLOBAL, permute=False)
    for setting in options.values("-c", "--config-env"):
        key, _, value = setting.partition("=")
        check_setting(call, key, value)
    if options.values("--exec-path"):
        call.ask("shell_escape", "It makes git use other programs.")
    state = call.state
    for folder in options.values("-C", "--work-tree"):
        state = state.copy()
        state.cwd = call.path(folder)
    if not options.operands or call.arguments[-1:] in (["--help"], ["--version"]):
        return None
    verb, rest = options.operands[0], options.operands[1:]
    verb = USUAL_ALIASES.get(verb, verb)
    inner = call.part(rest, state)
    return _verb(inner, verb)


def _verb(call: Call, verb: str) -> Stream | None:
    words = call.arguments
    for option in word_list("git_run_options"):
        _run_option(call, verb, option)
    if any("ext::" in word for word in words):
        call.ask("shell_escape", "An `ext::` URL runs a command.")
        call.runs_text(" ".join(words).partition("ext::")[2])
    call.record = record_of(f"git:{verb}")
    if not call.record.check:
        kind = "unclear" if UNKNOWN in verb else "unknown_program"
        call.ask(kind, f"`git {verb}` is not known to be harmless; it may be an alias.")
        return None
    if verb == "pull" and any(is_remote(word) for word in words):
        call.state.files[call.state.cwd] = Stream(origin="network")
    return _apply_in_repository(call)


def _apply_in_repository(call: Call) -> Stream | None:
    """Apply the record. A subcommand that works in the repository writes into its folder."""
    before = len(call.follower.findings)
    output = apply_record(call)
    found = call.follower.findings[before:]
    if any(each.level is Level.WORK and not each.category for each in found):
        call.writes(call.state.cwd)
    return output


def _run_option(call: Call, verb: str, option: str) -> None:
    for index, word in enumerate(call.arguments):
        name, equals, value = word.partition("=")
        if name != option or (option == "--exec" and verb not in ("archive", "rebase", "push")):
            continue
        value = value if equals else (call.arguments[index + 1 : index + 2] or [""])[0]
        call.ask("shell_escape", f"`{option}` makes git run another program.")
        if value and not value.startswith("-"):
            call.runs_text(value)


def check_clean(call: Call) -> None:
    options = call.options(call.record.values)
    if options.has("-n", "--dry-run"):
        return
    ignored = options.has("-X") and not options.has("-x")
    names = [path.rstrip("/").rpartition("/")[2] for path in options.operands]
    if ignored and names and all(map(REGENERABLE.match, names)):
        call.deletes(*options.operands, recursive=True)
        return
    call.ask(LOST, "It permanently deletes untracked files.")
