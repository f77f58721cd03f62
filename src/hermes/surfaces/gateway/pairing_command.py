"""`hermes pairing`: approves and revokes people who may write to the bot."""

from __future__ import annotations

import signal

import click

from hermes.config.edit import write_settings
from hermes.config.environment import process_environment
from hermes.config.home import Home
from hermes.core.world import SystemClock
from hermes.surfaces.gateway.command_line import (
    config_of,
    home_of,
    json_option,
    print_result,
)
from hermes.surfaces.gateway.locks import running_process, send_signal
from hermes.surfaces.gateway.manifests import find_manifest
from hermes.surfaces.gateway.pairing import PairingStore

# Ignored by a process that does not handle it.
PAIRING_SIGNAL = signal.SIGURG


@click.group(help="Approve and revoke people who may write to the bot.")
def command() -> None:
    pass


@command.command("list", help="List the people who wait and those who are approved.")
@json_option
@click.pass_context
def list_(ctx: click.Context, as_json: bool) -> None:
    config_of(ctx)
    store = _store(home_of(ctx))
    pending, approved = store.pending(), store.approved()
    rows = [
        *(f"waiting   {row.platform:<12} {row.user_id:<20} {row.user_name}" for row in pending),
        *(f"approved  {row.platform:<12} {row.user_id:<20} {row.user_name}" for row in approved),
    ]
    print_result(
        {"pending": pending, "approved": approved},
        rows or ["Nobody waits, and nobody is approved."],
        as_json=as_json,
    )


@command.command(help="Approve the person who was sent this code.")
@click.argument("platform")
@click.argument("code")
@click.option("--owner", is_flag=True, help="This person is you: they get your memory and rights.")
@click.pass_context
def approve(ctx: click.Context, platform: str, code: str, owner: bool) -> None:
    config_of(ctx)
    find_manifest(process_environment(), platform)
    home = home_of(ctx)
    row = _store(home).approve(platform, code)
    if owner:
        write_settings(home, {("platforms", platform, "extra", "owner"): row.user_id})
    _tell_gateway(home)
    name = f" ({row.user_name})" if row.user_name else ""
    click.echo(f"{row.user_id}{name} may write on {platform} now.")
    if owner:
        click.echo("Restart the gateway to make them its owner: `hermes gateway restart`.")


@command.command(help="Take back the approval of a person.")
@click.argument("platform")
@click.argument("user_id")
@click.pass_context
def revoke(ctx: click.Context, platform: str, user_id: str) -> None:
    config_of(ctx)
    home = home_of(ctx)
    _store(home).revoke(platform, user_id)
    _tell_gateway(home)
    click.echo(f"{user_id} may no longer write on {platform}.")


@command.command("clear-pending", help="Drop all requests that wait.")
@click.pass_context
def clear_pending(ctx: click.Context) -> None:
    config_of(ctx)
    count = _store(home_of(ctx)).clear_pending()
    click.echo(f"{count} waiting requests were dropped.")


def _store(home: Home) -> PairingStore:
    return PairingStore(home, SystemClock())


def _tell_gateway(home: Home) -> None:
    """A running gateway greets approved people, and stops the turns of revoked ones."""
    if process := running_process(home):
        send_signal(process, PAIRING_SIGNAL)
