"""Database clients: reading is allowed; deleting or changing shared data needs approval."""

from __future__ import annotations

import posixpath
import re

from hermes.policy.call import Call, Options
from hermes.policy.exposure import check_secret_names
from hermes.policy.outgoing import is_remote
from hermes.policy.patterns import load_regex, regex
from hermes.policy.programs.running import own_program
from hermes.policy.programs.subcommands import only_reads
from hermes.policy.shell.state import UNKNOWN

TEXT = r"(?:'((?:[^']|'')*)'|\"([^\"]*)\")"
# Targets of an export.
GOES = regex(
    rf"(?is)\b(?:to|export\s+database|into\s++(?:out|dump)file|backup)\s*+{TEXT}"
    rf"|\binto\s++(?:table\s++)?function\s++\w+\s*+\(\s*+{TEXT}"
)
# Sources: table functions and files used as tables.
TAKES = regex(
    rf"(?is)\b(?:read_\w+|\w+_scan|scan_\w+|glob|sniff_csv|file|s3\w*|url\w*|attach(?:\s+database)?"
    rf"|import\s+database|from|join|describe|summarize|infile|load)\s*+\(?\s*+(?:if\s++not\s++exists\s++)?{TEXT}"
)
# Meta-commands of psql, whose file names may be unquoted.
META = regex(
    r"(?im)\\(?P<what>copy\s++(?:\([^)]{0,400}\)|\S{1,200})(?:\s*+\([^)]{0,400}\))?\s++(?:to|from)(?:\s+program)?"
    r"|[iow]|ir|g|gx|out|include)\s+(?P<name>'[^']*'|\|[^\n]*|[\w./~-]+)"
)
BUCKET = regex(r"(?i)^(?:s3[an]?|gcs|gs|az|azure|abfss?|r2|hf|https?|ftp|sftp|oss|cos)://")
TAKEN_IN = load_regex("sql_loads_code")
SECRETS = regex(r"(?i)\bduckdb_secrets\s*\(|\bcreate\s+(?:persistent\s+)?secret\b")


def check_outside(call: Call, text: str) -> None:
    """Check every file and remote location that the statements name."""
    check_secret_names(call, text)
    if TAKEN_IN.search(text):
        call.ask("remote_code", "It loads code into the database.")
    if SECRETS.search(text):
        call.ask("credentials", "It shows or creates keys of the database.")
    written = set()
    for found in GOES.finditer(text):
        name = _literal(found)
        written.add(found.end())
        _check_target(call, name)
    for found in TAKES.finditer(text):
        if found.end() not in written:
            _check_source(call, _literal(found))
    # Literals that can only be paths.
    call.reads(*re.findall(r"'((?:/|~/)[^'\s]+)'", text))
    for found in META.finditer(text):
        _meta(call, found["what"].lower(), found["name"].strip("'"))


def _literal(found: re.Match[str]) -> str:
    return next((each for each in found.groups() if each is not None), "").replace("''", "'")


def _check_target(call: Call, name: str) -> None:
    if BUCKET.match(name) or is_remote(name):
        call.ask("network_out", f"It sends data to {name}.")
    elif UNKNOWN in name:
        call.ask("overwrite", "It writes a file whose name cannot be determined.")
    elif posixpath.basename(name) != "stdout" and name:
        call.writes(name)


def _check_command(call: Call, command: str) -> None:
    call.ask("shell_escape", "It makes the database run a command.")
    call.runs_text(command.strip("| "))


def _check_source(call: Call, name: str) -> None:
    command = name.strip()
    if command.endswith("|") or command.startswith("|"):
        _check_command(call, command)
    elif BUCKET.match(name):
        call.work("network", f"It fetches {name}.")
    elif name:
        call.reads(name)


def _meta(call: Call, what: str, name: str) -> None:
    if name.startswith("|") or what.endswith("program"):
        _check_command(call, name)
    elif what.endswith("from"):
        call.reads(name)
        call.ask("database", f"It takes {name} in, which changes data.")
    elif what in ("i", "ir", "include"):
        call.reads(name)
        call.ask("database", f"It runs all SQL statements of {name} on a database.")
    elif name not in ("stdout", "pstdout", "program"):
        call.writes(name)


READS = load_regex("sql_reads")
LOSES = load_regex("sql_loses")
ESCAPES = load_regex("sql_escapes")
DOT_FILES = regex(
    r"(?m)^\s*\.(import|read|restore|output|once|save|backup|clone|log)\s+(?:-{1,2}\w+\s+)*"
    r"('[^']*'|\"[^\"]*\"|\|.*|\S+).*$"
)


