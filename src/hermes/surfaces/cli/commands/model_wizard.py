"""`hermes model` in a terminal: choose a provider, enter its key, choose a model."""

from __future__ import annotations

import asyncio
import re
from getpass import getpass

import click

from hermes.codec.values import Value, replace
from hermes.commands.formatting import format_count
from hermes.commands.model import describe_model, describe_price
from hermes.config.edit import set_from_text
from hermes.config.provider_settings import (
    AuxiliarySettings,
    AuxiliaryTaskSettings,
    FallbackSettings,
)
from hermes.core.errors import HermesError, ProviderError
from hermes.credentials.accounts import Accounts
from hermes.models.browser import ModelBrowser, ModelCard, ProviderRow
from hermes.models.model_files import format_size, model_rows
from hermes.models.model_ref import EMBEDDED, IN_PROCESS
from hermes.models.models import Models
from hermes.models.saved_choice import save_chain, save_choice, save_endpoint, save_task
from hermes.surfaces.cli.command_context import PickerRow, apply_style, config_of, home_of, mark
from hermes.surfaces.cli.commands.auth import TerminalScreen, with_accounts
from hermes.surfaces.cli.commands.fallback import insert_entry
from hermes.surfaces.cli.commands.model_lookup import choose_card, list_providers, with_models
from hermes.surfaces.cli.output import pick

LOGIN, KEY = "login", "key"
ACCESS_ROWS = (
    PickerRow(text="log in", value=LOGIN, note="with your account"),
    PickerRow(text="enter a key", value=KEY, note="of its API"),
)
CUSTOM, AUXILIARY, FALLBACK = "+custom", "+auxiliary", "+fallback"
MORE_ROWS = (
    PickerRow(text="Custom endpoint …", value=CUSTOM, note="any server, by its URL"),
    PickerRow(text="Auxiliary models …", value=AUXILIARY, note="titles, summaries, vision"),
    PickerRow(
        text="Fallback chain …", value=FALLBACK, note="models to use when the first one fails"
    ),
)
AUXILIARY_ROWS = (
    PickerRow(text="auto", value="auto", note="a small, cheaper model of the same vendor"),
    PickerRow(text="main", value="main", note="the main model"),
    PickerRow(text="another …", value="other"),
)
AUXILIARY_TASKS = tuple(
    name
    for name in AuxiliarySettings.__struct_fields__
    if isinstance(getattr(AuxiliarySettings(), name), AuxiliaryTaskSettings)
)


class WizardOptions(Value):
    """How the wizard looks for models and logs in."""

    # Ask providers for their current models.
    refresh: bool = False
    # Open a browser for a login.
    browser: bool = True
    # The time limit of a login; None leaves it to the provider.
    login_seconds: float | None = None


def run_wizard(ctx: click.Context, options: WizardOptions) -> None:
    while True:
        # Each step reads the settings again, so that a new key counts at once.
        picked = _pick_provider(ctx, more=MORE_ROWS)
        if picked is None:
            print("The model is unchanged.")
            return
        if picked == AUXILIARY:
            _choose_auxiliary(ctx, options)
        elif picked == FALLBACK:
            _edit_fallback(ctx, options)
        elif picked == CUSTOM:
            if _add_endpoint(ctx, options):
                return
        elif _choose_on(ctx, picked, options):
            return


def _choose_on(ctx: click.Context, provider: str, options: WizardOptions) -> bool:
    """Whether a model was chosen and saved."""
    card = _pick_model(ctx, provider, options)
    if card is None:
        return False
    save_choice(config_of(ctx), card.model, card.provider)
    print(f"{mark('ok')} {card.model} ({card.provider}): {describe_model(card)}")
    print(apply_style("New sessions use it; in a chat, use /model.", "dim"))
    return True


def _pick_provider(ctx: click.Context, more: tuple[PickerRow, ...] = ()) -> str | None:
    rows, current = with_models(ctx, list_providers)
    usable = [_provider_row(row, current) for row in rows if row.usable]
    others = [_provider_row(row, current) for row in rows if not row.usable]
    return pick("Which provider?", [*usable, *more, *others], chosen=current)


def _provider_row(row: ProviderRow, current: str) -> PickerRow:
    state = "in use" if row.name == current else "" if row.usable else "needs a key or login"
    name = row.name if row.label and row.label != row.name else ""
    note = " · ".join(part for part in (name, state) if part)
    return PickerRow(text=row.label or row.name, value=row.name, note=note, faint=not row.usable)


def _ensure_access(ctx: click.Context, provider: str, options: WizardOptions) -> bool:
    """Ask for the key or login if it is missing; return whether the provider can be used."""
    if provider in IN_PROCESS:
        return True

    def look(models: Models) -> tuple[ProviderRow, tuple[str, ...]]:
        row = next(row for row in ModelBrowser(models).providers() if row.name == provider)
        return row, models.resolver.providers.get(provider).vendor.keys

    row, keys = with_models(ctx, look)
    if row.usable:
        return True
    way: str | None = KEY if keys else LOGIN
    can_log_in = provider in with_accounts(ctx, lambda accounts: accounts.logins())
    if keys and can_log_in:
        way = pick(f"{row.label} needs a login or a key", ACCESS_ROWS)
    if way == LOGIN and can_log_in:
        return _log_in(ctx, provider, options)
    if way != KEY:
        if way is not None:
            print(row.problem)
        return False
    print(f"{row.label} needs a key." + (f" Get one at {row.signup}" if row.signup else ""))
    key = getpass(f"{keys[0]} (hidden; empty cancels): ").strip()
    if key:
        edited = set_from_text(home_of(ctx), keys[0], key)
        print(f"{mark('ok')} {edited.key} = {edited.shown} ({edited.place})")
    return bool(key)


