"""The catalogue of hooks and the registry of their callbacks."""

from __future__ import annotations

import asyncio
import copy
import difflib
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Any, NamedTuple, cast

from hermes.core.concurrency import start_daemon_thread
from hermes.core.errors import NotFound


class Hook(NamedTuple):
    """One event that callbacks can be registered for."""

    name: str
    when: str
    returns: str = ""  # what a return value may do; "" for observers
    fired: bool = True  # False while the feature is not implemented


HOOKS: dict[str, Hook] = {
    hook.name: hook
    for hook in (
        Hook("on_session_start", "the first turn of a new session begins"),
        Hook("pre_llm_call", "a turn begins", "context for the model"),
        Hook("pre_api_request", "a request to a model is about to be made"),
        Hook("post_api_request", "a model has replied"),
        Hook("api_request_error", "a request to a model has failed"),
        Hook("pre_tool_call", "a tool is about to run", "block, approve, modify"),
        Hook("post_tool_call", "a tool call has finished"),
        Hook("transform_tool_result", "a tool call has finished", "another result"),
        Hook("transform_terminal_output", "a foreground command has ended", "another output"),
        Hook("transform_llm_output", "the final answer of a turn is ready", "another answer"),
        Hook("post_llm_call", "a turn has ended with an answer"),
        Hook("on_session_end", "a turn has ended for any reason"),
        Hook("on_session_finalize", "a session is over"),
        Hook("on_session_reset", "a session has replaced another"),
        Hook("on_session_compress", "a conversation was compacted"),
        Hook("pre_approval_request", "a person is asked for approval"),
        Hook("post_approval_response", "an approval was answered or timed out"),
        Hook("subagent_start", "a child session begins", fired=False),
        Hook("subagent_stop", "a child session has ended", fired=False),
        Hook("plan_created", "a plan was created", fired=False),
        Hook("plan_step_start", "a step of a plan begins", fired=False),
        Hook("plan_step_end", "a step of a plan has ended", fired=False),
        Hook("pre_gateway_dispatch", "a chat message has arrived", "skip, rewrite"),
        Hook("pre_cron_run", "a job is about to run", "skip"),
        Hook("post_cron_run", "a job has run"),
    )
}


log = logging.getLogger(__name__)

DEFAULT_SECONDS = 30.0
MOST_SECONDS = 600.0
# A callback that ignores its cancellation is abandoned after this.
GRACE_SECONDS = 0.5

Callback = Callable[..., object]


class HookCallback(NamedTuple):
    hook: str
    callback: Callback
    owner: str
    priority: int
    timeout: float | None
    fail_closed: bool


class Hooks:
    """The registered callbacks. `timeout` is the default for callbacks; 0 means none."""

    def __init__(self, *, timeout: float = DEFAULT_SECONDS) -> None:
        self._timeout = timeout
        self._added: dict[str, list[HookCallback]] = {}
        # References to abandoned tasks, so that they are not garbage-collected.
        self._abandoned: set[asyncio.Task[object]] = set()

    def add(
        self,
        hook: str,
        callback: Callback,
        *,
        owner: str,
        priority: int = 100,
        timeout: float | None = None,
        fail_closed: bool = False,
    ) -> None:
        """Add a callback, called with keyword arguments, lowest `priority` first, then in order of
        registration. With `fail_closed`, a `pre_tool_call` that fails or times out blocks the call.
        Raise NotFound for an unknown hook."""
        if hook not in HOOKS:
            near = tuple(difflib.get_close_matches(hook, HOOKS, n=3, cutoff=0.5))
            hint = f"did you mean {' or '.join(near)}?" if near else "docs/hooks.md lists them."
            raise NotFound(f"There is no hook {hook!r}; {hint}", near)
        added = HookCallback(hook, callback, owner, priority, timeout, fail_closed)
        self._added[hook] = sorted((*self._added.get(hook, ()), added), key=lambda a: a.priority)

    def remove(self, owner: str) -> None:
        """Remove all callbacks of an owner."""
        kept = {
            hook: [each for each in added if each.owner != owner]
            for hook, added in self._added.items()
        }
        self._added = {hook: added for hook, added in kept.items() if added}

    def has(self, *hooks: str) -> bool:
        """Return whether one of these hooks, or any hook, has callbacks."""
        return any(hook in self._added for hook in hooks) if hooks else bool(self._added)

    async def fire(self, hook: str, **payload: Any) -> tuple[object, ...]:
        """Return the results of the callbacks, in order, without None. Each gets a copy of lists
        and dicts. Failures are logged; a failed `fail_closed` callback counts as a block."""
        return tuple(answer for _, answer in await self.fire_with_owner(hook, **payload))

    async def fire_with_owner(self, hook: str, **payload: Any) -> tuple[tuple[str, object], ...]:
        """Fire like `fire`, with the owner of each result."""
        answers = []
        for added in tuple(self._added.get(hook, ())):
            answer = await self._call(added, payload)
            if answer is not None:
                answers.append((added.owner, answer))
        return tuple(answers)

    async def _call(self, added: HookCallback, payload: Mapping[str, object]) -> object:
        seconds = self._timeout if added.timeout is None else added.timeout
        arguments = {
            name: copy.deepcopy(value) if isinstance(value, dict | list) else value
            for name, value in payload.items()
        }
        task = asyncio.ensure_future(_answer(partial(added.callback, **arguments)))
        try:
            limit = min(seconds, MOST_SECONDS) if seconds > 0 else None
            await asyncio.wait((task,), timeout=limit)
            if task.done() and not task.cancelled():
                return task.result()
            why = "it cancelled itself" if task.done() else f"no answer within {limit:g} s"
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait((task,), timeout=GRACE_SECONDS)
                if not task.done():
                    self._abandoned.add(task)
                    task.add_done_callback(self._abandoned.discard)
        log.warning("hook failed", extra={"hook": added.hook, "owner": added.owner, "why": why})
        if not added.fail_closed:
            return None
        message = f"The check by {added.owner} failed; the call is not run without it."
        return {"action": "block", "message": message}


class CallbackExit(Exception):
    """Wraps exits and interrupts raised by a callback."""


async def _answer(call: Callable[[], object]) -> object:
    """Run a coroutine on the loop and anything else in a daemon thread, which may hang without
    blocking the process."""

    def in_thread() -> object:
        try:
            return call()
        except (StopIteration, SystemExit, KeyboardInterrupt) as error:
            # A future cannot carry these.
            raise CallbackExit(type(error).__name__) from error

    try:
        if _is_async(call):
            return await cast(Awaitable[object], call())
        answer = await asyncio.wrap_future(start_daemon_thread(in_thread))
        return await answer if isinstance(answer, Coroutine) else answer
    except (SystemExit, KeyboardInterrupt) as error:
        raise CallbackExit(type(error).__name__) from error


def _is_async(call: Callable[[], object]) -> bool:
    while isinstance(call, partial):
        call = call.func
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(
        getattr(call, "__call__", None)  # noqa: B004
    )
