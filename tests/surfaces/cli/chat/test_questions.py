"""Questions: what they show and what an answer means."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.commands.language import list_languages, load_language
from hermes.core.effects import Effect, RunCommand, WritePath
from hermes.core.events import ApprovalAnswered, ApprovalAsked, QuestionAnswered, QuestionAsked
from hermes.surfaces.cli.chat import questions as asking
from hermes.surfaces.cli.chat.cells import cells
from hermes.surfaces.cli.chat.screen import Paint
from hermes.surfaces.cli.chat.skin import find_skin

PLAIN = Paint(colours=False)


def wants(effect: Effect, *scopes: str) -> ApprovalAsked:
    return ApprovalAsked(
        id="q1",
        call_id="c1",
        effect=effect,
        reason="`rm` deletes files.",
        category="delete",
        scopes=scopes or ("once", "session", "always"),
        expires_seconds=60,
    )


REMOVAL = wants(RunCommand(script="rm -r build", cwd="/srv/proj"))
COLOUR = QuestionAsked(
    id="q2", call_id="c2", question="Which colour?", choices=("red", "blue"), expires_seconds=120
)


def test_an_approval_shows_what_where_and_why() -> None:
    assert asking.panel(REMOVAL, PLAIN, 80) == (
        "⚠  Run this command? — `rm` deletes files.\n"
        "   cwd /srv/proj · category delete\n"
        "   rm -r build"
    )
    assert asking.OpenQuestion(REMOVAL, now=0).rows(PLAIN, 100, now=0.5) == [
        "  [1] once   [2] this session   [3] always   [4] deny    (1m 00s → deny)"
    ]


def test_nothing_in_a_command_is_hidden() -> None:
    panel = asking.panel(wants(RunCommand(script="ls\x1b[8m\u202e\nrm x", cwd="/")), PLAIN, 80)
    assert panel.endswith("\n   ls\\x1b[8m\\u202e\n   rm x")


def test_a_file_is_asked_about_by_its_path() -> None:
    panel = asking.panel(wants(WritePath(path="/etc/hosts")), PLAIN, 80)
    assert "Write this file?" in panel
    assert panel.endswith("   write /etc/hosts")


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("1", "once"),
        ("2", "session"),
        ("this session", "session"),
        ("always", "always"),
        ("y", "once"),
        ("No", "deny"),
        ("4", "deny"),
        ("5", None),
        ("please", None),
        ("", None),
    ],
)
def test_only_a_clear_word_decides_an_approval(typed: str, answer: str | None) -> None:
    assert asking.OpenQuestion(REMOVAL, now=0).parse_answer(typed) == answer


def test_only_offered_scopes_can_be_chosen() -> None:
    asked = asking.OpenQuestion(wants(RunCommand(script="cat key", cwd="/"), "once"), now=0)
    assert asked.values == ("once", "deny")
    assert asked.parse_answer("always") is None


def test_arrows_choose_and_an_empty_line_confirms() -> None:
    asked = asking.OpenQuestion(REMOVAL, now=0)
    asked.move(1)
    asked.move(1)
    assert asked.parse_answer("") == "session"
    assert ">[2] this session" in asked.rows(PLAIN, 100, now=0)[0]
    asked.move(-1)
    asked.move(-1)
    assert asked.parse_answer("") == "deny"


def test_a_question_takes_a_choice_or_free_words() -> None:
    asked = asking.OpenQuestion(COLOUR, now=0)
    assert [asked.parse_answer(typed) for typed in ("2", "green", "7 shades")] == [
        "blue",
        "green",
        "7 shades",
    ]
    assert asked.rows(PLAIN, 100, now=115)[0].endswith("or type your answer    (5s → no answer)")


def test_choices_that_do_not_fit_into_a_row_get_rows_of_their_own() -> None:
    rows = asking.OpenQuestion(REMOVAL, now=0).rows(PLAIN, 40, now=0)
    assert len(rows) == 5
    assert all(cells(row) <= 40 for row in rows)


def test_what_came_of_it_is_one_line() -> None:
    said = [
        asking.outcome(answered, PLAIN)
        for answered in (
            ApprovalAnswered(id="q", choice="session", by="owner"),
            ApprovalAnswered(id="q", choice="deny", by="time"),
            QuestionAnswered(id="q", text="blue", by="owner"),
            QuestionAnswered(id="q", text="", by="time"),
        )
    ]
    assert said == [
        "   → allowed: this session",
        "   → denied (no answer in time)",
        "   → blue",
        "   → no answer",
    ]


def test_a_skin_of_words_asks_in_words() -> None:
    paint = Paint(colours=False)
    paint.apply_skin(find_skin("plain", Path("/nowhere")))
    panel = asking.panel(REMOVAL, paint, 80)
    assert panel.startswith("question: Run this command? — `rm` deletes files.\n")
    assert asking.OpenQuestion(REMOVAL, now=0).symbol(paint.skin) == "allow? >"
    assert asking.panel(COLOUR, paint, 80) == "question: Which colour?"
    assert asking.OpenQuestion(COLOUR, now=0).symbol(paint.skin) == "answer >"
    denied = ApprovalAnswered(id="q1", choice="deny", by="person")
    assert asking.outcome(denied, paint) == " answer: denied"


@pytest.mark.parametrize("name", list_languages())
def test_a_question_is_put_in_every_language_and_means_the_same(name: str) -> None:
    paint = Paint(colours=False)
    paint.say = load_language(name)
    asked = asking.OpenQuestion(REMOVAL, now=0, say=paint.say)
    assert asking.panel(REMOVAL, paint, 80).endswith("\n   rm -r build")
    for value in asked.values:
        assert asked.parse_answer(asked.label(value)) == value
        assert asked.parse_answer(value) == value
    assert {asked.parse_answer(word) for word in paint.say.yes} == {"once"}
    assert {asked.parse_answer(word) for word in paint.say.no} == {"deny"}
    assert [asked.parse_answer(str(n)) for n in range(1, 5)] == [
        "once",
        "session",
        "always",
        "deny",
    ]


def test_a_question_in_german() -> None:
    paint = Paint(colours=False)
    paint.say = load_language("de")
    assert asking.panel(REMOVAL, paint, 80) == (
        "⚠  Diesen Befehl ausführen? — `rm` deletes files.\n"
        "   Ordner /srv/proj · Art delete\n"
        "   rm -r build"
    )
    assert asking.OpenQuestion(REMOVAL, now=0, say=paint.say).rows(paint, 100, now=0.5) == [
        "  [1] einmal   [2] diese Sitzung   [3] immer   [4] ablehnen    (1m 00s → ablehnen)"
    ]
    denied = ApprovalAnswered(id="q1", choice="deny", by="time")
    assert asking.outcome(denied, paint) == "   → abgelehnt (nicht rechtzeitig beantwortet)"
