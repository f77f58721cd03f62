"""`hermes model`: list, choose and explain models; download and remove local ones."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from hermes.commands.formatting import format_count
from hermes.commands.model import describe_model, describe_price
from hermes.config.environment import process_environment
from hermes.config.home import Home
from hermes.config.load import Config
from hermes.core.errors import HermesError, UsageError
from hermes.models.browser import ModelBrowser, ModelCard, ModelPick
from hermes.models.model_files import (
    format_parameters,
    format_size,
    inspect_model_file,
    install_model,
    model_rows,
    remove_model,
    runtime_hint,
)
from hermes.models.model_ref import CUSTOM, EMBEDDED
from hermes.models.models import Models
from hermes.models.saved_choice import save_choice
from hermes.surfaces.cli.command_context import (
    apply_style,
    config_of,
    home_of,
    is_terminal,
    mark,
    run,
    warn,
)
from hermes.surfaces.cli.commands.model_lookup import (
    find_model,
    list_providers,
    with_models,
)
from hermes.surfaces.cli.output import CommandGroup, Output, fields, table

BAR_WIDTH = 30
STEP_PERCENT = 10
NO_TERMINAL = """\
Choosing needs a terminal. Use instead:
  hermes model list [PROVIDER]                         list what can be chosen
  hermes model set NAME [--provider P] [--base-url U]  choose for new sessions
  hermes model show                                    show the current model
  hermes model install NAME                            download one that runs locally"""
WIDTHS = (44, 8, 28, 10)


@click.group(
    cls=CommandGroup,
    help="List, choose and install models. Without a command, choose in the terminal.",
    invoke_without_command=True,
)
@click.option("--refresh", is_flag=True, help="Ask providers for their current models.")
@click.option("--no-browser", is_flag=True, help="For a login, print the URL only.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    help="Wait at most this long for a login.",
)
@click.pass_context
def command(ctx: click.Context, refresh: bool, no_browser: bool, timeout: float | None) -> None:
    if ctx.invoked_subcommand is not None:
        return
    if not is_terminal():
        print(NO_TERMINAL)
        return
    from hermes.surfaces.cli.commands.model_wizard import WizardOptions, run_wizard

    run_wizard(ctx, WizardOptions(refresh=refresh, browser=not no_browser, login_seconds=timeout))


@command.text("Download a local model; `hermes model list embedded` lists them.")
def install(ctx: click.Context, name: str) -> None:
    progress, home, env = DownloadProgress(), home_of(ctx), process_environment()
    try:
        path, was_there = run(install_model(home, name, env=env, progress=progress))
    finally:
        progress.close()
    print(f"{name} is already installed: {path}" if was_there else f"{mark('ok')} {path}")
    print(f"Use it with `hermes --provider embedded -m {name}`.", file=sys.stderr)
    _warn_without_runtime()


class DownloadProgress:
    """Download progress on stderr: a bar on a terminal, else a line for every 10 %."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._shown = -1

    def __call__(self, done: int, whole: int) -> None:
        percent = done * 100 // whole
        if self._live:
            filled = percent * BAR_WIDTH // 100
            bar = "█" * filled + "░" * (BAR_WIDTH - filled)
            amounts = f"{done // 1_000_000} of {format_size(whole)}"
            print(f"\r{bar} {percent:3}%  {amounts}", end="", file=sys.stderr, flush=True)
            self._shown = percent
        elif percent // STEP_PERCENT > self._shown // STEP_PERCENT:
            self._shown = percent
            print(f"{percent}% of {format_size(whole)}", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._live and self._shown >= 0:
            print(file=sys.stderr)


def _warn_without_runtime() -> None:
    if hint := runtime_hint():
        warn(hint)


@command.text("Delete a downloaded model.")
def remove(ctx: click.Context, name: str) -> str:
    return f"{mark('ok')} {remove_model(home_of(ctx), name)} is deleted."


@command.json("List providers, or the models of one provider.")
@click.option("--refresh", is_flag=True, help="Ask the provider for its current models.")
def list_(ctx: click.Context, *, provider: str = "", refresh: bool) -> Output:
    if provider == EMBEDDED:
        return _list_files(home_of(ctx))
    return _list_models(ctx, provider, refresh) if provider else _list_providers(ctx)


def _list_files(home: Home) -> Output:
    """Installed models, and those that can be installed."""
    rows = model_rows(home)

    def lines() -> Iterator[str]:
        for row in rows:
            name, size = f"{row.name:<16}", format_size(row.size)
            if row.problem:
                yield f"{mark('error')} {name} {row.problem}"
            elif row.path:
                tools = "no tools" if row.reduced else "with tools"
                what = f"{format_parameters(row.parameters)} parameters, {size}, {tools}"
                yield f"{mark('ok')} {name} {what}  {apply_style(row.path, 'dim')}"
            else:
                hint = apply_style(f"`hermes model install {row.name}`", "dim")
                yield f"  {name} {size}, {row.licence}. {row.note} {hint}"
        _warn_without_runtime()

    return Output([{**fields(row), "installed": bool(row.path)} for row in rows], lines())


def _list_models(ctx: click.Context, provider: str, refresh: bool) -> Output:
    found = with_models(ctx, lambda models: ModelBrowser(models).cards(provider, refresh=refresh))
    if found.problem:
        warn(found.problem)
    vision = {True: "yes", False: "no", None: ""}
    rows = [
        (card.model, format_count(card.window), describe_price(card), vision[card.vision])
        for card in found.cards
    ]
    lines = [*table([("Model", "Window", "Price", "Vision"), *rows], WIDTHS)]
    if not found.live:
        lines.append(apply_style("This is the built-in list; --refresh asks the provider.", "dim"))
    return Output(found.cards, lines)


def _list_providers(ctx: click.Context) -> Output:
    rows, current = with_models(ctx, list_providers)

    def lines() -> Iterator[str]:
        for row in rows:
            arrow = " ← in use" if row.name == current else ""
            line = f"{mark('ok') if row.usable else ' '} {row.name:<20} {row.label:<24}{arrow}"
            # What is missing, without the advice, which is the same in every line.
            missing = row.problem.partition(";")[0].rpartition(", and ")[2].rstrip(".")
            dim = apply_style(f"{line} {missing}".rstrip(), "dim")
            yield line.rstrip() if row.usable else dim
        yield "`hermes model list PROVIDER` lists its models; `hermes model set NAME` chooses one."

    return Output([{**fields(row), "current": row.name == current} for row in rows], lines())


@command.json("Show the current model, or a named model or file.")
@click.option("--provider", default="", help="Look for the model at this provider.")
def show(ctx: click.Context, *, name: str = "", provider: str) -> Output:
    home = home_of(ctx)
    if name and not provider and _is_file_of(home, name):
        return _describe_file(home, name)
    card, why = with_models(ctx, lambda models: _find_model(models, name, provider))
    if card.provider == EMBEDDED:
        return _describe_file(home, card.model)
    where = f" at {card.host} ({card.wire})" if card.host else ""
    lines = [f"{apply_style(card.model, 'bold')} ({card.provider}){where}", describe_model(card)]
    if why:
        lines.append(apply_style(f"chosen by {why}; see `hermes config explain model`", "dim"))
    return Output({**fields(card), "why": why}, lines)


async def _find_model(models: Models, name: str, provider: str) -> tuple[ModelCard, str]:
    """The named model, else the one that answers, with what chose it."""
    browser, candidates = ModelBrowser(models), models.resolver.candidates()
    if name:
        current = candidates[0].provider if candidates else ""
        return (await browser.find(name, provider=provider, current=current)).card, ""
    choice = await models.choose()
    return browser.card(choice.model, choice.provider), choice.why


def _is_file_of(home: Home, name: str) -> bool:
    """Whether the name means a model file: by its suffix, or because it is installed."""
    try:
        return name.endswith(".gguf") or bool(inspect_model_file(home, name))
    except HermesError:
        return False


def _describe_file(home: Home, name: str) -> Output:
    known = inspect_model_file(home, name)
    facts = {
        "path": str(known.path),
        "name": known.name,
        "architecture": known.architecture,
        "parameters": known.parameters,
        "size": known.size,
        "window": known.window,
        "trained_window": known.trained,
        "licence": known.licence,
        "chat_template": known.has_template,
        "reduced": known.small,
    }
    lines = [f"{apply_style(f'{fact:<14}', 'dim')} {value}" for fact, value in facts.items()]
    return Output(facts, [*lines, known.summary])


@command.text("Choose the model of new sessions; in a chat, use /model.")
@click.option("--provider", default="", help="Use this provider.")
@click.option("--base-url", default="", help="Use the custom endpoint at this URL.")
def set_(ctx: click.Context, name: str, provider: str, base_url: str) -> Iterator[str]:
    config = config_of(ctx)
    if base_url:
        pick = with_models(
            ctx, lambda models: _choose_address(models, config, name, base_url, provider)
        )
    else:
        pick = with_models(ctx, lambda models: _choose_model(models, config, name, provider))
    for warning in pick.warnings:
        warn(warning)
    yield f"{mark('ok')} {pick.card.model} ({pick.card.provider}): {describe_model(pick.card)}"
    for finding in config_of(ctx).diagnostics:
        if finding.key in ("model.default", "model.provider"):
            warn(finding.text)


async def _choose_model(models: Models, config: Config, name: str, provider: str) -> ModelPick:
    """Find and save a model. Raises when it cannot be used."""
    owner = models.resolver.names.owner(name)
    default = EMBEDDED if name.endswith(".gguf") else owner.name if owner is not None else ""
    pick = await find_model(models, name, provider, default=default)
    url = models.found_url(pick.card.provider)
    save_choice(config, pick.card.model, pick.card.provider, base_url=url)
    return pick


async def _choose_address(
    models: Models, config: Config, name: str, url: str, provider: str
) -> ModelPick:
    """Save a custom endpoint. Its model list shows whether the URL is right; a corrected URL is
    saved with a warning."""
    if provider and provider != CUSTOM:
        raise UsageError(
            f"--base-url is for custom endpoints; for {provider} set providers.{provider}."
            "base_url with `hermes config set`."
        )
    models.refuse_key(name)
    browser, warnings = ModelBrowser(models), []
    better = (await browser.probe_server(url)).url
    if not better:
        warnings.append(f"{url} lists no models; check the URL and that the server runs.")
    elif better.rstrip("/") != url.rstrip("/"):
        warnings.append(f"The models are at {better}; this URL was saved.")
    card = browser.card_at(models.ref(name, CUSTOM), better or url)
    save_choice(config, name, CUSTOM, base_url=better or url)
    return ModelPick(card=card, warnings=tuple(warnings))
