"""What statements of a database reach beyond it: files, buckets, programs, variables."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from hermes.policy.call import Call
from hermes.policy.exposure import shown_secrets
from hermes.policy.hosts import far
from hermes.policy.patterns import regex
from hermes.policy.shell.state import UNKNOWN

TEXT = r"(?:'((?:[^']|'')*)'|\"([^\"]*)\")"
# Behind these words stands where something goes.
GOES = regex(
    rf"(?is)\b(?:to|export\s+database|into\s++(?:out|dump)file|backup)\s*+{TEXT}"
    rf"|\binto\s++(?:table\s++)?function\s++\w+\s*+\(\s*+{TEXT}"
)
# Programs of their own kind that take files for tables.
TAKES = regex(
    rf"(?is)\b(?:read_\w+|\w+_scan|scan_\w+|glob|sniff_csv|file|s3\w*|url\w*|attach(?:\s+database)?"
    rf"|import\s+database|from|join|describe|summarize|infile|load)\s*+\(?\s*+(?:if\s++not\s++exists\s++)?{TEXT}"
)
# A meta-command of psql: its files stand without quotes, too.
META = regex(
    r"(?im)\\(?P<what>copy\s++(?:\([^)]{0,400}\)|\S{1,200})(?:\s*+\([^)]{0,400}\))?\s++(?:to|from)(?:\s+program)?"
    r"|[iow]|ir|g|gx|out|include)\s+(?P<name>'[^']*'|\|[^\n]*|[\w./~-]+)"
)
BUCKET = regex(r"(?i)^(?:s3[an]?|gcs|gs|az|azure|abfss?|r2|hf|https?|ftp|sftp|oss|cos)://")
# Code that is taken into the database.
TAKEN_IN = regex(
    r"(?is)\binstall\s+(?:['\"]?\w+['\"]?\s+from\b|['\"][^'\"]*/)|\bload\s+['\"][^'\"]*[/.]"
    r"|\bcreate\s+(?:or\s+replace\s+)?extension\b(?!\s+if\b)|\bload_extension\s*\("
)
SECRETS = regex(r"(?i)\bduckdb_secrets\s*\(|\bcreate\s+(?:persistent\s+)?secret\b")


def check_outside(call: Call, text: str) -> None:
    """Every file and every place elsewhere that the statements name."""
    shown_secrets(call, text)
    if TAKEN_IN.search(text):
        call.ask("remote_code", "It loads code into the database.")
    if SECRETS.search(text):
        call.ask("credentials", "It shows or makes keys that the database keeps.")
    written = set()
    for found in GOES.finditer(text):
        name = _told(found)
        written.add(found.end())
        _goes(call, name)
    for found in TAKES.finditer(text):
        if found.end() not in written:
            _comes(call, _told(found))
    for name in _paths(text):
        call.reads(name)
    for found in META.finditer(text):
        _meta(call, found["what"].lower(), found["name"].strip("'"))


def _told(found: re.Match[str]) -> str:
    return next((each for each in found.groups() if each is not None), "").replace("''", "'")


def _goes(call: Call, name: str) -> None:
    if BUCKET.match(name) or far(name):
        call.ask("network_out", f"It sends data to {name}.")
    elif UNKNOWN in name:
        call.ask("overwrite", "It writes a file whose name its text does not tell.")
    elif posixpath.basename(name) != "stdout" and name:
        call.writes(name)


def _comes(call: Call, name: str) -> None:
    command = name.strip()
    if command.endswith("|") or command.startswith("|"):
        call.ask("shell_escape", "It leaves the database: it runs a command.")
        call.runs_text(command.strip("| "))
    elif BUCKET.match(name):
        call.work("network", f"It fetches {name}.")
    elif name:
        call.reads(name)


def _paths(text: str) -> Iterator[str]:
    """Texts that can only be a path, wherever they stand."""
    for found in re.finditer(r"'((?:/|~/)[^'\s]+)'", text):
        yield found[1]


def _meta(call: Call, what: str, name: str) -> None:
    if name.startswith("|") or what.endswith("program"):
        call.ask("shell_escape", "It leaves the database: it runs a command.")
        call.runs_text(name.lstrip("|"))
    elif what.endswith("from"):
        call.reads(name)
        call.ask("database", f"It takes {name} in, which changes data.")
    elif what in ("i", "ir", "include"):
        call.reads(name)
        call.ask("database", f"It runs all statements of {name} on a database.")
    elif name not in ("stdout", "pstdout", "program"):
        call.writes(name)
