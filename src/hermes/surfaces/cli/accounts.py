"""The accounts of a home for commands, and the terminal prompts of a login."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

import click

from hermes.config.secrets import process_environment
from hermes.credentials.accounts import Accounts, open_accounts
from hermes.surfaces.cli.interruptible import run
from hermes.surfaces.cli.place import config_of
from hermes.surfaces.cli.style import apply_style

T = TypeVar("T")


def with_accounts(ctx: click.Context, work: Callable[[Accounts], Coroutine[Any, Any, T]]) -> T:
    """Await `work` with the accounts of the home."""

    async def whole() -> T:
        async with open_accounts(config_of(ctx), env=process_environment()) as accounts:
            return await work(accounts)

    return run(whole())


class TerminalScreen:
    """Prints the login URL, and opens a browser if there is one."""

    def __init__(self, *, browser: bool) -> None:
        self._browser = browser and _has_browser(process_environment())

    def show_code(self, url: str, code: str, *, whole_url: str, seconds: float) -> None:
        print(f"Open  {apply_style(whole_url or url, 'bold')}")
        print(f"and {'check' if whole_url else 'type in'} the code  {apply_style(code, 'bold')}")
        print(f"Waiting for up to {max(1, round(seconds / 60))} min; Ctrl+C stops.", flush=True)
        self._open(whole_url or url)

    def show_page(self, url: str, *, paste: bool) -> None:
        print(f"Open  {apply_style(url, 'bold')}")
        if paste:
            print("If the browser does not return here, paste the code that it shows:")
        sys.stdout.flush()
        self._open(url)

    async def pasted(self) -> str:
        """A line of stdin. Not read in a thread, which could not be cancelled when the browser
        returns first."""
        loop = asyncio.get_running_loop()
        line: asyncio.Future[str] = loop.create_future()

        def read() -> None:
            text = sys.stdin.readline()
            if text.strip() and not line.done():
                line.set_result(text)
            elif not text:
                loop.remove_reader(sys.stdin)

        try:
            loop.add_reader(sys.stdin, read)
        except (OSError, ValueError):
            return await line
        try:
            return await line
        finally:
            loop.remove_reader(sys.stdin)

    def _open(self, url: str) -> None:
        if self._browser:
            import webbrowser

            webbrowser.open(url)


def _has_browser(env: Mapping[str, str]) -> bool:
    """False over a remote shell, and where only a text browser could open."""
    if env.get("SSH_CONNECTION") or env.get("SSH_TTY"):
        return False
    return sys.platform == "darwin" or bool(env.get("DISPLAY") or env.get("WAYLAND_DISPLAY"))
