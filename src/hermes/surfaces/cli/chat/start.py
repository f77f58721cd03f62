"""Starts and ends a chat: the prompt appears at once, the rest loads in the background."""

from __future__ import annotations

import asyncio
import importlib
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes.config.home import Home, resolve_home
from hermes.config.secrets import process_environment
from hermes.config.switches import env_flag
from hermes.surfaces.cli.chat.desk import ChatState
from hermes.surfaces.cli.chat.greeting import greeting
from hermes.surfaces.cli.chat.history import PrivateHistory
from hermes.surfaces.cli.chat.paint import Paint
from hermes.surfaces.cli.chat.pastes import Pastes
from hermes.surfaces.cli.chat.plain_screen import PlainScreen
from hermes.surfaces.cli.chat.prompt import PromptScreen
from hermes.surfaces.cli.chat.screen import ChatScreen
from hermes.surfaces.cli.hook_consent import ask_before_session

LAG_SECONDS = 0.02
# tmux reports the first resize at once and later ones with a delay.
TMUX_LAG_SECONDS = 0.2
ENDINGS = {signal.SIGHUP: "terminal_closed", signal.SIGTERM: "terminated"}


def run_terminal_chat(options: Mapping[str, Any]) -> int:
    """The exit code."""
    ask_before_session(options)
    return asyncio.run(_talk(options))


async def _talk(options: Mapping[str, Any]) -> int:
    env = process_environment()
    desk = ChatState(time.monotonic)
    home = resolve_home(env, profile=options.get("profile"))
    desk.screen = screen = _screen(env, desk, home)
    if not env_flag(env, "HERMES_QUIET"):
        screen.show(greeting(str(Path.cwd()), screen.paint, screen.width))
    ended_by = _leave_on_signals(desk)
    typing = asyncio.create_task(screen.run(desk))
    try:
        words = await _converse(options, desk, screen)
    finally:
        screen.close()
        await typing
    if words:
        screen.show(f"\n{words}")
    return 128 + ended_by[0] if ended_by else 0


async def _converse(options: Mapping[str, Any], desk: ChatState, screen: ChatScreen) -> str:
    """The closing text; empty when the user quit before there was a session."""
    work = asyncio.create_task(_open_and_run(options, desk, screen))
    leaving = asyncio.create_task(desk.left.wait())
    await asyncio.wait((work, leaving), return_when=asyncio.FIRST_COMPLETED)
    leaving.cancel()
    if not work.done() and desk.view is None:
        work.cancel()
        await asyncio.wait((work,))
        return ""
    return await work


async def _open_and_run(options: Mapping[str, Any], desk: ChatState, screen: ChatScreen) -> str:
    # In a thread, so that the prompt stays responsive while modules load.
    module = await asyncio.to_thread(importlib.import_module, "hermes.surfaces.cli.chat.opening")
    words: str = await module.converse(options, desk, screen)
    return words


def _screen(env: Mapping[str, str], desk: ChatState, home: Home) -> ChatScreen:
    term = env.get("TERM", "")
    if term in ("", "dumb", "unknown"):
        return PlainScreen(sys.stdin, sys.stdout)
    return PromptScreen(
        sys.stdout,
        term=term,
        lag_seconds=_lag(env),
        paint=Paint(colours=not env.get("NO_COLOR")),
        face=desk,
        history=PrivateHistory(home),
        pastes=Pastes(home),
        clock=time.monotonic,
    )


def _lag(env: Mapping[str, str]) -> float | None:
    """How long a terminal may be narrower before it reports it; None if it does not reflow rows."""
    if "TMUX" in env:
        return TMUX_LAG_SECONDS
    if "XTERM_VERSION" in env or env.get("TERM", "").startswith(("linux", "screen")):
        return None
    return LAG_SECONDS


def _leave_on_signals(desk: ChatState) -> list[int]:
    """A list that receives the signal that ended the chat."""
    ended_by: list[int] = []
    loop = asyncio.get_running_loop()

    def leave(number: signal.Signals) -> None:
        ended_by.append(number)
        desk.reason = ENDINGS[number]
        desk.leave()

    for number in ENDINGS:
        loop.add_signal_handler(number, leave, number)
    # While it runs, the prompt handles Ctrl+C itself.
    loop.add_signal_handler(signal.SIGINT, desk.interrupt)
    return ended_by
