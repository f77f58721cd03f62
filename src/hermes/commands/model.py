"""`/model`: shows or switches the model of the session."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.commands.formatting import format_count
from hermes.commands.registry import (
    CommandContext,
    SlashCommand,
    Suggestion,
    split_flags,
    suggest,
)
from hermes.core.errors import HermesError, NotFound, UsageError
from hermes.models.browser import ModelBrowser, ModelCard, ModelCards, find_answer
from hermes.models.model_ref import IN_PROCESS
from hermes.models.saved_choice import save_choice, switch


def describe_model(card: ModelCard) -> str:
    """Context window, price, vision and tool support, as far as known."""
    parts = [f"context window {format_count(card.window) if card.window else 'unknown'}"]
    parts.append(describe_price(card))
    if card.vision is not None:
        parts.append("vision" if card.vision else "no vision")
    if card.tools is False:
        parts.append("no tools")
    return ", ".join(parts)


def describe_price(card: ModelCard) -> str:
    if card.included:
        return "no charge per token"
    if card.price_input is None or card.price_output is None:
        return "price unknown"
    if not card.price_input and not card.price_output:
        return "free"
    return f"{_dollars(card.price_input)} in / {_dollars(card.price_output)} out per M"


def _dollars(amount: float) -> str:
    return f"${amount:.2f}" if amount >= 0.1 or not amount else f"${amount:.3g}"


SHOWN = 15
SUGGESTED = 30
SCOPES = ("--session", "--global", "--once")
FLAGS = (*SCOPES, "--refresh", "--force")


async def model(here: CommandContext, argument: str) -> str:
    name, provider, flags = parse_arguments(argument)
    browser = ModelBrowser(here.app.models)
    if not name and not provider:
        return await _overview(here, browser, refresh="--refresh" in flags)
    now = here.session.transcript
    if name.isdecimal() and 1 <= int(name) <= SHOWN:
        cards = (await _list_models(here, browser)).cards
        if int(name) > len(cards):
            count = f"The list has {len(cards)} models"
            raise NotFound(f"{count}; give a number in the list, or a name.")
        name = cards[int(name) - 1].model
    pick = await browser.find(
        name,
        provider=provider,
        current=now.provider,
        refresh="--refresh" in flags,
        force="--force" in flags,
    )
    lines = list(pick.warnings)
    if "--force" not in flags and (tight := _misfit(here, pick.card, argument)):
        return "\n".join((*lines, tight))
    before = (now.model, now.provider)
    await switch(here.session, pick.card.model, pick.card.provider)
    lines.append(f"{pick.card.model} ({pick.card.provider}): {describe_model(pick.card)}.")
    lines.append(_apply_scope(here, flags, pick.card, before))
    return "\n".join(lines)


def parse_arguments(argument: str) -> tuple[str, str, set[str]]:
    """The name, the provider and the flags. Raises UsageError for an unknown option."""
    rest, flags = split_flags(argument, *FLAGS)
    before, option, after = f" {rest} ".partition(" --provider ")
    provider, _, others = after.strip().partition(" ")
    names = f"{before} {others}".split()
    if option and not provider:
        raise UsageError("--provider needs the name of a provider.")
    for word in (provider, *names):
        if word.startswith("--"):
            raise UsageError(f"/model has no option {word}; use --provider, {', '.join(FLAGS)}.")
    if len(names) > 1:
        raise UsageError("/model takes one name; model names have no spaces.")
    if len(flags.intersection(SCOPES)) > 1:
        raise UsageError("Give only one of --session, --global and --once.")
    return "".join(names), provider, flags


async def models_like(here: CommandContext, begun: str) -> Sequence[Suggestion]:
    """Matching aliases, models of the current provider, and providers."""
    word = begun.rpartition(" ")[2]
    if word.startswith("--"):
        return suggest(("--provider", *FLAGS), word)
    resolver = here.app.models.resolver
    provider = resolver.providers.find(here.session.transcript.provider)
    names = dict.fromkeys(here.app.context.settings.model_aliases, "alias")
    if provider is not None:
        names |= dict.fromkeys(resolver.known_models(provider), provider.name)
    names |= dict.fromkeys((f"{name}:" for name in resolver.providers.names()), "provider")
    fitting = [name for name in names if word.lower() in name.lower()]
    return [
        Suggestion(text=name, description=names[name], replaces=len(word))
        for name in fitting[:SUGGESTED]
    ]


MODEL_COMMANDS = (
    SlashCommand(
        "model [NAME] [--provider P] [--session|--global|--once] [--refresh]",
        "Show or switch the model; --once: for one turn, --global: for all new sessions.",
        model,
        complete=models_like,
    ),
)


async def _overview(here: CommandContext, browser: ModelBrowser, *, refresh: bool) -> str:
    now = here.session.transcript
    card = browser.card(now.model, now.provider)
    lines = [f"{now.model} ({now.provider}): {describe_model(card)}."]
    lines.append(await _reason(here))
    listed = await _list_models(here, browser, refresh=refresh)
    if listed.problem:
        lines.append(listed.problem)
    for number, each in enumerate(listed.cards[:SHOWN], start=1):
        mark = "  (current)" if each.model == now.model else ""
        lines.append(f"{number:3}  {each.model}  {describe_model(each)}{mark}")
    if len(listed.cards) > SHOWN:
        lines.append(f"     … and {len(listed.cards) - SHOWN} more; press Tab after /model NAME.")
    others = [row.name for row in browser.providers() if row.usable and row.name != now.provider]
    lines.append(f"Other providers: {', '.join(others)}.")
    lines.append("Use /model with a number, a name, or provider:name.")
    return "\n".join(lines)


async def _reason(here: CommandContext) -> str:
    """What chose the model of the session."""
    now = here.session.transcript
    answer = await find_answer(here.app.models, here.app.context.config)
    if (answer.model, answer.provider) != (now.model, now.provider):
        return "It was chosen in this session."
    return answer.problem or f"Chosen by {answer.why}."


async def _list_models(
    here: CommandContext, browser: ModelBrowser, *, refresh: bool = False
) -> ModelCards:
    provider = here.session.transcript.provider
    if provider in IN_PROCESS:
        return ModelCards(cards=())
    try:
        return await browser.cards(provider, refresh=refresh)
    except HermesError as error:
        return ModelCards(cards=(), problem=str(error))


def _misfit(here: CommandContext, card: ModelCard, argument: str) -> str:
    """Why the conversation does not fit the model, with advice; "" when it fits."""
    used = here.session.transcript.last_prompt
    if not card.window or used <= card.window:
        return ""
    ways = [way for way in ("/compress", "/new") if here.registry.find(way[1:]) is not None]
    return (
        f"This conversation has {format_count(used)} tokens; the context window of {card.model} is "
        f"{format_count(card.window)}. Nothing was changed. Use {' or '.join(ways)} first, or "
        f"switch anyway with /model {argument} --force."
    )


def _apply_scope(
    here: CommandContext, flags: set[str], card: ModelCard, before: tuple[str, str]
) -> str:
    """Apply the choice and describe its scope."""
    if "--once" in flags:
        here.app.switch_back(here.session, *before)
        return f"This applies to the next turn; then {before[0]} answers again."
    by_default = (
        here.app.context.settings.model.persist_switch_by_default and "--session" not in flags
    )
    if "--global" in flags or by_default:
        url = here.app.models.found_url(card.provider)
        save_choice(here.app.context.config, card.model, card.provider, base_url=url)
        return "New sessions use it, too."
    return "This applies to this session; --global makes it the default."
