"""Converts tool calls that a model wrote as text. Unusable calls are reported to the model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from functools import lru_cache

from hermes.codec.values import replace
from hermes.core.errors import ConfigError
from hermes.core.messages import (
    AssistantMessage,
    Reasoning,
    StopReason,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from hermes.core.ports import Provider
from hermes.core.prompt import CallNamed, Delta, Prompt, Reply, Restarted, TextDelta, ToolSpec
from hermes.providers.normalization import call_ids, fresh_id
from hermes.providers.textcalls.attempts import OpenerIndex
from hermes.providers.textcalls.parsing import CallStyle
from hermes.providers.textcalls.scanner import CallScanner, TextCall
from hermes.providers.textcalls.styles import plain, tags, vendor_tokens
from hermes.providers.textcalls.validation import OfferedTools
from hermes.providers.wire.reply_builder import CONNECTION_LOST

AUTO = "auto"
MISREAD = "an argument contains the end of a call, so it is not clear where the call ends"
STYLES: tuple[CallStyle, ...] = (*tags.STYLES, *vendor_tokens.STYLES, *plain.STYLES)
# The models that use a style; their names are accepted in place of its own.
_MODELS_OF_STYLE = {
    "hermes": ("qwen", "qwen2.5", "qwen3", "ernie", "exaone", "granite4"),
    "qwen-coder": ("qwen3-coder", "nemotron3"),
    "llama": ("llama3",),
    "pythonic": ("llama4-pythonic",),
    "deepseek": ("deepseek-v3", "deepseek-r1", "deepseek-v3.1"),
    "deepseek-dsml": ("deepseek-v3.2",),
    "glm": ("glm4.5",),
    "kimi": ("kimi-k2",),
    "gemma": ("gemma3",),
    "minimax": ("minimax-m2",),
    "jamba": ("hunyuan",),
    "command": ("command-r",),
    "harmony": ("gpt-oss",),
    "json": ("xlam",),
    "invoke": ("anthropic",),
}
ALIASES = {name: style for style, names in _MODELS_OF_STYLE.items() for name in names}


def trusted_styles(name: str) -> frozenset[str]:
    """Return the styles that a model is known to use; empty for `auto`. Raise ConfigError for an
    unknown style."""
    if name in ("", AUTO):
        return frozenset()
    name = ALIASES.get(name, name)
    if name == "llama":
        # Llama 3 uses all of these.
        return frozenset(("llama", "json", "function"))
    if name == "gemma":
        return frozenset(("gemma", "fenced", "pythonic", "python"))
    if name not in {style.name for style in STYLES}:
        known = ", ".join((AUTO, *sorted(style.name for style in STYLES)))
        raise ConfigError(f"There is no tool call style {name!r}; available: {known}.")
    return frozenset((name,))


class TextCallProvider:
    """Turns calls that a model writes as text into tool calls, for servers that do not know the
    model's style. `style` is the model's known style, or "auto"; unambiguous markup is recognised
    in any case. Markup that is an example or a quotation stays text. A call that names no offered
    tool, cannot be read or does not match the schema is still a call: it never runs, and the
    model gets the reason as its result. Replies with native calls pass unchanged."""

    def __init__(self, inner: Provider, style: str = "auto") -> None:
        self._inner = inner
        self._trusted = trusted_styles(style)
        self._tools: tuple[ToolSpec, ...] = ()
        self._offer = OfferedTools(())
        self._openers = OpenerIndex((), ())

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        scanning = bool(prompt.tools) and not prompt.text_only
        if scanning:
            self._prepare(prompt.tools)
        received: list[str] = []
        scanner = self._scanner()
        async with aclosing(self._inner.reply(prompt)) as stream:
            async for item in stream:
                if not scanning:
                    yield item
                elif isinstance(item, TextDelta):
                    received.append(item.text)
                    for piece in scanner.feed(item.text):
                        yield piece
                elif isinstance(item, Reply):
                    for made in self._finish(prompt, item, scanner, received):
                        yield made
                else:
                    if isinstance(item, Restarted):
                        received, scanner = [], self._scanner()
                    elif isinstance(item, CallNamed):
                        # The server knows the style, so all text is text.
                        scanning = False
                        for delta in _flush(scanner, received):
                            yield delta
                    yield item

    def _prepare(self, tools: tuple[ToolSpec, ...]) -> None:
        if tools is not self._tools and tools != self._tools:
            self._offer = OfferedTools(tools)
            self._openers = _openers(self._offer.names, self._trusted)
        self._tools = tools

    def _scanner(self) -> CallScanner:
        return CallScanner(self._offer, self._openers, self._trusted)

    def _finish(
        self, prompt: Prompt, reply: Reply, scanner: CallScanner, received: list[str]
    ) -> Iterator[Delta | Reply]:
        message = reply.message
        if not received and message.text:
            received.append(message.text)
            yield from scanner.feed(message.text)
        if message.calls:
            yield from _flush(scanner, received)
            yield reply
            return
        yield from scanner.finish(whole=message.stop not in ("length", "cut"))
        if not scanner.calls:
            yield reply
        elif _is_void(scanner, prompt):
            yield Restarted()
            yield TextDelta(text="".join(received))
            yield reply
        elif scanner.is_misread:
            unusable = _misread(scanner)
            yield Restarted()
            for part in unusable:
                if isinstance(part, str):
                    yield TextDelta(text=part)
            yield replace(reply, message=_with_calls(message, unusable, prompt))
        else:
            yield replace(reply, message=_with_calls(message, scanner.parts, prompt))


@lru_cache(maxsize=8)
def _openers(names: tuple[str, ...], trusted: frozenset[str]) -> OpenerIndex:
    """Return the index of openers, shared by sessions with the same tools."""
    first = tuple(style for style in STYLES if style.name in trusted)
    others = tuple(style for style in STYLES if style.name not in trusted)
    return OpenerIndex((*first, *others), names)


def _flush(scanner: CallScanner, received: list[str]) -> Iterator[Delta]:
    """Emit all held-back text as text."""
    if scanner.calls:
        yield Restarted()
        yield TextDelta(text="".join(received))
    elif held := scanner.held_text:
        yield TextDelta(text=held)


def _is_void(scanner: CallScanner, prompt: Prompt) -> bool:
    """Return whether the calls turn out not to be meant: part of reasoning, or copied from another
    message."""
    if scanner.is_thought:
        return True
    texts = [m.text for m in prompt.messages if isinstance(m, UserMessage)]
    reported: set[str] = set()
    for message in prompt.messages:
        if isinstance(message, AssistantMessage):
            # The results of unusable calls quote the model itself.
            reported = {call.id for call in message.calls if call.broken}
        elif isinstance(message, ToolMessage):
            texts += [result.text for result in message.results if result.call_id not in reported]
    return any(echo in text for echo in scanner.echoes for text in texts)


def _misread(scanner: CallScanner) -> list[str | TextCall]:
    """Return the text before the first call, and that call as unusable."""
    parts = scanner.parts
    first = next(at for at, part in enumerate(parts) if isinstance(part, TextCall))
    return [*parts[:first], scanner.calls[0]._replace(broken=MISREAD)]


def _with_calls(
    message: AssistantMessage, content: list[str | TextCall], prompt: Prompt
) -> AssistantMessage:
    taken = call_ids(prompt.messages)
    parts: list[Text | Reasoning | ToolCall] = [
        part for part in message.parts if isinstance(part, Reasoning)
    ]
    message_index, count = len(prompt.messages), 0
    for part in content:
        if isinstance(part, TextCall):
            id = fresh_id(f"call_{message_index}_{count}", taken)
            taken.add(id)
            count += 1
            broken = part.broken or (CONNECTION_LOST if message.stop == "cut" else "")
            arguments = {} if broken else part.arguments
            parts.append(ToolCall(id=id, name=part.name, arguments=arguments, broken=broken))
        else:
            parts.append(Text(text=part))
    stop: StopReason = "calls" if message.stop == "done" else message.stop
    return AssistantMessage(parts=tuple(parts), stop=stop)
