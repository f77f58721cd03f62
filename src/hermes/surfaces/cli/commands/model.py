"""`hermes model`: see what can answer, and choose."""

from __future__ import annotations

import sys

import click

from hermes.codec.values import Value
from hermes.commands.amounts import short_count
from hermes.commands.cards import card_words, price_words
from hermes.config.load import Config
from hermes.core.errors import UsageError
from hermes.models.choice import CUSTOM, EMBEDDED
from hermes.models.models import Models
from hermes.models.saving import save_choice
from hermes.models.shelf import Card, Cards, Pick, ProviderRow, Shelf
from hermes.surfaces.cli.commands.model_files import (
    install,
    is_file_of,
    local_file,
    remove,
    show_file,
    show_files,
)
from hermes.surfaces.cli.output import as_json_option, columns, print_json, print_table
from hermes.surfaces.cli.place import config_of, home_of
from hermes.surfaces.cli.shelf import with_models
from hermes.surfaces.cli.style import mark, styled

HOW = """\
There is no terminal to choose in. Use instead:
  hermes model list [PROVIDER]                         what can be chosen
  hermes model set NAME [--provider P] [--base-url U]  choose for good
  hermes model show                                    what answers now
  hermes model install NAME                            fetch one that runs on this machine"""
WIDTHS = (44, 8, 28, 10)


class Current(Value):
    """What answers now, and who says so."""

    card: Card
    why: str = ""


@click.group(
    help="See and choose what answers. Without a command: choose in the terminal.",
    invoke_without_command=True,
)
@click.option("--refresh", is_flag=True, help="Ask providers for their newest lists.")
@click.option("--no-browser", is_flag=True, help="For a login, only show the address to open.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    help="Wait for a login so long at most.",
)
@click.pass_context
def command(ctx: click.Context, refresh: bool, no_browser: bool, timeout: float | None) -> None:
    if ctx.invoked_subcommand is not None:
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print(HOW)
        return
    # The library that draws lists is for those who look at them.
    from hermes.surfaces.cli.commands.model_access import Manner
    from hermes.surfaces.cli.commands.model_wizard import run_wizard

    run_wizard(ctx, Manner(refresh=refresh, browser=not no_browser, login_seconds=timeout))


command.add_command(install)
command.add_command(remove)


@command.command("list", help="Providers and what they need; with one: its models.")
@click.argument("provider", required=False, default="")
@click.option("--refresh", is_flag=True, help="Ask for the newest list.")
@as_json_option
@click.pass_context
def list_(ctx: click.Context, provider: str, refresh: bool, as_json: bool) -> None:
    if provider == EMBEDDED:
        show_files(home_of(ctx), as_json=as_json)
    elif provider:
        _list_models(ctx, provider, refresh=refresh, as_json=as_json)
    else:
        _list_providers(ctx, as_json=as_json)


def _list_models(ctx: click.Context, provider: str, *, refresh: bool, as_json: bool) -> None:
    async def work(models: Models, _: Config) -> Cards:
        return await Shelf(models).cards(provider, refresh=refresh)

    found = with_models(ctx, work)
    if found.problem:
        _warn(found.problem)
    if as_json:
        print_json(columns(found.cards))
        return
    table = [("Model", "Window", "Price", "Pictures")]
    print_table([*table, *(_cells(card) for card in found.cards)], WIDTHS)
    if not found.live:
        print(styled("Known without asking; --refresh asks the provider.", "dim"))


def _cells(card: Card) -> tuple[str, str, str, str]:
    seen = {True: "yes", False: "no", None: ""}[card.vision]
    return card.model, short_count(card.window), price_words(card), seen


def _list_providers(ctx: click.Context, *, as_json: bool) -> None:
    async def work(models: Models, _: Config) -> tuple[tuple[ProviderRow, ...], str]:
        candidates = models.resolver.candidates()
        place = models.resolver.places.find(candidates[0].provider) if candidates else None
        return Shelf(models).providers(), place.name if place is not None else ""

    rows, current = with_models(ctx, work)
    if as_json:
        print_json([{**_plain(row), "current": row.name == current} for row in rows])
        return
    for row in rows:
        sign = mark("ok") if row.usable else " "
        arrow = " ← answers now" if row.name == current else ""
        line = f"{sign} {row.name:<20} {row.label:<24}{arrow}"
        print(line.rstrip() if row.usable else styled(f"{line} {_short(row)}".rstrip(), "dim"))
    print("`hermes model list PROVIDER` shows its models, `hermes model set NAME` chooses one.")


def _plain(row: ProviderRow) -> dict[str, object]:
    return {name: getattr(row, name) for name in row.__struct_fields__}


