"""Another model goes on when the chosen one cannot: when, in which order, and what is said."""

from __future__ import annotations

import pytest

from hermes.codec.values import replace
from hermes.core.errors import ProviderError
from hermes.core.messages import ToolCall, user_says
from hermes.core.prompt import Notice
from hermes.core.world import World
from hermes.net.http import HttpClient
from hermes.providers.completion import CompletingProvider
from hermes.providers.fallback import Fallback, FallbackLink, ModelCooldowns
from hermes.providers.pipeline import build_pipeline
from hermes.providers.profile import WireName
from hermes.providers.retry import RetryingProvider
from hermes.testing.provider import ScriptedProvider
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, call, calls_many, fails, overflows, says, says_nothing
from tests.providers.asking import HI, Heard, NapClock, answered, ask, endpoint, then


class Chain:
    """Scripted models in a row, with the retries of the real way to a model."""

    def __init__(self, *scripts: tuple[Step, ...], windows: tuple[int, ...] = ()) -> None:
        self.clock = NapClock()
        self.world = World(clock=self.clock)
        self.models = [
            ScriptedProvider(*steps, model=f"m{n}", provider=f"p{n}")
            for n, steps in enumerate(scripts)
        ]
        self.cooldowns = ModelCooldowns(self.clock)
        self._windows = windows or (0,) * len(scripts)
        self.fallback = self.open()

    def open(self) -> Fallback:
        """Another session with the same models."""
        return Fallback([self._link(n) for n in range(len(self.models))], self.cooldowns)

    def _link(self, n: int) -> FallbackLink:
        return FallbackLink(
            f"p{n}/m{n}",
            model=f"m{n}",
            provider=f"p{n}",
            window=self._windows[n],
            build=lambda mode: CompletingProvider(
                RetryingProvider(self.models[n], self.world, mode=mode), self.world
            ),
        )

    @property
    def asked(self) -> list[int]:
        return [len(model.prompts) for model in self.models]


def notices(heard: Heard) -> list[str]:
    return [delta.text for delta in heard.deltas if isinstance(delta, Notice)]


async def test_while_the_chosen_model_answers_nothing_is_said() -> None:
    chain = Chain((says("hello"),), (says("spare"),))
    heard = await ask(chain.fallback)
    assert (heard.whole.model, heard.deltas and heard.shown) == ("m0", "hello")
    assert notices(heard) == []
    assert chain.asked == [1, 0]


@pytest.mark.parametrize(
    ("failure", "asked", "cause"),
    [
        (fails(401), 1, "refused the key"),
        (fails(404), 1, "does not know the model"),
        (fails(402), 1, "reports that the account has no credit"),
        (fails(429), 1, "limits the request rate"),
        (fails(0), 2, "did not respond in time"),
        (fails(500), 3, "had an internal error"),
        (fails(503), 3, "is overloaded"),
    ],
    ids=lambda value: str(value.failure) if isinstance(value, Step) else None,
)
async def test_who_goes_on_is_told_with_the_reason_and_is_on_the_reply(
    failure: Step, asked: int, cause: str
) -> None:
    chain = Chain((failure,) * 3, (says("from the spare"),))
    heard = await ask(chain.fallback)
    assert notices(heard)[-1] == f"m0 (p0) {cause}; continuing with m1 (p1)."
    assert (heard.whole.model, heard.whole.provider) == ("m1", "p1")
    assert heard.shown == "from the spare"
    assert chain.asked == [asked, 1]


@pytest.mark.parametrize("failure", [overflows(8_000), fails(400)], ids=["overflow", "format"])
async def test_what_is_wrong_with_the_conversation_is_not_passed_on(failure: Step) -> None:
    chain = Chain((failure,), (says("no"),))
    with pytest.raises(ProviderError):
        await ask(chain.fallback)
    assert chain.asked == [1, 0]


async def test_a_model_without_words_is_followed_by_one_that_has_some() -> None:
    chain = Chain((says_nothing(),) * 9, (says("here"),))
    heard = await ask(chain.fallback)
    assert heard.shown == heard.whole.message.text == "here"


async def test_the_last_one_is_patient_and_then_the_first_is_asked_again() -> None:
    chain = Chain((fails(429), fails(429), says("at last")), (fails(401),))
    heard = await ask(chain.fallback)
    assert heard.whole.model == "m0"
    assert chain.asked == [3, 1]


