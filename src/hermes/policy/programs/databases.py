"""Database clients: reading is free; deleting or changing shared data is asked about."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from hermes.policy.call import Call, Options
from hermes.policy.exposure import check_secret_names
from hermes.policy.outgoing import is_remote
from hermes.policy.patterns import regex
from hermes.policy.programs.running import own_program
from hermes.policy.programs.script_code import check_code
from hermes.policy.programs.subcommands import only_reads
from hermes.policy.shell.state import UNKNOWN
from hermes.policy.words import word_set

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
# Loads code into the database.
TAKEN_IN = regex(
    r"(?is)\binstall\s+(?:['\"]?\w+['\"]?\s+from\b|['\"][^'\"]*/)|\bload\s+['\"][^'\"]*[/.]"
    r"|\bcreate\s+(?:or\s+replace\s+)?extension\b(?!\s+if\b)|\bload_extension\s*\("
)
SECRETS = regex(r"(?i)\bduckdb_secrets\s*\(|\bcreate\s+(?:persistent\s+)?secret\b")


def check_outside(call: Call, text: str) -> None:
    """Judges every file and remote location that the statements name."""
    check_secret_names(call, text)
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
    if BUCKET.match(name) or is_remote(name):
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
    """Literals that can only be paths."""
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


READS = regex(
    r"(?is)^\s*(--[^\n]*\n\s*)*(select|show|describe|desc|explain|pragma|with\b(?!.*\b(insert|update|delete)\b)"
    r"|values|table|use|\\[dlcsxtonqe?]\w*\+?|\.(tables|schema|indexes|databases|mode|headers?|help"
    r"|dump|show|stats|width|fullschema|quit|exit|dbinfo)|begin|commit|set|analyze|\?)"
)
LOSES = regex(
    r"(?is)\b(drop\s+(table|database|schema|index|view|user|role|keyspace|column|collection|\w+)"
    r"|truncate\b|delete\s+from|alter\s+\w+|update\s+\S+\s+set(?!.*\bwhere\b)|flushall|flushdb"
    r"|grant\b|revoke\b|attach\s|set\s+(?:global|persist|@@global)|alter\s+system|pg_(?:terminate|cancel)_backend|pg_reload_conf|shutdown|dropdatabase|deletemany|deleteone|remove\(|\.drop\()"
)
ESCAPES = regex(
    r"(?is)\\!\s*(.*)|\.(?:shell|system)\s+([^\n]*)|\bsystem\s+([^\n;]+)|(?:to|from)\s+program\s+'([^']*)'"
    r"|into\s+(?:out|dump)file\b()|\b(?:load_file|pg_read_\w+|pg_ls_\w+|lo_(?:im|ex)port|load_extension"
    r"|readfile|writefile|edit|dblink\w*|xp_\w+|sys_(?:exec|eval)|executable|http_(?:get|post|put)|utl_\w+\.\w+)\s*\(()|\.(?:load|import|output|once|save|excel|open)\s+()"
)
DOT_FILES = regex(
    r"(?m)^\s*\.(import|read|restore|output|once|save|backup|clone|log)\s+(?:-{1,2}\w+\s+)*"
    r"('[^']*'|\"[^\"]*\"|\|.*|\S+).*$"
)


def check_sql(call: Call, text: str, *, own: bool) -> None:
    """`own`: a database file of the workspace, where only losses matter."""
    if UNKNOWN in text:
        call.ask("database", "It runs statements that are only known when it runs.")
    check_outside(call, text)
    for found in ESCAPES.finditer(text):
        call.ask("shell_escape", "It leaves the database: it runs a command or touches files.")
        if command := next(filter(None, found.groups()), ""):
            call.runs_text(command)
    bare = re.sub(r"'(?:[^']|'')*'", "''", text)
    for statement in filter(str.strip, bare.split(";")):
        lost = LOSES.search(statement)
        if lost and not (own and _attached(call, lost[0], text)) and _matters(statement, lost[0]):
            call.ask("database", f"It deletes or changes data: {lost[0].strip()}.")
        elif not own and not READS.match(statement):
            call.ask("database", "It changes data that others may share.")
    call.work(reason="It works with a database.")


def _matters(statement: str, lost: str) -> bool:
    """Whether data is lost: not by a query, and not by deleting selected rows."""
    if re.search(r"(?is)^\s*(select|explain|show)\b", statement):
        return lost.lower().startswith("pg_")
    return "delete" not in lost.lower() or not re.search(r"(?is)\bwhere\b", statement)


def _attached(call: Call, lost: str, text: str) -> bool:
    """Whether only databases of the workspace are attached."""
    names = re.findall(r"(?i)\battach\s+(?:database\s+)?(?:if\s+not\s+exists\s+)?'([^']*)'", text)
    return lost.lower().startswith("attach") and bool(names) and all(map(call.here, names))


def check_client(call: Call) -> None:
    """`code_options` of the record hold statements, `file_options` files with statements."""
    record = call.record
    # A password follows its letter directly; it is not a group of options.
    takes_p = "-p" in record.values.split()
    words = [each for each in call.arguments if takes_p or not re.match(r"-p\S", each)]
    options = Options(words, record.values)
    texts = options.values(*record.code_options.split())
    files = options.values(*record.file_options.split())
    for name in files:
        call.ask("database", f"It runs all statements of {name} on a database.")
    for text in texts:
        check_sql(call, text, own=False)
    if texts or files or options.has("--version", "-V", "--help", "-l", "--list"):
        return
    if call.name == "influx" and only_reads(call, ordered=True):
        return
    if call.stdin.known:
        check_sql(call, call.stdin.text, own=False)
    else:
        call.ask("database", "It opens a database for statements that are not known yet.")


def _sqlite_files(call: Call, text: str) -> None:
    """Judges files that dot-commands read or write."""
    for found in DOT_FILES.finditer(text):
        name = found[2].strip("'\"")
        if name.startswith("|"):
            call.runs_text(name[1:])
            call.ask("shell_escape", "It leaves the database: it runs a command.")
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
            call.work(reason="It runs statements of a file on a database of the workspace.")
            texts = []
        for text in texts:
            _sqlite_files(call, text)
            check_sql(call, DOT_FILES.sub("", text) if own else text, own=own)
        if own and not all(READS.match(text) for text in texts):
            call.writes(*(names[:1] if names[0] != ":memory:" else ()))
        if not own and not all(READS.match(text) for text in texts):
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
        call.work(reason="It runs statements of the project.")
        return
    for text in texts or [call.stdin.text]:
        check_sql(call, text, own=True)


# Their first operand is a statement.
ASKED_DIRECTLY = frozenset(("octosql", "dsq", "trdsql", "textql", "q"))


def check_redis(call: Call) -> None:
    options = call.options(call.record.values)
    words = options.operands
    if options.has("--scan", "--stat", "--latency", "--bigkeys", "--memkeys", "--version"):
        return
    if not words and call.stdin.known:
        words = call.stdin.text.split()
    order = [word.lower() for word in words[:3]]
    if order[:2] == ["config", "get"] and not re.search(r"pass|auth|\*", " ".join(order[2:])):
        call.work(reason="It reads a database.")
    elif not order or order[0] not in word_set("redis_reads"):
        call.ask("database", f"It changes or deletes data: {' '.join(words[:1]) or 'unknown'}.")


def check_mongo(call: Call) -> None:
    options = call.options(call.record.values)
    for text in options.values("--eval"):
        check_code(call, text, backticks=False)
        if LOSES.search(text) or re.search(
            r"\b(insert|update|delete|drop|remove|create)\w*\(", text
        ):
            call.ask("database", "It changes or deletes data.")
        elif UNKNOWN in text:
            call.ask("database", "It runs statements that are only known when it runs.")
        else:
            call.work(reason="It reads a database.")
    if not options.values("--eval") and not options.has("--version", "--help"):
        call.ask("database", "It opens a database for statements that are not known yet.")


def check_bq(call: Call) -> None:
    words = call.options(call.record.values).operands
    if words[:1] and words[0] in ("ls", "show", "head", "version", "help", "info"):
        call.work("network", "It looks at the cloud.")
    elif words[:1] == ["query"]:
        for text in words[1:] or [call.stdin.text]:
            check_sql(call, text, own=False)
    else:
        call.ask("database", "It changes or deletes databases.")


def check_server(call: Call) -> None:
    if only_reads(call, ordered=True):
        call.work("network", "It looks at a database or a cluster.")
    else:
        call.ask("database", call.record.reason)
