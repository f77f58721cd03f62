"""Every request is booked before it is made, and settled with what it has cost."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from hermes.codec.values import replace
from hermes.core.errors import BudgetReached, ProviderError
from hermes.core.events import CallSettled, ModelCalled
from hermes.core.messages import Usage, user_says
from hermes.core.metering import LEAST_OUTPUT, UNKNOWN_LIMIT, UNKNOWN_OUTPUT, Metered
from hermes.core.ports import Provider
from hermes.core.prompt import Prompt, Reply
from hermes.core.world import World
from hermes.testing.provider import ScriptedProvider
from hermes.testing.steps import Break, Pace, Step, costs, fails, says

HI = Prompt(system="Be kind.", messages=(user_says("Hi"),))
USED = Usage(input=10, output=3, requests=1)
FREE = Usage(requests=1, cost=0.0)


def price(usage: Usage) -> float:
    """Two dollars for a token of the prompt, three for one that is put into a cache, ten for one
    of the answer."""
    return 2.0 * usage.input + 3.0 * usage.cache_write + 10.0 * usage.output


class Book:
    """A meter that grants what it is told to and remembers everything."""

    def __init__(self, granted: int | None = None) -> None:
        self.called: list[ModelCalled] = []
        self.settled: list[CallSettled] = []
        self.least: list[Usage] = []
        self._granted = granted

    async def reserve(self, call: ModelCalled, least: Usage) -> Usage:
        assert call.reserved is not None
        self.called.append(call)
        self.least.append(least)
        if self._granted is None:
            return call.reserved
        return replace(call.reserved, output=self._granted)

    def settle(self, settled: CallSettled) -> None:
        self.settled.append(settled)

    @property
    def most(self) -> Usage:
        found = self.called[-1].reserved
        assert found is not None
        return found


def metered(
    inner: Provider, book: Book, *, priced: bool = True, max_output: int | None = 100
) -> Metered:
    return Metered(
        inner,
        book,
        world=World(),
        model="m",
        provider="p",
        cost=price if priced else lambda _: None,
        max_output=max_output,
    )


async def ask(provider: Provider, prompt: Prompt = HI) -> Reply:
    async with aclosing(provider.reply(prompt)) as parts:
        async for part in parts:
            if isinstance(part, Reply):
                return part
    raise AssertionError("no reply")


async def test_a_reply_is_booked_at_its_worst_and_settled_at_its_price() -> None:
    book = Book()
    reply = await ask(metered(ScriptedProvider(costs(says("Hello"), USED)), book))
    (call,) = book.called
    assert (call.model, call.provider, call.cause) == ("m", "p", "chat")
    assert book.most.output == 100 and book.most.prompt > 10
    assert book.most.cost == 3.0 * book.most.input + 1000.0
    assert book.least[0] == book.most
    assert reply.usage == replace(USED, cost=50.0)
    assert book.settled == [
        CallSettled(call=call.call, usage=reply.usage, model="scripted", provider="scripted")
    ]


async def test_what_the_provider_says_it_cost_wins() -> None:
    book, told = Book(), replace(USED, cost=0.25)
    assert (await ask(metered(ScriptedProvider(costs(says("Hello"), told)), book))).usage == told
    assert book.settled[0].usage == told


async def test_an_unknown_price_stays_unknown() -> None:
    book = Book()
    provider = metered(ScriptedProvider(costs(says("Hello"), USED)), book, priced=False)
    assert (await ask(provider)).usage == USED
    assert (book.most.cost, book.settled[0].usage.cost) == (None, None)


@pytest.mark.parametrize("status", [400, 401, 402, 404, 413, 429, 503, 529])
async def test_a_refusal_costs_nothing(status: int) -> None:
    book = Book()
    with pytest.raises(ProviderError):
        await ask(metered(ScriptedProvider(fails(status)), book))
    assert [(each.usage, each.certain) for each in book.settled] == [(FREE, True)]


@pytest.mark.parametrize(
    "step",
    [
        fails(500),
        fails(502),
        Step(text="half of it", breaks=Break(how="cut", after_chunks=0)),
        Step(text="half of it", breaks=Break(how="error", after_chunks=1)),
    ],
)
async def test_a_failure_that_may_be_billed_counts_in_full(step: Step) -> None:
    book = Book()
    with pytest.raises(ProviderError):
        await ask(metered(ScriptedProvider(step), book))
    assert [(each.usage, each.certain) for each in book.settled] == [(book.most, False)]


async def test_a_request_that_never_left_costs_nothing() -> None:
    class Unreachable:
        async def reply(self, prompt: Prompt):  # type: ignore[no-untyped-def]
            raise ProviderError("No connection.", reason="timeout", unsent=True)
            yield

    book = Book()
    with pytest.raises(ProviderError):
        await ask(metered(Unreachable(), book))
    assert [(each.usage, each.certain) for each in book.settled] == [(FREE, True)]


async def test_an_answer_that_was_cut_counts_in_full() -> None:
    book = Book()
    step = Step(text="Half of", stop="cut", usage=USED)
    reply = await ask(metered(ScriptedProvider(step), book))
    assert reply.usage.cost == 50.0
    assert [(each.usage, each.certain) for each in book.settled] == [(book.most, False)]


async def test_an_answer_without_a_count_is_no_dearer_than_what_was_seen() -> None:
    book = Book()
    step = Step(text="Hello", usage=replace(USED, estimated=True))
    await ask(metered(ScriptedProvider(step), book, max_output=50_000))
    (settled,) = book.settled
    assert not settled.certain
    assert settled.usage.input == book.most.input
    assert 5 <= settled.usage.output <= 100


async def test_whoever_leaves_early_may_have_paid_for_everything() -> None:
    book = Book()
    step = Step(text="One two three", pace=Pace(chunk=1))
    async with aclosing(metered(ScriptedProvider(step), book).reply(HI)) as parts:
        await anext(parts)
    assert [(each.usage, each.certain) for each in book.settled] == [(book.most, False)]


async def test_a_booking_that_is_given_up_costs_nothing() -> None:
    class Slow(Book):
        entered = asyncio.Event()

        async def reserve(self, call: ModelCalled, least: Usage) -> Usage:
            self.entered.set()
            await asyncio.Event().wait()
            raise AssertionError

    book, model = Slow(), ScriptedProvider()
    task = asyncio.ensure_future(ask(metered(model, book)))
    await book.entered.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert [(each.usage, each.certain) for each in book.settled] == [(FREE, True)]
    assert model.prompts == []


async def test_a_model_is_not_asked_when_a_cap_forbids_it() -> None:
    class Shut(Book):
        async def reserve(self, call: ModelCalled, least: Usage) -> Usage:
            raise BudgetReached(
                "No more.", scope="day", key="d", unit="usd", cap=1, spent=1, asked=1
            )

    book, model = Shut(), ScriptedProvider(says("Hello"))
    with pytest.raises(BudgetReached):
        await ask(metered(model, book))
    assert (model.prompts, book.settled) == ([], [])


@pytest.mark.parametrize(
    ("wished", "max_output", "granted", "told"),
    [
        (None, 100, None, None),
        (None, 100, 40, 40),
        (None, 100, 100, 100),
        (30, 100, None, 30),
        (30, 100, 20, 20),
        (None, None, None, None),
        (None, None, 70, 70),
        (None, None, 100_000, UNKNOWN_LIMIT),
    ],
)
async def test_a_smaller_grant_limits_the_answer(
    wished: int | None, max_output: int | None, granted: int | None, told: int | None
) -> None:
    book, model = Book(granted), ScriptedProvider(says("Hello"))
    await ask(metered(model, book, max_output=max_output), replace(HI, max_tokens=wished))
    assert model.prompts[0].max_tokens == told
    assert book.most.output == (wished or max_output or UNKNOWN_OUTPUT)
    assert book.least[0].output == min(book.most.output, LEAST_OUTPUT)


async def test_what_was_told_of_the_beginning_makes_the_bound_close() -> None:
    book, long = Book(), user_says("word " * 2_000)
    steps = [costs(says("Hello"), replace(USED, input=2_100))] * 2
    provider = metered(ScriptedProvider(*steps), book)
    prompt = replace(HI, messages=(long,))
    reply = await ask(provider, prompt)
    assert book.most.input > 10_000
    more = (long, reply.message, user_says("And now?"))
    await ask(provider, replace(prompt, messages=more))
    assert 2_100 < book.most.input < 2_400
