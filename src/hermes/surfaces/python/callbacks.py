"""Calls the caller's callbacks for events, questions and secrets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from hermes.codec.values import JsonObject
from hermes.config.environment import read_env_file
from hermes.config.home import Home
from hermes.core.commands import Answer
from hermes.core.effects import subject
from hermes.core.events import (
    ApprovalAsked,
    Event,
    ModelCalled,
    QuestionAsked,
    ReplyAdded,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnEnded,
)
from hermes.core.messages import ToolCall
from hermes.core.prompt import CallNamed, Notice, ReasoningDelta, TextDelta
from hermes.core.session import Session

log = logging.getLogger(__name__)

Callback = Callable[..., Any] | None
REASONING_CHARS = 500
MAIN_ARGUMENTS = ("command", "path", "pattern", "query", "url", "question", "action", "patch")


def _preview(arguments: JsonObject) -> str:
    """The first line of the most important argument."""
    for name in MAIN_ARGUMENTS:
        value = arguments.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip().partition("\n")[0]
    return ""


class Callbacks(Struct, kw_only=True):
    """The callbacks. One that raises is logged and otherwise ignored."""

    stream_delta: Callback = None
    stream: Callback = None
    interim_assistant: Callback = None
    reasoning: Callback = None
    thinking: Callback = None
    tool_gen: Callback = None
    tool_progress: Callback = None
    tool_start: Callback = None
    tool_complete: Callback = None
    step: Callback = None
    status: Callback = None
    clarify: Callback = None
    event: Callback = None
    approval: Callback = None
    sudo_password: Callback = None

    @property
    def can_answer(self) -> bool:
        return any((self.approval, self.clarify, self.sudo_password))


class CallbackDispatcher:
    """Dispatches the events of one turn. Plain callbacks run in the loop's thread, so they should
    be quick; callbacks that answer questions run in their own thread."""

    def __init__(self, callbacks: Callbacks, session: Session) -> None:
        self._callbacks = callbacks
        self._session = session
        self._calls: dict[str, ToolCall] = {}
        self._steps = 0
        self._before: list[JsonObject] = []
        self._asking: set[asyncio.Task[None]] = set()

    def dispatch(self, event: Event) -> None:
        to = self._callbacks
        match event:
            case TextDelta():
                self._say(to.stream_delta, event.text)
                self._say(to.stream, event.text)
            case ReasoningDelta():
                self._say(to.reasoning, event.text)
            case CallNamed():
                self._say(to.tool_gen, event.name)
            case Notice():
                self._say(to.status, event.kind, event.text)
            case ModelCalled():
                self._steps += 1
                self._say(to.step, self._steps, prev_tools=self._before)
                self._before = []
                self._say(to.thinking, "thinking")
            case ReplyAdded():
                self._reply(event)
            case ToolStarted():
                if (call := self._calls.get(event.call_id)) is not None:
                    preview = _preview(call.arguments)
                    self._say(to.tool_progress, "tool.started", call.name, preview, call.arguments)
                    self._say(to.tool_start, call.id, call.name, call.arguments)
            case ToolProgress():
                self._say(to.tool_progress, "tool.progress", None, event.text, None)
            case ToolFinished():
                self._tool_finished(event)
            case ApprovalAsked():
                self._ask(self._approval(event))
            case QuestionAsked():
                self._ask(self._question(event))
            case TurnEnded():
                self._say(to.stream_delta, None)
                if event.error:
                    self._say(to.status, "warn", f"❌ {event.error}")
            case _:
                pass
        self._say(to.event, type(event).__name__, event)

    def _reply(self, event: ReplyAdded) -> None:
        to = self._callbacks
        self._say(to.thinking, "")
        self._calls = {call.id: call for call in event.message.calls}
        if event.message.reasoning:
            reasoning = event.message.reasoning[:REASONING_CHARS]
            self._say(to.tool_progress, "reasoning.available", "_thinking", reasoning, None)
        if event.message.calls:
            self._say(to.stream_delta, None)
            if event.message.text:
                self._say(to.interim_assistant, event.message.text)

    def _tool_finished(self, event: ToolFinished) -> None:
        result, to = event.result, self._callbacks
        call = self._calls.get(result.call_id)
        arguments = call.arguments if call else {}
        self._say(
            to.tool_progress,
            "tool.completed",
            result.name,
            None,
            None,
            duration=event.seconds,
            is_error=result.failed,
            result=result.text,
        )
        self._say(to.tool_complete, result.call_id, result.name, arguments, result.text)
        self._before.append({"name": result.name, "arguments": arguments, "result": result.text})

    async def _approval(self, asked: ApprovalAsked) -> None:
        choice = "deny"
        if self._callbacks.approval is not None:
            effect = subject(asked.effect)
            permanent = "always" in asked.scopes
            reason = " ".join((asked.reason, *asked.lasting))
            choice = await self._answer(
                self._callbacks.approval, effect, reason, allow_permanent=permanent
            )
        await self._session.send(Answer(id=asked.id, text=choice or "deny", by="callback"))

    async def _question(self, asked: QuestionAsked) -> None:
        answer = ""
        if asked.secret:
            if self._callbacks.sudo_password is not None:
                answer = await self._answer(self._callbacks.sudo_password)
        elif self._callbacks.clarify is not None:
            choices = list(asked.choices) or None
            answer = await self._answer(self._callbacks.clarify, asked.question, choices)
        await self._session.send(Answer(id=asked.id, text=answer, by="callback"))

    async def _answer(self, callback: Callable[..., Any], *values: Any, **named: Any) -> str:
        try:
            return str(await asyncio.to_thread(callback, *values, **named) or "")
        except Exception:
            log.exception("callback for a question failed")
            return ""

    def _ask(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    def _say(self, callback: Callback, *values: Any, **named: Any) -> None:
        if callback is None:
            return
        try:
            callback(*values, **named)
        except Exception:
            log.exception("a callback failed")


class SecretPrompt:
    """Calls the function with the name, the prompt and details. It returns the value, or a
    dictionary with `value`, or with `stored` if it wrote the value to `.env` itself; anything
    else means no value."""

    def __init__(self, home: Home, callback: Callable[..., Any]) -> None:
        self._home = home
        self._callback = callback

    async def __call__(self, name: str, prompt: str, facts: JsonObject) -> str | None:
        try:
            answer = await asyncio.to_thread(self._callback, name, prompt, facts)
        except Exception:
            log.exception("callback for a secret failed")
            return None
        if isinstance(answer, str):
            return answer
        if not isinstance(answer, dict):
            return None
        if value := answer.get("value"):
            return str(value)
        written = read_env_file(self._home).variables.get(name)
        return written if answer.get("stored") else None
