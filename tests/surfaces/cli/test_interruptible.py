"""Ctrl+C is heard whenever it comes."""

from __future__ import annotations

import asyncio
import signal

import pytest

from hermes.surfaces.cli.command_context import run


def test_a_signal_wakes_the_loop_even_if_it_comes_just_before_it_sleeps() -> None:
    async def listening() -> int:
        # What the system writes to at each signal; -1 is nothing.
        descriptor = signal.set_wakeup_fd(-1)
        signal.set_wakeup_fd(descriptor)
        return descriptor

    assert run(listening()) != -1
    assert signal.set_wakeup_fd(-1) == -1


def test_an_interrupted_command_ends_its_work_and_says_so() -> None:
    ended = []

    async def work() -> None:
        asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGINT)
        try:
            await asyncio.sleep(3_600)
        finally:
            ended.append(True)

    with pytest.raises(KeyboardInterrupt):
        run(work())
    assert ended == [True]


async def test_work_may_be_run_by_another_thread() -> None:
    async def answer() -> int:
        return 42

    assert await asyncio.to_thread(lambda: run(answer())) == 42
