"""`hermes fallback`: the models that go on when the chosen one cannot."""

from __future__ import annotations

import click

from hermes.codec.values import Value
from hermes.config.load import Config
from hermes.config.model_settings import FallbackSettings
from hermes.core.errors import HermesError, NotFound, UsageError
from hermes.models.models import Models, wish_of
from hermes.models.saving import save_chain
from hermes.models.shelf import Shelf
from hermes.surfaces.cli.output import as_json_option, columns, print_json
from hermes.surfaces.cli.place import config_of
from hermes.surfaces.cli.shelf import with_models
from hermes.surfaces.cli.style import mark, styled


class ChainRow(Value):
    """A place in the chain; `problem` says why it is passed over as things are."""

    place: int
    model: str
    provider: str
    base_url: str = ""
    usable: bool = True
    problem: str = ""


@click.group(
    help="Models that go on when the chosen one cannot, in order. Without a command: list.",
    invoke_without_command=True,
)
@click.pass_context
def command(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_, as_json=False)


@command.command("list", help="The chain, and whether each of it can be used.")
@as_json_option
@click.pass_context
def list_(ctx: click.Context, as_json: bool) -> None:
    rows = with_models(ctx, _rows)
    if as_json:
        print_json(columns(rows))
        return
    if not rows:
        print("There is nobody to fall back to; `hermes fallback add NAME --provider P` adds one.")
    for row in rows:
        sign = mark("ok") if row.usable else mark("warn")
        where = f" at {row.base_url}" if row.base_url else ""
        print(f"{sign} {row.place}. {row.model} ({row.provider}){where}")
        if row.problem:
            print(styled(f"     passed over: {row.problem}", "dim"))


async def _rows(models: Models, config: Config) -> list[ChainRow]:
    return [
        _row(models, place, entry)
        for place, entry in enumerate(config.settings.fallback_providers, start=1)
    ]


def _row(models: Models, place: int, entry: FallbackSettings) -> ChainRow:
    problem = ""
    try:
        models.check(wish_of(entry))
    except HermesError as error:
        problem = str(error)
    return ChainRow(
        place=place,
        model=entry.model,
        provider=wish_of(entry).provider,
        base_url=entry.base_url,
        usable=not problem,
        problem=problem,
    )


@command.command(help="Put a model at the end of the chain (or at --place N).")
@click.argument("name")
@click.option("--provider", default="", help="Who serves it.")
@click.option("--base-url", default="", help="Address of an endpoint of your own.")
@click.option("--key-env", default="", help="The variable that holds the key of that endpoint.")
@click.option("--place", type=click.IntRange(min=1), help="Where in the chain.")
@click.pass_context
def add(
    ctx: click.Context, name: str, provider: str, base_url: str, key_env: str, place: int | None
) -> None:
    async def work(models: Models, config: Config) -> tuple[FallbackSettings, ...]:
        if base_url:
            entry = FallbackSettings(
                provider=provider or "custom", model=name, base_url=base_url, key_env=key_env
            )
            models.check(wish_of(entry))
        else:
            entry = await named_entry(models, name, provider)
        chain = added(config.settings.fallback_providers, entry, place)
        save_chain(config, chain)
        return chain

    for number, each in enumerate(with_models(ctx, work), start=1):
        print(f"{number}. {each.model} ({each.provider})")


async def named_entry(models: Models, name: str, provider: str) -> FallbackSettings:
    """The entry for a model by its name; refused when it cannot be used."""
    candidates = models.resolver.candidates()
    current = candidates[0].provider if candidates else ""
    if not (provider or current or models.resolver.names.read(name).provider):
        raise UsageError(f"Who serves {name}? Name a provider with --provider.")
    card = (await Shelf(models).find(name, provider=provider, current=current)).card
    return FallbackSettings(provider=card.provider, model=card.model)


def added(
    chain: tuple[FallbackSettings, ...], entry: FallbackSettings, place: int | None
) -> tuple[FallbackSettings, ...]:
    """An entry that is there already moves to the new place."""
    rest = [
        each
        for each in chain
        if (each.provider, each.model, each.base_url)
        != (entry.provider, entry.model, entry.base_url)
    ]
    rest.insert(len(rest) if place is None else place - 1, entry)
    return tuple(rest)


@command.command(help="Take a model out of the chain, by its place or name.")
@click.argument("which")
@click.pass_context
def remove(ctx: click.Context, which: str) -> None:
    config = config_of(ctx)
    chain = config.settings.fallback_providers
    names = [f"{each.provider}:{each.model}" for each in chain]
    found = [
        place
        for place, each in enumerate(chain)
        if which in (str(place + 1), each.model, names[place])
    ]
    if not found:
        raise NotFound(f"The chain has no {which!r}; `hermes fallback list` shows it.")
    if len(found) > 1:
        raise UsageError(f"{which!r} is there {len(found)} times; give its place.")
    save_chain(config, tuple(each for n, each in enumerate(chain) if n != found[0]))
    print(f"removed {names[found[0]]}")


@command.command(help="Empty the chain.")
@click.pass_context
def clear(ctx: click.Context) -> None:
    config = config_of(ctx)
    count = len(config.settings.fallback_providers)
    if count:
        save_chain(config, ())
    print(f"The chain is empty now ({count} removed)." if count else "The chain is empty already.")
