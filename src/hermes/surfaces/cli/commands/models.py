"""The configured models: why one is chosen, and `hermes fallback`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import click

from hermes.codec.values import Value
from hermes.commands.formatting import format_count
from hermes.config.environment import process_environment
from hermes.config.load import Config
from hermes.config.provider_settings import FallbackSettings
from hermes.core.errors import HermesError, NotFound, UsageError
from hermes.core.world import World
from hermes.credentials.redaction import SecretRedactor
from hermes.models.browser import ModelBrowser
from hermes.models.explanation import NOTHING, CandidateReason, ChoiceExplanation, explain_choice
from hermes.models.models import Models, ref_of
from hermes.models.saved_choice import save_chain
from hermes.surfaces.cli.command_context import apply_style, config_of, mark, run
from hermes.surfaces.cli.output import Output, json_output, text_output

T = TypeVar("T")


def with_models(ctx: click.Context, work: Callable[[Models, Config], Coroutine[Any, Any, T]]) -> T:
    async def whole() -> T:
        config, env = config_of(ctx), process_environment()
        secrecy = SecretRedactor(config, env)
        models = Models(config, World(), env=env, is_secret=secrecy.is_secret)
        models.accounts.watch_secrets(secrecy.watch)
        try:
            return await work(models, config)
        finally:
            await models.close()

    return run(whole())


def explain_model(ctx: click.Context) -> Output:
    async def work(models: Models, config: Config) -> ChoiceExplanation:
        return explain_choice(models, config)

    why = with_models(ctx, work)
    return Output(why, _lines(why))


def _lines(why: ChoiceExplanation) -> Iterator[str]:
    if why.winner is None:
        yield NOTHING
    else:
        yield from _winner_lines(why.winner)
    for reason in why.shadowed:
        yield apply_style(f"  hides    {_name(reason)}  ({reason.why})", "dim")
    for key, value, source in why.said:
        yield apply_style(f"  {key} = {value}  ({source})", "dim")


def _winner_lines(reason: CandidateReason) -> Iterator[str]:
    yield apply_style(_name(reason), "bold")
    yield f"  from     {reason.why}"
    if reason.problem:
        yield f"  {mark('error')} {reason.problem}"
    elif reason.host:
        key = "with a key" if reason.has_key else "without a key"
        window = format_count(reason.window)
        yield f"  asks     {reason.host} ({reason.wire}) {key}, window {window}"


def _name(reason: CandidateReason) -> str:
    return f"{reason.model or 'its usual model'} ({reason.provider})"


class ChainRow(Value):
    """An entry of the chain; `problem` says why it is skipped at present."""

    place: int
    model: str
    provider: str
    base_url: str = ""
    usable: bool = True
    problem: str = ""


@click.group(
    help="Models to fall back to when the chosen one fails, in order. Without a command: list.",
    invoke_without_command=True,
)
@click.pass_context
def command(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@command.command("list", help="List the chain, and whether each model can be used.")
@json_output()
def list_(ctx: click.Context) -> Output:
    rows = with_models(ctx, _rows)
    return Output(rows, _chain_lines(rows))


def _chain_lines(rows: list[ChainRow]) -> Iterator[str]:
    if not rows:
        yield "There is no fallback model; `hermes fallback add NAME --provider P` adds one."
    for row in rows:
        sign = mark("ok") if row.usable else mark("warn")
        where = f" at {row.base_url}" if row.base_url else ""
        yield f"{sign} {row.place}. {row.model} ({row.provider}){where}"
        if row.problem:
            yield apply_style(f"     skipped: {row.problem}", "dim")


async def _rows(models: Models, config: Config) -> list[ChainRow]:
    return [
        _row(models, place, entry)
        for place, entry in enumerate(config.settings.fallback_providers, start=1)
    ]


def _row(models: Models, place: int, entry: FallbackSettings) -> ChainRow:
    problem = ""
    try:
        models.check(ref_of(entry))
    except HermesError as error:
        problem = str(error)
    return ChainRow(
        place=place,
        model=entry.model,
        provider=ref_of(entry).provider,
        base_url=entry.base_url,
        usable=not problem,
        problem=problem,
    )


@command.command(help="Add a model at the end of the chain (or at --place N).")
@click.argument("name")
@click.option("--provider", default="", help="The provider that serves it.")
@click.option("--base-url", default="", help="Base URL of a custom endpoint.")
@click.option("--key-env", default="", help="The variable with the key of that endpoint.")
@click.option("--place", type=click.IntRange(min=1), help="Its position in the chain.")
@text_output()
def add(
    ctx: click.Context, name: str, provider: str, base_url: str, key_env: str, place: int | None
) -> list[str]:
    async def work(models: Models, config: Config) -> tuple[FallbackSettings, ...]:
        if base_url:
            entry = FallbackSettings(
                provider=provider or "custom", model=name, base_url=base_url, key_env=key_env
            )
            models.check(ref_of(entry))
        else:
            entry = await named_entry(models, name, provider)
        chain = insert_entry(config.settings.fallback_providers, entry, place)
        save_chain(config, chain)
        return chain

    chain = with_models(ctx, work)
    return [f"{number}. {each.model} ({each.provider})" for number, each in enumerate(chain, 1)]


async def named_entry(models: Models, name: str, provider: str) -> FallbackSettings:
    """The entry for a model by its name. Raises when the model cannot be used."""
    candidates = models.resolver.candidates()
    current = candidates[0].provider if candidates else ""
    if not (provider or current or models.resolver.names.read(name).provider):
        raise UsageError(f"Which provider serves {name}? Name it with --provider.")
    card = (await ModelBrowser(models).find(name, provider=provider, current=current)).card
    return FallbackSettings(provider=card.provider, model=card.model)


def insert_entry(
    chain: tuple[FallbackSettings, ...], entry: FallbackSettings, place: int | None
) -> tuple[FallbackSettings, ...]:
    """An existing entry moves to the new position."""
    rest = [
        each
        for each in chain
        if (each.provider, each.model, each.base_url)
        != (entry.provider, entry.model, entry.base_url)
    ]
    rest.insert(len(rest) if place is None else place - 1, entry)
    return tuple(rest)


@command.command(help="Remove a model from the chain, by its position or name.")
@click.argument("which")
@text_output()
def remove(ctx: click.Context, which: str) -> str:
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
        raise UsageError(f"{which!r} is in the chain {len(found)} times; give its position.")
    save_chain(config, tuple(each for n, each in enumerate(chain) if n != found[0]))
    return f"removed {names[found[0]]}"


@command.command(help="Empty the chain.")
@text_output()
def clear(ctx: click.Context) -> str:
    config = config_of(ctx)
    count = len(config.settings.fallback_providers)
    if count:
        save_chain(config, ())
    return f"The chain is empty now ({count} removed)." if count else "The chain is empty already."
