"""Context engines of plugins in sessions: lifecycle calls and selection of request messages."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from hermes.codec.values import replace
from hermes.core.events import SessionOpened
from hermes.core.ports import Middleware, Provider
from hermes.core.prompt import Delta, Prompt, Reply
from hermes.core.session_deps import ContextEngine

if TYPE_CHECKING:
    from hermes.config.settings import Settings
    from hermes.plugins.inside.providers import EngineFactory

log = logging.getLogger(__name__)

SECONDS = 10.0

AdaptEngine = Callable[[str, SessionOpened, Any], ContextEngine]


class PluginEngines:
    """Context engines by name; each session gets its own instance of the configured one.
    `adapt_engine` wraps an instance as a `ContextEngine`."""

    def __init__(self, settings: Settings, adapt_engine: AdaptEngine) -> None:
        self._settings = settings
        self._adapt_engine = adapt_engine
        self._factories: dict[str, EngineFactory] = {}
        self._started: set[str] = set()

    def add(self, factory: EngineFactory) -> None:
        self._factories[str(factory.name)] = factory

    def make(self, session_id: str, opened: SessionOpened) -> ContextEngine | None:
        """Return the configured engine for a session; None if no plugin provides it."""
        engine = self.of(session_id)
        if engine is None:
            return None
        if session_id not in self._started:
            self._started.add(session_id)
            call_engine(engine, "on_session_start", session_id, platform=opened.source)
        return self._adapt_engine(session_id, opened, engine)

    def middleware(self, session_id: str) -> Middleware:
        """Return the middleware that lets the engine select the messages of each request."""

        def wrap(inner: Provider) -> Provider:
            engine = self.of(session_id)
            return inner if engine is None else SelectingProvider(inner, engine)

        return wrap

    def update_model(self, session_id: str, model: str, provider: str, window: int) -> None:
        if (engine := self.of(session_id)) is not None:
            call_engine(engine, "update_model", model, window, provider=provider)

    async def on_session_closed(self, session_id: str) -> None:
        if (engine := self.of(session_id)) is not None and session_id in self._started:
            self._started.discard(session_id)
            await asyncio.to_thread(call_engine, engine, "on_session_end", session_id)
            self._factories[self._settings.context.engine].forget(session_id)

    def of(self, session_id: str) -> Any:
        """Return the engine of a session; None if no plugin provides the configured one."""
        found = self._factories.get(self._settings.context.engine)
        return found.of(session_id) if found else None


class SelectingProvider:
    """Sends the messages that the engine selects, if they form a valid conversation."""

    def __init__(self, inner: Provider, engine: Any) -> None:
        self._inner = inner
        self._engine = engine

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        selected = await self._select(prompt)
        async with aclosing(self._inner.reply(selected)) as parts:
            async for part in parts:
                if isinstance(part, Reply) and not part.message.calls:
                    call_engine(self._engine, "on_turn_complete")
                yield part

    async def _select(self, prompt: Prompt) -> Prompt:
        select = getattr(self._engine, "select_context", None)
        if not callable(select):
            return prompt
        from hermes.context.plugin_engine import PlainMessages

        plain = PlainMessages(prompt.messages)
        try:
            async with asyncio.timeout(SECONDS):
                arguments = await asyncio.to_thread(select, [dict(each) for each in plain.dicts])
            return prompt if arguments is None else replace(prompt, messages=plain.read(arguments))
        except Exception:
            log.exception(
                "context engine failed to select messages", extra={"engine": self._engine.name}
            )
            return prompt


def call_engine(engine: Any, method: str, *arguments: Any, **keywords: Any) -> Any:
    """Call an optional method of an engine with the arguments it accepts; log exceptions."""
    from hermes.plugins.inside.calling import accepted_arguments

    function = getattr(engine, method, None)
    if not callable(function):
        return None
    try:
        return function(*arguments, **accepted_arguments(function, keywords, len(arguments)))
    except Exception:
        log.exception("context engine failed", extra={"engine": engine.name, "call": method})
        return None
