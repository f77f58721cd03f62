"""`hermes model` in a terminal: choose a provider, enter its key, choose a model."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from getpass import getpass

import click

from hermes.codec.values import Value, replace
from hermes.commands.formatting import format_count
from hermes.commands.model import describe_model, describe_price
from hermes.config.edit import set_from_text
from hermes.config.load import Config
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
from hermes.surfaces.cli.command_context import apply_style, config_of, mark
from hermes.surfaces.cli.commands.auth import TerminalScreen, with_accounts
from hermes.surfaces.cli.commands.models import insert_entry, with_models
from hermes.surfaces.cli.picker import Picker, PickerRow

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
        return row, models.resolver.providers.get(provider).vendor.keys

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


CUSTOM, SIDE, CHAIN = "+custom", "+auxiliary", "+fallback"
MORE = (
    PickerRow(text="Custom endpoint …", value=CUSTOM, note="any server by its URL"),
    PickerRow(text="Auxiliary models …", value=SIDE, note="titles, summaries, vision"),
    PickerRow(text="Fallback chain …", value=CHAIN, note="used when the model fails"),
)
TASKS = tuple(
    name
    for name in AuxiliarySettings.__struct_fields__
    if isinstance(getattr(AuxiliarySettings(), name), AuxiliaryTaskSettings)
)


def run_wizard(ctx: click.Context, manner: WizardOptions) -> None:
    while True:
        # Each step reads the settings again, so that a new key counts at once.
        picked = with_models(ctx, lambda models, _: _pick_provider(models))
        if picked is None:
            print("The model is unchanged.")
            return
        if picked == SIDE:
            _side_work(ctx, manner)
        elif picked == CHAIN:
            _chain(ctx, manner)
        elif picked == CUSTOM:
            if _own_endpoint(ctx, manner):
                return
        elif _choose_on(ctx, picked, manner):
            return


def _choose_on(ctx: click.Context, provider: str, manner: WizardOptions) -> bool:
    """Whether a model was chosen and saved."""
    if not ensure_access(ctx, provider, manner):
        return False
    card = with_models(ctx, lambda models, _: _pick_model(models, provider, refresh=manner.refresh))
    if card is None:
        return False
    save_choice(config_of(ctx), card.model, card.provider)
    print(f"{mark('ok')} {card.model} ({card.provider}): {describe_model(card)}")
    print(apply_style("Saved for new sessions; /model changes a running one.", "dim"))
    return True


async def _pick_provider(models: Models, *, more: bool = True) -> str | None:
    rows = ModelBrowser(models).providers()
    candidates = models.resolver.candidates()
    place = models.resolver.providers.find(candidates[0].provider) if candidates else None
    current = place.name if place is not None else ""
    usable = [_provider_row(row, current) for row in rows if row.usable]
    others = [_provider_row(row, current) for row in rows if not row.usable]
    title = "Which provider?"
    listed = [*usable, *(MORE if more else ()), *others]
    return await Picker(title, listed, chosen=current).run()


def _provider_row(row: ProviderRow, current: str) -> PickerRow:
    note = "in use" if row.name == current else "" if row.usable else "needs a key or login"
    text = row.label or row.name
    behind = row.name if row.label and row.label != row.name else ""
    note = " · ".join(part for part in (behind, note) if part)
    return PickerRow(text=text, value=row.name, note=note, faint=not row.usable)


async def _pick_model(models: Models, provider: str, *, refresh: bool) -> ModelCard | None:
    """One of the provider's models, or a name as typed."""
    shelf = ModelBrowser(models)
    if provider in IN_PROCESS:
        name = await _pick_file(models) if provider == EMBEDDED else ""
        if name is None:
            return None
        choice = await models.choose_explicit(provider, name)
        return shelf.card(choice.model, choice.provider)
    try:
        found = await shelf.cards(provider, refresh=refresh)
    except HermesError as error:
        print(str(error))
        return None
    if found.problem:
        print(apply_style(found.problem, "warn"))
    rows = [PickerRow(text=card.model, value=card.model, note=_facts(card)) for card in found.cards]
    now = models.resolver.candidates()
    chosen = now[0].model if now else ""
    taken = await Picker("Which model?", rows, chosen=chosen, as_typed=_as_typed).run()
    if taken is None:
        return None
    known = next((card for card in found.cards if card.model == taken), None)
    return known or shelf.card(taken, models.resolver.providers.get(provider).name)


