"""The options of `hermes` itself, as data: for the full command line and for the quick way."""

from __future__ import annotations

from typing import Any, Literal

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
    Option("-r --resume", "resume", "text", "Go on with a session.", "ID|TITLE"),
    Option("-c --continue", "newest", "optional", "Go on with the newest session.", "[TITLE]"),
    Option("--max-turns", "max_turns", "count", "Most model calls in one turn.", "N"),
    Option("--yolo", "yolo", "flag", "Do not ask; what is never allowed stays so."),
    Option("--ignore-rules", "ignore_rules", "flag", "No project files, no SOUL.md."),
    Option("--usage-file", "usage_file", "path", "With -z: write tokens and cost here.", "FILE"),
    Option("-v --verbose", "verbose", "flag", "Show where an error came from."),
)


def quick_oneshot(arguments: list[str]) -> dict[str, Any] | None:
    """The options of a plain `hermes -z …`, or None when it takes more to understand. Loading the
    library for the full command line would cost a tenth of such a run."""
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
            if not value.isdigit() or value == "0":
                return None
            value = int(value)
        found[option.key] = value
    return found if found["prompt"] is not None else None
