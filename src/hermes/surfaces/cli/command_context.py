"""What a command works with: home, settings, colours, event loop, and the App or a part of it."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Literal, TextIO, TypeVar, overload

import click

from hermes.codec.values import Value
from hermes.config.diagnostics import Diagnostic, Level
from hermes.config.environment import process_environment
from hermes.config.home import Home, resolve_home
from hermes.config.layers import flag_values
from hermes.config.load import Config, load

if TYPE_CHECKING:
    from hermes.app.app import App

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


def load_command(location: str) -> click.Command:
    """Import a command: `module:name`; a module without a package is in `commands`."""
    module, _, name = location.partition(":")
    package = "" if "." in module else "hermes.surfaces.cli.commands."
    command: click.Command = load_name(f"{package}{module}:{name}")
    return command


def load_name(location: str) -> Any:
    """Import `module:name`."""
    module, _, name = location.partition(":")
    return getattr(import_module(module), name)


class PickerRow(Value):
    """A row of a selection list."""

    text: str
    # The result of selecting the row.
    value: str
    # Shown after the text.
    note: str = ""
    # The row needs setup first.
    faint: bool = False


def is_terminal() -> bool:
    """Whether the user can be asked: both stdin and stdout are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


S = TypeVar("S")
T = TypeVar("T")
U = TypeVar("U")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run work like `asyncio.run`, but do not miss a signal that arrives just before the loop
    sleeps."""

    async def run_with_handler() -> T:
        # A loop with one signal handler is woken by every signal. Handlers need the main thread,
        # and not every system has them.
        with suppress(NotImplementedError, RuntimeError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGCONT, lambda: None)
        return await work

    return asyncio.run(run_with_handler())


class Opener(Generic[S]):
    """Opens what commands work on, such as the App, for the time of one call. The call passes it to
    a function and returns the result, which is awaited if it is a coroutine."""

    def __init__(self, open_: Callable[[click.Context], AbstractAsyncContextManager[S]]) -> None:
        self._open = open_

    @overload
    def __call__(self, ctx: click.Context, work: Callable[[S], Coroutine[Any, Any, T]]) -> T: ...

    @overload
    def __call__(self, ctx: click.Context, work: Callable[[S], T]) -> T: ...

    def __call__(self, ctx: click.Context, work: Callable[[S], Any]) -> Any:
        async def call() -> Any:
            async with self._open(ctx) as subject:
                result = work(subject)
                return await result if isinstance(result, Coroutine) else result

        return run(call())

    def part(self, select: Callable[[S], U]) -> Opener[U]:
        """An opener of a part of this."""

        @asynccontextmanager
        async def open_part(ctx: click.Context) -> AsyncIterator[U]:
            async with self._open(ctx) as subject:
                yield select(subject)

        return Opener(open_part)


@Opener
@asynccontextmanager
async def with_app(ctx: click.Context) -> AsyncIterator[App]:
    """The App that the global options describe."""
    from hermes.app.start import start

    async with start(options_of(ctx)) as app:
        warn_about_faults(ctx, app.context.config.diagnostics)
        yield app


with_archive = with_app.part(lambda app: app.archive)


FAULTS_SHOWN = "hermes.faults_shown"


def home_of(ctx: click.Context) -> Home:
    return resolve_home(process_environment(), profile=options_of(ctx).get("profile"))


def config_of(ctx: click.Context, *, quiet: bool = False) -> Config:
    """Load the settings. Unless `quiet`, print errors of the files, and raise InvalidConfig if
    config.yaml cannot be read."""
    options = options_of(ctx)
    use_file = not options.get("ignore_config")
    config = load(home_of(ctx), flags=flag_values(options), use_file=use_file)
    if not quiet:
        config.refuse_unreadable()
        warn_about_faults(ctx, config.diagnostics)
    return config


def warn_about_faults(ctx: click.Context, findings: Iterable[Diagnostic]) -> None:
    """Warn about settings that cannot be read, once per run."""
    if ctx.meta.get(FAULTS_SHOWN):
        return
    ctx.meta[FAULTS_SHOWN] = True
    for finding in findings:
        if finding.level == "error":
            warn(f"{finding.text}; {finding.fix}.")


def warn(text: str, level: Level = "warn") -> None:
    word = apply_style("error:" if level == "error" else "warning:", level, to=sys.stderr)
    print(f"{word} {text}", file=sys.stderr)


def options_of(ctx: click.Context) -> dict[str, Any]:
    """The global options. Before the command starts, only their parsed form exists."""
    root = ctx.find_root()
    return root.obj or root.params
