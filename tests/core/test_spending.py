"""Sessions that spend: what is booked, what happens at a cap, and what is left after a crash."""

from __future__ import annotations

import asyncio

import pytest

from hermes.codec.values import replace
from hermes.core.caps import Cap, Caps
from hermes.core.commands import Answer, Interrupt
from hermes.core.effects import Principal
from hermes.core.events import (
    CallSettled,
    CapRaised,
    ModelCalled,
    QuestionAnswered,
    QuestionAsked,
    SessionOpened,
    ToolFinished,
    TurnEnded,
)
from hermes.core.messages import Usage
from hermes.core.metering import STOP, Budgeting, Metered
from hermes.core.ports import Meter, Provider
from hermes.core.prompt import Notice
from hermes.core.recorder import Recorder
from hermes.core.session import Session
from hermes.core.session_deps import TurnLimits
from hermes.core.world import World
from hermes.journal.listing import read_spending
from hermes.providers.completion import CompletingProvider
from hermes.providers.retry import RetryingProvider
from hermes.testing.provider import ScriptedProvider
from hermes.testing.steps import Pace, Step, calls, costs, fails, says
from tests.core.conftest import Run
from tests.core.test_session import shout

USED = Usage(input=1_000, output=10, requests=1)
TIGHT = Budgeting(caps=Caps(day=Cap(usd=0.02)))


@pytest.fixture
def priced(run: Run) -> Run:
    """A call costs at most a little over one cent, and in truth one tenth of it."""
    run.cost = lambda usage: usage.prompt * 1e-6 + usage.output * 2e-5
    run.max_output = 500
    run.tools = (shout,)
    return run


def answered(text: str) -> Step:
    return costs(says(text), USED)


def ends(run: Run) -> list[str]:
    return [r.event.reason for r in run.seen if isinstance(r.event, TurnEnded)]


def of_kind(run: Run, kind: type[object]) -> list[object]:
    return [record.event for record in run.seen if isinstance(record.event, kind)]


async def test_a_session_knows_what_it_has_spent(priced: Run) -> None:
    priced.model = ScriptedProvider(costs(calls("shout", text="hi"), USED), answered("Done."))
    await priced.say("Shout hi")
    transcript = priced.session.transcript
    assert transcript.usage.requests == 2
    assert transcript.usage.cost == pytest.approx(0.0024)
    assert (transcript.unsettled, transcript.open_calls) == ({}, ())
    (line,) = await read_spending(priced.journal)
    assert (line.calls, line.assumed_calls, line.cause) == (2, 0, "chat")
    assert line.usage.cost == pytest.approx(0.0024)


def make_patient(run: Run, scripted: ScriptedProvider) -> None:
    """Failed requests are made again, and answers that were cut are continued."""

    def connect(model: str, provider: str, meter: Meter) -> tuple[Provider, TurnLimits]:
        direct = Metered(
            *(scripted, meter),
            world=run.world,
            model=model,
            provider=provider,
            cost=run.cost,
            max_output=500,
        )
        world = World(clock=Hurry())
        return CompletingProvider(RetryingProvider(direct, world), world), TurnLimits()

    run._connect = connect  # type: ignore[method-assign]


async def test_further_requests_for_a_reply_say_why(priced: Run) -> None:
    scripted = ScriptedProvider(
        fails(503), replace(answered("Half of"), stop="length"), answered(" it."), answered("Two.")
    )
    make_patient(priced, scripted)
    await priced.say("One")
    await priced.say("Two")
    causes = [event.cause for event in of_kind(priced, ModelCalled)]  # type: ignore[attr-defined]
    assert causes == ["chat", "retry", "continuation", "chat"]


class Hurry:
    def now(self) -> float:
        return 0.0

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


async def test_half_an_answer_that_is_paid_for_is_kept(priced: Run) -> None:
    make_patient(priced, ScriptedProvider(replace(answered("Half of"), stop="length")))
    priced.budgeting = Budgeting(caps=Caps(task=Cap(tokens=2_000)))
    await priced.say("Tell me")
    assert (ends(priced), priced.text()) == (["done"], "Half of")
    (notice,) = [e for e in of_kind(priced, Notice) if isinstance(e, Notice)]
    assert "may be incomplete" in notice.text and "The cap for one answer" in notice.text


async def test_with_nobody_there_work_pauses_and_goes_on_when_there_is_more(priced: Run) -> None:
    priced.model = ScriptedProvider(
        costs(calls("shout", text="hi"), replace(USED, output=500)), answered("I shouted HI.")
    )
    priced.budgeting = Budgeting(caps=Caps(day=Cap(usd=0.015)))
    await priced.say("Shout hi")
    ended = priced.ended()
    assert (ended.reason, ended.detail) == ("paused", "cap(day)")
    assert "Today's cap of $0.0150" in ended.error and "hermes config set budget.day" in ended.error
    before = list(priced.session.transcript.messages)
    assert of_kind(priced, ToolFinished)
    priced.budgeting = Budgeting(caps=Caps(day=Cap(usd=5)))
    await priced.say("Go on")
    assert (priced.ended().reason, priced.text()) == ("done", "I shouted HI.")
    assert priced.session.transcript.messages[: len(before)] == before
    assert await priced.messages_in_journal() == priced.session.transcript.messages


