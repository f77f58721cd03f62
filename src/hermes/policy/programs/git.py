"""git: asks about lost work, what is sent out, and settings that run commands."""

from __future__ import annotations

from hermes.policy.call import Call, Options
from hermes.policy.outgoing import is_remote
from hermes.policy.path_effects import REGENERABLE
from hermes.policy.programs.git_settings import (
    check_archive,
    check_clone,
    check_config,
    check_setting,
    check_worktree,
)
from hermes.policy.shell.state import NOTHING, SOME, UNKNOWN, Stream

READS = frozenset(
    """
    annotate blame cat-file check-attr check-ignore check-mailmap cherry count-objects describe
    diff diff-files diff-index diff-tree for-each-ref fsck grep help log ls-files ls-tree
    merge-base name-rev range-diff rev-list rev-parse shortlog show show-branch show-ref status
    var verify-commit verify-tag version whatchanged
    """.split()
)
WORKS = frozenset(
    """
    add am apply archive bisect branch bundle checkout checkout-index cherry-pick commit
    commit-tree config format-patch gc hash-object init interpret-trailers lfs maintenance
    merge merge-file merge-tree mergetool mktree mv notes pack-objects pack-refs prune read-tree
    rebase reflog remote rerere reset restore revert rm sparse-checkout stash stripspace
    submodule switch symbolic-ref tag update-index worktree write-tree repack unpack-objects
    fetch pull clone ls-remote sh-setup difftool request-pull replace
    """.split()
)
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
    if any(word.startswith("ext::") or "ext::" in word for word in words):
        call.ask("shell_escape", "An `ext::` address runs a command.")
        call.runs_text(" ".join(words).partition("ext::")[2])
    check = CHECKS.get(verb)
    if check is not None:
        return check(call, Options(words, TAKING.get(verb, "")))
    if verb in READS:
        _reads(call, verb)
    elif verb in WORKS:
        call.work(reason=f"`git {verb}` works in this repository.")
    else:
        kind = "unclear" if UNKNOWN in verb else "unknown_program"
        call.ask(kind, f"`git {verb}` is not known to be harmless; it may be an alias.")
    if verb == "pull" and any(is_remote(word) for word in words):
        call.state.files[call.state.cwd] = Stream(origin="network")
    if verb == "rev-parse" and "--show-toplevel" in words:
        return Stream(text=call.paths.root)
    if verb == "ls-files":
        named = [word for word in words if not word.startswith("-")]
        return Stream(text=SOME if named else "**")
    if verb in ("diff", "rev-parse", "describe", "log", "ls-tree", "grep", "rev-list"):
        return Stream(text=SOME)
    return None


def _reads(call: Call, verb: str) -> None:
    for word in call.arguments:
        if word.startswith("--output"):
            call.writes(word.partition("=")[2] or UNKNOWN)
    if verb == "grep" and any(word.startswith("-O") for word in call.arguments):
        call.ask("shell_escape", "It opens what it finds in another program.")
    if "--no-index" in call.arguments:
        call.reads(*(word for word in call.arguments if not word.startswith("-")))


def _run_option(call: Call, verb: str, option: str) -> None:
    for place, word in enumerate(call.arguments):
        name, equals, value = word.partition("=")
        if name != option or (option == "--exec" and verb not in ("archive", "rebase", "push")):
            continue
        value = value if equals else (call.arguments[place + 1 : place + 2] or [""])[0]
        call.ask("shell_escape", f"`{option}` makes git run another program.")
        if value and not value.startswith("-"):
            call.runs_text(value)


def _push(call: Call, options: Options) -> Stream | None:
    if options.has("--dry-run", "-n"):
        call.work("network", "It only shows what it would send.")
        return None
    refs = options.operands[1:]
    forced = options.has(
        "-f",
        "--force",
        "--force-with-lease",
        "--mirror",
        "--prune",
        "-d",
        "--delete",
        "--force-if-includes",
    )
    if forced or any(ref.startswith(("+", ":")) for ref in refs):
        call.ask(LOST, "It replaces or deletes history in another repository.")
    else:
        call.ask("remote_state", "It sends commits to another repository.")
    return None


def _reset(call: Call, options: Options) -> Stream | None:
    if options.has("--hard", "--merge"):
        call.ask(LOST, "It throws away changes that are not committed.")
    call.work()
    return NOTHING


def _clean(call: Call, options: Options) -> Stream | None:
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


def _checkout(call: Call, options: Options) -> Stream | None:
    words = call.arguments
    paths = words[words.index("--") + 1 :] if "--" in words else []
    everything = {".", ":/", "*", "./", ":/*"}
    if options.has("-f", "--force", "--discard-changes") or paths or everything & set(words):
        call.ask(LOST, "It throws away changes that are not committed.")
    call.work()
    return None


def _restore(call: Call, options: Options) -> Stream | None:
    staged = options.has("--staged", "-S") and not options.has("--worktree", "-W")
    if not staged:
        call.ask(LOST, "It throws away changes that are not committed.")
    call.work()
    return None


def _branch(call: Call, options: Options) -> Stream | None:
    if options.has("-D", "-M", "-C", "-f", "--force") or (
        options.has("-d", "--delete") and options.has("-f", "--force")
    ):
        call.ask(LOST, "It deletes or replaces a branch, merged or not.")
    reading = not options.operands or options.has(
        "-l", "--list", "--contains", "--merged", "--no-merged", "--show-current", "-a", "-r"
    )
    if not reading:
        call.work()
    return Stream(text=SOME)


def _stash(call: Call, options: Options) -> Stream | None:
    verb = options.operands[0] if options.operands else "push"
    if verb in ("drop", "clear"):
        call.ask(LOST, "It deletes stashed changes.")
    elif verb not in ("list", "show"):
        call.work()
    return None


