"""Connects hooks, providers, context engines and skills of plugins to other packages."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from hermes.codec.json import encode
from hermes.codec.values import JsonObject
from hermes.core.errors import ConfigError
from hermes.core.tools import ToolContext
from hermes.hooks.registry import Hooks
from hermes.images.provider import ImageGenProvider, references_of
from hermes.images.studio import current_studio, has_studio
from hermes.plugins.contents import Contents, hash_of, read_contents, remove_copy, write_copy
from hermes.plugins.discovery import FoundPlugin
from hermes.plugins.image_requests import ImageCaller
from hermes.plugins.in_process import InProcessPlugin
from hermes.plugins.inside.providers import EngineFactory
from hermes.plugins.protocol import PluginCaller, PluginFault
from hermes.plugins.registry import PluginRegistry, PluginState
from hermes.plugins.surface import OPEN, PREFIX, ImageOffer, ServiceOffer, SessionId

IMAGE_SECONDS = 300.0


class RemoteImageProvider(ImageGenProvider):
    """An image provider in a plugin. It serves facts recorded at load time; only `generate` calls
    the plugin. Thread-safe; use `agenerate` on the event loop."""

    def __init__(self, offer: ImageOffer, plugins: PluginRegistry, key: str) -> None:
        self._offer = offer
        self._plugins = plugins
        self._key = key
        self._loop = asyncio.get_running_loop()

    @property
    def name(self) -> str:
        return self._offer.name

    @property
    def display_name(self) -> str:
        return self._offer.display_name

    def is_available(self) -> bool:
        return self._offer.available

    def list_models(self) -> list[JsonObject]:
        return list(self._offer.models)

    def default_model(self) -> str | None:
        return self._offer.default_model

    def get_setup_schema(self) -> JsonObject:
        return self._offer.setup

    def capabilities(self) -> JsonObject:
        return self._offer.capabilities

    def generate(self, prompt: str, aspect_ratio: str = "landscape", **named: Any) -> JsonObject:
        work = self.agenerate(prompt, aspect_ratio, **named)
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def agenerate(
        self, prompt: str, aspect_ratio: str = "landscape", **named: Any
    ) -> JsonObject:
        payload = {"positional": [prompt, aspect_ratio], "named": named}
        refs = references_of(named.get("image_url"), named.get("reference_image_urls"))
        caller = ImageCaller(current_studio() if has_studio() else None, refs)
        try:
            answer = await self._plugins.running(self._key).call(
                "image", f"{self.name}:generate", payload, seconds=IMAGE_SECONDS, caller=caller
            )
        except PluginFault as fault:
            return {"success": False, "image": None, "error": str(fault), "provider": self.name,
                    "error_type": "provider_error"}  # fmt: skip
        return answer if isinstance(answer, dict) else {"success": False, "image": None}


class Service:
    """A service that a plugin provides. `label` names it in effects, `origin` marks its text."""

    def __init__(self, plugins: PluginRegistry, state: PluginState, offer: ServiceOffer) -> None:
        self._plugins = plugins
        self._key = state.plugin.key
        self.offer = offer
        self.name = offer.name
        self.sealed = plugins.is_sealed(state.plugin)
        self.origin = "workspace" if state.plugin.trusted else PREFIX + state.plugin.name
        self.label = PREFIX + state.plugin.name + ("" if self.sealed else OPEN)
        self.data = plugins.data_dir(state.plugin)

    def has(self, method: str) -> bool:
        return method in self.offer.methods

    async def ask(
        self,
        method: str,
        *positional: Any,
        seconds: float,
        session_id: str = "",
        ctx: ToolContext | None = None,
        **named: Any,
    ) -> Any:
        """Return its answer as JSON; raise PluginFault. 0 seconds means no limit. The session is
        that of `ctx`, if given."""
        if not self.has(method):
            raise PluginFault(f"{self.name} has no method {method}.")
        running = await self._plugins.ready(self._key)
        return await running.call(
            "service",
            f"{self.offer.kind}:{self.name}:{method}",
            {"positional": list(positional), "named": named},
            seconds=seconds,
            caller=PluginCaller(ctx.service(SessionId).id if ctx else session_id, ctx),
        )


LONGEST_SECONDS = 600.0


def join_hooks(plugins: PluginRegistry, state: PluginState, hooks: Hooks) -> None:
    """Add all hooks of a plugin or none; pass on errors."""
    owner = PREFIX + state.plugin.name
    hooks.remove(owner)
    try:
        for number, offer in enumerate(state.surface.hooks):
            seconds = plugins.rules.hook_timeout if offer.timeout is None else offer.timeout
            seconds = min(seconds, LONGEST_SECONDS)
            hooks.add(
                offer.hook,
                _callback(plugins, state.plugin.key, number, seconds),
                owner=owner,
                priority=offer.priority,
                timeout=seconds or None,
                fail_closed=offer.fail_closed,
            )
    except Exception:
        hooks.remove(owner)
        raise


def _callback(
    plugins: PluginRegistry, key: str, number: int, seconds: float
) -> Callable[..., object]:
    async def callback(**payload: Any) -> object:
        session = payload.get("session_id")
        caller = PluginCaller(session if isinstance(session, str) else "")
        arguments = json.loads(json.dumps(payload, default=_to_json))
        running = await plugins.ready(key)
        answer: object = await running.call(
            "hook", str(number), arguments, seconds=seconds, caller=caller
        )
        return answer

    return callback


def _to_json(value: object) -> object:
    try:
        return json.loads(encode(value))
    except TypeError:
        return str(value)


def join_images(plugins: PluginRegistry, state: PluginState, register: Callable[..., None]) -> None:
    """Register in-process providers directly and others through a proxy."""
    running = plugins.running(state.plugin.key)
    for offer in state.surface.images:
        if isinstance(running, InProcessPlugin):
            provider = running.registered.images[offer.name]
        else:
            provider = RemoteImageProvider(offer, plugins, state.plugin.key)
        register(provider, source=state.plugin.source)


def engines_of(plugins: PluginRegistry, state: PluginState) -> dict[str, EngineFactory]:
    """Return its context engines, which must run in process."""
    running = plugins.running(state.plugin.key)
    if not isinstance(running, InProcessPlugin):
        raise ConfigError(
            "A context engine must run inside Hermes; run `hermes plugins enable "
            f"{state.plugin.key} --isolation in_process` if you trust it."
        )
    return running.registered.engines


MAIN = "SKILL.md"
_NAME_LINE = re.compile(r"^name:.*$", re.MULTILINE)


def sync_skills(states: Iterable[PluginState], folder: Path) -> list[str]:
    """Make `folder` contain exactly the skills of these plugins; return errors."""
    wanted: dict[str, Contents] = {}
    faults: list[str] = []
    for state in states:
        for offer in state.surface.skills:
            name = f"{state.plugin.name}.{offer.name}"
            try:
                wanted[name] = _skill(state.plugin, offer.path, name)
            except ConfigError as error:
                faults.append(f"{name}: {error}")
    there = {each.name for each in folder.iterdir()} if folder.is_dir() else set()
    for name in there - wanted.keys():
        remove_copy(folder / name)
    if wanted:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name, contents in wanted.items():
        write_copy(contents, folder / name)
    return faults


def _skill(plugin: FoundPlugin, path: str, name: str) -> Contents:
    """Read a skill from the plugin's approved files."""
    inner = _relative_path(path.removeprefix(f"{plugin.path}/") if plugin.trusted else path)
    prefix = "" if inner == "." else f"{inner}/"
    whole = read_contents(Path(plugin.path))
    if not plugin.trusted and hash_of(whole) != plugin.hash:
        raise ConfigError("Its files have changed; enable the plugin again.")
    files = {n.removeprefix(prefix): data for n, data in whole.items() if n.startswith(prefix)}
    if MAIN not in files:
        raise ConfigError(f"{path} has no {MAIN}.")
    text = files[MAIN].decode("utf-8", "replace")
    return {**files, MAIN: _NAME_LINE.sub(f"name: {name}", text, count=1).encode()}


def _relative_path(path: str) -> str:
    """Return the path relative to the plugin."""
    parts = PurePosixPath(path).parts
    if ".." in parts:
        raise ConfigError(f"{path} is outside the plugin; move it inside.")
    if path.startswith("/"):
        # Absolute paths point into the running copy: KEY-HASH/NAME/…
        marks = [at for at, part in enumerate(parts) if re.search(r"-[0-9a-f]{64}$", part)]
        if not marks:
            raise ConfigError(f"{path} is outside the plugin; move it inside.")
        parts = parts[marks[-1] + 2 :]
    return "/".join(parts) or "."
