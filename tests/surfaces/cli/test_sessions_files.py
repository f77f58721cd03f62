"""`hermes sessions export`, `import`, `verify`: what goes out comes back, and damage is named."""

from __future__ import annotations

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hermes.config.home import Home
from tests.surfaces.cli.past import add_session
from tests.surfaces.cli.program import Program

SECRET = "sk-or-v1-0123456789abcdef"


def exported(program: Program, *options: str) -> list[str]:
    return program("sessions", "export", *options).out.splitlines()


def wipe(program: Program) -> None:
    """Take the sessions away as a new machine would."""
    for path in program.home.iterdir():
        if path.is_file():
            path.unlink()


@pytest.fixture
def talked(program: Program) -> Program:
    """Two sessions and a fork, with tool calls and titles."""
    (program.work / "notes.txt").write_text("buy marmalade")
    first = program.session("read notes.txt")
    program("sessions", "rename", first, "Notes")
    program.ask("calculate 6*7", "-r", first)
    program.ask("calculate 1+1")
    program("sessions", "fork", first, "--at", "5")
    return program


def test_exported_sessions_come_back_as_they_were(talked: Program) -> None:
    before = exported(talked)
    listed = talked.sessions()
    assert talked("sessions", "export", "all.jsonl").err == "3 sessions written to all.jsonl.\n"
    wipe(talked)
    assert talked.sessions() == []
    done = talked("sessions", "import", "all.jsonl", "--json").json
    assert (done["sessions"], done["skipped"]) == (3, 0)
    assert exported(talked) == before
    assert talked.sessions() == listed
    assert talked("sessions", "verify").code == 0
    assert talked.session("calculate 2+2", "-r", "Notes #2") == listed[0]["id"]


def test_importing_twice_adds_nothing(talked: Program) -> None:
    talked("sessions", "export", "all.jsonl")
    before = exported(talked)
    result = talked("sessions", "import", "all.jsonl")
    assert result.out == "0 sessions and 0 messages added; 3 already existed.\n"
    assert exported(talked) == before


def test_sessions_go_from_home_to_home_through_a_pipe(talked: Program, tmp_path: Path) -> None:
    other = f"HERMES_HOME={tmp_path / 'other'}"
    script = f"hermes sessions export | {other} hermes sessions import - --json"
    run = talked.shell(script)
    assert (run.code, json.loads(run.out)["sessions"]) == (0, 3)
    back = talked.shell(f"{other} hermes sessions export")
    assert back.out.splitlines() == exported(talked)


def test_an_export_can_be_narrowed(talked: Program) -> None:
    assert [json.loads(line)["title"] for line in exported(talked, "--session-id", "Notes")] == [
        "Notes #2"
    ]
    assert len(exported(talked, "--title", "Notes")) == 2
    assert len(exported(talked, "--min-messages", "5")) == 1
    assert exported(talked, "--title", "nothing") == []
    both = talked("sessions", "export", "--session-id", "Notes", "--title", "x")
    assert (both.code, both.out) == (2, "")


def test_a_line_has_the_columns_the_words_and_the_events(talked: Program) -> None:
    line = json.loads(exported(talked, "--min-messages", "5")[0])
    assert (line["format"], line["title"]) == ("hermes-session-1", "Notes")
    assert [said["role"] for said in line["messages"]][:3] == ["user", "assistant", "tool"]
    assert len(line["events"]) == line["last_n"]


def test_a_session_can_be_read_as_markdown(talked: Program) -> None:
    result = talked("sessions", "export", "--format", "md", "--session-id", "Notes")
    assert result.out.startswith("# Notes #2\n")
    assert "\nread notes.txt\n" in result.out


def test_a_session_can_be_read_in_a_browser(talked: Program) -> None:
    id = talked.session("say <script>alert(1)</script> & more")
    page = talked("sessions", "export", "--format", "html", "--session-id", id).out
    assert page.startswith("<!doctype html>")
    assert "<script" not in page
    assert "say &lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in page
    assert "default-src &#x27;none&#x27;" in page or "default-src 'none'" in page


