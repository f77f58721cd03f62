"""Connects hooks, image providers and context engines of plugins to other packages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from hermes.codec.json import encode
from hermes.codec.values import JsonObject
from hermes.core.errors import ConfigError
from hermes.plugins.found import FoundPlugin
from hermes.plugins.images import RemoteImageProvider
from hermes.plugins.in_process import InProcessPlugin
from hermes.plugins.inside.engines import EngineFactory
from hermes.plugins.plugins import PluginRegistry, PluginState
from hermes.plugins.serving import PluginCaller

LONGEST_SECONDS = 600.0

Engine = TypeVar("Engine")


class HookRegistrar(Protocol):
    """A hook registry; unknown names raise."""

    def add(
        self,
        hook: str,
        callback: Callable[..., object],
        *,
        owner: str,
        priority: int = 100,
        timeout: float | None = None,
        fail_closed: bool = False,
    ) -> None: ...

    def remove(self, owner: str) -> None: ...


class ImageRegistrar(Protocol):
    """A registry of image providers."""

    def register_provider(self, provider: Any, *, source: str) -> None: ...


def owner_of(found: FoundPlugin) -> str:
    return f"plugin:{found.name}"


def join_hooks(plugins: PluginRegistry, state: PluginState, place: HookRegistrar) -> None:
    """Adds all hooks of a plugin or none; passes on errors."""
    owner = owner_of(state.found)
    place.remove(owner)
    try:
        for number, offer in enumerate(state.surface.hooks if state.surface else ()):
            seconds = plugins.rules.hook_timeout if offer.timeout is None else offer.timeout
            seconds = min(seconds, LONGEST_SECONDS)
            place.add(
                offer.hook,
                _callback(plugins, state.found.key, number, seconds),
                owner=owner,
                priority=offer.priority,
                timeout=seconds or None,
                fail_closed=offer.fail_closed,
            )
    except Exception:
        place.remove(owner)
        raise


def _callback(
    plugins: PluginRegistry, key: str, number: int, seconds: float
) -> Callable[..., object]:
    async def callback(**payload: Any) -> object:
        session = payload.get("session_id")
        caller = PluginCaller(session if isinstance(session, str) else "")
        answer: object = await (await plugins.ready(key)).call(
            "hook", str(number), _copy_payload(payload), seconds=seconds, caller=caller
        )
        return answer

    return callback


def _copy_payload(payload: JsonObject) -> Any:
    """Copies the payload through JSON."""
    from json import dumps, loads

    def to_json(value: object) -> object:
        try:
            return loads(encode(value))
        except TypeError:
            return str(value)

    return loads(dumps(payload, default=to_json))


def join_images(
    plugins: PluginRegistry, state: PluginState, place: ImageRegistrar, kind: type
) -> None:
    """Registers in-process providers directly and others through a proxy that is also a `kind`."""
    running = plugins.running(state.found.key)
    for offer in state.surface.images if state.surface else ():
        if isinstance(running, InProcessPlugin):
            provider: Any = running.images[offer.name]
        else:
            made: Any = type("ForeignProvider", (RemoteImageProvider, kind), {})
            provider = made(offer, plugins, state.found.key)
        place.register_provider(provider, source=state.found.source)


def join_engines(
    plugins: PluginRegistry,
    state: PluginState,
    place: dict[str, Engine],
    make: Callable[[EngineFactory], Engine],
) -> None:
    """Registers context engines, which must run in process; `make` adapts one."""
    names = state.surface.engines if state.surface else ()
    running = plugins.running(state.found.key)
    if not isinstance(running, InProcessPlugin):
        raise ConfigError(
            "A context engine must run inside Hermes; run `hermes plugins enable "
            f"{state.found.key} --isolation in_process` if you trust it."
        )
    place.update({name: make(running.engines[name]) for name in names})
