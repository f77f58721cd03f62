"""Decides how to complete a reply: what is kept, and what to ask next."""

from __future__ import annotations

from hermes.codec.values import Value, replace
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
from hermes.core.prompt import Prompt, Reply

MOST_CONTINUATIONS = 4
MOST_TRUNCATIONS = 4
MOST_UNREADABLE = 2
MOST_THOUGHTS = 2
MOST_EMPTY = 3

GO_ON = (
    "Your reply was cut off. Continue exactly where it stopped; do not repeat or comment on"
    " anything."
)
NUDGE = "You have the results of your tool calls but gave no answer. Continue with the task."
THOUGHT = "That was your reasoning only. Now write the answer itself, or call a tool."
SILENT = "(no answer)"
EMPTY = "(empty)"

_LEAST_CAP = 4_096
_MAX_QUOTED_CHARS = 4_000

Parts = tuple[Text | Reasoning | ToolCall, ...]


class Final(Value):
    """The finished reply. `said` is text that no delta has shown yet."""

    reply: Reply
    said: str = ""


class Again(Value):
    """Ask again. `voids`: what was shown of the last reply does not count. `waits`: back off as
    before this attempt; 0 means at once."""

    voids: bool = True
    waits: int = 0


class Unfinished:
    """`prompt` is the next request. Has no side effects: it only counts and decides."""

    def __init__(self, prompt: Prompt, *, output_cap: int) -> None:
        self.prompt = prompt
        self._original = prompt
        self._output_cap = max(output_cap, prompt.max_tokens or 0)
        self._kept: Parts = ()
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

    def judge(self, reply: Reply | None) -> Final | Again:
        """The next step after this reply; None is a reply that failed for good."""
        if reply is None:
            return self._final(())
        self._usage += reply.usage
        self._who = (reply.model, reply.provider)
        message = reply.message
        self._stop = message.stop
        if any(call.broken for call in message.calls):
            return self._after_broken(reply)
        if message.calls:
            self._stop = "calls"
            return self._final(message.parts)
        if message.text.strip():
            return self._after_text(message)
        return self._after_empty(message)

    def _after_broken(self, reply: Reply) -> Final | Again:
        if reply.message.stop in ("length", "cut"):
            if self._truncated < MOST_TRUNCATIONS:
                self._truncated += 1
                if reply.message.stop == "length":
                    self._raise_cap(reply.usage.output)
                return Again()
        elif self._unreadable < MOST_UNREADABLE:
            self._unreadable += 1
            return Again()
        self._stop = "calls"
        return self._final(reply.message.parts)

    def _after_text(self, message: AssistantMessage) -> Final | Again:
        if message.stop not in ("length", "cut") or self._continued >= MOST_CONTINUATIONS:
            return self._final(message.parts)
        self._continued += 1
        self._kept = joined(self._kept, message.parts)
        self._ask(AssistantMessage(parts=self._kept), user_says(GO_ON))
        return Again(voids=False)

    def _after_empty(self, message: AssistantMessage) -> Final | Again:
        """Asks for an answer, then asks again, then reports why there is none."""
        if self._kept:
            return self._final(message.parts)
        if message.stop == "filtered":
            return self._give_up("The provider's content filter blocked the reply.")
        if message.stop == "length" and message.reasoning:
            return self._give_up(
                "The model spent its whole output on reasoning; lower the reasoning effort or"
                " raise the output limit."
            )
        if self._after_results():
            self._nudged = True
            self._ask(_assistant_text(SILENT), user_says(NUDGE))
            return Again()
        if message.reasoning and self._thought < MOST_THOUGHTS:
            self._thought += 1
            self._ask(_assistant_text(message.reasoning[-_MAX_QUOTED_CHARS:]), user_says(THOUGHT))
            return Again()
        if self._empty < MOST_EMPTY:
            self._empty += 1
            self._ask()
            return Again(waits=self._empty)
        return self._give_up(f"The model gave no answer in {self._usage.requests} attempts.")

    def _after_results(self) -> bool:
        last = self._original.messages[-1] if self._original.messages else None
        return isinstance(last, ToolMessage) and not self._nudged

    def _ask(self, *more: Message) -> None:
        messages = (*self._original.messages, *more)
        self.prompt = replace(self.prompt, messages=messages)

    def _raise_cap(self, used: int) -> None:
        cap = self.prompt.max_tokens or max(used, _LEAST_CAP)
        new = min(cap * 2, self._output_cap)
        self.prompt = replace(self.prompt, max_tokens=new)

    def _give_up(self, why: str) -> Final:
        self._stop = "done"
        said = f"{EMPTY}\n{why}"
        final = self._final((Text(text=said),))
        return Final(reply=final.reply, said=said)

    def _final(self, parts: Parts) -> Final:
        model, provider = self._who
        message = AssistantMessage(parts=joined(self._kept, parts), stop=self._stop)
        reply = Reply(message=message, usage=self._usage, model=model, provider=provider)
        return Final(reply=reply)


def joined(kept: Parts, more: Parts) -> Parts:
    """Joins two parts of one reply. Text continues where it stopped; reasoning in the middle of a
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
