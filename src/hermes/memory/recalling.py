"""What is known of the user, shown to the model beside their messages."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from hashlib import blake2b
from typing import TYPE_CHECKING

from hermes.codec.values import replace
from hermes.core.messages import AssistantMessage, Message, Text, UserMessage
from hermes.core.ports import Provider
from hermes.core.prompt import Delta, Prompt, Reply, TextDelta
from hermes.core.session import Session
from hermes.memory.provider import CLOSE, OPEN, EchoFilter, MemoryProviderSession, remove_echo

if TYPE_CHECKING:
    from hermes.memory.memories import Memories


class RecallingProvider:
    """A provider that shows the model, beside each message of the user, what is known about them.
    What stood beside a message once stays there, so that prompts only grow."""

    def __init__(
        self,
        inner: Provider,
        attached: MemoryProviderSession,
        memories: Memories,
        session: Callable[[], Session],
    ) -> None:
        self._inner = inner
        self._attached = attached
        self._memories = memories
        self._session = session
        self._known: dict[int, tuple[bytes, str]] | None = None
        self._made: dict[int, tuple[Message, Message]] = {}

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        said = _last_message(prompt.messages)
        messages = await self._with_recalled(prompt.messages, said)
        async with aclosing(_clean(self._inner.reply(_with(prompt, messages)))) as parts:
            async for part in parts:
                if isinstance(part, Reply) and not part.message.calls and said is not None:
                    asked = prompt.messages[said]
                    assert isinstance(asked, UserMessage)
                    self._attached.turn_ended(asked.text, part.message.text)
                yield part

    async def _with_recalled(
        self, messages: tuple[Message, ...], said: int | None
    ) -> tuple[Message, ...]:
        if self._known is None:
            self._known = await self._memories.recalls_of(self._session().id)
        if said is not None and said == len(messages) - 1 and said not in self._known:
            message = messages[said]
            assert isinstance(message, UserMessage)
            transcript = self._session().transcript
            self._attached.before_turn(transcript.messages, transcript.turn_starts)
            if text := await self._attached.prefetch(message.text):
                self._known[said] = (_mark(message), text)
                await self._memories.record_recall(self._session().id, said, _mark(message), text)
        return tuple(self._with_block(place, message) for place, message in enumerate(messages))

    def _with_block(self, place: int, message: Message) -> Message:
        found = (self._known or {}).get(place)
        if found is None or not isinstance(message, UserMessage) or found[0] != _mark(message):
            return message
        before = self._made.get(place)
        if before is None or before[0] is not message:
            parts = (*message.parts, Text(text=f"\n\n{found[1]}"))
            before = (message, UserMessage(parts=parts, origin=message.origin))
            self._made[place] = before
        return before[1]


async def _clean(
    parts: AsyncGenerator[Delta | Reply],
) -> AsyncGenerator[Delta | Reply]:
    """Without what the model repeats of the blocks beside messages, also while it speaks."""
    echo = EchoFilter()
    async with aclosing(parts):
        async for part in parts:
            if isinstance(part, TextDelta):
                if text := echo.feed(part.text):
                    yield TextDelta(text=text)
                continue
            if isinstance(part, Reply):
                if text := echo.finish():
                    yield TextDelta(text=text)
                part = replace(part, message=_without_echo(part.message))
            yield part


def _without_echo(message: AssistantMessage) -> AssistantMessage:
    if OPEN not in message.text and CLOSE not in message.text:
        return message
    parts = (
        Text(text=remove_echo(part.text)) if isinstance(part, Text) else part
        for part in message.parts
    )
    return replace(message, parts=tuple(parts))


def _with(prompt: Prompt, messages: tuple[Message, ...]) -> Prompt:
    return replace(prompt, messages=messages)


def _last_message(messages: tuple[Message, ...]) -> int | None:
    """The place of the newest message of the user."""
    return next(
        (
            place
            for place in range(len(messages) - 1, -1, -1)
            if isinstance(message := messages[place], UserMessage) and message.origin == "user"
        ),
        None,
    )


def _mark(message: UserMessage) -> bytes:
    return blake2b(message.text.encode(), digest_size=16).digest()
