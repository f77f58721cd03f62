"""`hermes gateway`: runs the gateway, shows its state, and manages its service."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

import click

from hermes.config.environment import in_gateway, process_environment
from hermes.config.home import Home
from hermes.core.errors import ConfigError, HermesError, UsageError
from hermes.surfaces.gateway.command_line import config_of, home_of, json_option, print_result
from hermes.surfaces.gateway.locks import (
    GatewayProcess,
    end_process,
    parent_ids,
    running_process,
    send_signal,
)
from hermes.surfaces.gateway.manifests import enabled_platforms
from hermes.surfaces.gateway.services import Service, find_service, service_spec
from hermes.surfaces.gateway.status import (
    GatewayStatus,
    all_statuses,
    describe,
    describe_platform,
    gateway_status,
)

STOPPED_CODE = 3
STOP_RESERVE_SECONDS = 10.0
SELF = (
    "This command would stop the gateway that it runs in; the owner can run it in a terminal, or "
    "use /restart in a chat."
)

system_option = click.option("--system", is_flag=True, help="Use the service of the system.")


@click.group(
    help="Connect messaging platforms; without a command, run in the foreground.",
    invoke_without_command=True,
)
@click.pass_context
def command(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        ctx.invoke(run)


@command.command(help="Run the gateway in the foreground.")
@click.option("-v", "--verbose", count=True, help="Log to stderr; twice for details.")
@click.option("-q", "--quiet", is_flag=True, help="Print only errors.")
@click.option("--replace", is_flag=True, help="Stop the running gateway of this profile first.")
@click.option("--force", is_flag=True, help="Run although a service runs this profile.")
@click.option("--accept-hooks", is_flag=True, help="Run configured hooks without asking first.")
@click.pass_context
def run(ctx: click.Context, /, **flags: Any) -> None:
    if flags["verbose"] and flags["quiet"]:
        raise UsageError("--verbose and --quiet exclude each other.")
    config = config_of(ctx)
    if not flags["force"] and (service := _active_service(config.home)) is not None:
        raise ConfigError(
            f"A service runs this gateway ({service.path}); use `hermes gateway restart`, or "
            "`hermes gateway run --force`."
        )
    # The process loads only for this command.
    from hermes.surfaces.gateway.process import run_process

    options = {**(ctx.find_root().obj or {})}
    options["accept_hooks"] = options.get("accept_hooks") or flags["accept_hooks"]
    ctx.exit(run_process(config, options, flags))


@command.command(help="Show the gateway of this profile and its platforms.")
@json_option
@click.pass_context
def status(ctx: click.Context, as_json: bool) -> None:
    config_of(ctx)
    found = gateway_status(home_of(ctx), time.time())
    print_result(found, _status_lines(found), as_json=as_json)
    ctx.exit(0 if found.running else STOPPED_CODE)


def _status_lines(status: GatewayStatus) -> Iterator[str]:
    yield f"Gateway: {describe(status)}"
    if status.running:
        yield f"Version: {status.version}"
        yield f"Running turns: {status.running_turns}"
        if status.scheduler_age_seconds is not None:
            yield f"Scheduler: seen {status.scheduler_age_seconds:.0f} s ago"
    for name, state in status.platforms.items():
        yield f"  {name:<14} {describe_platform(state)}"
    for name in status.dead_tasks:
        yield f"  The background task {name} was given up; `hermes gateway restart` starts it."


@command.command("list", help="Show the gateways of all profiles.")
@json_option
@click.pass_context
def list_(ctx: click.Context, as_json: bool) -> None:
    config_of(ctx)
    found = all_statuses(home_of(ctx), time.time())
    lines = [f"{each.profile:<20} {describe(each)}" for each in found]
    print_result(found, lines, as_json=as_json)


@command.command(help="Log in to the platforms (default: all that are configured).")
@click.argument("platform", required=False)
@json_option
@click.pass_context
def test(ctx: click.Context, platform: str | None, as_json: bool) -> None:
    from hermes.surfaces.gateway.setup import check_platform

    config = config_of(ctx)
    enabled = enabled_platforms(config, process_environment())
    names = [platform] if platform else [each.manifest.name for each in enabled]
    if not names:
        raise ConfigError("No platform is configured; run `hermes gateway setup`.")
    rows = []
    for name in names:
        try:
            account = asyncio.run(check_platform(ctx.find_root().obj or {}, name))
            rows.append({"platform": name, "ok": True, "account": account, "error": ""})
        except HermesError as error:
            rows.append({"platform": name, "ok": False, "account": "", "error": str(error)})
    lines = [f"{'✓' if row['ok'] else '✗'} {row['platform']:<14} {_told(row)}" for row in rows]
    print_result(rows, lines, as_json=as_json)
    ctx.exit(0 if all(row["ok"] for row in rows) else 1)


def _told(row: dict[str, object]) -> str:
    return f"connected as {row['account']}" if row["ok"] else str(row["error"])


@command.command(help="Set up a platform step by step.")
@click.argument("platform", required=False)
@click.pass_context
def setup(ctx: click.Context, platform: str | None) -> None:
    from hermes.surfaces.gateway.setup import run_setup

    config_of(ctx)
    run_setup(ctx.find_root().obj or {}, home_of(ctx), platform or "")


@command.command(help="Install a service that keeps the gateway running.")
@click.option("--force", is_flag=True, help="Write the service file although it is current.")
@system_option
@click.option("--run-as-user", metavar="USER", default="", help="Account for a system service.")
@click.option("--start-now/--no-start-now", default=True, help="Start it now.")
@click.option("--start-on-login/--no-start-on-login", default=True, help="Start it at every login.")
@click.pass_context
def install(
    ctx: click.Context,
    force: bool,
    system: bool,
    run_as_user: str,
    start_now: bool,
    start_on_login: bool,
) -> None:
    if system and (os.geteuid() != 0 or not run_as_user):
        raise UsageError("A system service needs root and --run-as-user USER.")
    if run_as_user and not system:
        raise UsageError("--run-as-user needs --system.")
    service = _service(ctx, is_system=system, run_as_user=run_as_user)
    was_current = service.is_current
    if was_current and not force:
        click.echo(f"{service.path} is installed and current.")
    else:
        service.install(at_login=start_on_login)
        click.echo(f"{service.path} is written.")
    if start_now:
        service.restart() if service.is_active() and not was_current else service.start()
        click.echo("The gateway is started; `hermes gateway status` shows its platforms.")
    if not system and sys.platform == "linux":
        click.echo("To keep it running after you log out: `loginctl enable-linger $USER`.")
    if _service(ctx, is_system=not system).is_installed:
        click.echo(
            "warning: there is a user service and a system service; remove one of them.", err=True
        )


@command.command(help="Stop and remove the service.")
@system_option
@click.pass_context
def uninstall(ctx: click.Context, system: bool) -> None:
    _refuse_inside(home_of(ctx))
    service = _service(ctx, is_system=system)
    service.uninstall()
    click.echo(f"{service.path} is removed.")


@command.command(help="Start the service.")
@system_option
@click.pass_context
def start(ctx: click.Context, system: bool) -> None:
    _service(ctx, is_system=system).start()
    click.echo("The gateway is started.")


@command.command(help="Stop the gateway.")
@system_option
@click.pass_context
def stop(ctx: click.Context, system: bool) -> None:
    home = home_of(ctx)
    process = _refuse_inside(home)
    if (service := _installed_service(ctx, is_system=system)) is not None and service.is_active():
        service.stop()
    elif process is not None:
        drain = config_of(ctx).settings.gateway.restart_drain_timeout
        end_process(process, drain + STOP_RESERVE_SECONDS)
    else:
        config_of(ctx)
        raise ConfigError("The gateway is not running; `hermes gateway status` shows its state.")
    click.echo("The gateway is stopped.")


@command.command(help="Restart the gateway.")
@system_option
@click.pass_context
def restart(ctx: click.Context, system: bool) -> None:
    process = _refuse_inside(home_of(ctx))
    service = _installed_service(ctx, is_system=system)
    if service is not None and (service.is_active() or process is None):
        service.restart()
    elif process is not None:
        send_signal(process, signal.SIGUSR1)
    else:
        config_of(ctx)
        raise ConfigError("The gateway is not running; start it with `hermes gateway run`.")
    click.echo("The gateway restarts.")


def _refuse_inside(home: Home) -> GatewayProcess | None:
    """The running gateway. Raises UsageError in a command that the agent runs: it would end
    itself."""
    process = running_process(home)
    is_child = process is not None and process.pid in parent_ids(os.getppid())
    if is_child or in_gateway(process_environment()):
        raise UsageError(SELF)
    return process


def _service(ctx: click.Context, *, is_system: bool, run_as_user: str = "") -> Service:
    config = config_of(ctx)
    settings, env = config.settings.gateway, process_environment()
    spec = service_spec(
        config.home,
        env,
        drain_seconds=settings.restart_drain_timeout,
        watchdog_seconds=settings.systemd_watchdog_seconds,
        run_as_user=run_as_user,
    )
    return find_service(spec, env, is_system=is_system)


def _installed_service(ctx: click.Context, *, is_system: bool) -> Service | None:
    try:
        service = _service(ctx, is_system=is_system)
    except ConfigError:
        return None
    return service if service.is_installed else None


def _active_service(home: Home) -> Service | None:
    """The service that runs this home, unless this is its process."""
    env = process_environment()
    try:
        spec = service_spec(home, env)
        found = [find_service(spec, env, is_system=each) for each in (False, True)]
    except (ConfigError, UsageError):
        return None
    running = running_process(home)
    if running is None:
        return None
    return next((each for each in found if each.is_installed and each.is_active()), None)
