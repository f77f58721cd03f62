"""The small judgements that learning is made of."""

from __future__ import annotations

import itertools
from pathlib import Path

import msgspec
import pytest

from hermes.core.events import (
    DurableEvent,
    MessageReceived,
    Record,
    ReplyAdded,
    SessionOpened,
    ToolFinished,
    TurnEnded,
    TurnStarted,
)
from hermes.core.messages import (
    AssistantMessage,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    Usage,
    user_says,
)
from hermes.learning.ledger import LearningLedger
from hermes.learning.rehearsal import (
    Introduction,
    RehearsalTrial,
    Revision,
    SkillRehearsal,
    TurnOutcome,
    find_regressions,
    outcome_of,
)
from hermes.learning.review import MOST_CHARS, conversation_digest
from hermes.learning.session_watch import (
    ReviewTrigger,
    SkillRun,
    SkillUseTracker,
    TriggerWatch,
    find_regression,
    is_correction,
)


@pytest.mark.parametrize(
    "text",
    [
        "No, use the other file.",
        "that's wrong",
        "That is not what I asked for",
        "I said the slow mode!",
        "Stop doing that",
        "Don't touch the tests",
        "Actually, always answer in French.",
        "you forgot to run the tests",
        "Nein, das andere.",
        "This is fine, but you should have asked",
    ],
)
def test_words_that_correct(text: str) -> None:
    assert is_correction(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Thanks!",
        "Now do the same for b.txt",
        "No problem, go on",
        "What does the noble gas do?",
        "Notes are in notes.txt, read them",
        "Great. Build a release.",
        "No " + "long story " * 100,
    ],
)
def test_words_that_do_not(text: str) -> None:
    assert not is_correction(text)


def result(name: str = "terminal", *, failed: bool = False, text: str = "x") -> ToolFinished:
    return ToolFinished(
        result=ToolResult(call_id="c", name=name, parts=(Text(text=text),), failed=failed)
    )


def said(text: str) -> MessageReceived:
    return MessageReceived(message=user_says(text))


def ended(reason: str = "done") -> TurnEnded:
    return TurnEnded(reason=reason, usage=Usage())  # type: ignore[arg-type]


def occasions(*events: DurableEvent, task: int = 5, session: int = 10) -> list[ReviewTrigger]:
    watch = TriggerWatch(task_calls=task, session_calls=session)
    found = [watch.note(event) for event in events]
    return [each for each in found if each is not None]


START = TurnStarted(takes=())


def test_five_calls_are_worth_a_look_and_four_are_not() -> None:
    assert occasions(START, *[result()] * 4, ended()) == []
    assert occasions(START, *[result()] * 5, ended()) == [ReviewTrigger(why="task", calls=5)]
    assert occasions(START, *[result()] * 5, ended(), task=0) == []


def test_calls_of_a_session_add_up_and_what_is_saved_starts_anew() -> None:
    turn: tuple[DurableEvent, ...] = (START, *[result()] * 4, ended())
    assert occasions(*turn, *turn, *turn) == [ReviewTrigger(why="session", calls=4)]
    saved: tuple[DurableEvent, ...] = (START, result("skill_manage"), ended())
    assert occasions(*turn, *turn, *saved, *turn) == []


def test_looking_at_skills_is_no_work_and_a_turn_that_failed_teaches_nothing() -> None:
    assert occasions(START, *[result("skill_view")] * 9, ended()) == []
    assert occasions(START, *[result()] * 9, ended("failed")) == []


def test_a_correction_counts_only_after_an_answer() -> None:
    wrong = (said("No, wrong."), START, ended())
    assert occasions(*wrong) == []
    assert occasions(said("Do."), START, ended(), *wrong) == [
        ReviewTrigger(why="correction", calls=0)
    ]


def test_an_outcome_is_counted_from_events() -> None:
    call = ToolCall(id="c", name="terminal")
    reply = ReplyAdded(
        message=AssistantMessage(parts=(call,)),
        usage=Usage(input=7, output=3),
        model="",
        provider="",
    )
    events = (reply, result(failed=True), reply, result(failed=True, text="never made"), ended())
    assert outcome_of(events, unknown="never made") == TurnOutcome(
        end="done", calls=2, failures=1, unknown=1, tokens=20
    )


