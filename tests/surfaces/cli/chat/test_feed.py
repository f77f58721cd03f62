"""Events of a session as a person sees them."""

from __future__ import annotations

import itertools

from hermes.codec.values import replace
from hermes.config.session_settings import DisplaySettings
from hermes.core.events import (
    Event,
    MessageReceived,
    ModelCalled,
    Record,
    ReplyAdded,
    Steered,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    Withdrawn,
)
from hermes.core.messages import (
    AssistantMessage,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    user_says,
)
from hermes.core.prompt import CallNamed, Notice, ReasoningDelta, Restarted, TextDelta
from hermes.surfaces.cli.chat.feed import Feed
from hermes.surfaces.cli.chat.status_bar import StatusPanel
from tests.surfaces.cli.chat.recording_screen import RecordingScreen


class Show:
    """A feed, the screen it prints on, and the live part that it keeps."""

    def __init__(self, **display: object) -> None:
        self.screen = RecordingScreen()
        self.live = StatusPanel(self.screen, lambda: 0.0)
        settings = replace(DisplaySettings(), **display)
        self._feed = Feed(self.screen, self.live, settings, "/srv/proj")
        self._numbers = itertools.count(1)

    def tell(self, text: str) -> None:
        self._feed.show_output(text)

    def report(self, text: str, *, said: bool) -> None:
        self._feed.report(text, is_answer=said)

    def __call__(self, *events: Event) -> str:
        """What is printed for some events."""
        before = len(self.screen.text)
        for event in events:
            record = Record(session_id="s", n=next(self._numbers), turn_id="t", at=0, event=event)
            self._feed.show(record)
        return self.screen.text[before:]


def reply(text: str, *calls: ToolCall, thoughts: str = "") -> ReplyAdded:
    thinking = (Reasoning(text=thoughts),) if thoughts else ()
    message = AssistantMessage(parts=(*thinking, Text(text=text), *calls))
    return ReplyAdded(message=message, usage=Usage(), model="m", provider="p")


def call(name: str, **arguments: object) -> ToolCall:
    return ToolCall(id=f"{name}-{arguments}", name=name, arguments=arguments)


def finished(made: ToolCall, *, failed: bool = False, **details: object) -> ToolFinished:
    result = ToolResult(
        call_id=made.id, name=made.name, parts=(Text(text="out"),), failed=failed, details=details
    )
    return ToolFinished(result=result, seconds=0.1)


def ended(reason: str = "done", detail: str = "text_response(done)", error: str = "") -> TurnEnded:
    return TurnEnded(reason=reason, usage=Usage(), detail=detail, error=error)  # type: ignore[arg-type]


def said(show: Show, text: str, origin: str = "user") -> str:
    received = MessageReceived(message=user_says(text, origin=origin))
    show(received)
    return show(TurnStarted(takes=(next(show._numbers) - 1,)))


READ = call("read_file", path="/srv/proj/a.txt")


def test_a_turn_from_the_first_word_to_the_last() -> None:
    show = Show()
    assert said(show, "what is in a?\nplease") == "\n❯ what is in a?\n  please\n"
    show(ModelCalled(model="m", provider="p"))
    assert show.live.activity == "thinking"
    show(CallNamed(name="read_file"))
    assert show.live.activity == "preparing read_file"
    show(reply("", READ), ToolStarted(call_id=READ.id))
    assert show.live.running[READ.id].described.detail == "a.txt"
    show(ToolProgress(call_id=READ.id, text="line 1\nline 2\n"))
    assert show.live.running[READ.id].output == "line 2"
    assert show(finished(READ)) == "┊ 📖 read      a.txt  0.1s\n"
    assert show(TextDelta(text="It is **emp")) == "\n"
    assert show.live.tail(60, 5) == ["It is **emp"]
    assert show(TextDelta(text="ty**."), reply("It is **empty**.")) == "It is empty.\n"
    assert show(ended()) == ""
    assert (show.live.busy, show.live.tail(60, 5)) == (False, [])


def test_without_streaming_an_answer_comes_at_once() -> None:
    show = Show(streaming=False)
    assert show(TextDelta(text="One.\n\nTwo.")) == ""
    assert show.live.activity == "writing"
    assert show(reply("One.\n\nTwo.")) == "\nOne.\n\nTwo.\n"


def test_a_reply_without_deltas_is_shown_too() -> None:
    assert Show()(reply("Hello.")) == "\nHello.\n"


def test_an_answer_that_comes_anew_says_so() -> None:
    show = Show()
    show(TextDelta(text="First line.\n\nSecond"))
    assert "starts again" in show(Restarted())
    assert show(TextDelta(text="Better."), reply("Better.")) == "\nBetter.\n"


def test_what_was_written_before_an_interrupt_stays() -> None:
    show = Show()
    show(TextDelta(text="Half a sent"))
    assert show(ended("interrupted", "interrupted_by_user")) == "Half a sent\n\nInterrupted.\n"


def test_reasoning_is_shown_on_request() -> None:
    quiet, open_minded = Show(), Show(show_reasoning=True)
    thoughts = ReasoningDelta(text="I wonder.\nI know")
    assert quiet(thoughts) == ""
    assert open_minded(thoughts, TextDelta(text="Yes.")) == "\n┊ I wonder.\n┊ I know\n\n"
    whole = Show(show_reasoning=True)(reply("Yes.", thoughts="All at once."))
    assert whole == "\n┊ All at once.\n\nYes.\n"


