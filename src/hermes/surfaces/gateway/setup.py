"""The setup wizard of platforms: asks for the fields of a manifest, writes them to `.env`, and
checks the login."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Mapping
from typing import Any

import click

from hermes.app.start import start
from hermes.config.environment import mask, process_environment, set_variable
from hermes.config.gateway_settings import variable_name
from hermes.config.home import Home, config_lock
from hermes.config.load import load
from hermes.core.errors import HermesError, PlatformUnreachable, UsageError
from hermes.surfaces.gateway.locks import running_process, send_signal
from hermes.surfaces.gateway.manifests import (
    ConfiguredPlatform,
    all_manifests,
    build_adapter,
    configure,
    find_manifest,
    platform_context,
)
from hermes.surfaces.gateway.platform import Manifest, SettingField

CHECK_SECONDS = 30.0
NO_TERMINAL = (
    "Setup needs a terminal; without one, set the variables of a platform with `hermes config set "
    "NAME VALUE` and check them with `hermes gateway test`."
)


def run_setup(options: Mapping[str, Any], home: Home, name: str) -> None:
    """Set up one platform, or let the user choose one."""
    env = process_environment()
    if name:
        find_manifest(env, name)
    if not sys.stdin.isatty():
        raise UsageError(NO_TERMINAL)
    manifest = find_manifest(env, name or _choose(home))
    click.echo(click.style(f"\n{manifest.title}", bold=True) + "  (Enter keeps a value)")
    for number, step in enumerate(manifest.steps, start=1):
        click.echo(f"  {number}. {step}")
    while True:
        for field in _questions(manifest):
            _ask(home, manifest, field)
        click.echo("  Logging in …")
        try:
            account = asyncio.run(check_platform(options, manifest.name))
        except HermesError as error:
            click.echo(f"  {click.style('✗', fg='red')} {error}")
            if not click.confirm("  Enter the values again?", default=True):
                break
        else:
            click.echo(f"  {click.style('✓', fg='green')} Connected as {account}.")
            break
    _offer_start(home)


async def check_platform(options: Mapping[str, Any], name: str) -> str:
    """Log in and return the name of the account. Raises HermesError with the reason."""
    async with start(options) as app:
        platform = configure(app.context.config, find_manifest(app.context.env, name))
        adapter = build_adapter(platform, platform_context(app, platform))
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                return await adapter.check()
        except TimeoutError:
            raise PlatformUnreachable(
                f"{platform.manifest.title} did not answer within {CHECK_SECONDS:.0f} s; check the "
                "network and try again."
            ) from None


def _choose(home: Home) -> str:
    config, env = load(home), process_environment()
    found = [configure(config, each) for each in all_manifests(env).values()]
    if not found:
        raise UsageError("No platform is installed.")
    for number, platform in enumerate(found, start=1):
        click.echo(f"  {number:>2}. {platform.manifest.title:<20} {_describe(platform)}")
    names = {str(number): each.manifest.name for number, each in enumerate(found, start=1)}
    names |= {each.manifest.name: each.manifest.name for each in found}
    while True:
        answer = click.prompt("Platform (number or name)").strip().lower()
        if answer in names:
            return names[answer]
        click.echo(f"  There is no platform {answer!r}.")


def _describe(platform: ConfiguredPlatform) -> str:
    if platform.options.enabled is False:
        return "off"
    if platform.missing or not platform.manifest.fields:
        return "configured" if platform.options.enabled else "not configured"
    return "configured"


def _questions(manifest: Manifest) -> tuple[SettingField, ...]:
    """The fields of the manifest, and who may write if it does not ask that itself."""
    users = variable_name(manifest.name, "allowed_users")
    channel = variable_name(manifest.name, "home_channel")
    asked = {field.env for field in manifest.fields}
    general = (
        SettingField(
            env=users,
            label="Allowed users",
            help="Ids of people who may write, comma-separated; a single one is the owner. "
            "Without any, new people get a pairing code.",
            is_required=False,
        ),
        SettingField(
            env=channel,
            label="Home channel",
            help="Id of the chat that gets notices and results of scheduled jobs.",
            is_required=False,
        ),
    )
    if manifest.abilities.is_trusted_transport:
        return manifest.fields
    return (*manifest.fields, *(field for field in general if field.env not in asked))


def _ask(home: Home, manifest: Manifest, field: SettingField) -> None:
    """Ask for one value and save it at once, so that Ctrl+C loses nothing."""
    platform = configure(load(home), manifest)
    now = platform.options.variables.get(field.env, "")
    if field.help:
        click.echo(f"  {click.style(field.help, dim=True)}")
    shown = mask(now) if now and field.is_secret else now
    label = f"  {field.label} ({field.env})" + (f" [{shown}]" if shown else "")
    while True:
        text: str = click.prompt(
            label, default="", show_default=False, hide_input=field.is_secret
        ).strip()
        if text or now or not field.is_required:
            break
        click.echo("  This value is required; Ctrl+C quits.")
    if text and text != now:
        with config_lock(home):
            set_variable(home, field.env, text)


def _offer_start(home: Home) -> None:
    process = running_process(home)
    if process is None:
        click.echo("`hermes gateway run` starts the gateway; `hermes gateway install` keeps it up.")
    elif click.confirm("Restart the running gateway now?", default=True):
        send_signal(process, signal.SIGUSR1)
        click.echo("The gateway restarts.")