def _log_in(ctx: click.Context, provider: str, options: WizardOptions) -> bool:
    """A failed login is printed, and the user chooses again."""
    seconds = options.login_seconds

    async def log_in(accounts: Accounts) -> str:
        try:
            async with asyncio.timeout(seconds):
                screen = TerminalScreen(browser=options.browser)
                return (await accounts.admin(provider).log_in(screen)).label
        except TimeoutError:
            message = f"There was no login to {provider} within {seconds:g} s; try again."
            raise ProviderError(message, reason="timeout") from None

    try:
        label = with_accounts(ctx, log_in)
    except HermesError as error:
        print(f"{mark('error')} {error}")
        return False
    print(f"{mark('ok')} Logged in to {provider} ({label}).")
    return True


def _pick_model(ctx: click.Context, provider: str, options: WizardOptions) -> ModelCard | None:
    """One of the provider's models, or a name as typed; None without access or a choice."""
    if not _ensure_access(ctx, provider, options):
        return None
    if provider in IN_PROCESS:
        name = _pick_file(ctx) if provider == EMBEDDED else ""
        if name is None:
            return None
        return with_models(ctx, lambda models: choose_card(models, provider, name))
    try:
        found = with_models(
            ctx, lambda models: ModelBrowser(models).cards(provider, refresh=options.refresh)
        )
    except HermesError as error:
        print(str(error))
        return None
    if found.problem:
        print(apply_style(found.problem, "warn"))
    rows = []
    for card in found.cards:
        vision = " · vision" if card.vision else ""
        note = f"{format_count(card.window):>6} · {describe_price(card)}{vision}"
        rows.append(PickerRow(text=card.model, value=card.model, note=note))
    current = with_models(ctx, lambda models: models.resolver.candidates()[:1])
    chosen = pick(
        "Which model?",
        rows,
        chosen=current[0].model if current else "",
        as_typed=lambda text: PickerRow(text=f"use {text!r} as typed", value=text, faint=True),
    )
    if chosen is None:
        return None
    known = next((card for card in found.cards if card.model == chosen), None)
    return known or with_models(
        ctx, lambda m: ModelBrowser(m).card(chosen, m.resolver.providers.get(provider).name)
    )


def _pick_file(ctx: click.Context) -> str | None:
    rows = [
        PickerRow(text=row.name, value=row.path, note=format_size(row.size))
        for row in model_rows(home_of(ctx))
        if row.path and not row.problem
    ]
    if not rows:
        print("No model is installed; `hermes model install smollm2` downloads a small one.")
        return None
    return pick("Which file?", rows)


def _add_endpoint(ctx: click.Context, options: WizardOptions) -> bool:
    """Ask for the URL, probe it, and save it under a name."""
    url = input("URL, such as http://127.0.0.1:8000/v1 (empty cancels): ").strip()
    if not url:
        return False
    key = getpass("Key, if it needs one (hidden): ").strip()
    server = with_models(ctx, lambda models: ModelBrowser(models).probe_server(url, key))
    if not server.url:
        print(apply_style(f"{url} lists no models; check that the server runs.", "warn"))
    elif server.url.rstrip("/") != url.rstrip("/"):
        print(f"The models are at {server.url}; this URL is used.")
    if server.kind:
        print(f"The server is {server.kind}.")
    host = url.partition("://")[2].partition("/")[0].partition(":")[0].lower()
    guess = re.sub(r"[^a-z0-9-]+", "-", host) or "box"
    name = input(f"Name of the endpoint [{guess}]: ").strip() or guess
    config = config_of(ctx)
    variable = re.sub(r"[^A-Z0-9]+", "_", name.upper()) + "_API_KEY" if key else ""
    if key:
        set_from_text(config.home, variable, key)
    save_endpoint(config, name, server.url or url, variable)
    return _choose_on(ctx, name, replace(options, refresh=True))


def _choose_auxiliary(ctx: click.Context, options: WizardOptions) -> None:
    settings = config_of(ctx).settings.auxiliary
    rows = [
        PickerRow(text=name, value=name, note=f"{own.provider} {own.model}".strip())
        for name, own in ((name, getattr(settings, name)) for name in AUXILIARY_TASKS)
    ]
    task = pick("Which auxiliary task?", rows)
    if task is None:
        return
    provider, model = pick(task, AUXILIARY_ROWS) or "", ""
    if provider == "other":
        card = _pick_any_model(ctx, options)
        provider, model = (card.provider, card.model) if card is not None else ("", "")
    if provider:
        save_task(config_of(ctx), task, provider, model)
        print(f"{mark('ok')} {task}: {provider} {model}".rstrip())


def _pick_any_model(ctx: click.Context, options: WizardOptions) -> ModelCard | None:
    provider = _pick_provider(ctx)
    return _pick_model(ctx, provider, options) if provider is not None else None


def _edit_fallback(ctx: click.Context, options: WizardOptions) -> None:
    while True:
        config = config_of(ctx)
        chain = config.settings.fallback_providers
        rows = [PickerRow(text="add one …", value="add")]
        for n, each in enumerate(chain):
            text = f"{n + 1}. {each.model} ({each.provider})"
            rows.append(PickerRow(text=text, value=str(n), note="Enter removes it"))
        picked = pick("Fallback chain", rows)
        if picked is None:
            return
        if picked != "add":
            save_chain(config, tuple(each for n, each in enumerate(chain) if str(n) != picked))
        elif card := _pick_any_model(ctx, options):
            entry = FallbackSettings(provider=card.provider, model=card.model)
            save_chain(config, insert_entry(chain, entry))
