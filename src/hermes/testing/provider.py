"""A scripted Provider inside the process: the same steps, without HTTP."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.tokens import tokens_of_size
from hermes.codec.values import JsonValue
from hermes.core.errors import ProviderError, Reason
from hermes.core.messages import (
    AssistantMessage,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from hermes.core.prompt import CallNamed, Delta, Prompt, ReasoningDelta, Reply, TextDelta
from hermes.core.world import Clock, SystemClock
from hermes.testing.responder import estimated_usage
from hermes.testing.steps import (
    Break,
    Failure,
    Rule,
    ScriptedCall,
    ScriptExhausted,
    Step,
    StepScript,
    pieces,
)
from hermes.testing.wires.draft import describe_failure, seal

REASONS: dict[int, Reason] = {
    0: "timeout",
    400: "format_error",
    401: "auth",
    402: "billing",
    403: "auth",
    404: "model_not_found",
    413: "payload_too_large",
    429: "rate_limit",
    500: "server_error",
    502: "server_error",
    503: "overloaded",
    529: "overloaded",
}
RETRYABLE: frozenset[Reason] = frozenset(
    ("timeout", "rate_limit", "server_error", "overloaded", "cut", "unknown")
)


def provider_error(failure: Failure) -> ProviderError:
    reason = REASONS.get(failure.status, "unknown")
    if failure.limit is not None:
        reason = "context_overflow"
    return ProviderError(
        describe_failure(failure).message if failure.status else "The connection was closed.",
        reason=reason,
        status=failure.status or None,
        retryable=reason in RETRYABLE,
        retry_after=failure.retry_after,
        limit=failure.limit,
        body=failure.body or "",
    )


def find_problems(prompt: Prompt) -> Iterator[str]:
    """A conversation begins with the user, and results answer the calls directly before them, in
    the same order."""
    if not prompt.messages or not isinstance(prompt.messages[0], UserMessage):
        yield "the conversation does not begin with a user message"
    asked: tuple[str, ...] = ()
    for at, message in enumerate(prompt.messages):
        if isinstance(message, ToolMessage):
            answered = tuple(result.call_id for result in message.results)
            if answered != asked:
                yield f"messages[{at}]: results {answered} for the calls {asked}"
            asked = ()
            continue
        if asked:
            yield f"messages[{at}]: the calls {asked} have no results"
        asked = ()
        if isinstance(message, AssistantMessage):
            asked = tuple(call.id for call in message.calls)
    if asked:
        yield f"the calls {asked} have no results"
    names = [tool.name for tool in prompt.tools]
    for name in {name for name in names if names.count(name) > 1}:
        yield f"two tools are named {name!r}"


CHOSEN_ID = re.compile(r"call_(\d+)")


class ScriptedProvider:
    """Yields what a real provider makes of the same step: failures are ProviderErrors, and flaws
    that concern only bytes have no effect. A `rule` replaces steps. `prompts` records all prompts.
    A prompt that breaks the rules of a conversation, or has no step, is rejected and listed in
    `violations`. With `strict=False` and steps that state their usage, the cost per reply does not
    grow with the conversation."""

    def __init__(
        self,
        *steps: Step,
        rule: Rule[Prompt] | None = None,
        loop: bool = False,
        strict: bool = True,
        model: str = "scripted",
        provider: str = "scripted",
        clock: Clock | None = None,
    ) -> None:
        self._script: StepScript[Prompt] = StepScript(rule or steps, loop=loop)
        self._strict = strict
        self._model = model
        self._provider = provider
        self._clock = clock or SystemClock()
        self._last_call = 0
        self.prompts: list[Prompt] = []
        self.violations: list[str] = []

    @property
    def steps_left(self) -> int:
        return self._script.left

    def add(self, *steps: Step) -> None:
        self._script.add(*steps)

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        self.prompts.append(prompt)
        if self._strict and (reasons := list(find_problems(prompt))):
            raise self._reject(*reasons)
        try:
            chosen = self._script.next(prompt)
        except ScriptExhausted as over:
            raise self._reject(str(over)) from over
        step = chosen if isinstance(chosen, Step) else await chosen
        await self._pause(step.pace.first_seconds)
        if step.failure is not None:
            raise provider_error(step.failure)
        deltas, broken = list(_deltas(step)), step.breaks
        if broken is not None:
            deltas = deltas[: _deltas_before(deltas, broken)]
        for number, delta in enumerate(deltas):
            await self._pause(step.pace.between_seconds if number else 0)
            yield delta
        if broken is not None:
            if broken.how == "hold":
                await asyncio.Event().wait()
            if broken.how == "error":
                raise provider_error(broken.failure or Failure(status=503))
            raise ProviderError("The connection was lost.", reason="cut", retryable=True)
        yield self._whole(prompt, step)

    async def _pause(self, seconds: float) -> None:
        if seconds:
            await self._clock.sleep(seconds)

    def _reject(self, *reasons: str) -> ProviderError:
        self.violations.extend(reasons)
        return ProviderError("; ".join(reasons), reason="format_error", status=400)

    def _whole(self, prompt: Prompt, step: Step) -> Reply:
        parts: list[Text | Reasoning | ToolCall] = []
        if step.reasoning or step.sealed:
            sealed = seal(step.reasoning) if step.sealed is None else step.sealed
            block = {"signature": sealed} if sealed else None
            parts.append(Reasoning(text=step.reasoning, sealed=block, issuer=self._provider))
        if step.text:
            parts.append(Text(text=step.text))
        for call in step.calls:
            if not call.id:
                self._last_call = max((self._last_call, *_used_numbers(prompt))) + 1
            parts.append(_make_call(call, call.id or f"call_{self._last_call}"))
        return Reply(
            message=AssistantMessage(parts=tuple(parts), stop=step.stops),
            usage=step.usage or estimated_usage(tokens_of_size(len(encode(prompt))), step),
            model=step.model or self._model,
            provider=self._provider,
        )


def _used_numbers(prompt: Prompt) -> Iterator[int]:
    """The numbers of the newest generated ids, of this provider or another."""
    for message in reversed(prompt.messages):
        if isinstance(message, AssistantMessage):
            numbers = [CHOSEN_ID.fullmatch(call.id) for call in message.calls]
            if any(numbers):
                yield from (int(match[1]) for match in numbers if match)
                return


def _make_call(call: ScriptedCall, id: str) -> ToolCall:
    if call.raw is None:
        return ToolCall(id=id, name=call.name, arguments=call.arguments)
    try:
        return ToolCall(id=id, name=call.name, arguments=decode(dict[str, JsonValue], call.raw))
    except DecodeError as error:
        return ToolCall(id=id, name=call.name, broken=f"The arguments are not JSON: {error}")


def _deltas(step: Step) -> Iterator[Delta]:
    for piece in pieces(step.reasoning, step.pace.chunk):
        yield ReasoningDelta(text=piece)
    for piece in pieces(step.text, step.pace.chunk):
        yield TextDelta(text=piece)
    for call in step.calls:
        yield CallNamed(name=call.name)


def _deltas_before(deltas: list[Delta], broken: Break) -> int:
    """How many deltas come before the break. Bytes are counted in the text."""
    if broken.after_bytes is None:
        return broken.after_chunks or 0
    size = 0
    for number, delta in enumerate(deltas):
        size += len(getattr(delta, "text", "").encode("utf-8", "surrogatepass"))
        if size > broken.after_bytes:
            return number
    return len(deltas)
