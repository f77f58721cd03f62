"""`hermes model`: the models that run on this machine."""

from __future__ import annotations

import asyncio
import sys

import click

from hermes.app.weights import (
    ModelRow,
    Weights,
    count_words,
    described,
    install_model,
    model_rows,
    remove_model,
    runtime_hint,
    size_words,
)
from hermes.codec.json import encode
from hermes.config.secrets import environment
from hermes.core.errors import UsageError
from hermes.surfaces.cli.place import config_of, home_of
from hermes.surfaces.cli.style import mark, styled

BAR_WIDTH = 30
STEP_PERCENT = 10

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(
    help="Models that run on this machine, from GGUF files. Without a command: list.",
    invoke_without_command=True,
)
@click.pass_context
def command(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_, as_json=False)


@command.command("list", help="What is installed and what can be.")
@as_json_option
@click.pass_context
def list_(ctx: click.Context, as_json: bool) -> None:
    rows = model_rows(home_of(ctx))
    if as_json:
        print(encode([_plain(row) for row in rows]).decode())
        return
    for row in rows:
        _print_row(row)
    _warn_without_runtime()


def _plain(row: ModelRow) -> dict[str, object]:
    fields = {name: getattr(row, name) for name in row.__struct_fields__}
    return {**fields, "installed": bool(row.path)}


def _print_row(row: ModelRow) -> None:
    if row.problem:
        print(f"{mark('error')} {row.name:<16} {row.problem}")
    elif row.path:
        what = f"{count_words(row.parameters)} parameters, {size_words(row.size)}"
        tools = "no tools" if row.reduced else "with tools"
        print(f"{mark('ok')} {row.name:<16} {what}, {tools}  {styled(row.path, 'dim')}")
    else:
        line = f"  {row.name:<16} {size_words(row.size)}, {row.licence}. {row.note}"
        print(f"{line} {styled(f'`hermes model install {row.name}`', 'dim')}")


@command.command(help="Fetch a model by its name (see `hermes model list`).")
@click.argument("name")
@click.pass_context
def install(ctx: click.Context, name: str) -> None:
    meter = Meter()
    try:
        path, was_there = asyncio.run(
            install_model(home_of(ctx), name, env=environment(), progress=meter)
        )
    finally:
        meter.close()
    if was_there:
        print(f"{name} is installed already: {path}")
    else:
        print(f"{mark('ok')} {path}")
    _warn_without_runtime()


@command.command(help="What a GGUF file or an installed model is; without one: the configured.")
@click.argument("file", required=False)
@as_json_option
@click.pass_context
def show(ctx: click.Context, file: str | None, as_json: bool) -> None:
    home = home_of(ctx)
    known = described(home, file or _configured(ctx))
    if as_json:
        print(encode(_facts(known)).decode())
        return
    for name, value in _facts(known).items():
        print(f"{styled(f'{name:<14}', 'dim')} {value}")
    print(known.line)


def _configured(ctx: click.Context) -> str:
    """The file of the settings, else the only one installed."""
    if given := config_of(ctx).settings.local.model:
        return given
    files = [row.path for row in model_rows(home_of(ctx)) if row.path]
    if len(files) != 1:
        raise UsageError("Name a GGUF file or an installed model; `hermes model list` shows them.")
    return files[0]


def _facts(known: Weights) -> dict[str, object]:
    return {
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


@command.command(help="Delete an installed model.")
@click.argument("name")
@click.pass_context
def remove(ctx: click.Context, name: str) -> None:
    print(f"removed {remove_model(home_of(ctx), name)}")


def _warn_without_runtime() -> None:
    if hint := runtime_hint():
        print(f"{styled('warning:', 'warn', sys.stderr)} {hint}", file=sys.stderr)


class Meter:
    """How far a download is: a bar that is drawn again where a person looks, else a line for
    every tenth. On stderr, so that the output stays what was asked for."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._shown = -1

    def __call__(self, done: int, whole: int) -> None:
        percent = done * 100 // whole
        if self._live:
            filled = percent * BAR_WIDTH // 100
            bar = "█" * filled + "░" * (BAR_WIDTH - filled)
            amounts = f"{done // 1_000_000} of {size_words(whole)}"
            print(f"\r{bar} {percent:3}%  {amounts}", end="", file=sys.stderr, flush=True)
            self._shown = percent
        elif percent // STEP_PERCENT > self._shown // STEP_PERCENT:
            self._shown = percent
            print(f"{percent}% of {size_words(whole)}", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._live and self._shown >= 0:
            print(file=sys.stderr)
