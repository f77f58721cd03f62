"""`AIAgent`: a session for Python programs, synchronous and with callbacks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypeVar

from hermes.app.app import App
from hermes.app.start import start
from hermes.codec.values import JsonObject
from hermes.core.caps import StepBudget
from hermes.core.commands import Interrupt, Say, Steer, SwitchModel
from hermes.core.events import Record, ReplyAdded, TurnEnded
from hermes.core.message_dicts import dicts_from_messages, messages_from_dicts
from hermes.core.session import Session
from hermes.core.session_request import SessionRequest
from hermes.surfaces.python.callbacks import Callback, CallbackDispatcher, Callbacks, SecretPrompt

T = TypeVar("T")


class LoopThread:
    """An event loop in its own thread. It starts on first use, and `close` ends it. Any other
    thread may submit work."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the work and return its result; KeyboardInterrupt cancels it."""
        future = asyncio.run_coroutine_threadsafe(work, self._ensure_started())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def begin(self, work: Coroutine[Any, Any, object]) -> None:
        """Start the work without waiting for it."""
        asyncio.run_coroutine_threadsafe(work, self._ensure_started())

    def close(self) -> None:
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._loop = self._thread = None

    def _ensure_started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="hermes-agent", daemon=True
                )
                self._thread.start()
            return self._loop


# Argument name: setting.
SETTINGS = {
    "model": "model.default",
    "provider": "model.provider",
    "api_mode": "model.api_mode",
    "base_url": "model.base_url",
    "api_key": "model.api_key",
    "max_tokens": "model.max_tokens",
    "service_tier": "agent.service_tier",
    "max_iterations": "agent.max_turns",
    "enabled_toolsets": "toolsets",
    "disabled_toolsets": "agent.disabled_toolsets",
    "providers_allowed": "provider_routing.only",
    "providers_ignored": "provider_routing.ignore",
    "providers_order": "provider_routing.order",
    "provider_sort": "provider_routing.sort",
    "provider_require_parameters": "provider_routing.require_parameters",
    "provider_data_collection": "provider_routing.data_collection",
    "checkpoints_enabled": "checkpoints.enabled",
    "checkpoint_max_snapshots": "checkpoints.max_snapshots",
    "checkpoint_max_total_size_mb": "checkpoints.max_total_size_mb",
    "checkpoint_max_file_size_mb": "checkpoints.max_file_size_mb",
}
NO_MEMORY: dict[str, Any] = {
    "memory.memory_enabled": False,
    "memory.user_profile_enabled": False,
    "memory.provider": "",
}