async def test_when_nobody_can_the_first_error_is_raised() -> None:
    chain = Chain((fails(401, message="bad key"),), (fails(404, message="no model"),))
    with pytest.raises(ProviderError, match="bad key"):
        await ask(chain.fallback)


async def test_the_rest_of_a_turn_stays_with_the_one_that_goes_on() -> None:
    chain = Chain((fails(401),), (calls_many(call("look")), says("done")))
    first = await ask(chain.fallback)
    assert [type(part) for part in first.whole.message.parts] == [ToolCall]
    second = await ask(chain.fallback, then(HI, *answered(first.whole)))
    assert (second.whole.model, notices(second)) == ("m1", [])
    assert chain.asked == [1, 2]


async def test_the_next_turn_begins_with_the_chosen_model_and_says_so_once() -> None:
    chain = Chain((fails(401), says("back"), says("still")), (says("spare"),))
    first = await ask(chain.fallback)
    prompt = then(HI, first.whole.message, user_says("and now?"))
    second = await ask(chain.fallback, prompt)
    assert (second.whole.model, notices(second)) == ("m0", ["m0 (p0) is available again."])
    third = await ask(chain.fallback, then(prompt, second.whole.message, user_says("ok")))
    assert (third.whole.model, notices(third)) == ("m0", [])


@pytest.mark.parametrize(("retry_after", "rest"), [(None, 60), (300.0, 300)])
async def test_after_a_limit_the_chosen_model_rests_for_all_sessions(
    retry_after: float | None, rest: int
) -> None:
    chain = Chain((fails(429, retry_after=retry_after), says("back")), (says("one"), says("two")))
    await ask(chain.fallback)
    other = chain.open()
    second = await ask(other)
    assert notices(second) == [
        f"m0 (p0) limits the request rate and is paused for {rest} s; continuing with m1 (p1)."
    ]
    await chain.clock.sleep(rest)
    third = await ask(other)
    assert (third.whole.model, notices(third)) == ("m0", ["m0 (p0) is available again."])
    assert chain.asked == [2, 2]


async def test_if_all_rest_they_are_asked_all_the_same() -> None:
    chain = Chain((fails(402), says("paid")), (fails(402),))
    with pytest.raises(ProviderError):
        await ask(chain.fallback)
    assert (await ask(chain.open())).shown == "paid"


async def test_a_model_that_cannot_hold_the_conversation_is_left_out() -> None:
    chain = Chain((fails(401),), (), (says("roomy"),), windows=(9_000, 100, 9_000))
    long = replace(HI, messages=(user_says("word " * 1_000),))
    assert (await ask(chain.fallback, long)).whole.model == "m2"


async def test_if_only_smaller_models_are_left_their_window_is_passed_on() -> None:
    chain = Chain((fails(401),), (), windows=(9_000, 100))
    long = replace(HI, messages=(user_says("word " * 1_000),))
    with pytest.raises(ProviderError) as raised:
        await ask(chain.fallback, long)
    assert (raised.value.reason, raised.value.limit) == ("context_overflow", 100)
    assert "m1 (p1) has a window of 100 tokens" in str(raised.value)


@pytest.mark.parametrize("wires", [("chat", "messages"), ("messages", "responses")])
async def test_over_http_the_conversation_goes_on_in_another_wire_format(
    http: HttpClient, wires: tuple[WireName, WireName]
) -> None:
    async with (
        ScriptedServer([calls_many(call("look", {"at": "it"})), fails(401)]) as first,
        ScriptedServer([says("goes on")]) as second,
    ):
        world = World(clock=NapClock())
        ends = [
            replace(endpoint(w, s.url), name=w) for w, s in zip(wires, (first, second), strict=True)
        ]
        links = [
            FallbackLink(
                each.name,
                model=each.model,
                provider=each.name,
                window=0,
                build=lambda _mode, at=each: build_pipeline(at, http=http, world=world),  # type: ignore[misc]
            )
            for each in ends
        ]
        fallback = Fallback(links, ModelCooldowns(world.clock))
        began = await ask(fallback)
        went_on = await ask(fallback, then(HI, *answered(began.whole)))
        assert (began.whole.provider, went_on.whole.provider) == wires
        assert went_on.shown == "goes on"
        assert first.violations == second.violations == []
        assert _system(second.requests[0].body) == HI.system


def _system(body: object) -> str:
    assert isinstance(body, dict)
    system = body.get("instructions") or body["system"]
    return system if isinstance(system, str) else str(system[0]["text"])
