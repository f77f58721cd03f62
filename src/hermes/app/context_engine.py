"""Connects plugins to a run, and chooses the context engine of a session."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hermes.codec.values import replace
from hermes.config.session_settings import CompressionSettings
from hermes.context.budget import EngineDeps
from hermes.context.engine import BUILT_IN, BuiltInEngine
from hermes.core.events import SessionOpened
from hermes.core.messages import Message
from hermes.core.ports import Meter
from hermes.core.prompt import Prompt, Reply
from hermes.core.session_deps import ContextEngine
from hermes.core.transcript import Transcript
from hermes.plugins.run_plugins import HostServices, RunPlugins

if TYPE_CHECKING:
    from hermes.app.app import App
    from hermes.context.plugin_engine import PluginEngine
    from hermes.plugins.session_engines import PluginEngines

TASK = "compression"
COMPACTED_TWICE = (
    "This conversation was compacted for the second time. Nothing is lost, but the model sees less "
    "and less of its beginning; /new starts a new one."
)


def context_engine(
    app: App, session_id: str, opened: SessionOpened, *, memory: bool = True
) -> ContextEngine:
    """The engine named in the settings if a plugin provides it, else the built-in one. Without
    `memory`, it neither saves nor reloads memory."""
    name = app.context.settings.context.engine
    engines = plugin_engines(app)
    if engines and (engine := engines.make(session_id, opened)):
        return engine
    if name != BUILT_IN:
        app.context.notices.append(f"There is no context engine {name!r}; using {BUILT_IN}.")
    deps = engine_deps(app, session_id, opened)
    if memory:
        deps = deps._replace(
            hints=partial(_flush_memory, app, session_id, opened),
            renew=partial(_renew_system, app, session_id, opened),
        )
    return BuiltInEngine(deps)


def plugin_context_engine(
    app: App, session_id: str, opened: SessionOpened, plugin: PluginEngine
) -> ContextEngine:
    """A plugin's engine for one session, with the built-in one as its fallback. Plugins register a
    function that calls this."""
    from hermes.context.plugin_engine import PluggedEngine

    deps = engine_deps(app, session_id, opened)
    return PluggedEngine(plugin, BuiltInEngine(deps), threshold=deps.rules.threshold)


def engine_deps(app: App, session_id: str, opened: SessionOpened) -> EngineDeps:
    """The dependencies of the built-in engine, without memory."""
    return EngineDeps(
        session_id,
        partial(_summarise, app, session_id),
        clock=app.context.world.clock,
        rules=compression_rules(app, opened.model),
        cwd=opened.cwd,
    )


def compression_rules(app: App, model: str) -> CompressionSettings:
    """The settings with the threshold of this model."""
    own = app.context.settings.compression
    matches = [name for name in own.model_thresholds if name and name.lower() in model.lower()]
    threshold = own.model_thresholds[max(matches, key=len)] if matches else own.threshold
    return replace(own, threshold=threshold)


async def _flush_memory(
    app: App, session_id: str, opened: SessionOpened, messages: tuple[Message, ...]
) -> str:
    # Loaded with the first compaction.
    from hermes.memory.review import flush_memory

    return await flush_memory(app.memory, session_id, opened, messages)


async def _renew_system(
    app: App, session_id: str, opened: SessionOpened, transcript: Transcript, window: int
) -> tuple[str, tuple[str, ...]]:
    """The system text with current memory, and the sources of its memories. The compaction changes
    the beginning of the prompt anyway, so this costs no extra cache miss."""
    from hermes.memory.snapshots import renew_system

    if len(transcript.compactions) == 1:
        app.require_session(session_id).tell(COMPACTED_TWICE)
    return await renew_system(app.memory, session_id, opened, transcript, window)


async def _summarise(app: App, session_id: str, prompt: Prompt, meter: Meter) -> Reply:
    """Asks the model configured for compression, else the main one."""
    # Loaded with the first compaction.
    from hermes.models.side_model import SideModel

    session = app.require_session(session_id)
    side_model = SideModel(app.models, app.context.settings, session.transcript, session.tell)
    return await side_model.ask(TASK, prompt, meter)


def join_plugins(app: App) -> RunPlugins:
    """The plugins of this run. Extension points are created on first use."""
    host = HostServices(app.context, app.models, app.tools, app.find_session)
    return RunPlugins(
        host,
        hooks=lambda: app.hooks.registry,
        images=lambda: app.shared.images.providers,
        adapt_engine=partial(plugin_context_engine, app),
    )


def plugin_engines(app: App) -> PluginEngines | None:
    """The context engines of plugins if the settings name one; else no plugin code is loaded."""
    if not app.plugins.enabled or app.context.settings.context.engine == BUILT_IN:
        return None
    return app.plugins.engines
