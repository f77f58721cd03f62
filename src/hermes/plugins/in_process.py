"""Runs a trusted plugin inside the Hermes process, in threads and on copies of its arguments."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from hermes.codec.json import decode, encode
from hermes.codec.values import JsonObject
from hermes.core.errors import ConfigError
from hermes.plugins.inside.calling import within
from hermes.plugins.inside.context import Refused, Registrations
from hermes.plugins.inside.runtime import Runtime
from hermes.plugins.protocol import CallKind, Denied, PluginCaller, PluginFault, PluginRequests


class InProcessPlugin:
    """A trusted plugin that runs in this process. `make_start_message` raises ConfigError when the
    files differ from the approved ones."""

    protection = "runs inside Hermes"

    def __init__(
        self,
        name: str,
        make_start_message: Callable[[], JsonObject],
        serving: PluginRequests,
        *,
        load_seconds: float,
    ) -> None:
        self._name = name
        self._make_start_message = make_start_message
        self._serving = serving
        self._load_seconds = load_seconds
        self._starting = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._runtime: Runtime | None = None
        self._callers: dict[int, PluginCaller] = {}
        self._last = 0

    @property
    def registered(self) -> Registrations:
        """The objects that it registered, once loaded."""
        return self._runtime.context.registered if self._runtime else Registrations()

    async def load(self) -> Any:
        return decode(object, encode((await self._running()).surface()))

    async def call(
        self, kind: CallKind, name: str, payload: Any, *, seconds: float, caller: PluginCaller
    ) -> Any:
        runtime = await self._running()
        self._last += 1
        number, self._callers[self._last] = self._last, caller
        copied = decode(object, encode(payload))

        def work() -> Any:
            within.set(number)
            return runtime.call(kind, name, copied, caller.facts)

        try:
            async with asyncio.timeout(seconds or None):
                result = await asyncio.to_thread(work)
            # JSON types, as from another process.
            return json.loads(json.dumps(result, default=str))
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
            if self._runtime is not None:
                return self._runtime
            try:
                start_message = await asyncio.to_thread(self._make_start_message)
                runtime = Runtime(start_message, self._ask)
                async with asyncio.timeout(self._load_seconds or None):
                    await asyncio.to_thread(runtime.load)
            except TimeoutError:
                raise PluginFault(
                    f"Plugin {self._name} did not load within {self._load_seconds:g} s."
                ) from None
            except ConfigError as error:
                raise PluginFault(f"Plugin {self._name} does not run: {error}") from error
            except Exception as error:
                why = f"{type(error).__name__}: {error}"
                raise PluginFault(f"Plugin {self._name} cannot be loaded: {why}") from error
            self._runtime = runtime
            return runtime

    def _ask(self, method: str, params: JsonObject) -> Any:
        """Serve a request of the plugin. Called from a thread of the plugin."""
        caller = self._callers.get(within.get())
        work = self._serving.answer(method, params, caller)
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except Denied as denied:
            raise Refused(str(denied)) from denied
