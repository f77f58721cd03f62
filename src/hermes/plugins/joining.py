"""Where other rooms take what plugins bring: small shapes of those rooms, and the way there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from hermes.codec.json import encode
from hermes.codec.values import JsonObject
from hermes.core.errors import ConfigError
from hermes.plugins.found import Found
from hermes.plugins.images import ForeignImages
from hermes.plugins.in_process import InProcess
from hermes.plugins.inside.engines import Engines
from hermes.plugins.plugins import Plugins, State
from hermes.plugins.serving import Caller

LONGEST_SECONDS = 600.0

Engine = TypeVar("Engine")


class HookPlace(Protocol):
    """Whoever fires hooks. An unknown name is refused."""

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


class ImagePlace(Protocol):
    """Whoever keeps image providers."""

    def register_provider(self, provider: Any, *, source: str) -> None: ...


def owner_of(found: Found) -> str:
    return f"plugin:{found.name}"


def join_hooks(plugins: Plugins, state: State, place: HookPlace) -> None:
    """All hooks of a plugin or none: what the place raises is raised again."""
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


def _callback(plugins: Plugins, key: str, number: int, seconds: float) -> Callable[..., object]:
    async def callback(**payload: Any) -> object:
        session = payload.get("session_id")
        caller = Caller(session if isinstance(session, str) else "")
        answer: object = await (await plugins.ready(key)).call(
            "hook", str(number), _copied(payload), seconds=seconds, caller=caller
        )
        return answer

    return callback


def _copied(payload: JsonObject) -> Any:
    """As JSON tells it: whatever the plugin does to it stays with the plugin."""
    from json import dumps, loads

    def told(value: object) -> object:
        try:
            return loads(encode(value))
        except TypeError:
            return str(value)

    return loads(dumps(payload, default=told))


def join_images(plugins: Plugins, state: State, place: ImagePlace, kind: type) -> None:
    """Providers that run here go as they are; those of other processes are spoken for by one of
    ours, which is of the wanted `kind` too."""
    running = plugins.running(state.found.key)
    for offer in state.surface.images if state.surface else ():
        if isinstance(running, InProcess):
            provider: Any = running.images[offer.name]
        else:
            made: Any = type("ForeignProvider", (ForeignImages, kind), {})
            provider = made(offer, plugins, state.found.key)
        place.register_provider(provider, source=state.found.source)


def join_engines(
    plugins: Plugins, state: State, place: dict[str, Engine], make: Callable[[Engines], Engine]
) -> None:
    """Context engines work on the whole conversation, at every step, so they run here or not at
    all; `make` fits one in."""
    names = state.surface.engines if state.surface else ()
    running = plugins.running(state.found.key)
    if not isinstance(running, InProcess):
        raise ConfigError(
            "A context engine runs inside Hermes; `hermes plugins enable "
            f"{state.found.key} --isolation in_process` if you trust it so far."
        )
    place.update({name: make(running.engines[name]) for name in names})
