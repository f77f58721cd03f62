"""`AIAgent`: a session for Python programs, synchronous and with callbacks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from hermes.app.app import App
from hermes.app.start import start
from hermes.codec.values import JsonObject, replace
from hermes.core.caps import StepBudget
from hermes.core.commands import Interrupt, Say, Steer, SwitchModel
from hermes.core.errors import HermesError
from hermes.core.events import Record
from hermes.core.session import Session
from hermes.surfaces.python.arguments import check_session_id, request_of, settings_of
from hermes.surfaces.python.callbacks import (
    Callback,
    CallbackDispatcher,
    Callbacks,
    SecretPrompt,
    call_safely,
    describe_compression,
)
from hermes.surfaces.python.content import Content, ImageReader
from hermes.surfaces.python.loop_thread import LoopThread
from hermes.surfaces.python.results import result_of
from hermes.surfaces.python.session_changes import SessionChanges
from hermes.surfaces.python.trajectories import append_trajectory, trajectory

log = logging.getLogger(__name__)

TRAJECTORIES = "trajectories"


class AIAgent:
    """One conversation. Thread-safe: turns of several threads run one after the other, and
    `interrupt` and `steer` may be called from any thread meanwhile. Omitted arguments come from the
    settings. Nothing is ever printed, with or without `quiet_mode`.

    credential_pool      more API keys of the provider, used in rotation
    request_overrides    fields added to the body of each request
    prefill_messages     messages sent before all others and never stored
    session_id           the session to resume, or the id of a new one
    session_db           the database file, if it is not that of the home
    user_id, chat_name…  who talks where: the memory of that user, a line of the system prompt
    gateway_session_key  groups sessions for spending caps
    tool_delay           seconds between two tool calls
    save_trajectories    append each turn to files in this folder; True means that of the home
    """

    def __init__(
        self,
        model: str = "",
        api_key: str | None = None,
        base_url: str | None = None,
        max_iterations: int = 90,
        enabled_toolsets: Sequence[str] | None = None,
        disabled_toolsets: Sequence[str] | None = None,
        verbose_logging: bool = False,
        quiet_mode: bool = False,
        tool_progress_callback: Callback = None,
        *,
        provider: str | None = None,
        api_mode: str | None = None,
        max_tokens: int | None = None,
        reasoning_config: JsonObject | None = None,
        service_tier: str | None = None,
        request_overrides: JsonObject | None = None,
        iteration_budget: StepBudget | None = None,
        tool_delay: float = 0.0,
        ephemeral_system_prompt: str | None = None,
        prefill_messages: Sequence[JsonObject] | None = None,
        skip_context_files: bool = False,
        load_soul_identity: bool = False,
        skip_memory: bool = False,
        pass_session_id: bool = False,
        session_id: str | None = None,
        session_db: str | Path | None = None,
        parent_session_id: str | None = None,
        platform: str | None = None,
        user_id: str | None = None,
        user_id_alt: str | None = None,
        user_name: str | None = None,
        chat_id: str | None = None,
        chat_name: str | None = None,
        chat_type: str | None = None,
        thread_id: str | None = None,
        gateway_session_key: str | None = None,
        providers_allowed: Sequence[str] | None = None,
        providers_ignored: Sequence[str] | None = None,
        providers_order: Sequence[str] | None = None,
        provider_sort: str | None = None,
        provider_require_parameters: bool | None = None,
        provider_data_collection: str | None = None,
        fallback_model: JsonObject | Sequence[JsonObject] | None = None,
        credential_pool: Sequence[str] | None = None,
        tool_progress_mode: str = "all",
        log_prefix: str = "",
        log_prefix_chars: int = 100,
        save_trajectories: bool | str | Path = False,
        checkpoints_enabled: bool | None = None,
        checkpoint_max_snapshots: int | None = None,
        checkpoint_max_total_size_mb: int | None = None,
        checkpoint_max_file_size_mb: int | None = None,
        home: str | Path | None = None,
        cwd: str | Path | None = None,
        yolo: bool = False,
        stream_delta_callback: Callback = None,
        interim_assistant_callback: Callback = None,
        reasoning_callback: Callback = None,
        thinking_callback: Callback = None,
        tool_gen_callback: Callback = None,
        tool_start_callback: Callback = None,
        tool_complete_callback: Callback = None,
        step_callback: Callback = None,
        status_callback: Callback = None,
        clarify_callback: Callback = None,
        event_callback: Callback = None,
        approval_callback: Callback = None,
        secret_capture_callback: Callback = None,
        sudo_password_callback: Callback = None,
    ) -> None:
        arguments = dict(locals())
        callbacks = {name[:-9]: arguments[name] for name in arguments if name.endswith("_callback")}
        self._settings = settings_of(arguments)
        self._home, self._verbose, self._budget = home, verbose_logging, iteration_budget
        self._capture = callbacks.pop("secret_capture")
        self._callbacks = Callbacks(
            **callbacks,
            progress_mode=tool_progress_mode,
            log_prefix=log_prefix,
            log_prefix_chars=log_prefix_chars,
        )
        self._opening = request_of(arguments, attended=self._callbacks.can_answer)
        self._wanted_id = session_id or ""
        self._database, self._trajectories = session_db, save_trajectories
        self._changes = SessionChanges(prefill_messages or (), tool_delay)
        self._thread = LoopThread()
        # One turn at a time.
        self._turn_lock = asyncio.Lock()
        self._app: App | None = None
        self._session: Session | None = None
        self._compactions = 0
        self._notices: asyncio.Task[None] | None = None
        self._interrupted_by: str | None = None

    @property
    def session_id(self) -> str | None:
        return self._session.id if self._session else None

    def chat(self, message: Content, stream_callback: Callback = None) -> str:
        """Run one turn and return its final text."""
        response = self.run_conversation(message, stream_callback=stream_callback)["final_response"]
        return str(response or "")

    def run_conversation(
        self,
        user_message: Content,
        system_message: str | None = None,
        conversation_history: Sequence[JsonObject] | None = None,
        task_id: str | None = None,
        stream_callback: Callback = None,
        persist_user_message: str | None = None,
        persist_user_timestamp: float | None = None,
    ) -> dict[str, Any]:
        """Run one turn. The message is text, or a list of text and image parts. A history starts a
        new session; otherwise the conversation continues. Hooks of a new session receive
        `task_id`. `persist_user_message` is stored in place of the text that the model receives;
        `persist_user_timestamp` is reported with the message."""
        return self._thread.run(
            self._turn(
                user_message,
                opening=(system_message or "", conversation_history, task_id or ""),
                stream=stream_callback,
                stored=persist_user_message,
                at=persist_user_timestamp,
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
        """Add the text to the running turn, or to the next one while none runs; False when it is
        blank. The result has a text that came too late as `pending_steer`."""
        if not text.strip():
            return False
        submit = self._thread.begin if self._thread.is_calling else self._thread.run
        submit(self._steer(text))
        return True

    def switch_model(self, new_runtime: str | JsonObject, provider: str = "") -> None:
        """Use another model from the next turn on: its name and provider, or a dictionary with
        `model` and `provider`."""
        runtime = new_runtime if isinstance(new_runtime, dict) else {"model": new_runtime}
        provider = provider or str(runtime.get("provider") or "")

        async def switch() -> None:
            async with self._turn_lock:
                session = await self._ensure_session()
                name = provider or session.transcript.provider
                await session.send(SwitchModel(model=str(runtime["model"]), provider=name))

        self._thread.run(switch())

    def reset_session_state(self) -> None:
        """Start a new session with the next turn."""

        async def reset() -> None:
            async with self._turn_lock:
                await self._leave()

        self._thread.run(reset())

    def close(self) -> None:
        """Close the session and stop the loop thread."""
        if self._app is not None:
            self._thread.run(self._close(self._app))
            self._app = None
        self._thread.close()
        # A lock belongs to one loop.
        self._turn_lock = asyncio.Lock()

    def __enter__(self) -> AIAgent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def _turn(
        self,
        message: Content,
        *,
        opening: tuple[str, Sequence[JsonObject] | None, str],
        stream: Callback,
        stored: str | None,
        at: float | None,
    ) -> dict[str, Any]:
        async with self._turn_lock:
            session = await self._ensure_session(*opening)
            assert self._app is not None
            text, images = await ImageReader(self._app.context.home, session).read(message)
            key = f"say-{uuid4().hex}"
            if stored is not None:
                self._changes.sent[key] = text
            if at is not None:
                self._changes.timestamps[key] = at
            say = Say(text=text if stored is None else stored, images=images, key=key)
            records = await self._run(session, say, stream)
            words, self._interrupted_by = self._interrupted_by, None
            late = "\n".join(self._changes.take_late()) or None
            result = result_of(
                self._app, session, records, interrupt_message=words, pending_steer=late
            )
            self._changes.add_timestamps(result["messages"], session)
            self._save(session, result)
            if not self._app.context.settings.compression.in_place:
                await self._continue_compacted(session, opening)
            return result

    async def _continue_compacted(
        self, session: Session, opening: tuple[str, Sequence[JsonObject] | None, str]
    ) -> None:
        """Continue in a child session if this one was compacted."""
        if len(session.transcript.compactions) == self._compactions:
            return
        await self._leave()
        self._wanted_id = session.id
        child = await self._ensure_session(opening[0], None, opening[2])
        body = describe_compression(session, child)
        call_safely(self._callbacks.event, "session:compress", body)

    async def _run(self, session: Session, say: Say, stream: Callback = None) -> list[Record]:
        """Run the turn of a message and return its records."""
        assert self._app is not None
        dispatcher = CallbackDispatcher(
            replace(self._callbacks, stream=stream),
            session,
            self._app.controls[session.id],
            in_place=self._app.context.settings.compression.in_place,
        )
        records: list[Record] = []
        async with interrupt_on_cancel(session), aclosing(session.ask(say)) as events:
            async for record in events:
                records.append(record)
                dispatcher.dispatch(record.event)
                if self._changes.is_running:
                    for text in self._changes.take_held():
                        await session.send(Steer(text=text))
        await session.wait_until_idle()
        return records

    async def _steer(self, text: str) -> None:
        session = self._session
        if session is not None and self._changes.is_running:
            await session.send(Steer(text=text))
        else:
            self._changes.held.append(text)

    async def _ensure_session(
        self, system: str = "", history: Sequence[JsonObject] | None = None, task: str = ""
    ) -> Session:
        if history is not None:
            await self._leave()
        if self._session is None:
            self._session = await self._open(system, task)
            if history and self._app is not None:
                reader = ImageReader(self._app.context.home, self._session)
                await self._session.import_messages(await reader.history(history))
            self._notices = asyncio.create_task(self._follow_processes(self._session))
        return self._session

    async def _open(self, system: str, task: str) -> Session:
        if self._app is None:
            self._app = start(
                {"verbose": self._verbose},
                settings=self._settings,
                home=str(self._home) if self._home else None,
                budget=self._budget,
                journal=Path(self._database) if self._database else None,
            )
            if self._capture is not None:
                self._app.shared.ask_secret = SecretPrompt(self._app.context.home, self._capture)
        request = replace(
            self._opening,
            extra="\n\n".join(text for text in (system, self._opening.extra) if text),
            job=self._opening.job or task,
        )
        wanted, self._wanted_id = self._wanted_id, ""
        if wanted:
            check_session_id(wanted)
            exists = await self._app.archive.exists(wanted)
            request = replace(request, **{"resume" if exists else "session_id": wanted})
        session = await self._app.open(request, adapt=self._changes.adapt)
        session.attach(self._changes)
        self._compactions = len(session.transcript.compactions)
        return session

    async def _follow_processes(self, session: Session) -> None:
        """Run a turn for each background process that ends, between those of the program."""
        async for notice in session.notices():
            say = Say(text=notice.text, key=notice.key, origin=notice.origin)
            async with self._turn_lock:
                if self._session is not session:
                    return
                try:
                    await self._run(session, say)
                except HermesError as error:
                    log.warning("a process was not reported", extra={"why": str(error)})

    def _save(self, session: Session, result: dict[str, Any]) -> None:
        """Append the conversation to the trajectories, if the caller wants them."""
        if not self._trajectories or self._app is None:
            return
        run, wanted = self._app.context, self._trajectories
        folder = run.home.root / TRAJECTORIES if wanted is True else Path(str(wanted))
        entry = trajectory(
            session.transcript.messages,
            self._changes.tools,
            model=f"{result['provider']}/{result['model']}",
            completed=result["completed"],
            at=run.world.clock.now(),
            redact=run.redactor.text,
        )
        try:
            append_trajectory(folder, entry)
        except HermesError as error:
            result["cleanup_errors"].append(str(error))

    async def _leave(self) -> None:
        if self._notices is not None:
            self._notices.cancel()
            self._notices = None
        if self._app is not None and self._session is not None:
            await self._app.close_session(self._session)
        self._session = None

    async def _close(self, app: App) -> None:
        await self._leave()
        await app.close()


@asynccontextmanager
async def interrupt_on_cancel(session: Session) -> AsyncIterator[None]:
    """Stop the turn when the program stops waiting for it, as after Ctrl-C."""
    try:
        yield
    except asyncio.CancelledError:
        await session.send(Interrupt())
        raise
