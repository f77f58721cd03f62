"""Starts and ends a chat: the prompt appears at once, the rest loads in the background."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from hermes.commands.formatting import short_path
from hermes.config.environment import env_flag, process_environment
from hermes.config.home import Home, resolve_home
from hermes.core.errors import describe_shortage
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
    folder = cut(f" · {short_path(cwd)}", width - len(name) - 1) if width >= COMPACT_WIDTH else ""
    return paint(name, "bold") + paint(folder, "dim")


# How long a terminal may be narrower before it reports it.
LAG_SECONDS = 0.02
# tmux reports the first resize at once and later ones with a delay.
TMUX_LAG_SECONDS = 0.2
CONVERSATION = "hermes.surfaces.cli.chat.conversation"
NEEDS_TERMINAL = (
    'A chat needs a terminal; for one answer, use `hermes -z "…"` or `hermes chat -q "…" < file`.'
)
ENDINGS = {signal.SIGHUP: "terminal_closed", signal.SIGTERM: "terminated"}


def run_chat(options: Mapping[str, Any]) -> int:
    """The exit code."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print(NEEDS_TERMINAL, file=sys.stderr)
        return 2
    ask_before_session(options)
    return asyncio.run(_run(options))


async def _run(options: Mapping[str, Any]) -> int:
    asyncio.get_running_loop().set_exception_handler(_handle_loop_error)
    env = process_environment()
    state = ChatState(time.monotonic)
    home = resolve_home(env, profile=options.get("profile"))
    state.screen = screen = _screen(env, state, home)
    if not env_flag(env, "HERMES_QUIET"):
        screen.show(greeting(str(Path.cwd()), screen.paint, screen.width))
    ended_by = _leave_on_signals(state)
    typing = asyncio.create_task(screen.run())
    try:
        farewell = await _converse(options, state, screen)
    finally:
        screen.close()
        await typing
    if farewell:
        screen.show(f"\n{farewell}")
    return 128 + ended_by[0] if ended_by else 0


def _handle_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error in a callback, unless memory or the like is short: then the chat ends with one
    line, and logging would fail as well."""
    error = context.get("exception")
    if not (isinstance(error, Exception) and describe_shortage(error)):
        loop.default_exception_handler(context)


async def _converse(options: Mapping[str, Any], state: ChatState, screen: ChatScreen) -> str:
    """The closing text; empty when the user quit before there was a session."""

    async def load_and_run() -> str:
        # In a thread, so that the prompt stays responsive while modules load.
        module = await asyncio.to_thread(import_module, CONVERSATION)
        farewell: str = await module.run_session(options, state, screen)
        return farewell

    work = asyncio.create_task(load_and_run())
    leaving = asyncio.create_task(state.left.wait())
    await asyncio.wait((work, leaving), return_when=asyncio.FIRST_COMPLETED)
    leaving.cancel()
    if not work.done() and state.view is None:
        work.cancel()
        await asyncio.wait((work,))
        return ""
    return await work


def _screen(env: Mapping[str, str], state: ChatState, home: Home) -> ChatScreen:
    term = env.get("TERM", "")
    if term in ("", "dumb", "unknown"):
        return PlainScreen(state, sys.stdin, sys.stdout)
    lag_seconds: float | None = TMUX_LAG_SECONDS if "TMUX" in env else LAG_SECONDS
    if "TMUX" not in env and ("XTERM_VERSION" in env or term.startswith(("linux", "screen"))):
        # These do not reflow rows.
        lag_seconds = None
    pastes = Pastes(home)
    return PromptScreen(
        sys.stdout,
        term=term,
        lag_seconds=lag_seconds,
        paint=Paint(colours=not env.get("NO_COLOR")),
        state=state,
        history=PrivateHistory(home, pastes),
        pastes=pastes,
        clock=time.monotonic,
    )


def _leave_on_signals(state: ChatState) -> list[int]:
    """A list that receives the signal that ended the chat."""
    ended_by: list[int] = []
    loop = asyncio.get_running_loop()

    def leave(number: signal.Signals) -> None:
        ended_by.append(number)
        state.reason = ENDINGS[number]
        state.leave()

    for number in ENDINGS:
        loop.add_signal_handler(number, leave, number)
    # While it runs, the prompt handles Ctrl+C itself.
    loop.add_signal_handler(signal.SIGINT, state.interrupt)
    return ended_by
