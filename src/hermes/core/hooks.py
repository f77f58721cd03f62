"""Hooks: what they may change in a turn, and where they are called."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from hermes.codec.values import JsonObject, Value, replace
from hermes.core.concurrency import Stop, TurnStopped, run_unless_stopped
from hermes.core.events import HookAction, HookAnswered
from hermes.core.messages import Image, Message, Reasoning, Text, ToolCall, ToolResult, UserMessage
from hermes.core.planning import TOOL_CALL, find_tool, refuse_call, unwrap_tool_call
from hermes.core.ports import Provider
from hermes.core.prompt import Delta, Prompt, Reply, TextDelta
from hermes.core.transcript import Transcript

if TYPE_CHECKING:
    from hermes.core.session_deps import TurnContext

# A call ran, was refused before it ran, or was blocked by the policy, a person or a hook.
CallOutcome = Literal["made", "refused", "blocked"]


class HookVerdict(Value):
    """A hook's decision on a call."""

    # The text that the model gets as the result.
    block: str | None = None
    # The reason to ask a person first.
    ask: str | None = None
    # These replace the model's.
    arguments: JsonObject | None = None


class TurnHooks(Protocol):
    """The hooks of one session. None of these methods raises; each has its own time limit."""

    @property
    def holds_text(self) -> bool:
        """Whether the text of a reply stays hidden until the hooks have seen it."""
        ...

    @property
    def sources(self) -> tuple[str, ...]:
        """The plugins and other third parties whose hooks have run so far."""
        ...

    async def before_turn(self) -> str:
        """Return text to add to the user message during this turn."""
        ...

    async def before_tool(self, call: ToolCall) -> HookVerdict | None: ...

    async def after_tool(
        self, call: ToolCall, result: ToolResult, seconds: float, fate: CallOutcome
    ) -> str | None:
        """Return text that replaces the result of a call. It is ignored for a call that did not
        run."""
        ...

    async def before_final_answer(self, text: str) -> str | None:
        """Return text that replaces the final answer of the turn."""
        ...


class HookTextProvider:
    """Adds the text of hooks to the message of the turn. The changed message is built once, so that
    consecutive requests share their prefix."""

    def __init__(self, inner: Provider, transcript: Callable[[], Transcript]) -> None:
        self._inner = inner
        self._transcript = transcript
        self._made: tuple[Message, str, UserMessage] | None = None

    def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        return self._inner.reply(self._add_text(prompt, self._transcript()))

    def _add_text(self, prompt: Prompt, transcript: Transcript) -> Prompt:
        if not transcript.hook_text:
            return prompt
        position = _message_position(prompt.messages, transcript)
        if position is None:
            return prompt
        message, added = prompt.messages[position], transcript.hook_text
        assert isinstance(message, UserMessage)
        if self._made is None or self._made[0] is not message or self._made[1] != added:
            joined = replace(message, parts=(*message.parts, Text(text=f"\n\n{added}")))
            self._made = (message, added, joined)
        before, after = prompt.messages[:position], prompt.messages[position + 1 :]
        messages = (*before, self._made[2], *after)
        return replace(prompt, messages=messages)


def _message_position(messages: tuple[Message, ...], transcript: Transcript) -> int | None:
    """Return the position of the current turn's message in a request. If compaction removed or
    changed it, return the position of the newest user message."""
    start = transcript.turn_starts[-1] if transcript.turn_starts else 0
    begun = transcript.messages[start] if start < len(transcript.messages) else None
    newest = None
    for position in range(len(messages) - 1, -1, -1):
        if messages[position] is begun:
            return position
        if newest is None and isinstance(messages[position], UserMessage):
            newest = position
    return newest


T = TypeVar("T")

BEFORE_TURN = "pre_llm_call"
BEFORE_CALL = "pre_tool_call"
FINAL_ANSWER_HOOK = "transform_llm_output"
# How long to wait for hooks that transform an existing result once the person stops the turn.
GRACE_SECONDS = 2.0
BLOCKED = "blocked_by"
NO_REASON = "A hook requires it and gives no reason."


async def before_turn(turn: TurnContext, hooks: TurnHooks) -> None:
    transcript = turn.recorder.transcript
    if not transcript.has_only_message or transcript.hook_text:
        return
    if text := await run_unless_stopped(turn.stop, hooks.before_turn()):
        sources = hooks.sources
        answer = HookAnswered(hook=BEFORE_TURN, action="context", text=text, origins=sources)
        turn.recorder.note(answer)