DONE = TurnOutcome(end="done", calls=4, failures=1, tokens=1000)


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (DONE, ()),
        (TurnOutcome(end="done", calls=3, tokens=2200), ()),
        (TurnOutcome(end="failed", calls=1), ("it ended failed instead of done",)),
        (TurnOutcome(end="done", calls=4, failures=2), ("2 failed calls instead of 1",)),
        (TurnOutcome(end="done", calls=5), ("5 calls instead of 4",)),
        (TurnOutcome(end="done", calls=4, tokens=9000), ("9000 tokens instead of 1000",)),
        (TurnOutcome(end="done", calls=9, tokens=9000, unknown=1), ()),
    ],
)
def test_what_is_worse_is_said(after: TurnOutcome, words: tuple[str, ...]) -> None:
    assert find_regressions(DONE, after) == words


def test_more_work_is_no_harm_where_less_of_it_was_corrected() -> None:
    more = TurnOutcome(end="done", calls=9, failures=1, tokens=9000)
    assert find_regressions(msgspec.structs.replace(DONE, corrected=True), more) == ()
    assert find_regressions(msgspec.structs.replace(DONE, end="failed"), more) == ()


def trial(**after: object) -> RehearsalTrial:
    return RehearsalTrial(session="s1", n=7, before=DONE, after=TurnOutcome(end="done", **after))  # type: ignore[arg-type]


def test_one_bad_trial_refuses_and_one_unclear_trial_waits() -> None:
    good, bad, unclear = trial(calls=3), trial(calls=9), trial(calls=3, unknown=1)
    broken = RehearsalTrial(session="s2", problem="gone")
    verdicts = {
        (): "unrehearsed",
        (broken,): "unrehearsed",
        (good,): "promote",
        (good, broken): "promote",
        (good, unclear): "keep",
        (good, unclear, bad): "refuse",
    }
    for trials, verdict in verdicts.items():
        assert SkillRehearsal(skill="a", version="v", trials=trials).verdict == verdict
    words = SkillRehearsal(skill="a", version="v", trials=(good, bad)).summary
    assert words == "worse in session s1 from record 7 on: 9 calls instead of 4"


def skill(body: str, about: str = "Things") -> dict[str, bytes]:
    return {"SKILL.md": f"---\nname: a\ndescription: {about}\n---\n{body}\n".encode()}


def test_a_revision_changes_what_the_skill_said_and_nothing_else() -> None:
    revision = Revision("a", skill("Old"), {**skill("New in ${HERMES_SKILL_DIR}"), "f.md": b"F"})
    notes = "\n\n[Skill directory: /h/a]\n[Files: f.md]"
    view = ToolResult(
        call_id="c", name="skill_view", parts=(Text(text=f"Old{notes}"),), details={"name": "a"}
    )
    (changed,) = [revision.rewrite(ToolFinished(result=view))]
    assert isinstance(changed, ToolFinished)
    assert changed.result.text == f"New in /h/a{notes}"
    other = ToolFinished(result=ToolResult(call_id="c", name="skill_view", parts=view.parts))
    assert revision.rewrite(other) is other
    text = "/a go\n\n[Follow]\n\n# Skill a\n\nOld\n\n[Skill directory: /h/a]"
    called = revision.rewrite(said(text))
    assert isinstance(called, MessageReceived)
    assert called.message.text == text.replace("Old", "New in /h/a")
    gone = ToolResult(
        call_id="c",
        name="skill_view",
        parts=(Text(text="G"),),
        details={"name": "a", "file": "g.md"},
    )
    lost = revision.rewrite(ToolFinished(result=gone))
    assert isinstance(lost, ToolFinished) and lost.result.failed


def test_another_description_changes_the_list_in_the_prompt() -> None:
    revision = Revision("a", skill("B", "Things"), skill("B", "Other things"))
    opened = SessionOpened(
        source="cli", cwd="/", model="m", provider="p", system="x\n- a: Things\ny"
    )
    changed = revision.rewrite(opened)
    assert isinstance(changed, SessionOpened) and changed.system == "x\n- a: Other things\ny"


def test_a_turn_is_claimed_twice_at_most_and_never_after_it_was_done(tmp_path: Path) -> None:
    ledger = LearningLedger(tmp_path / "learning")
    assert ledger.claim("s", "t1", 1.0) and ledger.claim("s", "t1", 2.0)
    assert not ledger.claim("s", "t1", 3.0)
    assert ledger.claim("s", "t2", 1.0)
    ledger.mark_done("s", "t2", 2.0)
    assert not ledger.claim("s", "t2", 3.0)
    assert ledger.claim("s", "t3", 5.0)
    assert [look.turn for look in ledger.unfinished_reviews(9.0)] == ["t3"]
    assert ledger.unfinished_reviews(5.0) == ()


