"""Runs a trusted plugin inside the Hermes process, in threads and on copies of its arguments."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from hermes.codec.json import decode, encode
from hermes.codec.values import JsonObject, JsonValue
from hermes.core.errors import ConfigError
from hermes.plugins.inside.calling import within
from hermes.plugins.inside.context import Refused
from hermes.plugins.inside.providers import EngineFactory
from hermes.plugins.inside.runtime import Runtime
from hermes.plugins.protocol import (
    CallKind,
    Denied,
    PluginCaller,
    PluginFault,
    PluginRequests,
    call_facts,
)


class InProcessPlugin:
    """`make_birth` raises ConfigError when the files differ from the approved ones."""

    protection = "runs inside Hermes"

    def __init__(
        self,
        name: str,
        make_birth: Callable[[], JsonObject],
        serving: PluginRequests,
        *,
        load_seconds: float,
    ) -> None:
        self._name = name
        self._make_birth = make_birth
        self._serving = serving
        self._load_seconds = load_seconds
        self._starting = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._runtime: Runtime | None = None
        self._callers: dict[int, PluginCaller] = {}
        self._last = 0

    @property
    def images(self) -> dict[str, Any]:
        """Its image providers, once loaded."""
        return dict(self._runtime.context.registered.images) if self._runtime else {}

    @property
    def engines(self) -> dict[str, EngineFactory]:
        """Its context engines, once loaded."""
        return dict(self._runtime.context.registered.engines) if self._runtime else {}

    @property
    def platforms(self) -> dict[str, dict[str, Any]]:
        """Its chat platforms, once loaded."""
        return dict(self._runtime.context.registered.platforms) if self._runtime else {}

    async def load(self) -> Any:
        return decode(object, encode((await self._running()).surface()))

    async def call(
        self, kind: CallKind, name: str, given: Any, *, seconds: float, caller: PluginCaller
    ) -> Any:
        runtime = await self._running()
        self._last += 1
        number, self._callers[self._last] = self._last, caller
        copied = decode(object, encode(given))

        def work() -> Any:
            within.set(number)
            return runtime.call(kind, name, copied, call_facts(caller))

        try:
            async with asyncio.timeout(seconds or None):
                return _to_json(await asyncio.to_thread(work))
        except TimeoutError:
            raise PluginFault(f"Plugin {self._name} did not answer within {seconds:g} s.") from None
        except Exception as error:
            raise PluginFault(f"Plugin {self._name}: {type(error).__name__}: {error}") from error
        finally:
            del self._callers[number]

    async def close(self) -> None:
        if self._runtime is not None:
            runtime, self._runtime = self._runtime, None
            try:
                await asyncio.to_thread(runtime.close)
            except Exception as error:
                why = f"{type(error).__name__}: {error}"
                raise PluginFault(f"Plugin {self._name} failed to stop: {why}") from error

    async def _running(self) -> Runtime:
        async with self._starting:
            if self._runtime is None:
                self._runtime = await self._start()
            return self._runtime

    async def _start(self) -> Runtime:
        try:
            birth = await asyncio.to_thread(self._make_birth)
            runtime = Runtime(birth, self._ask)
            async with asyncio.timeout(self._load_seconds or None):
                await asyncio.to_thread(runtime.load)
        except TimeoutError:
            raise PluginFault(
                f"Plugin {self._name} did not load within {self._load_seconds:g} s."
            ) from None
        except ConfigError as error:
            raise PluginFault(f"Plugin {self._name} does not run: {error}") from error
        except Exception as error:
            raise PluginFault(
                f"Plugin {self._name} cannot be loaded: {type(error).__name__}: {error}"
            ) from error
        return runtime

    def _ask(self, method: str, params: JsonObject) -> Any:
        """Called from a thread of the plugin."""
        caller = self._callers.get(within.get())
        work = self._serving.answer(method, params, caller)
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except Denied as denied:
            raise Refused(str(denied)) from denied


def _to_json(value: JsonValue) -> JsonValue:
    """Converts to JSON types, as from another process."""
    from json import dumps, loads

    return loads(dumps(value, default=str))