async def before_tool(
    turn: TurnContext, hooks: TurnHooks | None, call: ToolCall, known: HookAnswered | None
) -> tuple[ToolCall, str] | ToolResult:
    """Let hooks decide about a call. Return the call to make and the reason to ask a person first
    ("" for none), or its result. A `known` answer from the journal is applied without asking hooks
    again."""
    call = _resolve_call(turn, call)
    if known is not None:
        return _apply_verdict(call, verdict_of(known))
    if hooks is None or call.broken:
        return call, ""
    verdict = await run_unless_stopped(turn.stop, hooks.before_tool(call))
    turn.world.kill_point("hook.answered")
    if verdict is None:
        return call, ""
    action: HookAction = "modify"
    if verdict.block is not None:
        action = "block"
    elif verdict.ask is not None:
        action = "approve"
    turn.recorder.note(
        HookAnswered(
            hook=BEFORE_CALL,
            action=action,
            call_id=call.id,
            text=verdict.block or verdict.ask or "",
            arguments=verdict.arguments,
            origins=hooks.sources,
        )
    )
    return _apply_verdict(call, verdict)


async def after_tool(
    turn: TurnContext,
    hooks: TurnHooks,
    call: ToolCall,
    result: ToolResult,
    seconds: float,
    fate: CallOutcome = "made",
) -> ToolResult:
    text = await _wait_briefly(turn.stop, hooks.after_tool(call, result, seconds, fate))
    if text is None or fate != "made":
        return result
    images = tuple(part for part in result.parts if isinstance(part, Image))
    details = {**result.details, "transformed": True}
    origin = ", ".join(dict.fromkeys((result.origin, *hooks.sources)))
    changed = replace(result, parts=(Text(text=text), *images), details=details, origin=origin)
    # A hook may have added a secret.
    return turn.recorder.redactor.result(changed)


async def before_final_answer(turn: TurnContext, hooks: TurnHooks, reply: Reply) -> Reply:
    message = reply.message
    if not message.calls and message.text:
        text = await _wait_briefly(turn.stop, hooks.before_final_answer(message.text))
        if text is not None and text != message.text:
            sources = hooks.sources
            answer = HookAnswered(
                hook=FINAL_ANSWER_HOOK, action="replace", text=text, origins=sources
            )
            turn.recorder.note(answer)
            thoughts = tuple(part for part in message.parts if isinstance(part, Reasoning))
            message = replace(message, parts=(*thoughts, Text(text=text)))
    if hooks.holds_text and message.text:
        turn.recorder.show(TextDelta(text=message.text))
    return replace(reply, message=message)


def outcome_of(result: ToolResult) -> CallOutcome:
    """Return the outcome of a call that got a result before it was planned."""
    return "blocked" if BLOCKED in result.details else "refused"


def _resolve_call(turn: TurnContext, call: ToolCall) -> ToolCall:
    """Return the call under the name of the tool that would run, however the model spelled it:
    hooks must not miss a call because of its spelling."""
    while call.name == TOOL_CALL and not call.broken:
        call = unwrap_tool_call(call)
    tool = None if call.broken else find_tool(turn.toolbox, call.name)
    return replace(call, name=tool.name) if tool is not None else call


def verdict_of(event: HookAnswered) -> HookVerdict:
    return HookVerdict(
        block=event.text if event.action == "block" else None,
        ask=event.text if event.action == "approve" else None,
        arguments=event.arguments,
    )


def _apply_verdict(call: ToolCall, verdict: HookVerdict) -> tuple[ToolCall, str] | ToolResult:
    if verdict.block is not None:
        return replace(refuse_call(call, verdict.block or NO_REASON), details={BLOCKED: "hook"})
    if verdict.arguments is not None:
        call = replace(call, arguments=verdict.arguments)
    return call, "" if verdict.ask is None else verdict.ask or NO_REASON


async def _wait_briefly(stop: Stop, work: Coroutine[Any, Any, T]) -> T | None:
    """Return the result of the work, or None if it takes too long after the person stops the
    turn."""
    try:
        return await run_unless_stopped(stop, work, grace_seconds=GRACE_SECONDS)
    except TurnStopped:
        return None
