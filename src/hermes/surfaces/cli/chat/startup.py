"""Starts and ends a chat: the prompt appears at once, the rest loads in the background."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from hermes.commands.formatting import short_path
from hermes.config.environment import env_flag, process_environment
from hermes.config.home import Home, resolve_home
from hermes.surfaces.cli.chat.cells import cut
from hermes.surfaces.cli.chat.chat_state import ChatState
from hermes.surfaces.cli.chat.keys import Pastes
from hermes.surfaces.cli.chat.prompt import PrivateHistory, PromptScreen
from hermes.surfaces.cli.chat.screen import ChatScreen, Paint, PlainScreen
from hermes.surfaces.cli.hook_consent import ask_before_session
from hermes.version import __version__

COMPACT_WIDTH = 80


def greeting(cwd: str, paint: Paint, width: int) -> str:
    name = f"⚕ Hermes {__version__}"
    place = cut(f" · {short_path(cwd)}", width - len(name) - 1) if width >= COMPACT_WIDTH else ""
    return paint(name, "bold") + paint(place, "dim")


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


RunSession = Callable[[Mapping[str, Any], ChatState, ChatScreen], Awaitable[str]]


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
    run_session = await asyncio.to_thread(_load_session)
    return await run_session(options, desk, screen)


def _load_session() -> RunSession:
    from hermes.surfaces.cli.chat.session_start import run_session

    return run_session


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


NEEDS_TERMINAL = (
    'A chat needs a terminal. For one answer: hermes -z "…", or hermes chat -q "…" < file'
)


def run_chat(options: Mapping[str, Any]) -> int:
    """The exit code."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print(NEEDS_TERMINAL, file=sys.stderr)
        return 2
    return run_terminal_chat(options)