async def test_the_owner_may_allow_more(priced: Run) -> None:
    priced.attended, priced.budgeting = True, TIGHT
    priced.model = ScriptedProvider(*[answered(f"{n}.") for n in range(30)])
    talk = asyncio.ensure_future(spend(priced, 30))
    asked = await priced.wait_for(QuestionAsked)
    assert isinstance(asked, QuestionAsked)
    assert "$0.02" in asked.question and asked.choices == ("Allow $0.02 more", STOP)
    await priced.send(Answer(id=asked.id, text=asked.choices[0]))
    raised = await priced.wait_for(CapRaised)
    assert isinstance(raised, CapRaised)
    assert (raised.scope, raised.usd) == ("day", 0.02)
    talk.cancel()
    await asyncio.gather(talk, return_exceptions=True)


async def spend(run: Run, turns: int) -> None:
    for number in range(turns):
        await run.say(f"Turn {number}")


async def test_the_owner_may_stop(priced: Run) -> None:
    priced.attended, priced.budgeting = True, Budgeting(caps=Caps(task=Cap(tokens=10)))
    talk = asyncio.ensure_future(priced.say("Hi"))
    asked = await priced.wait_for(QuestionAsked)
    assert isinstance(asked, QuestionAsked)
    await priced.send(Answer(id=asked.id, text=STOP))
    await talk
    assert (ends(priced), of_kind(priced, CapRaised)) == (["paused"], [])


async def test_an_interrupt_takes_the_question_back(priced: Run) -> None:
    priced.attended, priced.budgeting = True, Budgeting(caps=Caps(task=Cap(tokens=10)))
    talk = asyncio.ensure_future(priced.say("Hi"))
    await priced.wait_for(QuestionAsked)
    await priced.send(Interrupt())
    await talk
    assert ends(priced) == ["interrupted"]
    assert [event.by for event in of_kind(priced, QuestionAnswered)] == ["stop"]  # type: ignore[attr-defined]
    assert priced.session.transcript.asked == {}
    assert await read_spending(priced.journal) == ()


@pytest.mark.parametrize("principal", ["member", "guest", "system"])
async def test_nobody_else_may_spend_the_owner_s_money(priced: Run, principal: Principal) -> None:
    priced.attended, priced.budgeting = True, Budgeting(caps=Caps(job=Cap(tokens=10)))
    opened = SessionOpened(
        source="test", cwd="/", model="m", provider="p", system="", principal=principal
    )
    recorder = Recorder(priced.journal, "theirs", priced.world, opening=opened)
    priced._session = Session(priced._parts(), recorder)
    priced._reader = asyncio.ensure_future(priced._watch(priced._session.subscribe()))
    await priced.say("Hi")
    assert (ends(priced), of_kind(priced, QuestionAsked)) == (["paused"], [])


async def test_a_call_whose_end_was_never_heard_of_is_assumed_on_resume(priced: Run) -> None:
    priced.model = ScriptedProvider(Step(text="Slowly", pace=Pace(first_seconds=60)))
    talk = asyncio.ensure_future(priced.say("Hi"))
    called = await priced.wait_for(ModelCalled)
    assert isinstance(called, ModelCalled)
    # The process dies: nobody settles anything any more.
    talk.cancel()
    assert priced.session._runner._task is not None
    priced.session._runner._task.cancel()
    await asyncio.gather(talk, priced.session._runner._task, return_exceptions=True)
    priced.session._recorder._noted.clear()
    priced.model = ScriptedProvider(answered("Here I am."))
    session = await priced.reopen()
    session.continue_unfinished()
    await session.wait_until_idle()
    (assumed, real) = [r.event for r in await priced.journal.read(session.id) if settled(r.event)]
    assert isinstance(assumed, CallSettled) and isinstance(real, CallSettled)
    assert (assumed.call, assumed.usage, assumed.certain) == (called.call, called.reserved, False)
    assert (real.certain, session.transcript.usage) == (True, real.usage)
    lost, answer = await read_spending(priced.journal)
    assert (lost.calls, lost.assumed_calls, lost.assumed.cost) == (1, 1, assumed.usage.cost)
    assert (answer.calls, answer.assumed_calls, answer.usage.cost) == (1, 0, 0.0012)


def settled(event: object) -> bool:
    return isinstance(event, CallSettled)


async def test_an_unknown_price_is_told_once_where_dollars_are_capped(run: Run) -> None:
    run.model = ScriptedProvider(answered("One."), answered("Two."))
    run.budgeting = Budgeting(caps=Caps(day=Cap(usd=0.001)))
    await run.say("One")
    await run.say("Two")
    assert ends(run) == ["done", "done"]
    (notice,) = [e for e in of_kind(run, Notice) if isinstance(e, Notice)]
    assert "price of m is not known" in notice.text and "budget.day.tokens" in notice.text


async def test_tokens_are_capped_without_a_price(run: Run) -> None:
    run.model = ScriptedProvider(answered("One."))
    run.budgeting = Budgeting(caps=Caps(job=Cap(tokens=2_000)))
    await run.say("One")
    assert ends(run) == ["done"]
    await run.say("Two")
    assert ends(run) == ["done", "paused"]
    assert "2,000 tokens" in run.ended().error


async def test_a_model_that_is_asked_past_the_meter_fails_the_turn(run: Run) -> None:
    run._connect = lambda model, provider, meter: (  # type: ignore[method-assign]
        ScriptedProvider(says("Free beer")),
        TurnLimits(),
    )
    await run.say("Hi")
    assert (ends(run), run.ended().detail) == (["failed"], "RuntimeError")
