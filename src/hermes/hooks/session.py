"""Fires the hooks of one session and interprets their answers."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject
from hermes.context.plugin_engine import message_dicts
from hermes.core.effects import subject
from hermes.core.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Compacted,
    Record,
    ReplyAdded,
    SessionEnded,
    TurnEnded,
)
from hermes.core.hooks import CallOutcome, HookVerdict
from hermes.core.messages import (
    Message,
    Text,
    ToolCall,
    ToolResult,
    UserMessage,
)
from hermes.core.recorder import Recorder
from hermes.hooks.registry import Hooks


def history(messages: Iterable[Message]) -> list[JsonObject]:
    """Return dicts with `role` and `content`; assistants have `tool_calls`, each tool result has
    its `tool_call_id`."""
    return [as_dict for message in messages for as_dict, _ in message_dicts(message)]


log = logging.getLogger(__name__)

BLOCK = "A hook blocked this call."
ASK = "A hook requires approval."


def contexts(answers: tuple[object, ...]) -> list[str]:
    """Return the context texts for the model."""
    found = []
    for answer in answers:
        text = answer.get("context") if isinstance(answer, dict) else answer
        if isinstance(text, str):
            found.append(text.strip())
        elif answer:
            _log_ignored("pre_llm_call", answer)
    return [text for text in found if text]


def verdict(answers: tuple[object, ...]) -> HookVerdict | None:
    """Combine the answers of the callbacks. The first block wins. Otherwise a person is asked if
    any callback requires it, and the first modified arguments apply, so that the person approves
    exactly these arguments."""
    ask: str | None = None
    arguments: JsonObject | None = None
    for answer in answers:
        match answer:
            case {"action": "block", **more}:
                return HookVerdict(block=_message(more) or BLOCK)
            case {"action": "approve", **more} if ask is None:
                ask, rule = _message(more) or ASK, more.get("rule_key")
                ask += f" [{rule}]" if isinstance(rule, str) and rule else ""
            case {"action": "approve"}:
                pass
            case {"action": "modify", "args": dict() as modified}:
                arguments = _json(modified) if arguments is None else arguments
            case _ if answer:
                _log_ignored("pre_tool_call", answer)
    if ask is None and arguments is None:
        return None
    return HookVerdict(ask=ask, arguments=arguments)


def first_text(hook: str, answers: tuple[object, ...]) -> str | None:
    """Return the first non-empty text."""
    for answer in answers:
        if isinstance(answer, str):
            if answer:
                return answer.encode("utf-8", "replace").decode()
        elif answer:
            _log_ignored(hook, answer)
    return None


def _message(answer: dict[object, object]) -> str:
    message = answer.get("message")
    return message.encode("utf-8", "replace").decode() if isinstance(message, str) else ""


def _json(arguments: dict[object, object]) -> JsonObject | None:
    """Return a JSON copy; None for invalid JSON."""
    try:
        return decode(dict, encode(arguments))
    except (DecodeError, TypeError, ValueError, OverflowError, RecursionError):
        _log_ignored("pre_tool_call", arguments)
        return None


def _log_ignored(hook: str, answer: object) -> None:
    log.warning("hook answer ignored", extra={"hook": hook, "kind": type(answer).__name__})


CONTEXT_CHARS = 10_000
PREVIEW_CHARS = 1_500
PLUGIN = "plugin:"
# Names that hooks get for the reasons of a new session.
REASONS = {"new": "new_session"}

Keep = Callable[[str, bytes], Awaitable[str]]


class SessionHooks:
    """Fires the hooks of one session; implements `core.hooks.TurnHooks`. `keep` writes bytes to a
    file readable by tools and returns its path. Observers are fired by `follow`; hooks fired in the
    turn wait for it, so that the order of events is kept."""

    def __init__(self, hooks: Hooks, recorder: Recorder, *, keep: Keep) -> None:
        self._hooks = hooks
        self._transcript = recorder.transcript
        self._session_id = recorder.session_id
        self._reader = recorder.subscribe()
        self._redactor = recorder.redactor
        self._keep = keep
        self._user_text = ""
        self._answer = ""
        self._plugin_sources: set[str] = set()
        self._asked: dict[str, JsonObject] = {}

    @property
    def holds_text(self) -> bool:
        return self._hooks.has("transform_llm_output")

    @property
    def sources(self) -> tuple[str, ...]:
        """Returns plugins whose text was used; programs in the settings are the user's own."""
        return tuple(sorted(self._plugin_sources))

    async def before_turn(self) -> str:
        await self._reader.wait_until_read()
        transcript = self._transcript
        self._user_text, self._answer = self._user_message(), ""
        is_first = len(transcript.turn_starts) == 1
        if is_first:
            await self.fire("on_session_start")
        if not self._hooks.has("pre_llm_call"):
            return ""
        found = await self.fire(
            "pre_llm_call",
            user_message=self._user_text,
            conversation_history=history(transcript.messages[:-1]),
            is_first_turn=is_first,
            sender_id=transcript.opened.principal if transcript.opened else "owner",
        )
        return "\n\n".join([await self._limit_context(text) for text in contexts(found)])

    async def before_tool(self, call: ToolCall) -> HookVerdict | None:
        return verdict(await self.fire("pre_tool_call", **self._about(call)))

    async def after_tool(
        self, call: ToolCall, result: ToolResult, seconds: float, fate: CallOutcome
    ) -> str | None:
        status = "blocked" if fate == "blocked" else "error" if result.failed else "ok"
        facts = self._about(call) | {
            "result": result.text,
            "duration_ms": round(seconds * 1000),
            "status": status,
            "error_type": "" if status == "ok" else status,
            "error_message": result.text if result.failed else "",
        }
        await self.fire("post_tool_call", **facts)
        return await self._transform("transform_tool_result", **facts) if fate == "made" else None

    async def before_final_answer(self, text: str) -> str | None:
        return await self._transform("transform_llm_output", response_text=self._redact(text))

    async def command_ran(self, command: str, output: str, code: int, env_type: str) -> str | None:
        """Return a replacement for the redacted output, or None."""
        if not self._hooks.has("transform_terminal_output"):
            return None
        return await self._transform(
            "transform_terminal_output",
            command=command,
            output=self._redact(output),
            returncode=code,
            env_type=env_type,
        )

    async def fire(self, hook: str, **payload: object) -> tuple[object, ...]:
        """Fire a hook after all earlier events, with the common fields."""
        if not self._hooks.has(hook):
            return ()
        await self._reader.wait_until_read()
        return await self._fire(hook, **payload)

    async def follow(self) -> None:
        """Fire observers until the session is closed."""
        async for record in self._reader:
            try:
                await self._on_record(record)
            except Exception:
                log.exception("a hook failed", extra={"session": self._session_id})

    def listens(self, hook: str) -> bool:
        return self._hooks.has(hook)

    def _about(self, call: ToolCall) -> JsonObject:
        args = self._without_secrets(call.arguments)
        return {"tool_name": call.name, "args": args, "tool_call_id": call.id}

    def _redact(self, text: str) -> str:
        """Redact secrets."""
        seen = ToolResult(call_id="", name="terminal", parts=(Text(text=text),))
        return self._redactor.result(seen).text

    def _without_secrets(self, value: object) -> object:
        if isinstance(value, str):
            return self._redact(value)
        if isinstance(value, dict):
            return {name: self._without_secrets(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self._without_secrets(each) for each in value]
        return value

    async def _transform(self, hook: str, **payload: object) -> str | None:
        return first_text(hook, await self.fire(hook, **payload))

    async def _fire(self, hook: str, **payload: object) -> tuple[object, ...]:
        opened = self._transcript.opened
        common: JsonObject = {
            "session_id": self._session_id,
            "task_id": (opened.job if opened else "") or self._session_id,
            "turn_id": self._transcript.turn_id,
            "platform": opened.source if opened else "",
            "model": self._transcript.model,
            "cwd": opened.cwd if opened else "",
        }
        answers = await self._hooks.fire_with_owner(hook, **(common | payload))
        self._plugin_sources |= {owner for owner, _ in answers if owner.startswith(PLUGIN)}
        return tuple(answer for _, answer in answers)

    async def _on_record(self, record: Record) -> None:
        match record.event:
            case ReplyAdded(message=message):
                self._answer = "" if message.calls else message.text
            case TurnEnded() as ended:
                await self._turn_ended(ended, record.turn_id)
            case ApprovalAsked() as asked:
                facts: JsonObject = {
                    "command": subject(asked.effect),
                    "description": asked.reason,
                    "pattern_keys": [asked.category],
                }
                self._asked[asked.id] = facts
                await self._fire("pre_approval_request", **facts, **self._who())
            case ApprovalAnswered() as answered:
                facts = self._asked.pop(answered.id, {})
                choice = "timeout" if answered.by == "time" else answered.choice
                await self._fire("post_approval_response", **facts, **self._who(), choice=choice)
            case Compacted() as compacted:
                await self._fire(
                    "on_session_compress",
                    old_session_id=self._session_id,
                    tokens_before=compacted.tokens_before,
                    tokens_after=compacted.tokens_after,
                )
            case SessionEnded(reason=reason):
                await self._fire(
                    "on_session_finalize",
                    reason=REASONS.get(reason, reason),
                    old_session_id=self._session_id,
                    new_session_id="",
                )
            case _:
                return

    async def _turn_ended(self, ended: TurnEnded, turn_id: str) -> None:
        if ended.reason == "done" and self._answer and self._hooks.has("post_llm_call"):
            await self._fire(
                "post_llm_call",
                turn_id=turn_id,
                user_message=self._user_text or self._user_message(),
                assistant_response=self._answer,
                conversation_history=history(self._transcript.messages),
            )
        await self._fire(
            "on_session_end",
            turn_id=turn_id,
            completed=ended.reason == "done",
            interrupted=ended.reason == "interrupted",
        )

    def _who(self) -> JsonObject:
        opened = self._transcript.opened
        return {"session_key": self._session_id, "surface": opened.source if opened else ""}

    def _user_message(self) -> str:
        """Return the user message that started the newest turn."""
        transcript = self._transcript
        index = transcript.turn_starts[-1] if transcript.turn_starts else len(transcript.messages)
        entry = transcript.messages[index] if index < len(transcript.messages) else None
        return entry.text if isinstance(entry, UserMessage) else ""

    async def _limit_context(self, text: str) -> str:
        """Write a long text to a file and return its start."""
        if len(text) <= CONTEXT_CHARS:
            return text
        name = f"hooks/context-{self._transcript.turn_id or 'turn'}-{len(text)}.txt"
        try:
            path = await self._keep(name, text.encode("utf-8", "replace"))
        except Exception:
            log.exception("the context of a hook could not be stored")
            return f"{text[:CONTEXT_CHARS]}\n[{len(text) - CONTEXT_CHARS} more characters]"
        return f"{text[:PREVIEW_CHARS]}\n[{len(text)} characters; the whole text is in {path}]"
