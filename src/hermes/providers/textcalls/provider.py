"""Makes tool calls of those that a model wrote as text: the right call or none at all."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from functools import lru_cache

from hermes.codec.values import replace
from hermes.core.messages import (
    AssistantMessage,
    Message,
    Reasoning,
    StopReason,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from hermes.core.ports import Provider
from hermes.core.prompt import CallNamed, Delta, Prompt, Reply, Restarted, TextDelta, ToolSpec
from hermes.providers.grammar import fresh_id
from hermes.providers.textcalls.catalogue import STYLES, trusted_styles
from hermes.providers.textcalls.found import Wish
from hermes.providers.textcalls.offer import Offer
from hermes.providers.textcalls.openers import Openers
from hermes.providers.textcalls.scanner import Scanner
from hermes.providers.wire.thinking import TAGS

_LOST = "the connection was lost before the answer was complete"
_STRAY_THOUGHT = re.compile("|".join(f"</{tag}>" for tag in TAGS), re.IGNORECASE)


class TextCalls:
    """For models whose calls come as words, because the server does not know their style. `style`
    is one that the model is known for, or "auto"; marks that mean only one thing are understood in
    any case. A call counts if it is one of a tool on offer, with arguments that fit its schema, and
    if nothing makes it an example or a quotation; else all of it stays text. Replies with calls of
    their own pass as they are."""

    def __init__(self, inner: Provider, style: str = "auto") -> None:
        self._inner = inner
        self._trusted = trusted_styles(style)
        self._tools: tuple[ToolSpec, ...] = ()
        self._offer = Offer(())
        self._openers = Openers((), ())

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        listening = bool(prompt.tools) and not prompt.words_only
        if listening:
            self._prepare(prompt.tools)
        heard: list[str] = []
        scanner = self._scanner()
        async with aclosing(self._inner.reply(prompt)) as stream:
            async for item in stream:
                if not listening:
                    yield item
                elif isinstance(item, TextDelta):
                    heard.append(item.text)
                    for piece in scanner.feed(item.text):
                        yield piece
                elif isinstance(item, Reply):
                    for made in self._finished(prompt, item, scanner, heard):
                        yield made
                else:
                    if isinstance(item, Restarted):
                        heard, scanner = [], self._scanner()
                    elif isinstance(item, CallNamed):
                        # The server knows the style itself: all words are words.
                        listening = False
                        for delta in _flushed(scanner, heard):
                            yield delta
                    yield item

    def _prepare(self, tools: tuple[ToolSpec, ...]) -> None:
        if tools is not self._tools and tools != self._tools:
            self._offer = Offer(tools)
            self._openers = _openers(self._offer.names, self._trusted)
        self._tools = tools

    def _scanner(self) -> Scanner:
        return Scanner(self._offer, self._openers, self._trusted)

    def _finished(
        self, prompt: Prompt, reply: Reply, scanner: Scanner, heard: list[str]
    ) -> Iterator[Delta | Reply]:
        message = reply.message
        if not heard and message.text:
            heard.append(message.text)
            yield from scanner.feed(message.text)
        if message.calls:
            yield from _flushed(scanner, heard)
            yield reply
            return
        yield from scanner.finish(whole=message.stop not in ("length", "cut"))
        if not scanner.wishes:
            yield reply
        elif _is_void(scanner, prompt):
            yield Restarted()
            yield TextDelta(text="".join(heard))
            yield reply
        else:
            yield replace(reply, message=_with_calls(message, scanner, prompt))


@lru_cache(maxsize=8)
def _openers(names: tuple[str, ...], trusted: frozenset[str]) -> Openers:
    """Sessions that have the same tools share them."""
    first = tuple(style for style in STYLES if style.name in trusted)
    others = tuple(style for style in STYLES if style.name not in trusted)
    return Openers((*first, *others), names)


def _flushed(scanner: Scanner, heard: list[str]) -> Iterator[Delta]:
    """Everything that was held back, as words."""
    if scanner.wishes:
        yield Restarted()
        yield TextDelta(text="".join(heard))
    elif held := scanner.held:
        yield TextDelta(text=held)


def _is_void(scanner: Scanner, prompt: Prompt) -> bool:
    """Something shows only now that the calls were not meant: they were misread, thought, or
    repeated from what somebody else wrote."""
    if scanner.misread or _STRAY_THOUGHT.search(scanner.said_after):
        return True
    return any(_occurs(echo, message) for echo in scanner.echoes for message in prompt.messages)


def _occurs(text: str, message: Message) -> bool:
    match message:
        case UserMessage():
            return text in message.text
        case ToolMessage(results=results):
            return any(text in result.text for result in results)
        case AssistantMessage():
            return False


def _with_calls(message: AssistantMessage, scanner: Scanner, prompt: Prompt) -> AssistantMessage:
    taken = {
        call.id for m in prompt.messages if isinstance(m, AssistantMessage) for call in m.calls
    }
    made: list[Text | Reasoning | ToolCall] = [
        part for part in message.parts if isinstance(part, Reasoning)
    ]
    place, count = len(prompt.messages), 0
    for part in scanner.parts:
        if isinstance(part, Wish):
            id = fresh_id(f"call_{place}_{count}", taken)
            taken.add(id)
            count += 1
            made.append(_call(part, id, message.stop))
        else:
            made.append(Text(text=part))
    stop: StopReason = "calls" if message.stop == "done" else message.stop
    return AssistantMessage(parts=tuple(made), stop=stop)


def _call(wish: Wish, id: str, stop: StopReason) -> ToolCall:
    broken = wish.broken or (_LOST if stop == "cut" else "")
    arguments = {} if broken else wish.arguments
    return ToolCall(id=id, name=wish.name, arguments=arguments, broken=broken)
