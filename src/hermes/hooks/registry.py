"""The catalogue of hooks and the registry of their callbacks."""

from __future__ import annotations

import asyncio
import contextvars
import copy
import difflib
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Any, NamedTuple, cast

from hermes.codec.values import Value
from hermes.core.errors import NotFound


class Hook(Value):
    """`returns` says what a return value may do, "" for observers. `fired` is False while the
    feature is not implemented."""

    name: str
    when: str
    returns: str = ""
    fired: bool = True


HOOKS: dict[str, Hook] = {
    hook.name: hook
    for hook in (
        Hook(name="on_session_start", when="the first turn of a new session begins"),
        Hook(name="pre_llm_call", when="a turn begins", returns="context for the model"),
        Hook(name="pre_api_request", when="a request to a model is about to be made"),
        Hook(name="post_api_request", when="a model has replied"),
        Hook(name="api_request_error", when="a request to a model has failed"),
        Hook(name="pre_tool_call", when="a tool is about to run", returns="block, approve, modify"),
        Hook(name="post_tool_call", when="a tool call has finished"),
        Hook(
            name="transform_tool_result", when="a tool call has finished", returns="another result"
        ),
        Hook(
            name="transform_terminal_output",
            when="a foreground command has ended",
            returns="another output",
        ),
        Hook(
            name="transform_llm_output",
            when="the final answer of a turn is ready",
            returns="another answer",
        ),
        Hook(name="post_llm_call", when="a turn has ended with an answer"),
        Hook(name="on_session_end", when="a turn has ended for any reason"),
        Hook(name="on_session_finalize", when="a session is over"),
        Hook(name="on_session_reset", when="a session has replaced another"),
        Hook(name="on_session_compress", when="a conversation was compacted"),
        Hook(name="pre_approval_request", when="a person is asked for approval"),
        Hook(name="post_approval_response", when="an approval was answered or timed out"),
        Hook(name="subagent_start", when="a child session begins", fired=False),
        Hook(name="subagent_stop", when="a child session has ended", fired=False),
        Hook(name="plan_created", when="a plan was created", fired=False),
        Hook(name="plan_step_start", when="a step of a plan begins", fired=False),
        Hook(name="plan_step_end", when="a step of a plan has ended", fired=False),
        Hook(
            name="pre_gateway_dispatch",
            when="a chat message has arrived",
            returns="skip, rewrite",
            fired=False,
        ),
        Hook(name="pre_cron_run", when="a job is about to run", returns="skip", fired=False),
        Hook(name="post_cron_run", when="a job has run", fired=False),
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
    """`timeout` is the default for callbacks; 0 means none."""

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
        """Adds a callback, called with keyword arguments, lowest `priority` first, then in order
        of registration. With `fail_closed`, a `pre_tool_call` that fails or times out blocks the
        call. NotFound for an unknown hook."""
        if hook not in HOOKS:
            near = tuple(difflib.get_close_matches(hook, HOOKS, n=3, cutoff=0.5))
            hint = f"did you mean {' or '.join(near)}?" if near else "docs/hooks.md lists them."
            raise NotFound(f"There is no hook {hook!r}; {hint}", near)
        added = HookCallback(hook, callback, owner, priority, timeout, fail_closed)
        self._added[hook] = sorted((*self._added.get(hook, ()), added), key=lambda a: a.priority)

    def remove(self, owner: str) -> None:
        """Removes all callbacks of an owner."""
        for hook, added in tuple(self._added.items()):
            remaining = [each for each in added if each.owner != owner]
            if remaining:
                self._added[hook] = remaining
            else:
                del self._added[hook]

    def has(self, *hooks: str) -> bool:
        """Returns whether one of these hooks, or any hook, has callbacks."""
        return any(hook in self._added for hook in hooks) if hooks else bool(self._added)

    async def fire(self, hook: str, **payload: Any) -> tuple[object, ...]:
        """Returns the results of the callbacks, in order, without None. Each gets a copy of
        lists and dicts. Failures are logged; a failed `fail_closed` callback counts as a block."""
        return tuple(answer for _, answer in await self.fire_with_owner(hook, **payload))

    async def fire_with_owner(self, hook: str, **payload: Any) -> tuple[tuple[str, object], ...]:
        """Like `fire`, with the owner of each result."""
        answers = []
        for added in tuple(self._added.get(hook, ())):
            answer = await self._call(added, payload)
            if answer is not None:
                answers.append((added.owner, answer))
        return tuple(answers)

    async def _call(self, added: HookCallback, payload: Mapping[str, object]) -> object:
        seconds = self._timeout if added.timeout is None else added.timeout
        given = {name: _copy(value) for name, value in payload.items()}
        task = asyncio.ensure_future(_answer(partial(added.callback, **given)))
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
                await self._give_up(task)
        log.warning("hook failed", extra={"hook": added.hook, "owner": added.owner, "why": why})
        return {"action": "block", "message": _closed_message(added)} if added.fail_closed else None

    async def _give_up(self, task: asyncio.Task[object]) -> None:
        task.cancel()
        await asyncio.wait((task,), timeout=GRACE_SECONDS)
        if not task.done():
            self._abandoned.add(task)
            task.add_done_callback(self._abandoned.discard)


def _closed_message(added: HookCallback) -> str:
    return f"The check by {added.owner} failed; the call is not run without it."


def _copy(value: object) -> object:
    return copy.deepcopy(value) if isinstance(value, dict | list) else value


class CallbackExit(Exception):
    """Wraps exits and interrupts raised by a callback."""


async def _answer(call: Callable[[], object]) -> object:
    """Runs a coroutine on the loop and anything else in a daemon thread, which may hang without
    blocking the process."""
    try:
        if _is_async(call):
            return await cast(Awaitable[object], call())
        answer = await _in_thread(call)
        return await answer if isinstance(answer, Coroutine) else answer
    except (SystemExit, KeyboardInterrupt) as error:
        raise CallbackExit(type(error).__name__) from error


def _is_async(call: Callable[[], object]) -> bool:
    while isinstance(call, partial):
        call = call.func
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(
        getattr(call, "__call__", None)  # noqa: B004
    )


async def _in_thread(call: Callable[[], object]) -> object:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[object] = loop.create_future()
    context = contextvars.copy_context()

    def tell(answer: object, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(answer)

    def work() -> None:
        answer: object = None
        failure: BaseException | None = None
        try:
            answer = context.run(call)
        except (StopIteration, SystemExit, KeyboardInterrupt) as error:
            # A future cannot carry these.
            failure = CallbackExit(type(error).__name__)
        except Exception as error:
            failure = error
        try:
            loop.call_soon_threadsafe(tell, answer, failure)
        except RuntimeError:
            # The loop was closed meanwhile.
            return

    threading.Thread(target=work, name="hook", daemon=True).start()
    return await future