def _reflog(call: Call, options: Options) -> Stream | None:
    if options.operands[:1] and options.operands[0] in ("expire", "delete"):
        call.ask(LOST, "It deletes the record that brings lost commits back.")
    return None


def _gc(call: Call, options: Options) -> Stream | None:
    if (options.has("--prune") and "now" in " ".join(call.arguments)) or call.arguments[:1] == [
        "now"
    ]:
        call.ask(LOST, "It deletes commits that are not reachable, for good.")
    call.work()
    return None


def _lost(call: Call, options: Options) -> Stream | None:
    call.ask(LOST, "It rewrites or deletes history.")
    for text in call.options(
        "--index-filter --tree-filter --msg-filter --env-filter --commit-filter --parent-filter"
    ).values("--index-filter", "--tree-filter", "--msg-filter", "--env-filter", "--commit-filter"):
        call.runs_text(text)
    return None


def _update_ref(call: Call, options: Options) -> Stream | None:
    if options.has("-d", "--stdin") or options.operands[:1]:
        call.ask(LOST, "It deletes or moves branches directly.")
    call.work()
    return None


def _rm(call: Call, options: Options) -> Stream | None:
    if not options.has("--cached", "-n", "--dry-run"):
        if (options.has("-f", "--force") and options.has("-r")) or {".", "*"} & set(
            options.operands
        ):
            call.ask(LOST, "It deletes files with their changes.")
        call.deletes(*options.operands, recursive=options.has("-r"))
    call.work()
    return None


def _rebase(call: Call, options: Options) -> Stream | None:
    for text in options.values("-x", "--exec"):
        call.ask("shell_escape", "It runs a command after each commit.")
        call.runs_text(text)
    call.work()
    return None


def _foreach(call: Call, options: Options) -> Stream | None:
    words = [word for word in call.arguments if word not in ("--recursive", "--quiet", "-q")]
    if words[:1] == ["foreach"]:
        call.runs_text(" ".join(words[1:]))
    elif words[:1] and words[0] in ("deinit",):
        call.ask(LOST, "It deletes the files of submodules.")
    elif words[:1] and words[0] in ("status", "summary"):
        return None
    call.work("network", "It may fetch submodules.")
    return None


def _bisect(call: Call, options: Options) -> Stream | None:
    if call.arguments[:1] == ["run"]:
        return call.runs(call.arguments[1:])
    call.work()
    return None


def _difftool(call: Call, options: Options) -> Stream | None:
    for text in options.values("-x", "--extcmd"):
        call.ask("shell_escape", "It shows differences with another program.")
        call.runs_text(text)
    return None


def _sent(call: Call, options: Options) -> Stream | None:
    call.ask("network_out", "It sends data to other people.")
    return None


def _credential(call: Call, options: Options) -> Stream | None:
    call.ask("credentials", "It shows or changes stored passwords.")
    return None


def _daemon(call: Call, options: Options) -> Stream | None:
    call.ask("network_listen", "It opens a port for others.")
    return None


def _lfs(call: Call, options: Options) -> Stream | None:
    if options.operands[:1] in (["push"], ["prune"], ["lock"], ["unlock"]):
        call.ask("remote_state", "It changes large files that others share, or drops them.")
    call.work("network", "It may fetch large files.")
    return None


def _tag(call: Call, options: Options) -> Stream | None:
    if options.has("-d", "--delete", "-f", "--force"):
        call.ask(LOST, "It deletes or moves a tag.")
    if options.operands and not options.has("-l", "--list"):
        call.work()
    return Stream(text=SOME)


def _remote(call: Call, options: Options) -> Stream | None:
    if options.operands and options.operands[0] not in ("show", "get-url"):
        call.work()
    return Stream(text=SOME)


TAKING = {
    "push": "--repo -o --push-option --receive-pack --exec",
    "rebase": "-x --exec -s -X -C --onto --strategy",
    "difftool": "-x --extcmd -t --tool",
    "clone": "-b -o -c -j -u --branch --origin --depth --config --template --reference --jobs "
    "--upload-pack --filter --separate-git-dir --recurse-submodules",
    "config": "-f --file --type --default --blob",
    "checkout": "-b -B --orphan --conflict --pathspec-from-file",
    "archive": "-o --output --format --prefix --remote --exec",
    "worktree": "-b -B --reason",
    "tag": "-m -F -u --message --file --sort --format",
    "branch": "-u --set-upstream-to --sort --format",
    "stash": "-m --message",
    "clean": "-e --exclude",
}
CHECKS = {
    "push": _push,
    "send-pack": _push,
    "reset": _reset,
    "clean": _clean,
    "checkout": _checkout,
    "switch": _checkout,
    "restore": _restore,
    "branch": _branch,
    "stash": _stash,
    "reflog": _reflog,
    "gc": _gc,
    "prune": _gc,
    "filter-branch": _lost,
    "filter-repo": _lost,
    "replace": _lost,
    "update-ref": _update_ref,
    "rm": _rm,
    "rebase": _rebase,
    "submodule": _foreach,
    "bisect": _bisect,
    "difftool": _difftool,
    "mergetool": _difftool,
    "config": check_config,
    "clone": check_clone,
    "worktree": check_worktree,
    "archive": check_archive,
    "send-email": _sent,
    "svn": _sent,
    "p4": _sent,
    "http-push": _sent,
    "imap-send": _sent,
    "credential": _credential,
    "credential-store": _credential,
    "credential-cache": _credential,
    "credential-manager": _credential,
    "daemon": _daemon,
    "instaweb": _daemon,
    "tag": _tag,
    "lfs": _lfs,
    "remote": _remote,
}
