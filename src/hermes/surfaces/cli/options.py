"""The options of `hermes` itself, as data: for the full command line and for the quick way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from hermes.core.errors import UsageError

Kind = Literal["text", "flag", "count", "path", "optional"]


class Option:
    """`key` is its name among the parsed options. An "optional" one may stand without a value."""

    def __init__(self, names: str, key: str, kind: Kind, words: str, metavar: str = "") -> None:
        self.names = tuple(names.split())
        self.key = key
        self.kind: Kind = kind
        self.words = words
        self.metavar = metavar or None


OPTIONS = (
    Option("-p --profile", "profile", "text", "Use this profile.", "NAME"),
    Option("-z --oneshot", "prompt", "text", "One turn; prints the answer only.", "PROMPT"),
    Option("--json", "as_json", "flag", "With -z: the events, one JSON line each."),
    Option("-m --model", "model", "text", "Model for this run (or a .gguf file).", "MODEL"),
    Option("--provider", "provider", "text", "Provider for this run.", "NAME"),
    Option("-t --toolsets", "toolsets", "text", "Toolsets for this run.", "A,B"),
    Option("-s --skills", "skills", "text", "Load these skills first.", "A,B"),
    Option("-r --resume", "resume", "text", "Go on with a session.", "ID|TITLE"),
    Option("-c --continue", "newest", "optional", "Go on with the newest session.", "[TITLE]"),
    Option("--no-restore-cwd", "stay", "flag", "Resume in this folder, not in the old one."),
    Option("--max-turns", "max_turns", "count", "Most model calls in one turn.", "N"),
    Option("--yolo", "yolo", "flag", "Do not ask; what is never allowed stays so."),
    Option("--accept-hooks", "accept_hooks", "flag", "Run hooks of the settings unasked."),
    Option("--ignore-rules", "ignore_rules", "flag", "No project files, no SOUL.md."),
    Option("--ignore-user-config", "ignore_config", "flag", "As if there were no config.yaml."),
    Option("--pass-session-id", "tell_id", "flag", "Let a new session know its own id."),
    Option("-w --worktree", "worktree", "flag", "Work in a git worktree of its own."),
    Option("--checkpoints", "checkpoints", "flag", "Keep what is needed for `hermes undo`."),
    Option("--safe-mode", "safe_mode", "flag", "No plugins but those of the program."),
    Option("--record", "record", "flag", "Keep what model calls said, for `hermes replay`."),
    Option("--usage-file", "usage_file", "path", "With -z: write tokens and cost here.", "FILE"),
    Option("-v --verbose", "verbose", "flag", "Show where an error came from."),
)


def check(options: Mapping[str, Any], command: str = "") -> None:
    """UsageError for options that make no sense together or with the command behind them."""
    prompt, resume = options["prompt"], options["resume"]
    if prompt is not None and command:
        raise UsageError(f"-z is a run of its own; leave out `{command}` or -z.")
    if prompt is not None and not prompt.strip():
        raise UsageError("The prompt is empty; say something after -z.")
    if prompt is None and options["as_json"]:
        hint = f"write it behind `{command}`" if command else "add -z PROMPT"
        raise UsageError(f"--json before a command belongs to -z; {hint}.")
    if prompt is None and options["usage_file"]:
        raise UsageError("--usage-file belongs to -z; add -z PROMPT.")
    if resume is not None and options["newest"] is not None:
        raise UsageError("--resume and --continue exclude each other; give one of them.")
    if options["worktree"] and (resume is not None or options["newest"] is not None):
        raise UsageError("--worktree is for a new session; leave out --resume or --continue.")
    if options["stay"] and resume is None and options["newest"] is None:
        raise UsageError("--no-restore-cwd belongs to a resumed session; add --resume ID.")
    if resume is not None and not resume.strip():
        raise UsageError("--resume needs a session; `hermes sessions list` shows them.")


def plain_options(arguments: list[str]) -> dict[str, Any] | None:
    """The options of a `hermes` without a command, or None when it takes more to understand them.
    Loading the library for the full command line would cost a tenth of such a run."""
    by_name = {name: option for option in OPTIONS for name in option.names}
    found: dict[str, Any] = {
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
        found[option.key] = value
    return found
