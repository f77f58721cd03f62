"""Questions are put one after the other, and no key answers one that nobody has read."""

from __future__ import annotations

from hermes.core.effects import RunCommand
from hermes.core.events import ApprovalAnswered, ApprovalAsked
from hermes.surfaces.cli.chat import questions as asking
from hermes.surfaces.cli.chat.chat_state import ChatState, QuestionAnswer
from hermes.surfaces.cli.chat.questions import OpenQuestion
from hermes.surfaces.cli.chat.status_bar import StatusPanel
from tests.surfaces.cli.chat.recording_screen import RecordingScreen


class Table:
    """A state and a panel with one clock."""

    def __init__(self) -> None:
        self.now = 100.0
        self.state = ChatState(lambda: self.now)
        self.state.view = self.panel = StatusPanel(RecordingScreen(), lambda: self.now)

    def ask(self, name: str) -> None:
        self.panel.ask(self.question(name))

    def question(self, name: str) -> OpenQuestion:
        asked = ApprovalAsked(
            id=name,
            call_id=name,
            effect=RunCommand(script=name, cwd="/"),
            reason="Why.",
            category="command",
            scopes=("once",),
            expires_seconds=60,
        )
        return asking.OpenQuestion(asked, self.now)

    def press(self, key: str) -> QuestionAnswer | None:
        """A key, and what came of it."""
        self.state.key(key)
        wanted = None if self.state.inputs.empty() else self.state.inputs.get_nowait()
        assert wanted is None or isinstance(wanted, QuestionAnswer)
        if wanted:
            self.panel.close_question(
                ApprovalAnswered(id=wanted.id, choice=wanted.text, by="owner")
            )
        return wanted


def test_questions_are_answered_in_their_order() -> None:
    table = Table()
    table.ask("first")
    table.ask("second")
    assert table.press("1") == QuestionAnswer(id="first", text="once")
    table.now += 1
    assert table.press("2") == QuestionAnswer(id="second", text="deny")
    assert table.panel.question is None


def test_a_key_pressed_twice_answers_once() -> None:
    table = Table()
    table.ask("first")
    assert table.press("1") == QuestionAnswer(id="first", text="once")
    table.now += 0.1
    table.ask("second")
    assert table.press("1") is None
    table.now += 1
    assert table.press("1") == QuestionAnswer(id="second", text="once")


def test_a_key_that_stands_for_nothing_answers_nothing() -> None:
    table = Table()
    table.ask("first")
    assert table.press("7") is None
    assert table.press("right") is None
    assert table.panel.symbol == "⚠ ❯"


def test_a_question_that_ends_by_itself_makes_room() -> None:
    table = Table()
    table.ask("first")
    assert table.panel.close_question(ApprovalAnswered(id="first", choice="deny", by="time"))
    assert not table.panel.close_question(ApprovalAnswered(id="first", choice="deny", by="time"))
    assert not table.state.asking()
