"""The global options as data, and a fast parser for runs without a command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from hermes.core.errors import UsageError

Kind = Literal["text", "flag", "count", "path", "optional"]


class GlobalOption(NamedTuple):
    """An option that is valid before any command."""

    # Separated by spaces.
    names: str
    # The name among the parsed options.
    key: str
    # The value of an "optional" option can be omitted.
    kind: Kind
    help: str
    metavar: str | None = None


OPTIONS = (
    GlobalOption("-p --profile", "profile", "text", "Use this profile.", "NAME"),
    GlobalOption("-z --oneshot", "prompt", "text", "Run one turn; print the answer.", "PROMPT"),
    GlobalOption("--json", "as_json", "flag", "With -z: print all events as JSON lines."),
    GlobalOption("--ask", "ask", "flag", "With -z --json: read answers to questions from stdin."),
    GlobalOption("-m --model", "model", "text", "Use this model or .gguf file.", "MODEL"),
    GlobalOption("--provider", "provider", "text", "Use this provider.", "NAME"),
    GlobalOption("-t --toolsets", "toolsets", "text", "Use only these toolsets.", "A,B"),
    GlobalOption("-s --skills", "skills", "text", "Start with these skills loaded.", "A,B"),
    GlobalOption("-r --resume", "resume", "text", "Resume this session.", "ID|TITLE"),
    GlobalOption("-c --continue", "newest", "optional", "Resume the newest session.", "[TITLE]"),
    GlobalOption("--no-restore-cwd", "no_restore_cwd", "flag", "Resume in the current folder."),
    GlobalOption("--max-turns", "max_turns", "count", "Limit the model calls of a turn.", "N"),
    GlobalOption(
        "--yolo",
        "yolo",
        "flag",
        "Approve every effect that needs approval; denied ones stay denied.",
    ),
    GlobalOption("--accept-hooks", "accept_hooks", "flag", "Run configured hooks without asking."),
    GlobalOption("--ignore-rules", "ignore_rules", "flag", "Ignore context files and SOUL.md."),
    GlobalOption("--ignore-user-config", "ignore_config", "flag", "Ignore config.yaml."),
    GlobalOption(
        "--pass-session-id", "pass_session_id", "flag", "Tell the model the id of its session."
    ),
    GlobalOption("-w --worktree", "worktree", "flag", "Work in a new git worktree."),
    GlobalOption("--checkpoints", "checkpoints", "flag", "Record file changes for `hermes undo`."),
    GlobalOption("--safe-mode", "safe_mode", "flag", "Load only built-in plugins."),
    GlobalOption("--record", "record", "flag", "Record model calls for `hermes replay`."),
    GlobalOption("--usage-file", "usage_file", "path", "With -z: save tokens and cost.", "FILE"),
    GlobalOption("-v --verbose", "verbose", "flag", "Print tracebacks of errors."),
)


def check_conflicts(options: Mapping[str, Any], command: str = "") -> None:
    """Raise UsageError for options that do not fit together or do not fit the command."""
    prompt, resume = options["prompt"], options["resume"]
    if prompt is not None and command:
        raise UsageError(f"-z takes no command; leave out `{command}` or -z.")
    if prompt is not None and not prompt.strip():
        raise UsageError("The prompt is empty; write something after -z.")
    if prompt is None and options["as_json"]:
        hint = f"write it after `{command}`" if command else "add -z PROMPT"
        raise UsageError(f"--json before a command needs -z; {hint}.")
    if options["ask"] and (prompt is None or not options["as_json"]):
        raise UsageError("--ask needs -z and --json; add them, or leave out --ask.")
    if prompt is None and options["usage_file"]:
        raise UsageError("--usage-file needs -z; add -z PROMPT.")
    if resume is not None and options["newest"] is not None:
        raise UsageError("Give --resume or --continue, not both.")
    if options["worktree"] and (resume is not None or options["newest"] is not None):
        raise UsageError("--worktree starts a new session; leave out --resume and --continue.")
    if options["no_restore_cwd"] and resume is None and options["newest"] is None:
        raise UsageError("--no-restore-cwd needs a resumed session; add --resume ID.")
    if resume is not None and not resume.strip():
        raise UsageError("--resume needs a session; `hermes sessions list` lists them.")


def plain_options(arguments: list[str]) -> dict[str, Any] | None:
    """The options of `hermes` without a command; None if they need the full parser. Loading click
    would take a tenth of such a run."""
    by_name = {name: option for option in OPTIONS for name in option.names.split()}
    options: dict[str, Any] = {
        option.key: False if option.kind == "flag" else None for option in OPTIONS
    }
    rest = iter(arguments)
    for argument in rest:
        option = by_name.get(argument)
        if option is None or option.kind == "optional":
            return None
        value: Any = True if option.kind == "flag" else next(rest, None)
        if value is None:
            return None
        if option.kind == "count":
            if not value.isdecimal() or not int(value):
                return None
            value = int(value)
        options[option.key] = value
    return options
