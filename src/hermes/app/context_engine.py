"""Joins plugins to a run and chooses the context engine of a session."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from hermes.context.budget import CompressionRules, EngineDeps
from hermes.context.engine import BUILT_IN, BuiltInEngine
from hermes.core.events import SessionOpened
from hermes.core.messages import Message
from hermes.core.ports import Meter
from hermes.core.prompt import Prompt, Reply
from hermes.core.transcript import Transcript
from hermes.core.turn import ContextEngine
from hermes.plugins.run_plugins import HostServices, RunPlugins

if TYPE_CHECKING:
    from hermes.app.app import App
    from hermes.context.plugin_engine import PluginEngine
    from hermes.core.turn import Connect
    from hermes.plugins.integration import ImageRegistrar

TASK = "compression"
OFTEN = (
    "This conversation was shortened for the second time. Nothing is lost, but the model sees less "
    "and less of its beginning; /new starts afresh."
)


EngineMaker = Callable[[str, SessionOpened], ContextEngine]


def context_engine(
    app: App, session_id: str, opened: SessionOpened, *, rules: bool = True
) -> ContextEngine:
    """One of `app.engines` if the settings name it, for the session of this id; else the
    built-in one. Without `rules` a session is told nothing of what is remembered."""
    wanted = app.settings.context.engine
    if (make := app.context_engines.get(wanted)) is not None:
        return make(session_id, opened)
    if wanted != BUILT_IN:
        app.news.append(f"There is no context engine {wanted!r}; {BUILT_IN} is used.")
    means = engine_deps(app, session_id, opened)
    if rules:
        means.hints = partial(_flush_memory, app, session_id, opened)
        means.renew = partial(_renew_system, app, session_id, opened)
    return BuiltInEngine(means)


def plugin_context_engine(
    app: App, session_id: str, opened: SessionOpened, plugin: PluginEngine
) -> ContextEngine:
    """An engine that a plugin brings, for one session, with the built-in one behind it. Plugins
    are named in `app.engines` by a function that calls this with an engine of its own."""
    from hermes.context.plugin_engine import PluggedEngine

    means = engine_deps(app, session_id, opened)
    return PluggedEngine(plugin, BuiltInEngine(means), threshold=means.rules.threshold)


def engine_deps(app: App, session_id: str, opened: SessionOpened) -> EngineDeps:
    """What the built-in engine works with, whatever is remembered."""
    return EngineDeps(
        session_id,
        _SummaryWriter(app, session_id),
        clock=app.world.clock,
        rules=compression_rules(app, opened.model),
        cwd=opened.cwd,
    )


def compression_rules(app: App, model: str) -> CompressionRules:
    own = app.settings.compression
    named = [name for name in own.model_thresholds if name and name.lower() in model.lower()]
    threshold = own.model_thresholds[max(named, key=len)] if named else own.threshold
    return CompressionRules(
        enabled=own.enabled,
        threshold=threshold,
        target_ratio=own.target_ratio,
        protect_last=own.protect_last_n,
        message_limit=own.hygiene_hard_message_limit,
        abort_on_failure=own.abort_on_summary_failure,
    )


async def _flush_memory(
    app: App, session_id: str, opened: SessionOpened, messages: tuple[Message, ...]
) -> str:
    # Few conversations grow so long.
    from hermes.memory.review import MemoryFlush

    return await MemoryFlush(app.memory, session_id, opened)(messages)


async def _renew_system(
    app: App, session_id: str, opened: SessionOpened, transcript: Transcript, window: int
) -> str:
    """The system text with memory as it is now. The beginning of the requests changes with the
    summary anyway, so this is the time for it."""
    from hermes.memory.snapshots import renew_system

    if len(transcript.compactions) == 1:
        app.require_session(session_id).tell(OFTEN)
    return await renew_system(app.memory, session_id, opened, transcript, window)


class _SummaryWriter:
    """Asks the model that the settings name for side work of this kind, else the main one."""

    def __init__(self, app: App, session_id: str) -> None:
        self._app = app
        self._session_id = session_id

    async def __call__(self, prompt: Prompt, meter: Meter) -> Reply:
        # Few conversations grow so long.
        from hermes.models.side_model import SideModel

        session = self._app.require_session(self._session_id)
        transcript = session.transcript
        auxiliary = SideModel(
            self._app.models,
            self._app.settings,
            main=lambda: (transcript.model, transcript.provider),
            tell=session.tell,
        )
        return await auxiliary.ask(TASK, prompt, meter)


def join_plugins(app: App) -> RunPlugins:
    """The plugins of this run; no place that they add to is made before it is used."""

    def images() -> tuple[ImageRegistrar, type]:
        from hermes.images.provider import ImageGenProvider

        return app.images.providers, ImageGenProvider

    host = HostServices(app.run, app.models, app.tools, app.find_session, app.hooks.hooks_of)
    return RunPlugins(
        host,
        context_engines=app.context_engines,
        memory_providers=app.memory_providers,
        hooks=lambda: app.hooks.registry,
        images=images,
        adapt_engine=partial(plugin_context_engine, app),
    )


def select_context(app: App, session_id: str, connect: Connect) -> Connect:
    """The way to models, past a context engine of a plugin; where the settings name none, nothing
    of theirs is loaded."""
    if not app.plugins.enabled or app.settings.context.engine == BUILT_IN:
        return connect
    return app.plugins.engines.wrap(session_id, connect)
