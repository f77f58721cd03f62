"""Calls the caller's callbacks for events, questions and secrets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from hermes.app.session_controls import SessionControls
from hermes.codec.json import plain
from hermes.codec.values import JsonObject, Value
from hermes.config.environment import read_env_file
from hermes.config.home import Home
from hermes.core.commands import Answer
from hermes.core.effects import subject
from hermes.core.events import (
    ApprovalAsked,
    Compacted,
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


class Callbacks(Value):
    """The callbacks. One that raises is logged and otherwise ignored. `progress_mode` limits
    `tool_progress`: "off" to nothing, "new" to calls of another tool than before. Calls are logged
    with `log_prefix` if there is one, and with at most `log_prefix_chars` of their argument."""

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
    progress_mode: str = "all"
    log_prefix: str = ""
    log_prefix_chars: int = 100

    @property
    def can_answer(self) -> bool:
        return any((self.approval, self.clarify, self.sudo_password))


def describe_compression(old: Session, new: Session) -> JsonObject:
    """Return the body of `session:compress`; `new` is a child if compaction started one."""
    return {
        "old_session_id": old.id,
        "session_id": new.id,
        "in_place": new is old,
        "compression_count": len(new.transcript.compactions),
    }


class CallbackDispatcher:
    """Dispatches the events of one turn. Plain callbacks run in the loop's thread, so they should
    be quick; callbacks that answer questions run in their own thread."""

    def __init__(
        self,
        callbacks: Callbacks,
        session: Session,
        controls: SessionControls,
        *,
        in_place: bool = True,
    ) -> None:
        self._callbacks = callbacks
        self._session = session
        self._controls = controls
        self._in_place = in_place
        self._last_tool = ""
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
                    self._tool_started(call)
            case ToolProgress():
                self._progress("tool.progress", None, event.text, None)
            case ToolFinished():
                self._tool_finished(event)
            case ApprovalAsked():
                self._ask(self._approval(event))
            case QuestionAsked():
                self._ask(self._question(event))
            case Compacted() if self._in_place:
                self._say(
                    to.event, "session:compress", describe_compression(self._session, self._session)
                )
            case TurnEnded():
                self._say(to.stream_delta, None)
                if event.error:
                    self._say(to.status, "warn", f"❌ {event.error}")
            case _:
                pass
        if to.event is not None:
            fields = plain(event)
            self._say(to.event, fields.pop("type"), fields)

    def _tool_started(self, call: ToolCall) -> None:
        to, preview = self._callbacks, _preview(call.arguments)
        if to.log_prefix:
            shown = preview[: to.log_prefix_chars]
            log.info("%s%s %s", to.log_prefix, call.name, shown)
        if to.progress_mode != "new" or call.name != self._last_tool:
            self._progress("tool.started", call.name, self._cut(preview), call.arguments)
        self._last_tool = call.name
        self._say(to.tool_start, call.id, call.name, call.arguments)

    def _cut(self, preview: str) -> str:
        most = self._controls.display.tool_preview_length
        return preview[:most] if most else preview

    def _progress(self, *values: Any, **named: Any) -> None:
        if self._callbacks.progress_mode != "off":
            self._say(self._callbacks.tool_progress, *values, **named)

    def _reply(self, event: ReplyAdded) -> None:
        to = self._callbacks
        self._say(to.thinking, "")
        self._calls = {call.id: call for call in event.message.calls}
        if event.message.reasoning:
            reasoning = event.message.reasoning[:REASONING_CHARS]
            self._progress("reasoning.available", "_thinking", reasoning, None)
        if event.message.calls:
            self._say(to.stream_delta, None)
            if event.message.text:
                self._say(to.interim_assistant, event.message.text)

    def _tool_finished(self, event: ToolFinished) -> None:
        result, to = event.result, self._callbacks
        call = self._calls.get(result.call_id)
        arguments = call.arguments if call else {}
        self._progress(
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
            named = {"allow_permanent": "always" in asked.scopes}
            if self._controls.mode == "smart":
                # The model that approves simple commands did not approve this one.
                named["smart_denied"] = True
            reason = " ".join((asked.reason, *asked.lasting))
            choice = await self._answer(self._callbacks.approval, effect, reason, **named)
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
        call_safely(callback, *values, **named)


def call_safely(callback: Callback, *values: Any, **named: Any) -> None:
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
