"""Models that run on this machine, as `hermes model` shows, fetches and removes them."""

from __future__ import annotations

import sys

import click

from hermes.codec.values import JsonObject
from hermes.config.home import Home
from hermes.config.load import Config
from hermes.config.secrets import environment
from hermes.core.errors import HermesError
from hermes.models.weights import (
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
from hermes.surfaces.cli.interruptible import run
from hermes.surfaces.cli.output import columns, print_json
from hermes.surfaces.cli.place import home_of
from hermes.surfaces.cli.style import mark, styled

BAR_WIDTH = 30
STEP_PERCENT = 10


def show_files(home: Home, *, as_json: bool) -> None:
    """What is installed and what can be."""
    rows = model_rows(home)
    if as_json:
        print_json([{**_plain(row), "installed": bool(row.path)} for row in rows])
        return
    for row in rows:
        _print_row(row)
    warn_without_runtime()


def _plain(row: ModelRow) -> JsonObject:
    plain = columns(row)
    assert isinstance(plain, dict)
    return plain


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


def local_file(config: Config) -> str:
    """The file of the settings, else the only one installed, else ""."""
    if given := config.settings.local.model:
        return given
    files = [row.path for row in model_rows(config.home) if row.path]
    return files[0] if len(files) == 1 else ""


def is_file_of(home: Home, name: str) -> bool:
    """Whether the name means a file: it looks like one, or is installed."""
    if name.endswith(".gguf"):
        return True
    try:
        described(home, name)
    except HermesError:
        return False
    return True


def show_file(home: Home, name: str, *, as_json: bool) -> None:
    known = described(home, name)
    if as_json:
        print_json(_facts(known))
        return
    for fact, value in _facts(known).items():
        print(f"{styled(f'{fact:<14}', 'dim')} {value}")
    print(known.line)


def _facts(known: Weights) -> JsonObject:
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


@click.command(help="Fetch a model that runs on this machine (see `hermes model list embedded`).")
@click.argument("name")
@click.pass_context
def install(ctx: click.Context, name: str) -> None:
    meter = Meter()
    try:
        path, was_there = run(install_model(home_of(ctx), name, env=environment(), progress=meter))
    finally:
        meter.close()
    if was_there:
        print(f"{name} is installed already: {path}")
    else:
        print(f"{mark('ok')} {path}")
    warn_without_runtime()


@click.command(help="Delete an installed model.")
@click.argument("name")
@click.pass_context
def remove(ctx: click.Context, name: str) -> None:
    print(f"removed {remove_model(home_of(ctx), name)}")


def warn_without_runtime() -> None:
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
