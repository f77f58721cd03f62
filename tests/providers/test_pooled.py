"""Going on with another key."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

import pytest

from hermes.core.errors import ProviderError, Reason
from hermes.core.messages import AssistantMessage, Text, Usage
from hermes.core.ports import Provider
from hermes.core.prompt import Delta, Notice, Prompt, Reply, Restarted, TextDelta
from hermes.core.world import World
from hermes.providers.keys import (
    Credential,
    KeyRotatingProvider,
    KeyVerdict,
    SingleKey,
    numbered_variables,
)
from hermes.providers.retry import RetryingProvider
from tests.providers.asking import HI, NapClock, ask, endpoint

WHOLE = Reply(
    message=AssistantMessage(parts=(Text(text="yes"),)), usage=Usage(), model="m", provider="p"
)
GOOD = (TextDelta(text="yes"), WHOLE)


def key(name: str, secret: str = "") -> Credential:
    return Credential(id=name, provider="p", key=secret or f"secret-{name}", label=f"key {name}")


def refused(reason: Reason, **more: float) -> ProviderError:
    return ProviderError(f"it is {reason}", reason=reason, retry_after=more.get("retry_after"))


class ListedKeys:
    """Keys that are picked in their order, with verdicts from a table by reason."""

    def __init__(self, *keys: Credential, verdicts: dict[str, KeyVerdict] | None = None) -> None:
        self.keys = list(keys)
        self.verdicts = verdicts or {}
        self.reports: list[tuple[str, str]] = []
        self.released: list[str] = []
        self.none_left = refused("rate_limit", retry_after=77.0)

    async def pick(self, *, avoid: frozenset[str] = frozenset(), again: str = "") -> Credential:
        able = [held for held in self.keys if held.id not in avoid]
        if not able:
            raise self.none_left
        return next((held for held in able if held.id == again), able[0])

    async def report(self, credential: Credential, error: ProviderError | None) -> KeyVerdict:
        self.reports.append((credential.id, error.reason if error else "ok"))
        return self.verdicts.get(error.reason, "rotate") if error else "again"

    def release(self, credential: Credential) -> None:
        self.released.append(credential.id)


class Answers:
    """By key: what it is answered with, one list per request; the last one for ever."""

    def __init__(self, **by_key: list[Iterable[Delta | Reply | ProviderError]]) -> None:
        self._by_key = by_key
        self.made: list[str] = []
        self.asked: list[str] = []

    def make(self, credential: Credential) -> Provider:
        self.made.append(credential.key)
        return _Answering(self, credential.id)

    def next_of(self, name: str) -> Iterable[Delta | Reply | ProviderError]:
        self.asked.append(name)
        answers = self._by_key[name]
        return answers.pop(0) if len(answers) > 1 else answers[0]


class _Answering:
    def __init__(self, answers: Answers, name: str) -> None:
        self._answers = answers
        self._name = name

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        for item in self._answers.next_of(self._name):
            if isinstance(item, ProviderError):
                raise item
            yield item


async def test_a_healthy_key_answers_and_its_provider_is_kept() -> None:
    keys, answers = ListedKeys(key("a")), Answers(a=[GOOD])
    pooled = KeyRotatingProvider(keys, answers.make)
    assert (await ask(pooled)).whole == WHOLE
    assert (await ask(pooled)).shown == "yes"
    assert answers.made == ["secret-a"]
    assert keys.reports == [("a", "ok"), ("a", "ok")]


@pytest.mark.parametrize("reason", ["auth", "billing", "rate_limit"])
async def test_a_failing_key_is_followed_by_the_next_without_a_wait(reason: Reason) -> None:
    clock = NapClock()
    answers = Answers(a=[[refused(reason)]], b=[[refused(reason)]], c=[GOOD])
    keys = ListedKeys(key("a"), key("b"), key("c"))
    patient = RetryingProvider(
        KeyRotatingProvider(keys, answers.make), World(clock=clock), attempts=1
    )
    heard = await ask(patient)
    assert heard.whole == WHOLE
    assert answers.asked == ["a", "b", "c"]
    assert clock.naps == []


async def test_the_person_hears_which_key_goes_on_and_why() -> None:
    answers = Answers(a=[[refused("auth")]], b=[GOOD])
    heard = await ask(KeyRotatingProvider(ListedKeys(key("a"), key("b")), answers.make))
    notices = [delta for delta in heard.deltas if isinstance(delta, Notice)]
    assert notices == [
        Notice(text="p refused the key (key a); continuing with key b.", kind="warn")
    ]


async def test_what_was_streamed_by_the_failed_key_is_void() -> None:
    answers = Answers(a=[(TextDelta(text="half"), refused("rate_limit"))], b=[GOOD])
    heard = await ask(KeyRotatingProvider(ListedKeys(key("a"), key("b")), answers.make))
    assert heard.shown == "yes"
    assert sum(isinstance(delta, Restarted) for delta in heard.deltas) == 1


async def test_again_asks_the_same_key_and_takes_its_new_secret() -> None:
    keys = ListedKeys(key("a", "old"), verdicts={"auth": "again"})
    answers = Answers(a=[[refused("auth")], GOOD])

    class Renewing(ListedKeys):
        async def report(self, credential: Credential, error: ProviderError | None) -> KeyVerdict:
            self.keys = [key("a", "new")]
            return await super().report(credential, error)

    keys = Renewing(key("a", "old"), key("b"), verdicts={"auth": "again"})
    heard = await ask(KeyRotatingProvider(keys, answers.make))
    assert heard.shown == "yes"
    assert answers.made == ["old", "new"]


async def test_again_has_an_end() -> None:
    keys = ListedKeys(key("a"), key("b"), verdicts={"rate_limit": "again"})
    answers = Answers(a=[[refused("rate_limit")]], b=[GOOD])
    await ask(KeyRotatingProvider(keys, answers.make))
    assert answers.asked == ["a", "a", "a", "b"]


async def test_stop_raises_the_very_error() -> None:
    error = refused("model_not_found")
    keys = ListedKeys(key("a"), key("b"), verdicts={"model_not_found": "stop"})
    with pytest.raises(ProviderError) as caught:
        await ask(KeyRotatingProvider(keys, Answers(a=[[error]]).make))
    assert caught.value is error


async def test_without_a_healthy_key_the_soonest_reset_is_told() -> None:
    keys, answers = ListedKeys(key("a")), Answers(a=[[refused("rate_limit")]])
    with pytest.raises(ProviderError) as caught:
        await ask(KeyRotatingProvider(keys, answers.make))
    assert caught.value is keys.none_left
    assert caught.value.retry_after == 77.0


async def test_when_no_key_rests_the_last_answer_is_told() -> None:
    keys, error = ListedKeys(key("a")), refused("auth")
    keys.none_left = refused("auth")
    with pytest.raises(ProviderError) as caught:
        await ask(KeyRotatingProvider(keys, Answers(a=[[error]]).make))
    assert caught.value is error


async def test_a_call_that_is_given_up_early_releases_its_key() -> None:
    keys = ListedKeys(key("a"))
    answers = Answers(a=[(Notice(text="wait"), *GOOD)])
    async with aclosing(KeyRotatingProvider(keys, answers.make).reply(HI)) as stream:
        assert isinstance(await anext(stream), Notice)
    assert keys.released == ["a"]
    assert keys.reports == []


async def test_a_key_that_was_accepted_is_not_released() -> None:
    keys = ListedKeys(key("a"))
    async with aclosing(KeyRotatingProvider(keys, Answers(a=[GOOD]).make).reply(HI)) as stream:
        await anext(stream)
    assert keys.released == []
    assert keys.reports == [("a", "ok")]


async def test_one_key_raises_what_comes_and_asks_once() -> None:
    error = refused("auth")
    answers = Answers(a=[[error]])
    with pytest.raises(ProviderError) as caught:
        await ask(KeyRotatingProvider(SingleKey(key("a")), answers.make))
    assert caught.value is error
    assert answers.asked == ["a"]


def test_no_repr_shows_a_key() -> None:
    held = Credential(id="a", provider="p", key="sk-secret", headers={"x": "hidden"})
    assert "sk-secret" not in repr(held)
    assert "hidden" not in repr(held)


def test_a_credential_overrides_only_what_it_brings() -> None:
    at = endpoint("messages", "https://api.test")
    plain = Credential(id="a", provider="p", key="one").at(at)
    assert (plain.key, plain.url, plain.auth, plain.headers) == ("one", at.url, at.auth, {})
    own = Credential(
        id="a", provider="p", key="two", url="https://b.test", auth="x-api-key", headers={"h": "1"}
    ).at(at)
    assert (own.url, own.auth, own.headers) == ("https://b.test", "x-api-key", {"h": "1"})


def test_further_keys_have_numbered_variables() -> None:
    assert numbered_variables("A_KEY")[:3] == ("A_KEY", "A_KEY_2", "A_KEY_3")
