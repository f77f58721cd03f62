"""`hermes sessions`: what was said is listed, shown, found, forked and named."""

from __future__ import annotations

import pytest

from tests.surfaces.cli.past import add_session
from tests.surfaces.cli.program import Program

COLUMNS = {
    "archived",
    "children",
    "id",
    "title",
    "source",
    "cwd",
    "model",
    "provider",
    "principal",
    "preview",
    "started_at",
    "last_at",
    "ended_at",
    "end_reason",
    "last_n",
    "message_count",
    "tool_call_count",
    "api_calls",
    "usage",
    "parent",
    "parent_n",
}


@pytest.fixture
def past(program: Program) -> Program:
    """Three sessions of different days and places."""
    home = program.home
    add_session(home, "garden", days=1, title="Garden plan", said="plant the marmalade tree")
    add_session(home, "taxes", days=40, said="sum up the taxes", ended="user_exit")
    add_session(home, "mail", days=100, title="Letters", source="telegram", said="a letter")
    return program


def ids(program: Program, *options: str) -> list[str]:
    return [info["id"] for info in program("sessions", "list", "--json", *options).json]


def test_sessions_are_listed_with_those_last_used_first(past: Program) -> None:
    result = past("sessions", "list")
    assert result.code == 0
    head, dashes, *rows = result.out.splitlines()
    assert head.split() == ["Title", "Preview", "Last", "active", "Source", "ID"]
    assert set(dashes) == {"-", " "}
    assert [row.split()[-1] for row in rows] == ["garden", "taxes", "mail"]
    assert rows[0].startswith("Garden plan ")
    assert rows[1].startswith("— ")
    assert "1d ago" in rows[0]
    assert rows[2].index("telegram") == head.index("Source")


def test_columns_stay_straight_with_wide_letters_and_long_titles(program: Program) -> None:
    add_session(program.home, "wide", title="計画" * 20, said="x" * 500)
    add_session(program.home, "plain", title="plan")
    head, _, *rows = program("sessions", "list").out.splitlines()
    narrow = next(row for row in rows if row.endswith("plain"))
    wide = next(row for row in rows if row.endswith("wide"))
    assert narrow.index("plain") == head.index("ID")
    assert wide.index("wide") == head.index("ID") - wide.count("計") - wide.count("画")


def test_every_line_of_json_has_every_column(past: Program) -> None:
    found = past("sessions", "list", "--json").json
    assert [set(info) for info in found] == [COLUMNS] * 3
    assert (found[1]["end_reason"], found[0]["end_reason"]) == ("user_exit", "")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--limit", "2"), ["garden", "taxes"]),
        (("--source", "telegram"), ["mail"]),
        (("--title", "PLAN"), ["garden"]),
        (("--cwd", "plan"), ["garden", "taxes", "mail"]),
        (("--cwd", "elsewhere"), []),
        (("--workspace", "/plans"), ["garden", "taxes", "mail"]),
        (("--workspace", "/plans/../plans/"), ["garden", "taxes", "mail"]),
        (("--workspace", "/"), ["garden", "taxes", "mail"]),
        (("--workspace", "/plan"), []),
        (("--workspace", "/plans/below"), []),
        (("--model", "m1"), ["garden", "taxes", "mail"]),
        (("--model", "m2"), []),
        (("--provider", "p2"), []),
        (("--min-messages", "3"), []),
        (("--max-messages", "2"), ["garden", "taxes", "mail"]),
        (("--end-reason", "user_exit"), ["taxes"]),
        (("--newer-than", "50"), ["garden", "taxes"]),
        (("--newer-than", "2w"), ["garden"]),
        (("--after", "2001-01-01", "--before", "2002-01-01"), []),
        (("--after", "2001-01-01", "--newer-than", "48h"), ["garden"]),
    ],
)
def test_the_list_is_narrowed(past: Program, options: tuple[str, ...], expected: list[str]) -> None:
    assert ids(past, *options) == expected


