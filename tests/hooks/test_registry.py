"""The registry: names, order, copies, and callbacks that do what they should not."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.errors import NotFound
from hermes.hooks.registry import Hooks
from hermes.hooks.session import contexts, first_text, verdict

HOOK = "pre_tool_call"


async def test_low_priorities_come_first_and_equals_in_the_order_they_came() -> None:
    hooks = Hooks()
    for name, priority in (("a", 100), ("b", 10), ("c", 100), ("d", 10)):
        hooks.add(HOOK, lambda name=name, **_: name, owner=name, priority=priority)
    assert await hooks.fire(HOOK) == ("b", "d", "a", "c")


async def test_plain_functions_coroutines_and_objects_are_all_called_with_names() -> None:
    class Thing:
        async def __call__(self, **kw: object) -> object:
            return kw

    async def coroutine(**kw: object) -> object:
        return kw

    def later(**kw: object) -> object:
        return coroutine(**kw)

    hooks = Hooks()
    for callback in (dict, coroutine, Thing(), later):
        hooks.add(HOOK, callback, owner="me")
    assert await hooks.fire(HOOK, x=1) == ({"x": 1},) * 4


def test_an_unknown_hook_is_refused_with_names_that_are_near() -> None:
    with pytest.raises(NotFound, match="did you mean pre_tool_call") as refused:
        Hooks().add("pre_tool_cal", print, owner="me")
    assert refused.value.near[0] == "pre_tool_call"
    with pytest.raises(NotFound, match=r"docs/hooks\.md"):
        Hooks().add("zzz", print, owner="me")


async def test_an_owner_takes_back_all_that_it_added_and_nothing_else() -> None:
    hooks = Hooks()
    hooks.add(HOOK, lambda **_: 1, owner="a")
    hooks.add(HOOK, lambda **_: 2, owner="b")
    hooks.add("on_session_end", lambda **_: 3, owner="a")
    hooks.remove("a")
    assert await hooks.fire(HOOK) == (2,)
    assert (hooks.has(HOOK), hooks.has("on_session_end"), hooks.has()) == (True, False, True)
    hooks.remove("b")
    assert not hooks.has()


async def test_what_one_callback_does_to_its_arguments_nobody_else_sees() -> None:
    def spoil(args: dict[str, Any], **_: object) -> None:
        args["inner"]["x"] = "spoilt"

    hooks, args = Hooks(), {"inner": {"x": "fine"}}
    hooks.add(HOOK, spoil, owner="a")
    hooks.add(HOOK, lambda args, **_: args, owner="b")
    assert await hooks.fire(HOOK, args=args) == ({"inner": {"x": "fine"}},)
    assert args == {"inner": {"x": "fine"}}


def _raises(error: BaseException) -> Any:
    def callback(**_: object) -> None:
        raise error

    return callback


def _fails(error: BaseException) -> Any:
    async def callback(**_: object) -> None:
        raise error

    return callback


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(1), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("made", [_raises, _fails])
async def test_a_callback_that_raises_is_logged_and_the_others_go_on(
    error: BaseException, made: Any, caplog: pytest.LogCaptureFixture
) -> None:
    hooks = Hooks()
    hooks.add(HOOK, made(error), owner="bad")
    hooks.add(HOOK, lambda **_: "fine", owner="good")
    with caplog.at_level(logging.WARNING):
        assert await hooks.fire(HOOK) == ("fine",)
    assert [record.message for record in caplog.records] == ["hook failed"]


async def test_callbacks_that_stop_iterations_or_cancel_themselves_only_fail() -> None:
    hooks = Hooks()
    hooks.add(HOOK, _raises(StopIteration()), owner="a")
    hooks.add(HOOK, _fails(asyncio.CancelledError()), owner="b")
    assert await hooks.fire(HOOK) == ()


async def test_a_callback_that_hangs_is_left_behind() -> None:
    over = threading.Event()

    def hang(**_: object) -> None:
        over.wait(60)

    async def stubborn(**_: object) -> None:
        while not over.is_set():
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue

    hooks = Hooks()
    hooks.add(HOOK, hang, owner="a", timeout=0.05)
    hooks.add(HOOK, stubborn, owner="b", timeout=0.05)
    hooks.add(HOOK, lambda **_: "fine", owner="c")
    began = time.monotonic()
    assert await hooks.fire(HOOK) == ("fine",)
    assert time.monotonic() - began < 30
    over.set()
    for task in tuple(hooks._abandoned):
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_with_fail_closed_a_failure_blocks() -> None:
    hooks = Hooks()
    hooks.add(HOOK, _raises(ValueError("x")), owner="guard", fail_closed=True)
    over = threading.Event()
    hooks.add(HOOK, lambda **_: over.wait(60), owner="slow", timeout=0.01, fail_closed=True)
    first, second = await hooks.fire(HOOK)
    over.set()
    assert first == {
        "action": "block",
        "message": "The check by guard failed; the call is not run without it.",
    }
    assert "slow" in str(second)


async def test_whoever_fires_can_be_cancelled() -> None:
    hooks = Hooks(timeout=0)
    begun = asyncio.Event()

    async def wait(**_: object) -> None:
        begun.set()
        await asyncio.sleep(600)

    hooks.add(HOOK, wait, owner="a")
    task = asyncio.ensure_future(hooks.fire(HOOK))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(("action", "message", "args", "context", "rule_key", 1)),
            inner,
            max_size=4,
        )
    ),
    max_leaves=6,
)


@given(st.lists(ANYTHING, max_size=4))
def test_no_answer_is_too_strange_to_be_read(answers: list[object]) -> None:
    found = tuple(answers)
    verdict(found)
    assert "" not in contexts(found)
    assert first_text("transform_tool_result", found) != ""
