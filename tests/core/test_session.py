"""Turns as a surface sees them: words in, events out, a journal that says the same."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Annotated

import pytest

from hermes.commands.tool_calls import failure_reason
from hermes.core.commands import Answer, Interrupt, Rewind, Say, Steer, Withdraw
from hermes.core.effects import ReadPath, RunCommand, WritePath
from hermes.core.errors import ToolError, UsageError
from hermes.core.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallSettled,
    MessageReceived,
    ModelCalled,
    QuestionAsked,
    Record,
    ReplyAdded,
    SessionOpened,
    Steered,
    ToolFinished,
    ToolIntended,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from hermes.core.guardrails import Guardrails
from hermes.core.messages import AssistantMessage, Text, ToolMessage, UserMessage, user_says
from hermes.core.prompt import Delta, Prompt, Reply, TextDelta
from hermes.core.session_deps import TurnLimits
from hermes.core.tools import PathContext, ToolContext, ToolOutput, tool
from hermes.core.transcript import fold
from hermes.policy.rules import PolicySettings
from hermes.testing.provider import ScriptedProvider
from hermes.testing.steps import Pace, Step, calls, calls_many, fails, says
from tests.core.conftest import Run, run_in
from tests.timing import check_in_time, tried_until_in_time


@tool(repeat="safe")
async def shout(ctx: ToolContext, text: Annotated[str, "What to shout"]) -> ToolOutput:
    """Say it loudly."""
    return ToolOutput.text(text.upper(), details={"length": len(text)})


@tool()
async def crash(ctx: ToolContext) -> ToolOutput:
    """Fall over."""
    raise RuntimeError("secret inner detail")


@tool()
async def complain(ctx: ToolContext, n: int = 0) -> ToolOutput:
    """Fail with advice."""
    raise ToolError("Try something else.")


def _read(place: PathContext, arguments: dict[str, object]) -> tuple[ReadPath, ...]:
    return (ReadPath(path=place.resolve(str(arguments["path"]))),)


def _write(place: PathContext, arguments: dict[str, object]) -> tuple[WritePath, ...]:
    return (WritePath(path=place.resolve(str(arguments["path"]))),)


class Meeting:
    """Counts how many calls are inside at the same time."""

    def __init__(self) -> None:
        self.inside = 0
        self.most = 0
        self.order: list[str] = []

    async def attend(self, name: str) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)
        for _ in range(20):
            await asyncio.sleep(0)
        self.inside -= 1
        self.order.append(name)


@tool(effects=_read, repeat="safe")
async def look(ctx: ToolContext, path: str) -> ToolOutput:
    """Look at a path."""
    await ctx.service(Meeting).attend(f"look {path}")
    return ToolOutput.text(path)


@tool(effects=_write)
async def put(ctx: ToolContext, path: str) -> ToolOutput:
    """Write a path."""
    await ctx.service(Meeting).attend(f"put {path}")
    await ctx.workspace.write_bytes(ctx.workspace.resolve(path), b"x")
    return ToolOutput.text(path)


# Asked about, because its text does not tell where it writes.
TOUCH = "touch ${PLACE:-.}/a"


@tool(effects=lambda place, a: (RunCommand(script=a["command"], cwd=place.cwd),))
async def shell(ctx: ToolContext, command: str) -> ToolOutput:
    """Run a command."""
    effect = RunCommand(script=command, cwd=ctx.workspace.cwd)
    done = await ctx.workspace.run(effect, timeout=60, stop=ctx.stop, max_bytes=1000)
    return ToolOutput.text(f"{done.output}[exit {done.exit_code}]")


@tool(interactive=True, repeat="safe")
async def wonder(ctx: ToolContext, question: str) -> ToolOutput:
    """Ask the person."""
    return ToolOutput.text(await ctx.ask(question, ("yes", "no")) or "nobody answered")


@tool()
async def sneak(ctx: ToolContext, path: str) -> ToolOutput:
    """Declare nothing and write all the same."""
    await ctx.workspace.write_bytes(path, b"x")
    return ToolOutput.text("written")


async def test_one_turn_in_the_order_in_which_it_happens(run: Run) -> None:
    run.model = ScriptedProvider(calls("shout", text="hi"), says("I shouted."))
    run.tools = (shout,)
    events = await run.say("Shout hi")
    assert [type(e) for e in events if not isinstance(e, TextDelta)] == [
        SessionOpened,
        MessageReceived,
        TurnStarted,
        ModelCalled,
        *(type(e) for e in events if type(e).__name__ == "CallNamed"),
        CallSettled,
        ReplyAdded,
        ToolIntended,
        ToolStarted,
        ToolFinished,
        ModelCalled,
        CallSettled,
        ReplyAdded,
        TurnEnded,
    ]
    assert run.text() == "I shouted."
    assert run.ended().reason == "done"
    assert run.ended().usage.requests == 2
    assert await run.messages_in_journal() == run.session.transcript.messages


async def test_a_missing_tool_is_told_to_the_model(run: Run) -> None:
    run.model = ScriptedProvider(calls("fly"), says("I cannot fly."))
    run.tools = (shout,)
    await run.say("Fly!")
    assert run.results()[0].text == "There is no tool named 'fly'. There are: shout."
    assert run.text() == "I cannot fly."


async def test_small_slips_in_a_name_are_forgiven(run: Run) -> None:
    run.model = ScriptedProvider(calls("Shout", text="a"), calls("shuot", text="b"), says("ok"))
    run.tools = (shout, complain)
    await run.say("go")
    assert [result.text for result in run.results()] == ["A", "B"]


async def test_three_replies_without_one_usable_call_end_the_turn(run: Run) -> None:
    run.model = ScriptedProvider(calls("x"), calls("y"), calls("z"))
    await run.say("go")
    assert (run.ended().reason, run.ended().detail) == ("partial", "invalid_tool_calls")


async def test_what_a_tool_says_reaches_the_model_and_a_crash_is_not_spelled_out(run: Run) -> None:
    run.model = ScriptedProvider(calls_many(("complain", {}), ("crash", {})), says("ok"))
    run.tools = (complain, crash)
    await run.say("go")
    assert [(result.failed, result.text) for result in run.results()] == [
        (True, "Try something else."),
        (True, "crash crashed. Its state is unknown; check before trying again."),
    ]


async def test_wrong_arguments_are_named(run: Run) -> None:
    run.model = ScriptedProvider(calls("shout"), says("ok"))
    run.tools = (shout,)
    await run.say("go")
    assert "missing required field `text`" in run.results()[0].text


async def test_the_same_call_twice_in_a_reply_runs_once(run: Run) -> None:
    run.model = ScriptedProvider(
        calls_many(("put", {"path": "a"}), ("put", {"path": "a"})), says("ok")
    )
    run.tools = (put,)
    await run.say("go")
    assert "see its result" in run.results()[0].text or "see its result" in run.results()[1].text
    assert run.session._runner.services.get(Meeting).order == ["put a"]  # type: ignore[attr-defined]


async def test_reads_and_writes_of_other_paths_meet_and_a_conflict_waits(run: Run) -> None:
    run.model = ScriptedProvider(
        calls_many(("look", {"path": "a"}), ("look", {"path": "b"}), ("put", {"path": "a"})),
        says("ok"),
    )
    run.tools = (look, put)
    await run.say("go")
    meeting = run.session._runner.services.get(Meeting)
    assert isinstance(meeting, Meeting)
    assert meeting.most == 2
    assert meeting.order[-1] == "put a"
    assert [result.text for result in run.session.transcript.messages[2].results] == [  # type: ignore[union-attr]
        "a",
        "b",
        "a",
    ]


async def test_at_most_so_many_calls_run_at_once_and_results_keep_the_order(run: Run) -> None:
    run.limits = TurnLimits(tools_at_once=3)
    run.model = ScriptedProvider(
        calls_many(*(("look", {"path": f"f{n}"}) for n in range(10))), says("ok")
    )
    run.tools = (look,)
    await run.say("go")
    meeting = run.session._runner.services.get(Meeting)
    assert isinstance(meeting, Meeting)
    assert meeting.most == 3
    message = run.session.transcript.messages[2]
    assert isinstance(message, ToolMessage)
    assert [result.text for result in message.results] == [f"f{n}" for n in range(10)]


async def test_a_tool_that_hides_its_effect_meets_the_gate_all_the_same(run: Run) -> None:
    target = run.folder / "elsewhere"
    run.model = ScriptedProvider(calls("sneak", path=str(target)), says("ok"))
    run.tools = (sneak,)
    await run.say("go")
    assert "nobody is here to give it" in run.results()[0].text
    assert run.results()[0].denied == "unattended"
    assert not target.exists()


async def test_a_question_of_the_policy_goes_to_the_person_and_is_remembered(run: Run) -> None:
    run.attended = True
    run.model = ScriptedProvider(
        calls("shell", command=TOUCH), calls("shell", command=TOUCH), says("done")
    )
    run.tools = (shell,)
    talk = asyncio.ensure_future(run.say("touch it"))
    asked = await run.wait_for(ApprovalAsked)
    assert isinstance(asked, ApprovalAsked)
    assert not (run.project / "a").exists()
    await run.send(Answer(id=asked.id, text="session"))
    await talk
    assert (run.project / "a").exists()
    answers = [r.event for r in run.seen if isinstance(r.event, ApprovalAnswered)]
    assert [(answer.choice, answer.by) for answer in answers] == [("session", "owner")]


@pytest.mark.parametrize(("word", "why"), [("deny", "the person said no"), ("yes!", "said no")])
async def test_anything_but_an_offered_scope_is_a_no(run: Run, word: str, why: str) -> None:
    run.attended = True
    run.model = ScriptedProvider(calls("shell", command=TOUCH), says("ok"))
    run.tools = (shell,)
    talk = asyncio.ensure_future(run.say("touch it"))
    asked = await run.wait_for(ApprovalAsked)
    assert isinstance(asked, ApprovalAsked)
    await run.send(Answer(id=asked.id, text=word))
    await talk
    assert why in run.results()[0].text
    assert run.results()[0].denied == "person"
    assert not (run.project / "a").exists()


async def test_no_answer_in_time_is_a_no(run: Run) -> None:
    run.attended, run.approval_seconds = True, 0.01
    run.model = ScriptedProvider(calls("shell", command=TOUCH), says("ok"))
    run.tools = (shell,)
    await run.say("touch it")
    assert "no answer came in time" in run.results()[0].text
    assert run.results()[0].denied == "timeout"


async def test_a_question_of_a_tool_gets_the_persons_words(run: Run) -> None:
    run.attended = True
    run.model = ScriptedProvider(calls("wonder", question="Really?"), says("ok"))
    run.tools = (wonder,)
    talk = asyncio.ensure_future(run.say("ask me"))
    asked = await run.wait_for(QuestionAsked)
    assert isinstance(asked, QuestionAsked)
    await run.send(Answer(id=asked.id, text="of course"))
    await talk
    assert run.results()[0].text == "of course"


async def test_with_nobody_there_a_question_is_not_asked(run: Run) -> None:
    run.model = ScriptedProvider(calls("wonder", question="Really?"), says("ok"))
    run.tools = (wonder,)
    await run.say("ask me")
    assert run.results()[0].text == "nobody answered"
    assert run.results()[0].denied is None


async def test_messages_during_a_turn_wait_and_are_answered_in_order(run: Run) -> None:
    slow = Step(text="one", pace=Pace(first_seconds=0.05))
    run.model = ScriptedProvider(slow, *(says(str(n)) for n in range(2, 7)))
    await run.send(Say(text="first"))
    for n in range(5):
        await run.send(Say(text=f"more {n}"))
    await run.session.wait_until_idle()
    said = [m.text for m in run.session.transcript.messages if not isinstance(m, ToolMessage)]
    assert said == [
        *("first", "one", "more 0", "2", "more 1", "3", "more 2", "4", "more 3", "5"),
        *("more 4", "6"),
    ]


async def test_a_message_is_either_taken_back_or_answered(run: Run) -> None:
    slow = Step(text="reply", pace=Pace(first_seconds=0.1))
    run.model = ScriptedProvider(slow, *(says(f"reply {n}") for n in range(1, 20)))
    for n in range(20):
        await run.send(Say(text=f"more {n}"))
    withdrawn = []
    for n, received in tuple(run.session.transcript.waiting.items()):
        try:
            await run.send(Withdraw(n=n))
        except UsageError as error:
            assert "is no longer waiting" in str(error)
        else:
            withdrawn.append(received.message.text)
        await asyncio.sleep(0.002)
    await run.session.wait_until_idle()
    said = [m.text for m in run.session.transcript.messages if isinstance(m, UserMessage)]
    assert withdrawn
    assert sorted([*said, *withdrawn]) == sorted(f"more {n}" for n in range(20))
    replies = [m for m in run.session.transcript.messages if isinstance(m, AssistantMessage)]
    assert len(replies) == len(said)


async def test_the_same_key_is_received_once(run: Run) -> None:
    run.model = ScriptedProvider(says("hello"))
    for _ in range(3):
        await run.send(Say(text="hi", key="telegram:77"))
    await run.session.wait_until_idle()
    assert [m.text for m in run.session.transcript.messages if isinstance(m, UserMessage)] == ["hi"]


async def test_steering_joins_the_running_turn_after_the_tool_results(run: Run) -> None:
    run.model = ScriptedProvider(calls("wonder", question="?"), says("ok"))
    run.attended = True
    run.tools = (wonder,)
    await run.send(Say(text="go"))
    asked = await run.wait_for(QuestionAsked)
    assert isinstance(asked, QuestionAsked)
    await run.send(Steer(text="and be quick"))
    await run.send(Answer(id=asked.id, text="yes"))
    await run.session.wait_until_idle()
    kinds = [type(m).__name__ for m in run.session.transcript.messages]
    assert kinds == [
        "UserMessage",
        "AssistantMessage",
        "ToolMessage",
        "UserMessage",
        "AssistantMessage",
    ]
    assert any(isinstance(r.event, Steered) for r in run.seen)


async def test_steering_that_comes_too_late_becomes_the_next_turn(run: Run) -> None:
    run.model = ScriptedProvider(Step(text="one", pace=Pace(first_seconds=0.05)), says("two"))
    await run.send(Say(text="go"))
    await run.wait_for(ModelCalled)
    await run.send(Steer(text="late"))
    await run.session.wait_until_idle()
    assert run.text() == "two"


async def test_undo_hides_turns_and_the_journal_keeps_them(run: Run) -> None:
    run.model = ScriptedProvider(says("1"), says("2"), says("3"))
    for text in ("a", "b", "c"):
        await run.say(text)
    await run.send(Rewind(turns=2))
    assert run.session.transcript.messages == [
        user_says("a"),
        AssistantMessage(parts=(Text(text="1"),)),
    ]
    assert await run.messages_in_journal() == run.session.transcript.messages
    records = await run.journal.read(run.session.id)
    assert sum(isinstance(record.event, ReplyAdded) for record in records) == 3


async def test_nothing_to_take_back_is_said(run: Run) -> None:
    with pytest.raises(UsageError):
        await run.send(Rewind())


async def test_a_failed_model_call_ends_the_turn_and_the_next_one_works(run: Run) -> None:
    run.model = ScriptedProvider(fails(401), says("back"))
    await run.say("hi")
    assert run.ended().reason == "failed"
    assert run.ended().error
    await run.say("again")
    assert run.text() == "back"


async def test_the_budget_gives_hints_and_ends_with_a_summary(run: Run) -> None:
    run.limits = TurnLimits(max_steps=10)
    model = ScriptedProvider(
        *(calls("shout", text=f"n{n}") for n in range(10)), says("That is as far as I got.")
    )
    run.model = model
    run.tools = (shout,)
    await run.say("go on")
    texts = [result.text for result in run.results()]
    assert [n + 1 for n, text in enumerate(texts) if "steps of this turn" in text] == [7, 9]
    assert len(model.prompts) == 11
    assert model.prompts[-1].text_only
    assert run.ended().detail == "max_iterations_reached(10/10)"
    assert run.text() == "That is as far as I got."


async def test_a_call_beyond_the_step_limit_is_told_the_limit(run: Run) -> None:
    run.limits = TurnLimits(max_steps=1)
    run.model = ScriptedProvider(calls("shout", text="a"), calls("shout", text="b"))
    run.tools = (shout,)
    await run.say("go on")
    assert run.results()[-1].text == "skipped: the steps of this turn are used up."
    assert failure_reason(run.results()[-1]) == "skipped"


async def test_consecutive_prompts_share_their_beginning(run: Run) -> None:
    model = ScriptedProvider(
        calls("shout", text="a"), says("1"), calls("complain", n=1), says("2"), says("3")
    )
    run.model = model
    run.tools = (shout, complain)
    for text in ("x", "y", "z"):
        await run.say(text)
    for before, after in zip(model.prompts, model.prompts[1:], strict=False):
        assert after.messages[: len(before.messages)] == before.messages
        assert (after.system, after.tools) == (before.system, before.tools)


async def stopped(run: Run, promised: float = 1) -> None:
    at = time.monotonic()
    async with asyncio.timeout(20):
        await run.send(Interrupt())
        await run.session.wait_until_idle()
    check_in_time(time.monotonic() - at, promised)


@tried_until_in_time
async def test_a_stop_before_the_first_word_leaves_nothing(tmp_path: Path) -> None:
    async with run_in(tmp_path) as run:
        silent = Step(text="never begun", pace=Pace(first_seconds=60))
        run.model = ScriptedProvider(silent, says("fresh"))
        await run.send(Say(text="go"))
        await run.wait_for(ModelCalled)
        await stopped(run)
        assert run.ended().reason == "interrupted"
        assert run.session.transcript.messages == [user_says("go")]
        await run.say("next")
        assert run.text() == "fresh"


@tried_until_in_time
async def test_a_stop_keeps_the_words_that_were_seen_and_the_next_message_follows_them(
    tmp_path: Path,
) -> None:
    async with run_in(tmp_path) as run:
        endless = Step(text="never ending", pace=Pace(chunk=5, between_seconds=60))
        run.model = model = ScriptedProvider(endless, says("fresh"))
        await run.send(Say(text="go"))
        await run.wait_for(TextDelta)
        await stopped(run)
        seen = AssistantMessage(parts=(Text(text="never"),), stop="interrupted")
        assert run.ended().reason == "interrupted"
        assert run.session.transcript.messages == [user_says("go"), seen]
        await run.say("next")
        assert run.text() == "fresh"
        assert model.prompts[-1].messages == (user_says("go"), seen, user_says("next"))
        live = list(run.session.transcript.messages)
        assert fold(await run.journal.read(run.session.id)).messages == live


@tried_until_in_time
async def test_a_stop_kills_the_whole_running_command_and_skips_the_rest(tmp_path: Path) -> None:
    async with run_in(tmp_path) as run:
        marker = run.project / "alive"
        script = f"(sleep 30; touch {marker}) & sleep 30"
        run.settings = PolicySettings(mode="off")
        run.model = ScriptedProvider(
            calls_many(("shell", {"command": script}), ("shell", {"command": "touch later"})),
            says("fresh"),
        )
        run.tools = (shell,)
        await run.send(Say(text="go"))
        await run.wait_for(ToolStarted)
        await stopped(run, promised=1.5)
        texts = [result.text for result in run.results()]
        assert "130" in texts[0]
        assert texts[1].startswith("skipped")
        assert not (run.project / "later").exists()
        await run.say("next")
        assert run.text() == "fresh"


@tried_until_in_time
async def test_a_stop_ends_a_wait_for_approval(tmp_path: Path) -> None:
    async with run_in(tmp_path) as run:
        run.attended, run.approval_seconds = True, 60
        run.model = ScriptedProvider(calls("shell", command=TOUCH))
        run.tools = (shell,)
        await run.send(Say(text="go"))
        await run.wait_for(ApprovalAsked)
        await stopped(run)
        assert run.ended().reason == "interrupted"
        assert not (run.project / "a").exists()


async def test_an_answer_may_come_the_moment_the_question_is_seen(run: Run) -> None:
    run.attended, run.approval_seconds = True, 60
    run.model = ScriptedProvider(calls("shell", command=TOUCH), says("done"))
    run.tools = (shell,)
    seen = run.session.subscribe()
    await run.send(Say(text="go"))
    async with asyncio.timeout(60):
        async for record in seen:
            if isinstance(record.event, ApprovalAsked):
                await run.send(Answer(id=record.event.id, text="once"))
                break
        await run.session.wait_until_idle()
    assert run.text() == "done"


async def test_a_loop_ends_the_turn_with_a_summary_and_the_session_goes_on(run: Run) -> None:
    run.limits = TurnLimits(guardrails=Guardrails(hard_stop_enabled=True))
    run.model = ScriptedProvider(
        *(calls("complain") for _ in range(5)), says("It never works."), says("I am out.")
    )
    run.tools = (complain,)
    await run.say("go")
    assert run.ended().reason == "guardrail"
    assert sum("Refused" in result.text for result in run.results()) == 2
    assert run.text() == "It never works."
    await run.say("and now?")
    assert run.text() == "I am out."


async def test_a_loop_goes_on_until_the_steps_are_used_up(run: Run) -> None:
    run.limits = TurnLimits(max_steps=20)
    run.model = ScriptedProvider(*(calls("complain") for _ in range(20)), says("No luck."))
    run.tools = (complain,)
    await run.say("go")
    assert (run.ended().reason, run.text()) == ("budget", "No luck.")


@pytest.mark.parametrize("last", [calls("shout", text="b"), says(""), fails(401)])
async def test_a_turn_that_is_cut_off_has_a_final_text_without_a_summary(
    run: Run, last: Step
) -> None:
    run.limits = TurnLimits(max_steps=1)
    run.model = ScriptedProvider(calls("shout", text="a"), *[last] * 6)
    run.tools = (shout,)
    await run.say("go on")
    assert run.ended().reason == "budget"
    assert run.text().startswith("The steps of this turn are used up.")
    assert "continue" in run.text()


async def test_a_session_goes_on_where_another_process_left_it(run: Run) -> None:
    run.model = ScriptedProvider(calls("shout", text="a"), says("one"), says("two"))
    run.tools = (shout,)
    await run.say("first")
    before = list(run.session.transcript.messages)
    session = await run.reopen()
    assert session.transcript.messages == before
    await run.say("second")
    assert run.text() == "two"


async def test_no_commit_leaves_no_session_behind(run: Run) -> None:
    assert run.session.id
    await run.session.close()
    with pytest.raises(Exception, match="no session"):
        await run.journal.read(run.session.id)


async def test_what_waits_when_a_session_is_left_is_answered_when_it_is_taken_up(run: Run) -> None:
    run.model = ScriptedProvider(Step(text="slow", pace=Pace(first_seconds=60)), says("later"))
    await run.send(Say(text="first"))
    await run.wait_for(ModelCalled)
    await run.send(Say(text="second"))
    session = await run.reopen()
    assert run.ended().reason == "interrupted"
    session.continue_unfinished()
    await session.wait_until_idle()
    said = [m.text for m in session.transcript.messages if not isinstance(m, ToolMessage)]
    assert said == ["first", "second", "later"]


async def test_a_session_is_released_only_after_its_turn_has_stopped(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes.core.turn_runner.END_SECONDS", 0.01)
    happened: list[str] = []

    class Lingering:
        """Takes a moment to stop, whoever cancels it."""

        async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
            yield TextDelta(text="So")
            late = time.monotonic() + 0.2
            while time.monotonic() < late:
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(60)
            happened.append("stopped")

    class Watching:
        def push(self, record: Record) -> None:
            pass

        def close(self) -> None:
            happened.append("released")

    run.model = Lingering()
    await run.session.send(Say(text="go"))
    await run.wait_for(TextDelta)
    run.session.attach(Watching())
    await run.session.close()
    assert happened == ["stopped", "released"]