def test_the_sessions_of_a_folder_and_of_what_is_in_it_are_found_from_there(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner, beside = program.work / "app" / "src", program.work / "app2"
    for folder in (inner, beside):
        folder.mkdir(parents=True)
    monkeypatch.chdir(inner)
    made = program.session("calculate 6*7")
    monkeypatch.chdir(beside)
    other = program.session("calculate 6*8")
    monkeypatch.chdir(program.work / "app")
    assert ids(program, "--workspace", ".") == [made]
    assert ids(program, "--workspace", "~/work/app2") == [other]


def test_a_list_of_nothing_says_so(past: Program) -> None:
    assert past("sessions", "list", "--title", "no") == (0, "No session matches.\n", "")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--before", "soon"), "“soon” is not a date; write 2026-05-01"),
        (("--newer-than", "soon"), "“soon” is not an age; write 90 or 30d"),
    ],
)
def test_a_date_or_age_that_is_none_is_wrong_usage(
    past: Program, options: tuple[str, ...], words: str
) -> None:
    result = past("sessions", "list", *options)
    assert (result.code, result.out) == (2, "")
    assert words in result.err


def test_a_session_is_shown_with_its_facts_and_words(program: Program) -> None:
    (program.work / "notes.txt").write_text("buy marmalade")
    session = program.session("read notes.txt")
    program("sessions", "rename", session, "Notes")
    for name in (session, session[:-2], "Notes"):
        result = program("sessions", "show", name)
        assert result.code == 0
        title, facts, model, *rest = result.out.splitlines()
        assert title == "Notes"
        assert facts.startswith(f"{session}  20")
        assert model == f"offline-assistant (offline) in {program.work}"
        assert "❯ read notes.txt" in rest
        assert any("read_file" in line for line in rest)
        assert "buy marmalade" in result.out


def test_a_shown_session_is_whole_in_json(program: Program) -> None:
    (program.work / "notes.txt").write_text("buy marmalade")
    session = program.session("read notes.txt")
    found = program("sessions", "show", session, "--json").json
    assert set(found) == COLUMNS | {"lineage", "messages"}
    assert found["lineage"] == {"ancestors": [], "children": []}
    said = [(message["role"], message["tool"]) for message in found["messages"]]
    assert said[:3] == [("user", ""), ("assistant", ""), ("tool", "read_file")]
    assert said[-1] == ("assistant", "")
    numbers = [message["n"] for message in found["messages"]]
    assert numbers == sorted(numbers)


def test_words_are_found_with_their_place(past: Program) -> None:
    (hit,) = past("sessions", "search", "marmalade", "--json").json
    assert set(hit) == {
        *("session_id", "n", "event_id", "at", "role", "snippet", "score", "message_id"),
    }
    assert (hit["session_id"], hit["n"], hit["message_id"]) == ("garden", 2, "garden:2")
    assert (hit["role"], hit["snippet"]) == ("user", "plant the >>>marmalade<<< tree")
    shown = past("sessions", "show", hit["session_id"], "--json").json["messages"]
    assert [said["text"] for said in shown if said["n"] == hit["n"]] == ["plant the marmalade tree"]
    text = past("sessions", "search", "marmalade").out
    assert text.startswith("garden:2  user  ")
    assert "  plant the >>>marmalade<<< tree\n" in text


def test_several_words_need_no_quotes(past: Program) -> None:
    assert past("sessions", "search", "marmalade", "tree").out.startswith("garden:2")
    assert past("sessions", "search", '"zebra quagga"') == (0, "Nothing found.\n", "")


def test_a_search_is_limited_to_a_count_or_a_session(past: Program) -> None:
    everything = past("sessions", "search", "the", "--json").json
    assert {hit["session_id"] for hit in everything} == {"garden", "taxes"}
    assert len(past("sessions", "search", "the", "--limit", "1", "--json").json) == 1
    only = past("sessions", "search", "the", "--session", "tax", "--json").json
    assert [hit["session_id"] for hit in only] == ["taxes"]


