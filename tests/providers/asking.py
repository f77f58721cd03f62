"""Short ways to ask a provider, and providers that answer from a list."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

import msgspec

from hermes.core.errors import ProviderError
from hermes.core.messages import Message, ToolMessage, ToolResult, user_says
from hermes.core.messages import Text as TextPart
from hermes.core.ports import Provider
from hermes.core.prompt import Delta, Prompt, Reply, Restarted, TextDelta, ToolSpec
from hermes.core.world import World
from hermes.net.http import HttpClient, Timeouts
from hermes.providers.endpoint import Endpoint
from hermes.providers.pipeline import EndpointProvider
from hermes.providers.profile import ModelProfile, WireName
from hermes.providers.retry import AdaptiveProfile

KEY = "sk-test-0123456789"
WIRES: tuple[WireName, ...] = ("chat", "responses", "messages")
LOOK = ToolSpec(
    name="look",
    description="Look at something.",
    parameters={"type": "object", "properties": {"at": {"type": "string"}}, "required": []},
)
HI = Prompt(system="Be brief.", messages=(user_says("hi"),), tools=(LOOK,))


class Heard:
    """All that a provider yielded."""

    def __init__(self) -> None:
        self.deltas: list[Delta] = []
        self.reply: Reply | None = None

    @property
    def whole(self) -> Reply:
        assert self.reply is not None
        return self.reply

    @property
    def shown(self) -> str:
        """What a screen shows at the end."""
        text = ""
        for delta in self.deltas:
            if isinstance(delta, Restarted):
                text = ""
            elif isinstance(delta, TextDelta):
                text += delta.text
        return text


async def ask(provider: Provider, prompt: Prompt = HI, heard: Heard | None = None) -> Heard:
    heard = heard or Heard()
    async with aclosing(provider.reply(prompt)) as stream:
        async for item in stream:
            assert heard.reply is None, "something came after the reply"
            if isinstance(item, Reply):
                heard.reply = item
            else:
                heard.deltas.append(item)
    assert heard.reply is not None
    return heard


class Listed:
    """A provider that gives one of these answers per request: deltas and a reply, or an error at
    any place."""

    def __init__(self, *answers: Iterable[Delta | Reply | ProviderError]) -> None:
        self._answers = [tuple(answer) for answer in answers]
        self.prompts: list[Prompt] = []

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        self.prompts.append(prompt)
        for item in self._answers.pop(0):
            if isinstance(item, ProviderError):
                raise item
            yield item


class NapClock:
    """Sleeps take no time but are remembered."""

    def __init__(self) -> None:
        self.naps: list[float] = []

    def now(self) -> float:
        return 1_750_000_000.0 + sum(self.naps)

    def monotonic(self) -> float:
        return sum(self.naps)

    async def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)


def endpoint(wire: WireName, url: str, profile: ModelProfile | None = None) -> Endpoint:
    """An endpoint at the scripted server."""
    native = ModelProfile(replay="none" if wire == "chat" else "sealed")
    return Endpoint(
        name="scripted",
        wire=wire,
        url=url if wire == "messages" else f"{url}/v1",
        model="scripted",
        key=KEY,
        profile=profile or native,
    )


def direct(
    wire: WireName,
    url: str,
    http: HttpClient,
    *,
    profile: ModelProfile | None = None,
    streams: bool = True,
    timeouts: Timeouts | None = None,
) -> EndpointProvider:
    at = endpoint(wire, url, profile)
    adaptive = AdaptiveProfile(msgspec.structs.replace(at.profile, streams=streams))
    clock = World().clock
    return EndpointProvider(
        at, http=http, clock=clock, adaptive=adaptive, timeouts=timeouts or Timeouts()
    )


def answered(reply: Reply, text: str = "seen") -> tuple[Message, ...]:
    """The reply and the results of its calls."""
    results = tuple(
        ToolResult(call_id=call.id, name=call.name, parts=(TextPart(text=text),))
        for call in reply.message.calls
    )
    return (reply.message, ToolMessage(results=results))


def then(prompt: Prompt, *messages: Message) -> Prompt:
    return msgspec.structs.replace(prompt, messages=(*prompt.messages, *messages))
