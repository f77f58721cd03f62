"""Calls plugin functions, sync or async, with the arguments they accept."""

from __future__ import annotations

import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

# Id of the host call being answered.
within: contextvars.ContextVar[int] = contextvars.ContextVar("within", default=0)


class PluginLoop:
    """The event loop for a plugin's async code, in its own thread. It is started on first use,
    because importing asyncio is half of a plugin's start time."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._one = threading.Lock()

    def run(self, promise: Awaitable[Any]) -> Any:
        import asyncio

        async def wait() -> Any:
            return await promise

        with self._one:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=_forever, args=(self._loop,), daemon=True).start()
        return asyncio.run_coroutine_threadsafe(wait(), self._loop).result()

    def close(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)


def _forever(loop: asyncio.AbstractEventLoop) -> None:
    import asyncio

    try:
        loop.run_forever()
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def call_function(loop: PluginLoop, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """Call a function and await its result; unknown `named` arguments are dropped."""
    result = function(*args, **accepted_arguments(function, named, len(args)))
    return loop.run(result) if inspect.isawaitable(result) else result


def accepted_arguments(
    function: Callable[..., Any], named: Mapping[str, Any], positional: int
) -> dict[str, Any]:
    """Return the `named` arguments that the function accepts besides the first `positional`
    ones."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return {}
    ordered = [each for each in parameters if each.kind is not each.KEYWORD_ONLY]
    left = dict(named)
    for each in ordered[:positional]:
        left.pop(each.name, None)
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return left
    kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    own = {each.name for each in parameters if each.kind in kinds}
    return {name: value for name, value in left.items() if name in own}