async def _pick_file(models: Models) -> str | None:
    rows = [
        PickerRow(text=row.name, value=row.path, note=format_size(row.size))
        for row in model_rows(models.home)
        if row.path and not row.problem
    ]
    if not rows:
        print("No model is installed; `hermes model install smollm2` downloads a small one.")
        return None
    return await Picker("Which file?", rows).run()


def _facts(card: ModelCard) -> str:
    pictures = " · vision" if card.vision else ""
    return f"{format_count(card.window):>6} · {describe_price(card)}{pictures}"


def _as_typed(text: str) -> PickerRow:
    return PickerRow(text=f"use {text!r} as typed", value=text, faint=True)


def _own_endpoint(ctx: click.Context, manner: WizardOptions) -> bool:
    """Ask for the URL, probe it, and save it under a name."""
    url = input("URL, such as http://127.0.0.1:8000/v1 (empty cancels): ").strip()
    if not url:
        return False
    key = getpass("Key, if it needs one (not shown): ").strip()

    looked = with_models(ctx, lambda models, _: ModelBrowser(models).probe_server(url, key))
    better, kind = looked.url, looked.kind
    if not better:
        print(apply_style(f"{url} does not list any models; check that it runs.", "warn"))
    elif better.rstrip("/") != url.rstrip("/"):
        print(f"The models are at {better}; that URL is used.")
    if kind:
        print(f"The server is {kind}.")
    host = url.partition("://")[2].partition("/")[0].partition(":")[0].lower()
    guess = re.sub(r"[^a-z0-9-]+", "-", host) or "box"
    name = input(f"Name for it [{guess}]: ").strip() or guess
    config = config_of(ctx)
    variable = re.sub(r"[^A-Z0-9]+", "_", name.upper()) + "_API_KEY" if key else ""
    if key:
        set_from_text(config.home, variable, key)
    save_endpoint(config, name, better or url, variable)
    return _choose_on(ctx, name, replace(manner, refresh=True))


def _side_work(ctx: click.Context, manner: WizardOptions) -> None:
    settings = config_of(ctx).settings.auxiliary
    rows = [_task_row(name, getattr(settings, name)) for name in TASKS]
    task = asyncio.run(Picker("Which auxiliary task?", rows).run())
    if task is None:
        return
    ways = (
        PickerRow(
            text="auto",
            value="auto",
            note="a small, cheaper model of the same vendor",
        ),
        PickerRow(text="main", value="main", note="the main model"),
        PickerRow(text="another …", value="other"),
    )
    way = asyncio.run(Picker(task, ways).run())
    if way == "other":
        card = _any_model(ctx, manner)
        provider, model = (card.provider, card.model) if card is not None else ("", "")
    else:
        provider, model = way or "", ""
    if provider:
        save_task(config_of(ctx), task, provider, model)
        print(f"{mark('ok')} {task}: {provider} {model}".rstrip())


def _task_row(name: str, own: AuxiliaryTaskSettings) -> PickerRow:
    return PickerRow(text=name, value=name, note=" ".join((own.provider, own.model)).strip())


def _any_model(ctx: click.Context, manner: WizardOptions) -> ModelCard | None:
    picked = with_models(ctx, lambda models, _: _pick_provider(models, more=False))
    if picked is None or not ensure_access(ctx, picked, manner):
        return None
    return with_models(ctx, lambda models, _: _pick_model(models, picked, refresh=manner.refresh))


def _chain(ctx: click.Context, manner: WizardOptions) -> None:
    while True:
        config = config_of(ctx)
        chain = config.settings.fallback_providers
        picked = asyncio.run(Picker("Fallback chain", _chain_rows(chain)).run())
        if picked is None:
            return
        if picked == "add":
            card = _any_model(ctx, manner)
            if card is not None:
                entry = FallbackSettings(provider=card.provider, model=card.model)
                save_chain(config, insert_entry(chain, entry, None))
        else:
            save_chain(config, tuple(e for n, e in enumerate(chain) if str(n) != picked))


def _chain_rows(chain: Sequence[FallbackSettings]) -> list[PickerRow]:
    rows = [PickerRow(text="add one …", value="add")]
    for number, each in enumerate(chain):
        text = f"{number + 1}. {each.model} ({each.provider})"
        rows.append(PickerRow(text=text, value=str(number), note="Enter removes it"))
    return rows
