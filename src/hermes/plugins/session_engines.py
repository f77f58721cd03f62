"""Context engines of plugins in sessions: told when one begins and ends, and asked which messages a
request is to hold."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from hermes.codec.values import JsonObject, replace
from hermes.core.events import SessionOpened
from hermes.core.ports import Meter, Provider
from hermes.core.prompt import Delta, Prompt, Reply
from hermes.core.turn import Connect, ContextEngine, TurnLimits

if TYPE_CHECKING:
    from hermes.config.settings import Settings
    from hermes.plugins.inside.providers import EngineFactory

log = logging.getLogger(__name__)

SECONDS = 10.0

Fit = Callable[[str, SessionOpened, Any], ContextEngine]


class PluginEngines:
    """By name; the one that the settings choose serves each session with an object of its own.
    `fit` makes a context engine of ours of one."""

    def __init__(self, settings: Settings, fit: Fit) -> None:
        self._settings = settings
        self._fit = fit
        self._held: dict[str, EngineFactory] = {}
        self._begun: set[str] = set()

    def maker(self, found: EngineFactory) -> Callable[[str, SessionOpened], ContextEngine]:
        self._held[str(found.name)] = found

        def make(session_id: str, opened: SessionOpened) -> ContextEngine:
            engine = found.of(session_id)
            if session_id not in self._begun:
                self._begun.add(session_id)
                tell(engine, "on_session_start", session_id, platform=opened.source)
            return self._fit(session_id, opened, engine)

        return make

    def wrap(self, session_id: str, connect: Connect) -> Connect:
        """The way to models, past the engine."""

        def through(model: str, provider: str, meter: Meter) -> tuple[Provider, TurnLimits]:
            inner, limits = connect(model, provider, meter)
            engine = self.of(session_id)
            if engine is None:
                return inner, limits
            tell(engine, "update_model", model, limits.window, provider=provider)
            return SelectingProvider(inner, engine), limits

        return through

    async def on_session_closed(self, session_id: str) -> None:
        if (engine := self.of(session_id)) is not None and session_id in self._begun:
            self._begun.discard(session_id)
            await asyncio.to_thread(tell, engine, "on_session_end", session_id)
            self._held[self._settings.context.engine].forget(session_id)

    def status(self, session_id: str) -> JsonObject:
        """What the engine says of itself; nothing where it says nothing."""
        told = tell(self.of(session_id), "get_status")
        return told if isinstance(told, dict) else {}

    def of(self, session_id: str) -> Any:
        """The engine of a session; None where no plugin brings the one that is chosen."""
        found = self._held.get(self._settings.context.engine)
        return found.of(session_id) if found else None


class SelectingProvider:
    """A provider that is sent what the engine has selected, as long as that is a conversation."""

    def __init__(self, inner: Provider, engine: Any) -> None:
        self._inner = inner
        self._engine = engine

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        selected = await self._select(prompt)
        async with aclosing(self._inner.reply(selected)) as parts:
            async for part in parts:
                if isinstance(part, Reply) and not part.message.calls:
                    tell(self._engine, "on_turn_complete")
                yield part

    async def _select(self, prompt: Prompt) -> Prompt:
        select = getattr(self._engine, "select_context", None)
        if not callable(select):
            return prompt
        from hermes.context.plugin_engine import PlainMessages

        plain = PlainMessages(prompt.messages)
        try:
            async with asyncio.timeout(SECONDS):
                given = await asyncio.to_thread(select, [dict(each) for each in plain.dicts])
            return prompt if given is None else replace(prompt, messages=plain.read(given))
        except Exception:
            log.exception("a context engine cannot select", extra={"engine": self._engine.name})
            return prompt


def tell(engine: Any, method: str, *given: Any, **named: Any) -> Any:
    """Calls a method that an engine may have, with what it takes; what it raises is logged."""
    from hermes.plugins.inside.calling import accepted_arguments

    function = getattr(engine, method, None)
    if not callable(function):
        return None
    try:
        return function(*given, **accepted_arguments(function, named, len(given)))
    except Exception:
        log.exception("a context engine failed", extra={"engine": engine.name, "call": method})
        return None