def test_tool_lines_only_when_the_tool_changes() -> None:
    show = Show(tool_progress="new")
    other = call("terminal", command="ls")
    show(reply("", READ, other))
    shown = show(finished(READ), finished(READ), finished(other), finished(other, failed=True))
    assert [line.split()[2] for line in shown.strip().split("\n")] == ["read", "$", "$"]


def test_verbose_tool_lines_have_everything() -> None:
    show = Show(tool_progress="verbose")
    show(reply("", READ))
    assert '{"path":"/srv/proj/a.txt"}' in show(finished(READ))


def test_notices_and_failures_are_one_line_each() -> None:
    show = Show()
    assert show(Notice(text="Trying again in 2 s.")) == "Trying again in 2 s.\n"
    assert show(ended("failed", "auth", "The key was refused.")) == "error: The key was refused.\n"


def test_an_early_end_is_explained_unless_that_is_not_wanted() -> None:
    end = ended("guardrail", "read_file failed 8 times in a row")
    assert "the model repeated itself" in Show()(end)
    assert Show(turn_completion_explainer=False)(end) == ""


def test_messages_that_wait_are_shown_until_they_are_taken_back() -> None:
    show = Show()
    said(show, "first")
    show(MessageReceived(message=user_says("second")), MessageReceived(message=user_says("third")))
    assert show.live.activity_rows(80) == [
        "▹ second",
        "▹ third",
        "2 messages are queued · ↑ edits the last, Esc drops it",
    ]
    newest = show._feed.newest_waiting
    assert newest is not None and newest[1] == "third"
    show(Withdrawn(n=newest[0]))
    assert show.live.queued == ("second",)


def test_words_that_join_a_turn_are_shown_when_they_do() -> None:
    show = Show()
    said(show, "first")
    show(MessageReceived(message=user_says("be quick"), steer=True))
    assert show(Steered(takes=(next(show._numbers) - 1,))) == "\n❯ be quick\n"


def test_words_of_others_look_different_and_those_of_hermes_are_not_shown() -> None:
    show = Show()
    assert said(show, "proc_1 exited 0", origin="process:proc_1") == "\n⚙ proc_1 exited 0\n"
    assert said(show, "Sum it up.", origin="hermes") == ""


def test_several_tools_at_once_are_counted() -> None:
    show = Show()
    calls = [call("terminal", command=f"sleep {n}") for n in range(3)]
    show(reply("", *calls), *(ToolStarted(call_id=each.id) for each in calls))
    (row,) = show.live.activity_rows(60)
    assert row.endswith(" running 3 tools  0s")


def test_a_picture_that_was_drawn_is_shown_by_its_whole_path() -> None:
    wish = ToolCall(id="c1", name="image_generate", arguments={"prompt": "a corgi"})
    path = "/home/me/.hermes/cache/images/" + "x" * 90 + ".png"
    drew = ToolResult(call_id="c1", name="image_generate", parts=(), details={"image": path})
    events = (reply("", wish), ToolStarted(call_id="c1"), ToolFinished(result=drew, seconds=2))
    assert f"🖼  {path}" in Show()(*events)
    assert "draw" in Show()(*events)
    assert path in Show(tool_progress="off")(*events)
    failed = replace(drew, failed=True, details={"image": None})
    assert "🖼" not in Show()(reply("", wish), ToolFinished(result=failed, seconds=2))


def test_a_turn_whose_edits_all_failed_says_so_whatever_the_model_says() -> None:
    edit = call("patch", path="a.py")
    turn = (reply("", edit), finished(edit, failed=True), reply("Done."), ended())
    warning = "No file was changed: every edit failed (a.py)."
    assert warning in Show()(*turn)
    assert warning not in Show(file_mutation_verifier=False)(*turn)


def test_words_between_calls_can_be_left_out() -> None:
    look = call("read_file", path="a.py")
    turn = (TextDelta(text="Let me look."), reply("Let me look.", look), finished(look))
    answer = (TextDelta(text="It is empty."), reply("It is empty."), ended())
    assert "Let me look." in Show()(*turn)
    shown = Show(interim_assistant_messages=False)(*turn, *answer)
    assert "Let me look." not in shown
    assert "It is empty." in shown


def test_news_of_processes_come_in_as_many_lines_as_wanted() -> None:
    text = "\n".join(f"line {number}" for number in range(9))
    assert said(Show(), text, "process:1").count("⚙") == 7
    assert "⚙ line 0\n⚙ …" in said(
        Show(background_process_notifications="concise"), text, "process:1"
    )
    assert "⚙" not in said(Show(background_process_notifications="off"), text, "process:1")


def test_news_break_between_words_and_answers_aside_lose_their_marks() -> None:
    show = Show()
    news = said(
        show, "Background process proc_1 completed. Command: make all the things", "process:1"
    )
    assert news.rstrip().endswith("\n  things")
    show.report("↪ asked\nIt is **bold**.", said=True)
    assert show.screen.text.endswith("↪ asked\nIt is bold.\n")
    output = "*a* *b* " * 20
    show.report(output, said=False)
    assert show.screen.text.endswith(f"{output}\n")


def test_what_a_command_says_breaks_between_words() -> None:
    show = Show()
    show.tell("/name [words]   What it does in so many words that they need a second row.")
    assert show.screen.text.endswith("they need\n                a second row.\n")
    show.tell("  It has an indent and is long enough to go over the edge of the window.")
    assert show.screen.text.endswith("edge of\n  the window.\n")
    show.tell(f"/{'name' * 12}  What it does in many words.")
    assert show.screen.text.endswith("\n    does in many words.\n")
