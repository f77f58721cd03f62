"""`hermes memory` and `/memory`, as a person uses them."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes.surfaces.cli.running import run
from tests.memory.life import assert_nowhere

Hermes = Callable[..., str]
SECRET = "the code of the garage is 4711-0815-x"


@pytest.fixture
def hermes(
    hermes_home: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Hermes:
    monkeypatch.setenv("HERMES_INFERENCE_PROVIDER", "offline")

    def call(*words: str, code: int = 0) -> str:
        ended = run(list(words))
        out, err = capfd.readouterr()
        assert ended == code, err
        return out + err

    return call


def as_json(text: str) -> Any:
    return json.loads(text)


def test_a_sentence_is_remembered_shown_explained_and_undone(hermes: Hermes) -> None:
    assert "Hermes remembers nothing yet" in hermes("memory", "list")
    assert "I will remember" in hermes("-z", "remember that the server is called atlas")
    assert "m1     memory  the server is called atlas" in hermes("memory", "list")
    assert hermes("memory", "show", "atlas").strip() == "the server is called atlas"
    why = hermes("memory", "why", "m1")
    assert "said by the owner on cli" in why
    assert "“remember that the server is called atlas”" in why
    (change,) = as_json(hermes("memory", "why", "m1", "--json"))["changes"]
    assert (change["action"], change["source"]["n"]) == ("add", 2)
    assert "undone" in hermes("memory", "undo")
    assert "Hermes remembers nothing yet" in hermes("memory", "list")
    assert [c["reverts"] for c in as_json(hermes("memory", "log", "--json"))] == [0, 1]


def test_the_past_is_shown_as_it_was(hermes: Hermes) -> None:
    hermes("-z", "remember that the server is called atlas")
    assert as_json(hermes("memory", "as-of", "2020-01-01", "--json")) == []
    today = hermes("memory", "as-of", "2999-01-01T00:00")
    assert "the server is called atlas" in today
    assert "is not a date" in hermes("memory", "as-of", "soon", code=2)


def test_wrong_names_are_told_in_one_sentence(hermes: Hermes) -> None:
    assert "There is no entry m9" in hermes("memory", "why", "m9", code=1)
    assert "is not a change id; use the form c12" in hermes("memory", "accept", "soon", code=2)
    assert "Nothing is remembered yet." in hermes("memory", "undo", code=1)


def test_an_export_has_the_whole_story(hermes: Hermes, tmp_path: Path) -> None:
    hermes("-z", "remember that the server is called atlas")
    hermes("memory", "undo")
    hermes("memory", "export", "-o", str(tmp_path / "out.jsonl"))
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [(line["id"], line["action"]) for line in lines] == [(1, "add"), (2, "remove")]


def test_everything_waits_for_a_word_when_wanted(hermes: Hermes) -> None:
    hermes("config", "set", "memory.write_approval", "true")
    assert "waits for approval" in hermes("-z", f"remember that {SECRET}")
    assert SECRET in hermes("memory", "pending")
    assert "Accepted" in hermes("memory", "accept", "c1")
    assert "m1" in hermes("memory", "list")
    assert "There is no pending change c1; see `hermes memory pending`." in hermes(
        "memory", "reject", "c1", code=1
    )
    assert "1 entries" in hermes("memory", "status")


def test_memory_can_be_emptied_and_brought_back(hermes: Hermes) -> None:
    hermes("-z", "remember that the server is called atlas")
    hermes("-z", "remember that tests run on port 8081")
    assert "2 entries removed." in hermes("memory", "reset", "--yes")
    assert "Without a terminal, confirm with --yes." in hermes("memory", "reset", code=2)
    hermes("memory", "undo")
    assert len(as_json(hermes("memory", "list", "--json"))) == 2


def test_forgetting_leaves_no_byte_in_the_home(hermes: Hermes, hermes_home: Path) -> None:
    hermes("-z", f"remember that {SECRET}")
    hermes("-z", "what did we say about the garage?")
    hermes("sessions", "search", "garage")
    plant_copies(hermes_home)
    told = hermes("memory", "forget", "m1", "--dry-run")
    assert f"would erase   {SECRET}" in told
    done = as_json(hermes("memory", "forget", "m1", "--yes", "--json"))
    assert done["entries"] == [1] and len(done["sessions"]) == 2
    assert len(done["files"]) == 4 and done["recordings"] == 1 and done["contents"] == 1
    assert_nowhere(hermes_home, "4711-0815")
    archived = gzip.decompress((hermes_home / "archive" / "old.jsonl.gz").read_bytes())
    assert archived == b'{"text":"[forgotten]"}\n'
    assert "All records are intact." in hermes("sessions", "verify")
    assert "4711-0815" not in hermes("sessions", "search", "garage")
    assert "text erased" in hermes("trace", done["sessions"][0])
    assert "[forgotten]" in hermes("memory", "log")


def plant_copies(home: Path) -> None:
    """Everything else that may hold a copy: logs, spilled results, archives, tapes, undo."""
    session = next((home / "sessions").iterdir()) if (home / "sessions").exists() else None
    session = session or home / "sessions" / "s"
    (home / "logs").mkdir(exist_ok=True)
    (home / "logs" / "agent.log").write_text(f"line\nsaid {SECRET} today\n")
    (home / ".hermes_history").write_text(f"# now\n+remember that {SECRET}\n")
    (session / "results").mkdir(parents=True, exist_ok=True)
    (session / "results" / "call.txt").write_text(json.dumps({"x": SECRET}))
    (home / "archive").mkdir()
    packed = gzip.compress(json.dumps({"text": SECRET}, separators=(",", ":")).encode() + b"\n")
    (home / "archive" / "old.jsonl.gz").write_bytes(packed)
    known = sqlite3.connect(home / "hermes.db").execute("SELECT id FROM sessions").fetchone()[0]
    tapes = home / "sessions" / known / "tapes"
    tapes.mkdir(parents=True, exist_ok=True)
    (tapes / "1.tape").write_bytes(SECRET.encode())
    keep_for_undo(home, SECRET.encode())


def keep_for_undo(home: Path, data: bytes) -> None:
    from hermes.undo.store import CheckpointStore

    store = CheckpointStore(home / "checkpoints")
    store.put([(b"h" + b"1" * 16, data), (b"h" + b"2" * 16, b"something else")])
    store.close()


def test_any_words_can_be_forgotten(hermes: Hermes, hermes_home: Path) -> None:
    hermes("-z", "say “the wedding is on Friday”")
    assert "match too many places" in hermes("memory", "forget", "on", "--yes", code=2)
    done = as_json(hermes("memory", "forget", "the wedding is on Friday", "--yes", "--json"))
    assert done["records"] > 0 and done["entries"] == []
    assert_nowhere(hermes_home, "wedding")
