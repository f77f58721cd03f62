"""Runs the gateway as a process: lock, logs, signals, exit codes, and starting itself again."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import click

from hermes.app.app import App
from hermes.app.start import start
from hermes.commands.formatting import sanitize
from hermes.config.environment import mark_gateway, process_environment
from hermes.config.home import Home
from hermes.config.load import Config
from hermes.config.logs import LineFormatter, LogHandlers, RepeatFilter, RotatingFile
from hermes.cron.service import CronService
from hermes.surfaces.gateway.command_line import refuse_bad_config
from hermes.surfaces.gateway.control import ChatControl
from hermes.surfaces.gateway.conversations import Conversations
from hermes.surfaces.gateway.directory import ChannelDirectory
from hermes.surfaces.gateway.job_delivery import DeliveryPorts, JobDelivery, JobScheduler
from hermes.surfaces.gateway.locks import GatewayLock
from hermes.surfaces.gateway.manifests import ConfiguredPlatform, enabled_platforms
from hermes.surfaces.gateway.pairing import PairingStore
from hermes.surfaces.gateway.pairing_command import PAIRING_SIGNAL
from hermes.surfaces.gateway.runner import Gateway, Outcome
from hermes.surfaces.gateway.services import FATAL_CODE, RESTART_CODE, SERVICE_VARIABLE
from hermes.surfaces.gateway.status import describe_platform, enabled_jobs

log = logging.getLogger(__name__)

LOG_BYTES, LOG_BACKUPS = 5_000_000, 3
INTERRUPTED_CODE = 1
NO_PLATFORM = "No platform is configured and no job is scheduled; run `hermes gateway setup`."
ONLY_JOBS = "No platform is configured; only scheduled jobs run. `hermes gateway setup` adds one."


def run_process(config: Config, options: Mapping[str, Any], flags: Mapping[str, Any]) -> int:
    """Run the gateway and return the exit code: 0 after a stop, 75 when the service is to start it
    again, 78 when nothing can be done before the settings change. Without a service, a restart
    replaces this process."""
    env = process_environment()
    platforms = tuple(enabled_platforms(config, env))
    if not platforms and not enabled_jobs(config):
        click.echo(f"error: {NO_PLATFORM}", err=True)
        return FATAL_CODE
    if not platforms:
        click.echo(ONLY_JOBS, err=True)
    mark_gateway()
    code = asyncio.run(_run(platforms, options, flags))
    if code == RESTART_CODE and env.get(SERVICE_VARIABLE) != "1":
        sys.stdout.flush()
        sys.stderr.flush()
        os.execv(sys.executable, (sys.executable, *sys.orig_argv[1:]))
    return code


async def _run(
    platforms: Sequence[ConfiguredPlatform], options: Mapping[str, Any], flags: Mapping[str, Any]
) -> int:
    async with start(options) as app:
        lock = GatewayLock(app.context.home)
        lock.acquire(tuple(sys.argv), replaces=flags["replace"])
        try:
            home = app.context.home
            with _logs(app, flags["verbose"]), _stack_dumps(home), refuse_bad_config():
                return _exit_code(await _serve(app, platforms, is_quiet=flags["quiet"]))
        finally:
            lock.release()


def _exit_code(outcome: Outcome) -> int:
    match outcome:
        case "stop":
            return 0
        case "restart":
            return RESTART_CODE
        case "nothing_connected":
            return FATAL_CODE


async def _serve(app: App, platforms: Sequence[ConfiguredPlatform], *, is_quiet: bool) -> Outcome:
    pairing = PairingStore(app.context.home, app.context.world.clock)
    chat = Conversations(app, platforms, pairing)
    directory = ChannelDirectory(app.context.home)
    by_name = {each.manifest.name: each for each in platforms}
    delivery = JobDelivery(chat, by_name, directory)
    gateway = Gateway(
        app,
        by_name,
        chat,
        pairing=pairing,
        directory=directory,
        services=[JobScheduler(app, delivery)],
        ports=DeliveryPorts(delivery, CronService(app.context, app.journal)),
        has_jobs=bool(enabled_jobs(app.context.config)),
        tell=lambda line: click.echo(sanitize(app.context.redactor.line(line)), err=True),
    )
    chat.service.control = ChatControl(gateway, app.context.config)
    systemd = SystemdNotifier(app.context.env)
    with _signals(gateway):
        outcome = await gateway.run(lambda: _report_ready(gateway, systemd, is_quiet=is_quiet))
    systemd.notify("STOPPING=1")
    if outcome == "nothing_connected":
        for name, state in gateway.state.state.platforms.items():
            click.echo(f"error: {name}: {state.error_message}", err=True)
    return outcome


def _report_ready(gateway: Gateway, systemd: SystemdNotifier, *, is_quiet: bool) -> None:
    # Loaded modules stay; a full garbage collection over them would pause all chats.
    gc.collect()
    gc.freeze()
    systemd.notify("READY=1")
    if systemd.watchdog_seconds:
        gateway.every("watchdog", systemd.watchdog_seconds / 2, systemd.beat)
    if not is_quiet:
        click.echo("The gateway is running; Ctrl+C stops it.")
        for name, state in gateway.state.state.platforms.items():
            click.echo(f"  {name:<14} {describe_platform(state)}")


@contextmanager
def _signals(gateway: Gateway) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()

    def stop() -> None:
        if gateway.is_stopping:
            # Whoever asks twice does not want to wait.
            os._exit(INTERRUPTED_CODE)
        gateway.stop()

    def reload_pairing() -> None:
        task = asyncio.ensure_future(gateway.reload_pairing())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    actions: dict[signal.Signals, Callable[[], None]] = {
        signal.SIGTERM: stop,
        signal.SIGINT: stop,
        signal.SIGUSR1: gateway.restart,
        PAIRING_SIGNAL: reload_pairing,
    }
    for number, action in actions.items():
        loop.add_signal_handler(number, action)
    try:
        yield
    finally:
        for number in actions:
            loop.remove_signal_handler(number)


@contextmanager
def _stack_dumps(home: Home) -> Iterator[None]:
    """SIGUSR2 writes the stacks of all threads to a file, also while the event loop hangs."""
    path = home.ensure_folder(home.logs) / "gateway_faulthandler.log"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a") as file:
        faulthandler.register(signal.SIGUSR2, file, all_threads=True)
        try:
            yield
        finally:
            faulthandler.unregister(signal.SIGUSR2)


@contextmanager
def _logs(app: App, verbosity: int) -> Iterator[None]:
    """`gateway.log`, and stderr with -v."""
    home = app.context.home
    path = home.logs / "gateway.log"
    file = RotatingFile(home, path, max_bytes=LOG_BYTES, backups=LOG_BACKUPS)
    file.setLevel(logging.INFO)
    handlers: list[logging.Handler] = [file]
    if verbosity:
        stderr = logging.StreamHandler()
        stderr.setLevel(logging.INFO if verbosity == 1 else logging.DEBUG)
        handlers.append(stderr)
    for handler in handlers:
        handler.setFormatter(LineFormatter(app.context.redactor.line))
        handler.addFilter(RepeatFilter())
    opened = LogHandlers(handlers)
    try:
        yield
    finally:
        opened.close()


class SystemdNotifier:
    """Tells systemd that the gateway is ready and alive, if systemd wants to know."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._address = env.get("NOTIFY_SOCKET", "")
        self.watchdog_seconds = 0.0
        with suppress(ValueError):
            self.watchdog_seconds = float(env.get("WATCHDOG_USEC", "0")) / 1e6

    async def beat(self) -> None:
        self.notify("WATCHDOG=1")

    def notify(self, text: str) -> None:
        if not self._address:
            return
        # `@` stands for an abstract socket.
        address = self._address.replace("@", "\0", 1)
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.sendto(text.encode(), address)