def test_what_the_person_said_can_be_exported_alone_and_taken_in(talked: Program) -> None:
    result = talked("sessions", "export", "mine.jsonl", "--only", "user-prompts", "--json").json
    lines = [json.loads(line) for line in Path("mine.jsonl").read_text().splitlines()]
    assert result == {"messages": len(lines), "file": "mine.jsonl"}
    assert {line["role"] for line in lines} == {"user"}
    assert "read notes.txt" in {line["text"] for line in lines}
    wrong = talked("sessions", "export", "--only", "user-prompts", "--format", "md")
    assert wrong.code == 2
    wipe(talked)
    assert talked("sessions", "import", "mine.jsonl").code == 0
    assert talked("sessions", "search", "notes.txt", "--json").json


def test_markdown_is_for_one_session_and_spares_the_file_until_then(talked: Program) -> None:
    kept = talked.work / "kept.md"
    kept.write_text("mine")
    result = talked("sessions", "export", "kept.md", "--format", "md")
    assert (result.code, result.out) == (2, "")
    assert talked("sessions", "export", "kept.md", "--session-id", "nosuch").code == 1
    assert kept.read_text() == "mine"


def test_the_report_on_a_file_can_be_json(talked: Program) -> None:
    result = talked("sessions", "export", "all.jsonl", "--json")
    assert (result.json, result.err) == ({"sessions": 3, "file": "all.jsonl"}, "")
    assert len(exported(talked, "--json")) == 3


def test_a_place_that_cannot_be_written_is_told(talked: Program) -> None:
    result = talked("sessions", "export", "no/such/file")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: no/such/file cannot be used (no such file")


def test_secrets_are_in_no_export(program: Program) -> None:
    program("config", "set", "OPENROUTER_API_KEY", SECRET)
    session = program.session(f"calculate 6*7 {SECRET}")
    for form in ("jsonl", "md"):
        options = ("--format", form, "--session-id", session)
        assert SECRET not in "".join(exported(program, *options))
        assert "[secret:known#1]" in "".join(exported(program, *options))
        assert SECRET not in "".join(exported(program, *options, "--no-redact"))
    program("config", "set", "security.redact_secrets", "false")
    assert SECRET not in "".join(exported(program))


def test_what_came_in_with_secrets_goes_out_masked_unless_told_otherwise(program: Program) -> None:
    program("config", "set", "OPENROUTER_API_KEY", SECRET)
    text = chat_lines(("old", "user", 1_700_000_000, f"the key is {SECRET}, isn't it?"))
    file = program.work / "old.jsonl"
    file.write_text(text)
    assert program("sessions", "import", str(file)).code == 0
    assert SECRET not in "".join(exported(program))
    assert "sk-or-...cdef" in "".join(exported(program))
    assert SECRET in "".join(exported(program, "--no-redact"))
    for command in (("sessions", "show", "old"), ("sessions", "list"), ("trace", "old")):
        assert SECRET not in program(*command).out


def chat_lines(*said: tuple[str, str, object, str]) -> str:
    keys = ("session", "role", "at", "text")
    return "".join(json.dumps(dict(zip(keys, line, strict=True))) + "\n" for line in said)


def test_plain_lines_become_sessions(program: Program) -> None:
    text = chat_lines(
        ("trip", "user", 1_700_000_000, "where to?"),
        ("trip", "assistant", 1_700_000_060.5, "to Lisbon"),
        ("food", "user", "2024-02-03T04:05:06+00:00", "what to eat?"),
        ("food", "assistant", "2024-02-03T04:05:07+00:00", "bread"),
        ("trip", "user", 1_700_000_100, "when?"),
    )
    (program.work / "chat.jsonl").write_text(text)
    result = program("sessions", "import", "chat.jsonl", "--json")
    assert result.json == {"sessions": 2, "messages": 5, "skipped": 0}
    listed = {info["id"]: info for info in program.sessions()}
    assert set(listed) == {"trip", "food"}
    assert (listed["trip"]["source"], listed["trip"]["started_at"]) == ("import", 1_700_000_000)
    assert listed["food"]["started_at"] == 1_706_933_106
    shown = program("sessions", "show", "trip", "--json").json["messages"]
    assert [(said["role"], said["text"]) for said in shown] == [
        ("user", "where to?"),
        ("assistant", "to Lisbon"),
        ("user", "when?"),
    ]
    assert program("sessions", "search", "lisbon", "--json").json[0]["session_id"] == "trip"
    assert program.session("calculate 6*7", "-r", "trip") == "trip"


def test_plain_lines_come_from_stdin_too(program: Program) -> None:
    text = chat_lines(("trip", "user", 1, "hi"), ("trip", "assistant", 2, "hello"))
    run = program.process("sessions", "import", "-", input=text.encode())
    assert run.stdout == b"1 session and 2 messages added; 0 already existed.\n"
    again = program.process("sessions", "import", "-", "--json", input=text.encode())
    assert json.loads(again.stdout) == {"sessions": 0, "messages": 0, "skipped": 2}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("not json", "Line 2 cannot be imported: JSON is malformed"),
        ('{"session": "a", "at": 1, "role": "king", "text": "x"}', "Invalid enum value 'king'"),
        ('{"session": "a", "at": "soon", "role": "user", "text": "x"}', "“soon” is not a date"),
        ('{"session": "a", "at": 1, "role": "user"}', "missing required field `text`"),
    ],
)
def test_a_bad_line_is_named(program: Program, line: str, words: str) -> None:
    good = chat_lines(("trip", "user", 1, "hi"))
    (program.work / "chat.jsonl").write_text(f"{good}{line}\n")
    result = program("sessions", "import", "chat.jsonl")
    assert (result.code, result.out) == (2, "")
    assert words in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    "data", [b"no gzip at all", gzip.compress(b'{"a": 1}\n' * 999, mtime=0)[:40]]
)
def test_a_broken_archive_is_told(program: Program, data: bytes) -> None:
    (program.work / "a.jsonl.gz").write_bytes(data)
    result = program("sessions", "import", "a.jsonl.gz")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: a.jsonl.gz cannot be read")