def test_a_torn_line_of_the_ledger_is_no_line(tmp_path: Path) -> None:
    ledger = LearningLedger(tmp_path)
    assert ledger.claim("s", "t", 1.0)
    path = tmp_path / "reviews.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    assert ledger.claim("s", "t", 2.0) and ledger.claim("s", "t", 3.0)


def test_a_digest_tells_calls_and_failures_and_has_an_end() -> None:
    call = ToolCall(id="c", name="terminal", arguments={"command": "make"})
    failed = ToolResult(call_id="c", name="terminal", parts=(Text(text="e" * 9000),), failed=True)
    messages = (
        user_says("Build it"),
        AssistantMessage(parts=(Text(text="I will."), call)),
        ToolMessage(results=(failed,)),
    )
    text = conversation_digest(messages)
    assert text.startswith(
        'User: Build it\n\nAssistant: I will.\n\nCall terminal {"command":"make"}'
    )
    assert "Failed of terminal: eee" in text and len(text) < 1000
    assert len(conversation_digest(messages * 100)) <= MOST_CHARS + 4


def test_a_new_skill_is_told_with_the_words_that_taught_it() -> None:
    said, other = (MessageReceived(message=user_says(text)) for text in ("Build it.", "Thanks."))
    tree = {"SKILL.md": b"---\nname: build\ndescription: How to build\n---\nRun make.\n"}
    new = Introduction("build", tree, said)
    assert (new.loads(said), new.loads(other), new.rewrite(other)) == (True, False, other)
    told = new.rewrite(said)
    assert isinstance(told, MessageReceived)
    assert told.message.text.startswith("# Skill build\n\nRun make.")
    assert told.message.text.endswith("\n\nBuild it.")


def test_who_does_nothing_has_not_shown_that_it_is_done() -> None:
    before, idle = TurnOutcome(end="done", calls=6), TurnOutcome(end="done", calls=0)
    assert RehearsalTrial(session="s", before=before, after=idle).judgement == "unclear"
    assert RehearsalTrial(session="s", before=idle, after=idle).judgement == "same"


def run(version: str, turn: int, **outcome: object) -> SkillRun:
    given = TurnOutcome(**{"end": "done", **outcome})  # type: ignore[arg-type]
    return SkillRun(skill="a", version=version, session="s", turn=f"t{turn}", outcome=given)


def test_a_version_gives_way_when_most_of_its_uses_go_badly() -> None:
    before = [run("old", n, failures=n % 2) for n in range(3)]
    bad = [run("new", 10, failures=2), run("new", 11, end="failed"), run("new", 12, corrected=True)]
    good = [run("new", 20 + n) for n in range(3)]
    words = "3 of 3 turns with it went badly"
    assert find_regression([*before, *bad], "new", "old") == words
    assert find_regression([*before, *bad[:2]], "new", "old") == ""
    assert find_regression([*before, *bad, *good], "new", "old") == ""
    assert (
        find_regression([*before, *good, *bad], "new", "old") == "3 of 5 turns with it went badly"
    )
    failing = [run("new", n, failures=1) for n in range(5)]
    assert (
        find_regression(failing, "new", "") == "" and find_regression(failing, "new", "old") == ""
    )
    assert (
        find_regression([run("old", 9), *failing], "new", "old")
        == "5 of 5 turns with it went badly"
    )


def test_uses_are_told_when_turns_end_and_when_they_are_corrected(tmp_path: Path) -> None:
    uses, ledger, n = SkillUseTracker("s"), LearningLedger(tmp_path), itertools.count(1)

    def note(event: DurableEvent) -> tuple[SkillRun, ...]:
        record = Record(session_id="s", n=next(n), turn_id="t", at=0.0, event=event)
        return uses.note(record)

    def result(tool: str, failed: bool = False, **details: object) -> ToolFinished:
        made = ToolResult(call_id="c", name=tool, parts=(), failed=failed, details=details)
        return ToolFinished(result=made)

    assert note(TurnStarted(takes=(1,))) == () == note(result("terminal", failed=True))
    assert note(result("skill_view", name="a", version="v1")) == ()
    assert note(result("terminal", failed=True)) == ()
    (ended,) = note(TurnEnded(reason="done", usage=Usage()))
    assert (ended.skill, ended.version, ended.outcome.failures) == ("a", "v1", 1)
    (corrected,) = note(MessageReceived(message=user_says("No, that is wrong.")))
    assert corrected.outcome.corrected
    for each in (ended, corrected):
        ledger.record_run(each)
    assert ledger.runs("a") == (corrected,)
    note(TurnStarted(takes=(2,)))
    assert note(TurnEnded(reason="done", usage=Usage())) == ()