def settings_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that the caller has chosen."""
    settings: dict[str, Any] = {}
    for name, key in SETTINGS.items():
        settings[key] = (
            list(arguments[name]) if isinstance(arguments[name], tuple) else arguments[name]
        )
    settings["agent.reasoning_effort"] = (arguments["reasoning_config"] or {}).get("effort")
    # One fallback model or several.
    fallback = arguments["fallback_model"] or []
    settings["fallback_providers"] = [fallback] if isinstance(fallback, dict) else list(fallback)
    settings["approvals.mode"] = "off" if arguments["yolo"] else None
    if arguments["skip_memory"]:
        settings["agent.disabled_toolsets"] = [
            *(settings["agent.disabled_toolsets"] or ()),
            "memory",
        ]
    chosen = {key: value for key, value in settings.items() if value or value is False}
    return chosen | (NO_MEMORY if arguments["skip_memory"] else {})


class AIAgent:
    """One conversation. Thread-safe: `interrupt` and `steer` may be called from any thread while
    `run_conversation` waits in another; one turn runs at a time. Omitted arguments come from the
    settings. Nothing is ever printed, with or without `quiet_mode`."""

    def __init__(
        self,
        *,
        model: str = "",
        provider: str | None = None,
        api_mode: str | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        max_tokens: int | None = None,
        reasoning_config: JsonObject | None = None,
        service_tier: str | None = None,
        fallback_model: JsonObject | Sequence[JsonObject] | None = None,
        providers_allowed: Sequence[str] | None = None,
        providers_ignored: Sequence[str] | None = None,
        providers_order: Sequence[str] | None = None,
        provider_sort: str | None = None,
        provider_require_parameters: bool | None = None,
        provider_data_collection: str | None = None,
        max_iterations: int = 90,
        iteration_budget: StepBudget | None = None,
        enabled_toolsets: Sequence[str] | None = None,
        disabled_toolsets: Sequence[str] | None = None,
        ephemeral_system_prompt: str | None = None,
        skip_context_files: bool = False,
        skip_memory: bool = False,
        pass_session_id: bool = False,
        session_id: str | None = None,
        parent_session_id: str | None = None,
        platform: str | None = None,
        home: str | Path | None = None,
        cwd: str | Path | None = None,
        yolo: bool = False,
        verbose_logging: bool = False,
        quiet_mode: bool = False,
        stream_delta_callback: Callback = None,
        interim_assistant_callback: Callback = None,
        reasoning_callback: Callback = None,
        thinking_callback: Callback = None,
        tool_gen_callback: Callback = None,
        tool_progress_callback: Callback = None,
        tool_start_callback: Callback = None,
        tool_complete_callback: Callback = None,
        step_callback: Callback = None,
        status_callback: Callback = None,
        clarify_callback: Callback = None,
        event_callback: Callback = None,
        approval_callback: Callback = None,
        secret_capture_callback: Callback = None,
        sudo_password_callback: Callback = None,
        checkpoints_enabled: bool | None = None,
        checkpoint_max_snapshots: int | None = None,
        checkpoint_max_total_size_mb: int | None = None,
        checkpoint_max_file_size_mb: int | None = None,
    ) -> None:
        arguments = dict(locals())
        callbacks = {name[:-9]: arguments[name] for name in arguments if name.endswith("_callback")}
        self._settings = settings_of(arguments)
        self._home, self._verbose, self._budget = home, verbose_logging, iteration_budget
        self._capture = callbacks.pop("secret_capture")
        self._callbacks = Callbacks(**callbacks)
        self._opening = SessionRequest(
            source=platform or "python",
            platform=platform or "api",
            attended=self._callbacks.can_answer,
            extra=ephemeral_system_prompt or "",
            context_files=not skip_context_files,
            cwd=str(cwd) if cwd else "",
            resume=session_id or "",
            parent=parent_session_id or "",
            tell_id=pass_session_id,
        )
        self._thread = LoopThread()
        self._app: App | None = None
        self._session: Session | None = None
        self._interrupted_by: str | None = None

    @property
    def session_id(self) -> str | None:
        return self._session.id if self._session else None

    def chat(self, message: str, stream_callback: Callback = None) -> str:
        """Run one turn and return its final text."""
        response = self.run_conversation(message, stream_callback=stream_callback)["final_response"]
        return str(response or "")

    def run_conversation(
        self,
        user_message: str,
        system_message: str | None = None,
        conversation_history: Sequence[JsonObject] | None = None,
        task_id: str | None = None,
        stream_callback: Callback = None,
    ) -> dict[str, Any]:
        """Run one turn. A history starts a new session; otherwise the conversation continues.
        `task_id` is the caller's id of the message: the same id is answered once."""
        return self._thread.run(
            self._turn(
                user_message,
                system_message or "",
                conversation_history,
                task_id or "",
                stream_callback,
            )
        )

    def interrupt(self, message: str | None = None) -> None:
        """Stop the running turn within a second. Its result contains `message`."""
        self._interrupted_by = message
        if self._session is not None:
            self._thread.begin(self._session.send(Interrupt()))

    def clear_interrupt(self) -> None:
        """Drop the message of an interrupt. The interrupt itself ends with its turn."""
        self._interrupted_by = None

    def steer(self, text: str) -> bool:
        """Steer the running turn; False when the text is empty."""
        if not text.strip() or self._session is None:
            return False
        self._thread.begin(self._session.send(Steer(text=text)))
        return True

    def switch_model(self, model: str, provider: str) -> None:
        """Use another model from the next turn on."""

        async def switch() -> None:
            session = await self._ensure_session("", None)
            await session.send(SwitchModel(model=model, provider=provider))

        self._thread.run(switch())

    def reset_session_state(self) -> None:
        """Start a new session with the next turn."""
        self._thread.run(self._leave())

    def close(self) -> None:
        """Close the session and stop the loop thread."""
        if self._app is not None:
            self._thread.run(self._app.close())
            self._app = None
        self._thread.close()

    def __enter__(self) -> AIAgent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def _turn(
        self,
        text: str,
        system: str,
        history: Sequence[JsonObject] | None,
        key: str,
        stream: Callback,
    ) -> dict[str, Any]:
        session = await self._ensure_session(system, history)
        self._callbacks.stream = stream
        dispatcher = CallbackDispatcher(self._callbacks, session)
        records: list[Record] = []
        async with aclosing(session.ask(Say(text=text, key=key))) as events:
            async for record in events:
                records.append(record)
                dispatcher.dispatch(record.event)
        await session.wait_until_idle()
        message, self._interrupted_by = self._interrupted_by, None
        return result_of(session, records, interrupt_message=message)

    async def _ensure_session(self, system: str, history: Sequence[JsonObject] | None) -> Session:
        if history is not None:
            await self._leave()
        if self._session is None:
            self._session = await self._open(system)
            if history:
                await self._session.import_messages(messages_from_dicts(history))
        return self._session

    async def _open(self, system: str) -> Session:
        if self._app is None:
            self._app = start(
                {"verbose": self._verbose},
                settings=self._settings,
                home=str(self._home) if self._home else None,
                budget=self._budget,
            )
            if self._capture is not None:
                self._app.shared.ask_secret = SecretPrompt(self._app.context.home, self._capture)
        extra = "\n\n".join(text for text in (system, self._opening.extra) if text)
        return await self._app.open(self._opening.with_extra(extra))

    async def _leave(self) -> None:
        if self._app is not None and self._session is not None:
            await self._app.close_session(self._session)
        self._session = None