def test_a_file_that_is_not_there_is_wrong_usage(program: Program) -> None:
    result = program("sessions", "import", "nosuch")
    assert (result.code, result.err.count("\n")) == (2, 1)


def test_a_flipped_byte_is_found_and_named(program: Program) -> None:
    add_session(program.home, "whole", said="all is well")
    add_session(program.home, "bad", said="the marmalade is red")
    assert program("sessions", "verify") == (0, "All records are intact.\n", "")
    path = Home(program.home).journal
    data = bytearray(path.read_bytes())
    data[data.index(b"marmalade")] ^= 1
    path.write_bytes(data)
    result = program("sessions", "verify")
    assert result.code == 1
    assert result.out.startswith("✗ session bad record 2: it was changed after it was written\n")
    assert "all other records are intact" in result.out
    found = program("sessions", "verify", "--json")
    assert (found.code, found.json["ok"]) == (1, False)
    (problem,) = found.json["problems"]
    assert (problem["session_id"], problem["n"]) == ("bad", 2)
    assert program("sessions", "verify", "whole").code == 0
    assert program("sessions", "verify", "bad").code == 1
    assert program("sessions", "show", "whole").code == 0


def test_a_missing_record_is_found(program: Program) -> None:
    add_session(program.home, "bad")
    with closing(sqlite3.connect(Home(program.home).journal)) as db:
        db.execute("DELETE FROM log WHERE n = 4")
        db.commit()
    result = program("sessions", "verify", "--json")
    assert result.code == 1
    assert result.json["problems"][0]["n"] == 4


def test_a_repair_makes_the_index_anew_and_names_what_is_lost(program: Program) -> None:
    assert program("sessions", "repair").code == 0
    add_session(program.home, "whole", said="all is well with the marmalade")
    Home(program.home).index.write_bytes(b"no database")
    assert program("sessions", "repair") == (
        0,
        "All records are intact. The search index was rebuilt.\n",
        "",
    )
    assert len(program("sessions", "search", "marmalade", "--json").json) == 1
    with closing(sqlite3.connect(Home(program.home).journal)) as db:
        db.execute("DELETE FROM log WHERE n = 2")
        db.commit()
    for options in (("--check-only",), ()):
        result = program("sessions", "repair", *options)
        assert (result.code, result.out.endswith("restore a backup to recover these.\n")) == (
            1,
            True,
        )