def _short(row: ProviderRow) -> str:
    """What is missing, without the advice that would repeat in every line."""
    return row.problem.partition(";")[0].rpartition(", and ")[2].rstrip(".")


@command.command(help="What answers now; with a name: what is known of that model or file.")
@click.argument("name", required=False, default="")
@click.option("--provider", default="", help="The provider of the named model.")
@as_json_option
@click.pass_context
def show(ctx: click.Context, name: str, provider: str, as_json: bool) -> None:
    home, config = home_of(ctx), config_of(ctx)
    if name and not provider and is_file_of(home, name):
        show_file(home, name, as_json=as_json)
        return
    current = with_models(ctx, lambda models, _: _current(models, name, provider))
    if not name and current is None and (file := local_file(config)):
        show_file(home, file, as_json=as_json)
        return
    current = current or with_models(ctx, lambda models, _: _nearby(models))
    if as_json:
        print_json({**_plain_card(current.card), "why": current.why})
        return
    card = current.card
    where = f" at {card.host} ({card.wire})" if card.host else ""
    print(f"{styled(card.model, 'bold')} ({card.provider}){where}")
    print(f"{card_words(card)}")
    if current.why:
        print(styled(f"chosen by {current.why}; `hermes config explain model` tells more", "dim"))


async def _current(models: Models, name: str, provider: str) -> Current | None:
    """The named model, else the one that is configured; None when none is."""
    shelf, candidates = Shelf(models), models.resolver.candidates()
    if name:
        current = candidates[0].provider if candidates else ""
        pick = await shelf.find(name, provider=provider, current=current)
        return Current(card=pick.card)
    if not candidates:
        return None
    choice = await models.choose()
    return Current(card=shelf.card(choice.model, choice.provider), why=candidates[0].why)


async def _nearby(models: Models) -> Current:
    choice = await models.choose()
    card = Shelf(models).card(choice.model, choice.provider)
    return Current(card=card, why="what is there: nothing is configured")


def _plain_card(card: Card) -> dict[str, object]:
    return {name: getattr(card, name) for name in card.__struct_fields__}


@command.command("set", help="Choose the model for new sessions (a running one: /model).")
@click.argument("name")
@click.option("--provider", default="", help="Who serves it.")
@click.option("--base-url", default="", help="Address of an endpoint of your own.")
@click.pass_context
def set_(ctx: click.Context, name: str, provider: str, base_url: str) -> None:
    async def work(models: Models, config: Config) -> Pick:
        if base_url:
            return await choose_address(models, config, name, base_url, provider)
        return await choose_model(models, config, name, provider)

    pick = with_models(ctx, work)
    for warning in pick.warnings:
        _warn(warning)
    print(f"{mark('ok')} {pick.card.model} ({pick.card.provider}): {card_words(pick.card)}")
    for finding in config_of(ctx).findings:
        if finding.key in ("model.default", "model.provider"):
            _warn(finding.text)


async def choose_model(models: Models, config: Config, name: str, provider: str) -> Pick:
    """Found and saved; nothing is saved when it cannot be used."""
    candidates = models.resolver.candidates()
    named = provider or models.resolver.names.read(name).provider
    owner = models.resolver.names.owner(name)
    current = candidates[0].provider if candidates else owner.name if owner is not None else ""
    if name.endswith(".gguf"):
        current = EMBEDDED
    if not named and not current:
        raise UsageError(f"Who serves {name}? Name a provider with --provider.")
    pick = await Shelf(models).find(name, provider=provider, current=current)
    url = models.found_url(pick.card.provider)
    save_choice(config, pick.card.model, pick.card.provider, base_url=url)
    return pick


async def choose_address(
    models: Models, config: Config, name: str, url: str, provider: str
) -> Pick:
    """An endpoint by its address. What it lists tells whether the address is right; a better one
    is taken and said."""
    if provider and provider != CUSTOM:
        raise UsageError(
            f"--base-url is for endpoints of your own; for {provider} set providers.{provider}."
            "base_url with `hermes config set`."
        )
    models.refuse_key(name)
    better = (await Shelf(models).look_at(url)).url
    warnings = []
    if not better:
        warnings.append(f"{url} does not list any models; check that it is right and running.")
    elif better.rstrip("/") != url.rstrip("/"):
        warnings.append(f"The models are at {better}; that address was saved.")
    wish = models.wish(name, CUSTOM)
    card = Shelf(models).card_at(wish, better or url)
    save_choice(config, name, CUSTOM, base_url=better or url)
    return Pick(card=card, warnings=tuple(warnings))


def _warn(text: str) -> None:
    print(f"{styled('warning:', 'warn', sys.stderr)} {text}", file=sys.stderr)
