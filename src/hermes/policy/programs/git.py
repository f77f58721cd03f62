"""git: asks about lost work, what is sent out, and settings that run commands."""

from __future__ import annotations

from hermes.policy.call import Call
from hermes.policy.outgoing import is_remote
from hermes.policy.path_effects import REGENERABLE
from hermes.policy.programs.catalogue import judge_record
from hermes.policy.programs.git_settings import (
    check_setting,
)
from hermes.policy.programs.records import record_of
from hermes.policy.shell.state import SOME, UNKNOWN, Stream

RUN_OPTIONS = (
    "--upload-pack",
    "--receive-pack",
    "--exec",
    "--ext-diff",
    "--textconv",
    "--open-files-in-pager",
)
# Common aliases.
USUAL_ALIASES = {"st": "status", "co": "checkout", "ci": "commit", "br": "branch", "df": "diff"}
GLOBAL = "-C -c --git-dir --work-tree --namespace --exec-path --super-prefix --config-env"
LOST = "git_history"


def check_git(call: Call) -> Stream | None:
    options = call.options(GLOBAL, permute=False)
    for setting in options.values("-c", "--config-env"):
        key, _, value = setting.partition("=")
        check_setting(call, key, value)
    if options.values("--exec-path"):
        call.ask("shell_escape", "It makes git use other programs for its work.")
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
    for option in RUN_OPTIONS:
        _run_option(call, verb, option)
    if any("ext::" in word for word in words):
        call.ask("shell_escape", "An `ext::` address runs a command.")
        call.runs_text(" ".join(words).partition("ext::")[2])
    call.record = record_of(f"git:{verb}")
    if not call.record.check:
        kind = "unclear" if UNKNOWN in verb else "unknown_program"
        call.ask(kind, f"`git {verb}` is not known to be harmless; it may be an alias.")
        return None
    if verb == "pull" and any(is_remote(word) for word in words):
        call.state.files[call.state.cwd] = Stream(origin="network")
    return judge_record(call)


def check_working(call: Call) -> Stream | None:
    call.work(reason="It works in this repository.")
    return None


def check_listing(call: Call) -> Stream | None:
    named = any(not word.startswith("-") for word in call.arguments)
    return Stream(text=SOME if named else "**")


def check_reading(call: Call) -> Stream | None:
    for word in call.arguments:
        if word.startswith("--output"):
            call.writes(word.partition("=")[2] or UNKNOWN)
    if any(word.startswith("-O") for word in call.arguments):
        call.ask("shell_escape", "It opens what it finds in another program.")
    named = [word for word in call.arguments if not word.startswith("-")]
    if "--no-index" in call.arguments:
        call.reads(*named)
    if "--show-toplevel" in call.arguments:
        return Stream(text=call.paths.root)
    return Stream(text=SOME)


def _run_option(call: Call, verb: str, option: str) -> None:
    for place, word in enumerate(call.arguments):
        name, equals, value = word.partition("=")
        if name != option or (option == "--exec" and verb not in ("archive", "rebase", "push")):
            continue
        value = value if equals else (call.arguments[place + 1 : place + 2] or [""])[0]
        call.ask("shell_escape", f"`{option}` makes git run another program.")
        if value and not value.startswith("-"):
            call.runs_text(value)


def check_clean(call: Call) -> Stream | None:
    options = call.options(call.record.values)
    if options.has("-n", "--dry-run"):
        return None
    ignored = options.has("-X") and not options.has("-x")
    if ignored and options.operands and all(map(_made_again, options.operands)):
        call.deletes(*options.operands, recursive=True)
        return None
    call.ask(LOST, "It deletes files that git does not know, for good.")
    return None


def _made_again(path: str) -> bool:
    """Whether the path is a folder that tools recreate."""
    return bool(REGENERABLE.match(path.rstrip("/").rpartition("/")[2]))


def check_submodule(call: Call) -> Stream | None:
    words = [word for word in call.arguments if word not in ("--recursive", "--quiet", "-q")]
    if words[:1] == ["foreach"]:
        call.runs_text(" ".join(words[1:]))
    elif words[:1] and words[0] in ("deinit",):
        call.ask(LOST, "It deletes the files of submodules.")
    elif words[:1] and words[0] in ("status", "summary"):
        return None
    call.work("network", "It may fetch submodules.")
    return None
