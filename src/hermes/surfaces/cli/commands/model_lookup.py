"""The models that the settings describe: open, list, find and explain them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import click

from hermes.commands.formatting import format_count
from hermes.config.environment import process_environment
from hermes.core.errors import UsageError
from hermes.core.world import World
from hermes.credentials.redaction import SecretRedactor
from hermes.models.browser import (
    NOTHING,
    CandidateReason,
    ModelBrowser,
    ModelCard,
    ModelPick,
    ProviderRow,
    explain_choice,
)
from hermes.models.model_ref import EMBEDDED
from hermes.models.models import Models
from hermes.surfaces.cli.command_context import Opener, apply_style, config_of, mark
from hermes.surfaces.cli.output import Output


@Opener
@asynccontextmanager
async def with_models(ctx: click.Context) -> AsyncIterator[Models]:
    config, env = config_of(ctx), process_environment()
    redactor = SecretRedactor(config, env)
    models = Models(config, World(), env=env, is_secret=redactor.is_secret)
    models.accounts.watch_secrets(redactor.watch)
    try:
        yield models
    finally:
        await models.close()


def explain_model(ctx: click.Context) -> Output:
    """Which model answers, and why."""
    why = with_models(ctx, lambda models: explain_choice(models, config_of(ctx)))

    def lines() -> Iterator[str]:
        if why.winner is None:
            yield NOTHING
        else:
            yield apply_style(_name(why.winner), "bold")
            yield f"  from      {why.winner.why}"
            if why.winner.problem:
                yield f"  {mark('error')} {why.winner.problem}"
            elif why.winner.host:
                key = "with a key" if why.winner.has_key else "without a key"
                window = format_count(why.winner.window)
                yield f"  calls     {why.winner.host} ({why.winner.wire}) {key}, window {window}"
        for reason in why.shadowed:
            yield apply_style(f"  overrides {_name(reason)}  ({reason.why})", "dim")
        for key, value, source in why.said:
            yield apply_style(f"  {key} = {value}  ({source})", "dim")

    return Output(why, lines())


def _name(reason: CandidateReason) -> str:
    return f"{reason.model or 'the default model'} ({reason.provider})"


def list_providers(models: Models) -> tuple[tuple[ProviderRow, ...], str]:
    """All providers, and the name of the current one."""
    candidates = models.resolver.candidates()
    current = models.resolver.providers.find(candidates[0].provider) if candidates else None
    return ModelBrowser(models).providers(), current.name if current is not None else ""


async def choose_card(models: Models, provider: str = "", name: str = "") -> ModelCard:
    """The model of an in-process provider, or the one that is chosen without any."""
    choice = await (models.choose_explicit(provider, name) if provider else models.choose())
    return ModelBrowser(models).card(choice.model, choice.provider)


async def find_model(models: Models, name: str, provider: str, *, default: str = "") -> ModelPick:
    """A model by its name, of the current provider or else of `default` if none is named. Raises
    when it cannot be used."""
    candidates = models.resolver.candidates()
    current = candidates[0].provider if candidates and default != EMBEDDED else default
    if not (provider or current or models.resolver.names.read(name).provider):
        raise UsageError(f"No provider is known for {name}; name one with --provider.")
    return await ModelBrowser(models).find(name, provider=provider, current=current)
