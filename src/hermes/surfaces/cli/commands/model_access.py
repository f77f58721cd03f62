"""Asks for the key or login of a provider before its models are listed."""

from __future__ import annotations

import asyncio
from getpass import getpass

import click

from hermes.codec.values import Value
from hermes.config.edit import set_from_text
from hermes.config.load import Config
from hermes.core.errors import HermesError, ProviderError
from hermes.credentials.accounts import Accounts
from hermes.models.choice import IN_PROCESS
from hermes.models.models import Models
from hermes.models.shelf import ModelBrowser, ProviderRow
from hermes.surfaces.cli.accounts import TerminalScreen, with_accounts
from hermes.surfaces.cli.picker import Picker, PickerRow
from hermes.surfaces.cli.place import config_of
from hermes.surfaces.cli.shelf import with_models
from hermes.surfaces.cli.style import mark

LOGIN, KEY = "login", "key"
WAYS = (
    PickerRow(text="log in", value=LOGIN, note="with your account"),
    PickerRow(text="enter a key", value=KEY, note="for its API"),
)


class WizardOptions(Value):
    """Options of the wizard. `refresh` asks for current model lists, `browser` allows opening one
    for a login. Without `login_seconds` the provider sets the time limit."""

    refresh: bool = False
    browser: bool = True
    login_seconds: float | None = None


def ensure_access(ctx: click.Context, provider: str, manner: WizardOptions) -> bool:
    """Ask for the key or login if it is missing; whether the provider can be used."""
    if provider in IN_PROCESS:
        return True

    async def look(models: Models, _: Config) -> tuple[ProviderRow, tuple[str, ...]]:
        row = next(row for row in ModelBrowser(models).providers() if row.name == provider)
        return row, models.resolver.places.get(provider).vendor.keys

    row, names = with_models(ctx, look)
    if row.usable:
        return True
    way: str | None = KEY if names else LOGIN
    can_log_in = provider in with_accounts(ctx, _logins)
    if names and can_log_in:
        way = asyncio.run(Picker(f"{row.label} needs a login or a key", WAYS).run())
    if way == KEY:
        return _ask_key(ctx, row, names[0])
    if way == LOGIN and can_log_in:
        return _log_in(ctx, provider, manner)
    if way is not None:
        print(f"{row.problem}")
    return False


async def _logins(accounts: Accounts) -> tuple[str, ...]:
    return accounts.logins()


def _ask_key(ctx: click.Context, row: ProviderRow, name: str) -> bool:
    print(f"{row.label} needs a key." + (f" Get one at {row.signup}" if row.signup else ""))
    key = getpass(f"{name} (not shown; empty cancels): ").strip()
    if not key:
        return False
    edited = set_from_text(config_of(ctx).home, name, key)
    print(f"{mark('ok')} {edited.key} = {edited.shown} ({edited.place})")
    return True


def _log_in(ctx: click.Context, provider: str, manner: WizardOptions) -> bool:
    """A failed login is printed, and the user chooses again."""
    seconds = manner.login_seconds

    async def work(accounts: Accounts) -> str:
        screen = TerminalScreen(browser=manner.browser)
        try:
            async with asyncio.timeout(seconds):
                return (await accounts.log_in(provider, screen)).label
        except TimeoutError:
            words = f"No login to {provider} within {seconds:g} s."
            raise ProviderError(words, reason="timeout") from None

    try:
        label = with_accounts(ctx, work)
    except HermesError as error:
        print(f"{mark('error')} {error}")
        return False
    print(f"{mark('ok')} logged in to {provider} ({label})")
    return True
