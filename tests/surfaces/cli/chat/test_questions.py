"""Questions: what they show and what an answer means."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.commands.language import list_languages, load_language
from hermes.core.effects import Effect, RunCommand, WritePath
from hermes.core.events import ApprovalAnswered, ApprovalAsked, QuestionAnswered, QuestionAsked
from hermes.core.messages import ToolCall
from hermes.surfaces.cli.chat import questions as asking
from hermes.surfaces.cli.chat.approval_panel import ApprovalPanel, question_panel
from hermes.surfaces.cli.chat.cells import cells
from hermes.surfaces.cli.chat.screen import Paint
from hermes.surfaces.cli.chat.skin import DEFAULT, find_skin
from hermes.tools.files.edits import FileEdit

PLAIN = Paint(colours=False)
COLOURS = Paint(colours=True)


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


def panel(asked: ApprovalAsked, paint: Paint = PLAIN, *edits: FileEdit) -> list[str]:
    return ApprovalPanel(asked, paint, 60, edits).text().split("\n")


def edit(before: str | None, after: str, path: str = "/etc/app.py") -> FileEdit:
    old = None if before is None else before.encode()
    return FileEdit(path=path, name=path, before=old, after=after.encode())


def test_an_approval_shows_what_where_and_why() -> None:
    assert panel(REMOVAL) == [
        "╭─ ⚠ Run this command? ─────────────────────────────────────",
        "│ `rm` deletes files.",
        "│ cwd /srv/proj · category delete",
        "│",
        "│ rm -r build",
        "╰───────────────────────────────────────────────────────────",
    ]
    assert asking.OpenQuestion(REMOVAL, now=0).rows(PLAIN, 100, now=0.5) == [
        "  [1] once   [2] this session   [3] always   [4] deny    (1m 00s → deny)",
        "  ↑↓ Enter choose · Tab denies with a reason · ? shows details",
    ]


def test_nothing_in_a_command_is_hidden() -> None:
    rows = panel(wants(RunCommand(script="ls\x1b[8m\u202e\nrm x", cwd="/")))
    assert rows[-3:-1] == ["│ ls\\x1b[8m\\u202e", "│ rm x"]


def test_a_file_is_asked_about_by_its_path() -> None:
    rows = panel(wants(WritePath(path="/etc/hosts")))
    assert "Write this file?" in rows[0]
    assert rows[-2] == "│ write /etc/hosts"


def test_a_change_is_shown_as_a_diff_with_line_numbers() -> None:
    change = edit("one\ntwo\nthree\n", "one\n2\nthree\n")
    assert panel(wants(WritePath(path="/etc/app.py")), PLAIN, change)[2:-1] == [
        "│ changes the file · +1 −1",
        "│",
        "│ write /etc/app.py",
        "│ 1   one",
        "│ 2 - two",
        "│ 2 + 2",
        "│ 3   three",
    ]


def test_a_file_that_does_not_exist_is_called_new() -> None:
    rows = panel(wants(WritePath(path="/etc/app.py")), COLOURS, edit(None, "def f(): pass\n"))
    assert "new file · 1 line" in rows[2]
    assert "overwrite" not in "".join(rows)
    assert "\x1b[32m1 + \x1b[0m\x1b[35mdef\x1b[0m" in rows[-2]


def test_a_long_diff_is_cut_and_whole_in_the_details() -> None:
    text = "".join(f"line {n}\n" for n in range(100))
    asked = wants(WritePath(path="/etc/app.py"))
    shown = ApprovalPanel(asked, PLAIN, 60, (edit(None, text),))
    assert "line 99" not in shown.text() and "more lines" in shown.text()
    call = ToolCall(id="c1", name="write_file", arguments={"path": "app.py"})
    details = shown.details(call)
    assert "│ 100 + line 99" in details
    assert 'write_file {"path":"app.py"}' in details


def test_invisible_characters_of_a_new_file_are_shown() -> None:
    rows = panel(wants(WritePath(path="/etc/app.py")), PLAIN, edit(None, "a\u202eb\n"))
    assert rows[-2] == "│ 1 + a\\u202eb"


def test_the_edit_of_another_file_is_not_shown() -> None:
    rows = panel(wants(WritePath(path="/etc/app.py")), PLAIN, edit(None, "x\n", path="/etc/other"))
    assert rows[-2] == "│ write /etc/app.py"


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
    parsed = asking.OpenQuestion(REMOVAL, now=0).parse_answer(typed)
    assert parsed == (asking.ParsedAnswer(answer) if answer else None)


@pytest.mark.parametrize("typed", ["no, use the trash", "deny use the trash", "n use the trash"])
def test_what_follows_a_no_is_its_reason(typed: str) -> None:
    parsed = asking.OpenQuestion(REMOVAL, now=0).parse_answer(typed)
    assert parsed == asking.ParsedAnswer("deny", "use the trash")


def test_a_reason_can_be_asked_for() -> None:
    asked = asking.OpenQuestion(REMOVAL, now=0)
    asked.wants_reason = True
    assert asked.symbol(DEFAULT) == "reason ❯"
    assert asked.rows(PLAIN, 80, now=0) == [
        "  Enter denies and tells the model why · Esc goes back"
    ]
    assert asked.parse_answer("1") == asking.ParsedAnswer("deny", "1")
    assert asked.parse_answer("") == asking.ParsedAnswer("deny")


def test_only_offered_scopes_can_be_chosen() -> None:
    asked = asking.OpenQuestion(wants(RunCommand(script="cat key", cwd="/"), "once"), now=0)
    assert asked.values == ("once", "deny")
    assert asked.parse_answer("always") is None


def test_arrows_choose_and_an_empty_line_confirms() -> None:
    asked = asking.OpenQuestion(REMOVAL, now=0)
    asked.move(1)
    asked.move(1)
    assert asked.parse_answer("") == asking.ParsedAnswer("session")
    assert ">[2] this session" in asked.rows(PLAIN, 100, now=0)[0]
    asked.move(-1)
    asked.move(-1)
    assert asked.parse_answer("") == asking.ParsedAnswer("deny")


def test_a_question_takes_a_choice_or_free_words() -> None:
    asked = asking.OpenQuestion(COLOUR, now=0)
    assert [asked.parse_answer(typed) for typed in ("2", "green", "7 shades")] == [
        asking.ParsedAnswer("blue"),
        asking.ParsedAnswer("green"),
        asking.ParsedAnswer("7 shades"),
    ]
    assert asked.rows(PLAIN, 100, now=115)[0].endswith("or type your answer    (5s → no answer)")


def test_choices_that_do_not_fit_into_a_row_get_rows_of_their_own() -> None:
    rows = asking.OpenQuestion(REMOVAL, now=0).rows(PLAIN, 40, now=0)
    assert len(rows) == 6
    assert all(cells(row) <= 40 for row in rows)


def test_what_came_of_it_is_one_line() -> None:
    said = [
        asking.outcome(answered, PLAIN)
        for answered in (
            ApprovalAnswered(id="q", choice="session", by="owner"),
            ApprovalAnswered(id="q", choice="deny", by="time"),
            ApprovalAnswered(id="q", choice="deny", by="owner", reason="use the trash"),
            QuestionAnswered(id="q", text="blue", by="owner"),
            QuestionAnswered(id="q", text="", by="time"),
        )
    ]
    assert said == [
        "   → allowed: this session",
        "   → denied (no answer in time)",
        "   → denied (use the trash)",
        "   → blue",
        "   → no answer",
    ]


def test_a_skin_of_words_asks_in_words() -> None:
    paint = Paint(colours=False)
    paint.apply_skin(find_skin("plain", Path("/nowhere")))
    assert panel(REMOVAL, paint) == [
        "question: Run this command?",
        "  `rm` deletes files.",
        "  cwd /srv/proj · category delete",
        "",
        "  rm -r build",
    ]
    assert asking.OpenQuestion(REMOVAL, now=0).symbol(paint.skin) == "allow? >"
    assert question_panel(COLOUR, paint, 80) == "question: Which colour?"
    assert asking.OpenQuestion(COLOUR, now=0).symbol(paint.skin) == "answer >"
    denied = ApprovalAnswered(id="q1", choice="deny", by="person")
    assert asking.outcome(denied, paint) == " answer: denied"


@pytest.mark.parametrize("name", list_languages())
def test_a_question_is_put_in_every_language_and_means_the_same(name: str) -> None:
    paint = Paint(colours=False)
    paint.say = load_language(name)
    asked = asking.OpenQuestion(REMOVAL, now=0, say=paint.say)
    assert panel(REMOVAL, paint)[-2] == "│ rm -r build"
    for value in asked.values:
        assert asked.parse_answer(asked.label(value)) == asking.ParsedAnswer(value)
        assert asked.parse_answer(value) == asking.ParsedAnswer(value)
    yes, no = asking.ParsedAnswer("once"), asking.ParsedAnswer("deny")
    assert {asked.parse_answer(word) for word in paint.say.yes} == {yes}
    assert {asked.parse_answer(word) for word in paint.say.no} == {no}
    assert [asked.parse_answer(str(n)) for n in range(1, 5)] == [
        asking.ParsedAnswer(value) for value in ("once", "session", "always", "deny")
    ]


def test_a_question_in_german() -> None:
    paint = Paint(colours=False)
    paint.say = load_language("de")
    assert panel(REMOVAL, paint)[:3] == [
        "╭─ ⚠ Diesen Befehl ausführen? ──────────────────────────────",
        "│ `rm` deletes files.",
        "│ Ordner /srv/proj · Art delete",
    ]
    assert asking.OpenQuestion(REMOVAL, now=0, say=paint.say).rows(paint, 100, now=0.5) == [
        "  [1] einmal   [2] diese Sitzung   [3] immer   [4] ablehnen    (1m 00s → ablehnen)",
        "  ↑↓ Enter wählt · Tab lehnt mit Grund ab · ? zeigt Einzelheiten",
    ]
    denied = ApprovalAnswered(id="q1", choice="deny", by="time")
    assert asking.outcome(denied, paint) == "   → abgelehnt (nicht rechtzeitig beantwortet)"