def result_of(
    session: Session, records: list[Record], *, interrupt_message: str | None
) -> dict[str, Any]:
    """The result of a turn as the dictionary that callers expect."""
    ended = next((r.event for r in reversed(records) if isinstance(r.event, TurnEnded)), None)
    replies = [r.event for r in records if isinstance(r.event, ReplyAdded)]
    last = replies[-1].message if replies else None
    reason = ended.reason if ended else "failed"
    result: dict[str, Any] = {
        "final_response": None if not last or last.calls else last.text or None,
        "last_reasoning": next(
            (reply.message.reasoning for reply in reversed(replies) if reply.message.reasoning),
            None,
        ),
        "messages": dicts_from_messages(session.transcript.messages),
        "api_calls": sum(reply.usage.requests for reply in replies),
        "completed": reason == "done",
        "failed": reason == "failed",
        "partial": reason == "partial",
        "interrupted": reason == "interrupted",
        "turn_exit_reason": ended.detail if ended else "failed",
        "session_id": session.id,
        "model": replies[-1].model if replies else session.transcript.model,
        "provider": replies[-1].provider if replies else session.transcript.provider,
        "pending_steer": None,
        **_usage(session),
    }
    if reason in ("failed", "paused"):
        result["error"] = ended.error if ended else "the turn did not end"
        result["failure_reason"] = ended.detail if ended else "unknown"
    if reason == "guardrail" and ended:
        result["guardrail"] = ended.detail
    if interrupt_message is not None:
        result["interrupt_message"] = interrupt_message
    return result


def _usage(session: Session) -> dict[str, Any]:
    """Session totals."""
    usage = session.transcript.usage
    status = "unknown" if usage.cost is None else "estimated" if usage.estimated else "actual"
    return {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write,
        "reasoning_tokens": usage.reasoning,
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.prompt + usage.output,
        "last_prompt_tokens": session.transcript.last_prompt,
        "estimated_cost_usd": usage.cost,
        "cost_status": status,
        "cost_source": "none" if usage.cost is None else "provider_cost_api",
    }
