"""`hermes model`: list and choose models; download and remove local ones."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from hermes.codec.values import Value
from hermes.commands.formatting import format_count
from hermes.commands.model import describe_model, describe_price
from hermes.config.environment import process_environment
from hermes.config.home import Home
from hermes.config.load import Config
from hermes.core.errors import HermesError, UsageError
from hermes.models.browser import ModelBrowser, ModelCard, ModelPick, ProviderRow
from hermes.models.model_files import (
    ModelRow,
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
from hermes.surfaces.cli.command_context import apply_style, config_of, home_of, mark, run
from hermes.surfaces.cli.commands.models import with_models
from hermes.surfaces.cli.output import Output, fields, json_output, table, text_output, warn

BAR_WIDTH = 30
STEP_PERCENT = 10


def list_files(home: Home) -> Output:
    """Installed models, and those that can be installed."""
    rows = model_rows(home)

    def lines() -> Iterator[str]:
        yield from map(_row_line, rows)
        warn_without_runtime()

    return Output([{**fields(row), "installed": bool(row.path)} for row in rows], lines())


def _row_line(row: ModelRow) -> str:
    if row.problem:
        return f"{mark('error')} {row.name:<16} {row.problem}"
    if row.path:
        what = f"{format_parameters(row.parameters)} parameters, {format_size(row.size)}"
        tools = "no tools" if row.reduced else "with tools"
        return f"{mark('ok')} {row.name:<16} {what}, {tools}  {apply_style(row.path, 'dim')}"
    line = f"  {row.name:<16} {format_size(row.size)}, {row.licence}. {row.note}"
    return f"{line} {apply_style(f'`hermes model install {row.name}`', 'dim')}"


def local_file(config: Config) -> str:
    """The configured file, else the only installed one, else ""."""
    if given := config.settings.local.model:
        return given
    files = [row.path for row in model_rows(config.home) if row.path]
    return files[0] if len(files) == 1 else ""


def is_file_of(home: Home, name: str) -> bool:
    """Whether the name means a model file: by its suffix, or because it is installed."""
    if name.endswith(".gguf"):
        return True
    try:
        inspect_model_file(home, name)
    except HermesError:
        return False
    return True


def describe_file(home: Home, name: str) -> Output:
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


@click.command(help="Download a local model (see `hermes model list embedded`).")
@click.argument("name")
@click.pass_context
def install(ctx: click.Context, name: str) -> None:
    meter = DownloadProgress()
    try:
        path, was_there = run(
            install_model(home_of(ctx), name, env=process_environment(), progress=meter)
        )
    finally:
        meter.close()
    if was_there:
        print(f"{name} is already installed: {path}")
    else:
        print(f"{mark('ok')} {path}")
    warn_without_runtime()


@click.command(help="Delete an installed model.")
@click.argument("name")
@text_output()
def remove(ctx: click.Context, name: str) -> str:
    return f"removed {remove_model(home_of(ctx), name)}"


def warn_without_runtime() -> None:
    if hint := runtime_hint():
        warn(hint)


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


HOW = """\
There is no terminal to choose in. Use instead:
  hermes model list [PROVIDER]                         list what can be chosen
  hermes model set NAME [--provider P] [--base-url U]  choose for new sessions
  hermes model show                                    show the current model
  hermes model install NAME                            download one that runs locally"""
WIDTHS = (44, 8, 28, 10)


class Current(Value):
    """The current model, and what chose it."""

    card: ModelCard
    why: str = ""


@click.group(
    help="List and choose models. Without a command: choose in the terminal.",
    invoke_without_command=True,
)
@click.option("--refresh", is_flag=True, help="Ask providers for their current lists.")
@click.option("--no-browser", is_flag=True, help="For a login, print the URL only.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    help="How long to wait for a login.",
)
@click.pass_context
def command(ctx: click.Context, refresh: bool, no_browser: bool, timeout: float | None) -> None:
    if ctx.invoked_subcommand is not None:
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print(HOW)
        return
    # The list picker loads a large library.
    from hermes.surfaces.cli.commands.model_wizard import WizardOptions, run_wizard

    run_wizard(ctx, WizardOptions(refresh=refresh, browser=not no_browser, login_seconds=timeout))


command.add_command(install)
command.add_command(remove)


@command.command("list", help="List the providers, or the models of one.")
@click.argument("provider", required=False, default="")
@click.option("--refresh", is_flag=True, help="Ask the provider for its current list.")
@json_output()
def list_(ctx: click.Context, provider: str, refresh: bool) -> Output:
    if provider == EMBEDDED:
        return list_files(home_of(ctx))
    return _list_models(ctx, provider, refresh) if provider else _list_providers(ctx)


def _list_models(ctx: click.Context, provider: str, refresh: bool) -> Output:
    found = with_models(
        ctx, lambda models, _: ModelBrowser(models).cards(provider, refresh=refresh)
    )
    if found.problem:
        warn(found.problem)
    head = ("Model", "Window", "Price", "Pictures")
    lines = [*table([head, *map(_cells, found.cards)], WIDTHS)]
    if not found.live:
        lines.append(apply_style("From the built-in list; --refresh asks the provider.", "dim"))
    return Output(found.cards, lines)


def _cells(card: ModelCard) -> tuple[str, str, str, str]:
    vision = {True: "yes", False: "no", None: ""}[card.vision]
    return card.model, format_count(card.window), describe_price(card), vision


def _list_providers(ctx: click.Context) -> Output:
    async def work(models: Models, _: Config) -> tuple[tuple[ProviderRow, ...], str]:
        candidates = models.resolver.candidates()
        place = models.resolver.providers.find(candidates[0].provider) if candidates else None
        return ModelBrowser(models).providers(), place.name if place is not None else ""

    rows, current = with_models(ctx, work)

    def lines() -> Iterator[str]:
        for row in rows:
            sign = mark("ok") if row.usable else " "
            arrow = " ← in use" if row.name == current else ""
            line = f"{sign} {row.name:<20} {row.label:<24}{arrow}"
            yield (
                line.rstrip()
                if row.usable
                else apply_style(f"{line} {_short(row)}".rstrip(), "dim")
            )
        yield "`hermes model list PROVIDER` lists its models, `hermes model set NAME` chooses one."

    return Output([{**fields(row), "current": row.name == current} for row in rows], lines())


def _short(row: ProviderRow) -> str:
    """What is missing, without the advice, which is the same in every line."""
    return row.problem.partition(";")[0].rpartition(", and ")[2].rstrip(".")


@command.command(help="Show the current model, or a named model or file.")
@click.argument("name", required=False, default="")
@click.option("--provider", default="", help="The provider of the named model.")
@json_output()
def show(ctx: click.Context, name: str, provider: str) -> Output:
    home, config = home_of(ctx), config_of(ctx)
    if name and not provider and is_file_of(home, name):
        return describe_file(home, name)
    current = with_models(ctx, lambda models, _: _current(models, name, provider))
    if not name and current is None and (file := local_file(config)):
        return describe_file(home, file)
    current = current or with_models(ctx, lambda models, _: _nearby(models))
    card = current.card
    where = f" at {card.host} ({card.wire})" if card.host else ""
    lines = [f"{apply_style(card.model, 'bold')} ({card.provider}){where}", describe_model(card)]
    if current.why:
        explain = f"chosen by {current.why}; see `hermes config explain model`"
        lines.append(apply_style(explain, "dim"))
    return Output({**fields(card), "why": current.why}, lines)


async def _current(models: Models, name: str, provider: str) -> Current | None:
    """The named model, else the configured one; None when none is configured."""
    shelf, candidates = ModelBrowser(models), models.resolver.candidates()
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
    card = ModelBrowser(models).card(choice.model, choice.provider)
    return Current(card=card, why="availability: nothing is configured")


@command.command("set", help="Choose the model for new sessions (in a chat: /model).")
@click.argument("name")
@click.option("--provider", default="", help="The provider that serves it.")
@click.option("--base-url", default="", help="Base URL of a custom endpoint.")
@click.pass_context
def set_(ctx: click.Context, name: str, provider: str, base_url: str) -> None:
    async def work(models: Models, config: Config) -> ModelPick:
        if base_url:
            return await choose_address(models, config, name, base_url, provider)
        return await choose_model(models, config, name, provider)

    pick = with_models(ctx, work)
    for warning in pick.warnings:
        warn(warning)
    print(f"{mark('ok')} {pick.card.model} ({pick.card.provider}): {describe_model(pick.card)}")
    for finding in config_of(ctx).diagnostics:
        if finding.key in ("model.default", "model.provider"):
            warn(finding.text)


async def choose_model(models: Models, config: Config, name: str, provider: str) -> ModelPick:
    """Find and save a model. Raises when it cannot be used."""
    candidates = models.resolver.candidates()
    named = provider or models.resolver.names.read(name).provider
    owner = models.resolver.names.owner(name)
    current = candidates[0].provider if candidates else owner.name if owner is not None else ""
    if name.endswith(".gguf"):
        current = EMBEDDED
    if not named and not current:
        raise UsageError(f"Which provider serves {name}? Name it with --provider.")
    pick = await ModelBrowser(models).find(name, provider=provider, current=current)
    url = models.found_url(pick.card.provider)
    save_choice(config, pick.card.model, pick.card.provider, base_url=url)
    return pick


async def choose_address(
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
    better = (await ModelBrowser(models).probe_server(url)).url
    warnings = []
    if not better:
        warnings.append(f"{url} does not list any models; check that it is right and running.")
    elif better.rstrip("/") != url.rstrip("/"):
        warnings.append(f"The models are at {better}; that URL was saved.")
    wish = models.ref(name, CUSTOM)
    card = ModelBrowser(models).card_at(wish, better or url)
    save_choice(config, name, CUSTOM, base_url=better or url)
    return ModelPick(card=card, warnings=tuple(warnings))
