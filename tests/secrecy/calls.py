"""What a model asks tools for, so that secrets stand in calls and results."""

from __future__ import annotations

from collections.abc import Callable

from hermes.testing.steps import Step, call, calls, calls_many
from tests.secrecy.canaries import told
from tests.secrecy.stage import Stage

Calls = Callable[[Stage], list[Step]]


def reading_a_file(stage: Stage) -> list[Step]:
    return [calls("read_file", path="notes.txt")]


def searching(stage: Stage) -> list[Step]:
    return [calls("search_files", pattern="."), calls("search_files", pattern="k$")]


def a_command(stage: Stage) -> list[Step]:
    return [calls("terminal", command="cat notes.txt")]


def standard_error(stage: Stage) -> list[Step]:
    return [calls("terminal", command="cat notes.txt >&2; exit 3")]


def output_in_drops(stage: Stage) -> list[Step]:
    drops = "while IFS= read -r -n 97 part; do printf '%s' \"$part\"; sleep 0.01; done <notes.txt"
    return [calls("terminal", command=drops)]


def a_terminal(stage: Stage) -> list[Step]:
    return [calls("terminal", command="cat notes.txt", pty=True)]


def the_environment(stage: Stage) -> list[Step]:
    dump = "env; printenv; export -p; tr '\\0' '\\n' </proc/self/environ"
    up = "tr '\\0' '\\n' </proc/$PPID/environ"
    return [calls("terminal", command=dump), calls("terminal", command=up)]


def the_files_of_secrets(stage: Stage) -> list[Step]:
    home = stage.home
    return [
        calls("read_file", path=str(home / ".env")),
        calls("terminal", command=f"cat {home}/.env {home}/config.yaml {home}/auth.json"),
        calls("search_files", pattern="CANARY", path=str(home)),
    ]


def a_flood(stage: Stage) -> list[Step]:
    """More than fits: most of it is put aside in a file."""
    return [calls("terminal", command="for i in $(seq 40); do cat notes.txt; done")]


def arguments_of_calls(stage: Stage) -> list[Step]:
    words = told(stage.canaries)
    return [
        calls("terminal", command=f"cat <<'END'\n{words}\nEND"),
        calls("read_file", path=words[:900]),
        calls("patch", path="notes.txt", old_string=words[::-1], new_string="x"),
        calls("no_such_tool", text=words),
        calls("write_file", path="copy.txt", content=words),
    ]


def addresses(stage: Stage) -> list[Step]:
    urls = [f"http://127.0.0.1:9/?api_key={each.value}" for each in stage.canaries]
    words = [f"curl -s '{url}'" for url in urls if "\n" not in url and "'" not in url]
    return [calls("terminal", command="; ".join(words))]


def side_by_side(stage: Stage) -> list[Step]:
    both = calls_many(
        call("read_file", {"path": "notes.txt"}),
        call("terminal", {"command": "base64 -w 76 notes.txt"}),
    )
    return [both]


CALLS: tuple[Calls, ...] = (
    reading_a_file,
    searching,
    a_command,
    standard_error,
    output_in_drops,
    a_terminal,
    the_environment,
    the_files_of_secrets,
    a_flood,
    arguments_of_calls,
    addresses,
    side_by_side,
)
