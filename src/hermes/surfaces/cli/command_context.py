"""The home, settings, colours and event loop of a command."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Coroutine, Iterable
from typing import Any, Literal, TextIO, TypeVar

import click

from hermes.config.diagnostics import Diagnostic, Level
from hermes.config.environment import process_environment
from hermes.config.home import Home, resolve_home
from hermes.config.layers import flag_values
from hermes.config.load import Config, load

Role = Literal["ok", "warn", "error", "dim", "bold"]

_CODES: dict[Role, str] = {"ok": "32", "warn": "33", "error": "31", "dim": "2", "bold": "1"}


def apply_style(text: str, role: Role, to: TextIO | None = None) -> str:
    """The text in the colour of its role if the stream (stdout) is a terminal that shows colours;
    NO_COLOR and TERM=dumb are respected."""
    return f"\x1b[{_CODES[role]}m{text}\x1b[0m" if has_colours(to or sys.stdout) else text


def mark(level: Level) -> str:
    """The sign in front of a finding."""
    return apply_style({"ok": "✓", "warn": "⚠", "error": "✗"}[level], level)


def has_colours(stream: TextIO) -> bool:
    if not stream.isatty():
        return False
    env = process_environment()
    return not env.get("NO_COLOR") and env.get("TERM") != "dumb"


T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`, which misses a signal that arrives just before its loop sleeps."""
    return asyncio.run(_awake(work))


async def _awake(work: Coroutine[Any, Any, T]) -> T:
    # A loop with one signal handler is woken by every signal. Handlers need the main thread, and
    # not every system has them.
    with contextlib.suppress(NotImplementedError, RuntimeError):
        asyncio.get_running_loop().add_signal_handler(signal.SIGCONT, lambda: None)
    return await work


FAULTS_SHOWN = "hermes.faults_told"


def home_of(ctx: click.Context) -> Home:
    return resolve_home(process_environment(), profile=_options(ctx).get("profile"))


def config_of(ctx: click.Context, *, tell: bool = True) -> Config:
    """Prints errors of the files, unless `tell` is false."""
    given = _options(ctx)
    use_file = not given.get("ignore_config")
    config = load(home_of(ctx), flags=flag_values(given), use_file=use_file)
    if tell:
        warn_about_faults(ctx, config.diagnostics)
    return config


def warn_about_faults(ctx: click.Context, findings: Iterable[Diagnostic]) -> None:
    """Warn about settings that cannot be read, once per run."""
    if ctx.meta.setdefault(FAULTS_SHOWN, False):
        return
    ctx.meta[FAULTS_SHOWN] = True
    sign = apply_style("warning:", "warn", to=sys.stderr)
    for finding in findings:
        if finding.level == "error":
            print(f"{sign} {finding.text}; {finding.fix}.", file=sys.stderr)


def _options(ctx: click.Context) -> dict[str, Any]:
    return ctx.find_root().obj or {}