def check_sql(call: Call, text: str, *, own: bool) -> None:
    """Check SQL statements. `own` means a database file of the workspace, where only losses
    matter."""
    if UNKNOWN in text:
        call.ask("database", "It runs SQL that is known only at run time.")
    check_outside(call, text)
    for found in ESCAPES.finditer(text):
        call.ask("shell_escape", "It makes the database run a command or access files.")
        if command := next(filter(None, found.groups()), ""):
            call.runs_text(command)
    bare = re.sub(r"'(?:[^']|'')*'", "''", text)
    for statement in filter(str.strip, bare.split(";")):
        lost = LOSES.search(statement)
        if lost and not (own and _own_attach(call, lost[0], text)) and _matters(statement, lost[0]):
            call.ask("database", f"It deletes or changes data: {lost[0].strip()}.")
        elif not own and not READS.match(statement):
            call.ask("database", "It changes data that others may share.")
    call.work(reason="It uses a database.")


def _matters(statement: str, lost: str) -> bool:
    """Whether data is lost: not by a query, and not by deleting selected rows."""
    if re.search(r"(?is)^\s*(select|explain|show)\b", statement):
        return lost.lower().startswith("pg_")
    return "delete" not in lost.lower() or not re.search(r"(?is)\bwhere\b", statement)


def _own_attach(call: Call, lost: str, text: str) -> bool:
    """Whether only databases of the workspace are attached."""
    names = re.findall(r"(?i)\battach\s+(?:database\s+)?(?:if\s+not\s+exists\s+)?'([^']*)'", text)
    return lost.lower().startswith("attach") and bool(names) and all(map(call.here, names))


def check_client(call: Call) -> None:
    """Check a database client. `code_options` of the record hold statements, `file_options` files
    with statements."""
    record = call.record
    # A password follows its letter directly; it is not a group of options.
    takes_p = "-p" in record.values.split()
    words = [each for each in call.arguments if takes_p or not re.match(r"-p\S", each)]
    options = Options(words, record.values)
    texts = options.values(*record.code_options.split())
    files = options.values(*record.file_options.split())
    for name in files:
        call.ask("database", f"It runs all SQL statements of {name} on a database.")
    for text in texts:
        check_sql(call, text, own=False)
    if texts or files or options.has("--version", "-V", "--help", "-l", "--list"):
        return
    if call.name == "influx" and only_reads(call, ordered=True):
        return
    if call.stdin.known:
        check_sql(call, call.stdin.text, own=False)
    else:
        call.ask("database", "It opens an interactive database session.")


def _sqlite_files(call: Call, text: str) -> None:
    """Check files that dot-commands read or write."""
    for found in DOT_FILES.finditer(text):
        name = found[2].strip("'\"")
        if name.startswith("|"):
            _check_command(call, name)
        elif found[1] in ("import", "read", "restore"):
            call.reads(name)
            if not call.here(name):
                call.ask("database", f"It takes {name} in, from outside the workspace.")
        elif name not in ("stdout", "off"):
            call.writes(name)


def check_sqlite(call: Call) -> None:
    names = [word for word in call.arguments if not word.startswith("-") or word == "-"]
    options = call.options(call.record.values)
    if options.has("--version", "-v") and not names:
        return
    if names:
        call.reads(names[0])
        own = call.here(names[0]) or names[0] == ":memory:"
        texts = names[1:] or ([call.stdin.text] if call.stdin.known else [UNKNOWN])
        if own and not names[1:] and call.stdin.origin in ("file", "own") and not call.stdin.known:
            call.work(reason="It runs an SQL file on a database of the workspace.")
            texts = []
        for text in texts:
            _sqlite_files(call, text)
            check_sql(call, DOT_FILES.sub("", text) if own else text, own=own)
        if names[0] != ":memory:" and not all(READS.match(text) for text in texts):
            call.writes(names[0])
    for place, word in enumerate(call.arguments[:-1]):
        if word in ("-cmd", "-init"):
            check_sql(call, call.arguments[place + 1], own=False)


def check_engine(call: Call) -> None:
    options = call.options(call.record.values)
    names = [word for word in options.operands if word != "local"]
    asked = options.values("-c", "-s", "-cmd", "-q", "--query")
    texts = asked or (names if call.name in ASKED_DIRECTLY else names[1:])
    call.reads(*(name for name in names if name not in texts))
    if files := options.values("-f", "-init", "--queries-file"):
        for name in files:
            own_program(call, name)
        return
    if not texts and call.stdin.origin == "own":
        call.work(reason="It runs SQL of the project.")
        return
    for text in texts or [call.stdin.text]:
        check_sql(call, text, own=True)


# Their first operand is a statement.
ASKED_DIRECTLY = frozenset(("octosql", "dsq", "trdsql", "textql", "q"))