def test_what_was_just_said_is_found(program: Program) -> None:
    for word in ("apricot", "quince"):
        session = program.session(f"calculate 6*7 {word}")
        assert program("sessions", "search", word, "--json").json[0]["session_id"] == session


def test_a_fork_shares_the_beginning_and_goes_its_own_way(program: Program) -> None:
    parent = program.session("calculate 6*7")
    end = program.sessions()[0]["last_n"]
    program.ask("calculate 1+1", "-r", parent)
    child = program("sessions", "fork", parent, "--at", str(end)).out.strip()
    program.ask("calculate 2+2", "-r", child)
    assert program.said(parent) == ["calculate 6*7", "calculate 1+1"]
    assert program.said(child) == ["calculate 6*7", "calculate 2+2"]
    shown = program("sessions", "show", child, "--json").json
    assert (shown["parent"], shown["parent_n"]) == (parent, end)
    assert shown["lineage"] == {"ancestors": [parent], "children": []}
    above = program("sessions", "show", parent, "--json").json
    assert above["lineage"] == {"ancestors": [], "children": [child]}
    assert f"forked from {parent} after record {end}" in program("sessions", "show", child).out
    assert f"forked as {child}" in program("sessions", "show", parent).out


def test_forks_have_titles_and_forks_of_their_own(program: Program) -> None:
    parent = program.session("calculate 6*7")
    program("sessions", "rename", parent, "Sums")
    child = program("sessions", "fork", "Sums", "--json").json["session_id"]
    grandchild = program("sessions", "fork", child, "--title", "Else").out.strip()
    shown = program("sessions", "show", grandchild, "--json").json
    assert (shown["title"], shown["lineage"]["ancestors"]) == ("Else", [parent, child])
    assert program("sessions", "show", "Sums", "--json").json["id"] == child
    assert program.session("calculate 1+1", "-c", "Else") == grandchild
    assert program.said(grandchild) == ["calculate 6*7", "calculate 1+1"]


@pytest.mark.parametrize("at", ["99", "0"])
def test_a_fork_needs_a_record_to_begin_at(past: Program, at: str) -> None:
    result = past("sessions", "fork", "taxes", "--at", at)
    assert (result.code, result.out) == (2, "")
    assert result.err.count("\n") == 1


def test_a_title_is_given_changed_and_taken_away(past: Program) -> None:
    result = past("sessions", "rename", "taxes", "  The\ttax\u200b  year ")
    assert result.out == "taxes is now called “The tax year”.\n"
    again = past("sessions", "rename", "The tax year", "Taxes", "--json").json
    assert again == {"session_id": "taxes", "title": "Taxes"}
    assert past("sessions", "rename", "taxes", "").out == "taxes has no title now.\n"
    assert past("sessions", "show", "Taxes").code == 1


@pytest.mark.parametrize("title", ["Garden plan", "x" * 101])
def test_a_title_must_be_free_and_short(past: Program, title: str) -> None:
    result = past("sessions", "rename", "taxes", title)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: The title ")
    assert past.sessions()[1]["title"] == ""


def test_the_numbers_add_up(past: Program) -> None:
    found = past("sessions", "stats", "--json").json
    assert (found["sessions"], found["messages"], found["events"]) == (3, 6, 18)
    assert found["by_source"] == {"cli": 2, "telegram": 1}
    assert found["bytes"] > 0
    text = past("sessions", "stats").out
    assert text.startswith("3 sessions, 6 messages, 18 records\n  2 from cli\n")


def test_child_sessions_are_a_count_of_their_parent_unless_they_are_wanted(past: Program) -> None:
    for name, source in (("sub_1", "subagent"), ("sub_2", "background")):
        add_session(past.home, name, source=source, parent="garden")
    assert ids(past) == ["garden", "taxes", "mail"]
    assert "Garden plan (+2 sub-agents)" in past("sessions", "list").out
    garden, *_ = past("sessions", "list", "--json").json
    assert garden["children"] == 2
    assert set(ids(past, "--children")) == {"garden", "taxes", "mail", "sub_1", "sub_2"}
    assert ids(past, "--source", "subagent") == ["sub_1"]
