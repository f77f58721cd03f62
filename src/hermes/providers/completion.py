"""Completes replies that were truncated, empty, or broken inside a tool call."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing

from hermes.codec.values import Value, replace
from hermes.core.errors import BudgetReached, ProviderError
from hermes.core.messages import (
    AssistantMessage,
    Message,
    Reasoning,
    StopReason,
    Text,
    ToolCall,
    ToolMessage,
    Usage,
    user_says,
)
from hermes.core.ports import Provider
from hermes.core.prompt import Delta, Notice, Prompt, Reply, Restarted, TextDelta
from hermes.core.world import World
from hermes.providers.retry import backoff

MAX_CONTINUATIONS = 4
MAX_TRUNCATIONS = 4
MAX_UNREADABLE = 2
MAX_REASONING_ONLY = 2
MAX_EMPTY = 3

CONTINUE_PROMPT = (
    "Your reply was cut off. Continue exactly where it stopped; do not repeat or comment on"
    " anything."
)
RESULTS_PROMPT = (
    "You have the results of your tool calls but gave no answer. Continue with the task."
)
ANSWER_PROMPT = "That was your reasoning only. Now write the answer itself, or call a tool."
NO_ANSWER = "(no answer)"
EMPTY = "(empty)"

_LEAST_CAP = 4_096
_OUTPUT_CAP = 32_768
_MAX_QUOTED_CHARS = 4_000

ReplyParts = tuple[Text | Reasoning | ToolCall, ...]


class AskAgain(Value):
    """A decision to ask the model again."""

    voids: bool = True  # what was shown of the last reply does not count
    waits: int = 0  # back off as before this attempt; 0 asks at once


class Continuation:
    """Decides whether a reply needs another request, and builds it. It has no side effects: it only
    counts and decides. `prompt` is the next request; `unseen_text` is text of the finished reply
    that no delta has shown yet; `is_redrawn` means that a part of what deltas have shown was
    dropped."""

    def __init__(self, prompt: Prompt) -> None:
        self.prompt = prompt
        self.unseen_text = ""
        self.is_redrawn = False
        self._original = prompt
        self._output_cap = max(_OUTPUT_CAP, prompt.max_tokens or 0)
        self._kept: ReplyParts = ()
        self._stop: StopReason = "done"
        self._usage = Usage()
        self._who = ("", "")
        self._continued = 0
        self._truncated = 0
        self._unreadable = 0
        self._nudged = False
        self._thought = 0
        self._empty = 0

    @property
    def text(self) -> str:
        """The text the user has seen and keeps."""
        return "".join(part.text for part in self._kept if isinstance(part, Text))

    def next_step(self, reply: Reply | None) -> Reply | AskAgain:
        """Return the next step after this reply; None if the reply failed for good."""
        if reply is None:
            return self._final(())
        self._usage += reply.usage
        self._who = (reply.model, reply.provider)
        message = self._without_repetition(reply.message)
        reply = replace(reply, message=message)
        self._stop = message.stop
        if any(call.broken for call in message.calls):
            return self._after_broken(reply)
        if message.calls:
            self._stop = "calls"
            return self._final(message.parts)
        if message.text.strip():
            return self._after_text(message)
        return self._after_empty(message)

    def _without_repetition(self, message: AssistantMessage) -> AssistantMessage:
        """Return the message without text that repeats the kept text. A model that starts over
        replaces the kept text."""
        repeated = count_repeated(self.text, message.text) if self._kept else 0
        self.is_redrawn = repeated != 0
        if repeated < 0:
            self._kept = ()
        elif repeated:
            message = replace(message, parts=tuple(_drop_start(message.parts, repeated)))
        return message

    def _after_broken(self, reply: Reply) -> Reply | AskAgain:
        if reply.message.stop in ("length", "cut"):
            if self._truncated < MAX_TRUNCATIONS:
                self._truncated += 1
                if reply.message.stop == "length":
                    cap = self.prompt.max_tokens or max(reply.usage.output, _LEAST_CAP)
                    cap = min(cap * 2, self._output_cap)
                    self.prompt = replace(self.prompt, max_tokens=cap)
                return AskAgain()
        elif self._unreadable < MAX_UNREADABLE:
            self._unreadable += 1
            return AskAgain()
        self._stop = "calls"
        return self._final(reply.message.parts)

    def _after_text(self, message: AssistantMessage) -> Reply | AskAgain:
        if message.stop not in ("length", "cut") or self._continued >= MAX_CONTINUATIONS:
            return self._final(message.parts)
        self._continued += 1
        self._kept = join_parts(self._kept, message.parts)
        self._ask(AssistantMessage(parts=self._kept), user_says(CONTINUE_PROMPT))
        return AskAgain(voids=False)

    def _after_empty(self, message: AssistantMessage) -> Reply | AskAgain:
        """Ask for an answer a few times, then report why there is none."""
        if self._kept:
            return self._final(message.parts)
        if message.stop == "filtered":
            return self._give_up("The provider's content filter blocked the reply.")
        if message.stop == "length" and message.reasoning:
            return self._give_up(
                "The model spent its whole output on reasoning; lower the reasoning effort or"
                " raise the output limit."
            )
        last = self._original.messages[-1] if self._original.messages else None
        if isinstance(last, ToolMessage) and not self._nudged:
            self._nudged = True
            self._ask(_assistant_text(NO_ANSWER), user_says(RESULTS_PROMPT))
            return AskAgain()
        if message.reasoning and self._thought < MAX_REASONING_ONLY:
            self._thought += 1
            self._ask(
                _assistant_text(message.reasoning[-_MAX_QUOTED_CHARS:]), user_says(ANSWER_PROMPT)
            )
            return AskAgain()
        if self._empty < MAX_EMPTY:
            self._empty += 1
            self._ask()
            return AskAgain(waits=self._empty)
        return self._give_up(f"The model gave no answer in {self._usage.requests} attempts.")

    def _ask(self, *more: Message) -> None:
        messages = (*self._original.messages, *more)
        self.prompt = replace(self.prompt, messages=messages)

    def _give_up(self, why: str) -> Reply:
        self._stop = "done"
        self.unseen_text = f"{EMPTY}\n{why}"
        return self._final((Text(text=self.unseen_text),))

    def _final(self, parts: ReplyParts) -> Reply:
        model, provider = self._who
        message = AssistantMessage(parts=join_parts(self._kept, parts), stop=self._stop)
        return Reply(message=message, usage=self._usage, model=model, provider=provider)


# A repetition of fewer characters may be intended.
_LEAST_REPEATED = 8
_LEAST_START = 3
_MOST_REPEATED = 2_000
RESTARTED = -1


def count_repeated(kept: str, more: str) -> int:
    """Return how many characters at the start of `more` repeat the end of `kept`; RESTARTED if
    `more` begins like the whole of `kept`."""
    start, opening = kept.strip(), more.lstrip()
    if len(start) >= _LEAST_START and opening.startswith(start[: 3 * _LEAST_REPEATED]):
        return RESTARTED
    end = kept.rstrip()[-_MOST_REPEATED:]
    for size in range(min(len(end), len(opening)), _LEAST_REPEATED - 1, -1):
        if end.endswith(opening[:size]) and _is_whole(end, opening, size):
            return len(more) - len(opening) + size
    return 0


def _is_whole(end: str, opening: str, size: int) -> bool:
    """Return whether a repetition begins and ends between words."""
    before, after = end[: len(end) - size][-1:], opening[size : size + 1]
    return not (before.isalnum() or after.isalnum())


def _drop_start(parts: ReplyParts, characters: int) -> Iterator[Text | Reasoning | ToolCall]:
    for part in parts:
        if isinstance(part, Text) and characters:
            dropped = min(characters, len(part.text))
            characters -= dropped
            part = Text(text=part.text[dropped:])
        yield part


def join_parts(kept: ReplyParts, more: ReplyParts) -> ReplyParts:
    """Join two parts of one reply. Text continues where it stopped; reasoning in the middle of a
    reply cannot be sent back, so only its text is kept."""
    if not kept:
        return more
    parts = list(kept)
    for part in more:
        last = parts[-1]
        if isinstance(part, Text) and isinstance(last, Text):
            parts[-1] = Text(text=last.text + part.text)
        elif isinstance(part, Reasoning):
            if part.text:
                parts.insert(len(parts) - 1, Reasoning(text=part.text))
        else:
            parts.append(part)
    return tuple(parts)


def _assistant_text(text: str) -> AssistantMessage:
    return AssistantMessage(parts=(Text(text=text),))


class CompletingProvider:
    """Requests again until the reply is complete: text is continued where it was cut, arguments
    parse, and the reply is not empty. These extra messages never enter the transcript. When nothing
    helps, the reply holds broken calls, the partial text, or "(empty)" with a reason."""

    def __init__(self, inner: Provider, world: World) -> None:
        self._inner = inner
        self._world = world

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        work = Continuation(prompt)
        shown = False
        while True:
            newest: Reply | None = None
            try:
                async with aclosing(self._inner.reply(work.prompt)) as stream:
                    async for item in stream:
                        if isinstance(item, Reply):
                            newest = item
                        elif isinstance(item, Restarted):
                            for delta in _restart_deltas(work):
                                yield delta
                        else:
                            shown |= not isinstance(item, Notice)
                            yield item
            except (ProviderError, BudgetReached) as error:
                # The text so far is paid for, so it is kept.
                if not work.text:
                    raise
                yield Notice(text=f"The reply may be incomplete: {error}", kind="warn")
            step = work.next_step(newest)
            if work.is_redrawn:
                yield Restarted()
                yield TextDelta(text=step.message.text if isinstance(step, Reply) else work.text)
            if isinstance(step, Reply):
                if work.unseen_text:
                    if shown:
                        yield Restarted()
                    yield TextDelta(text=work.unseen_text)
                yield step
                return
            if step.voids and shown:
                shown = bool(work.text)
                for delta in _restart_deltas(work):
                    yield delta
            if step.waits:
                await self._world.clock.sleep(backoff(self._world, step.waits, slow=True))


def _restart_deltas(work: Continuation) -> Iterator[Delta]:
    """Yield the deltas that retract everything shown except the kept text."""
    yield Restarted()
    if work.text:
        yield TextDelta(text=work.text)
