"""Local model files: list, describe, download and remove them."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from hermes.config.home import Home
from hermes.config.load import Config
from hermes.config.secrets import environment
from hermes.core.errors import HermesError
from hermes.models.weights import (
    ModelRow,
    count_words,
    described,
    install_model,
    model_rows,
    remove_model,
    runtime_hint,
    size_words,
)
from hermes.surfaces.cli.interruptible import run
from hermes.surfaces.cli.output import Output, fields, text_output, warn
from hermes.surfaces.cli.place import home_of
from hermes.surfaces.cli.style import mark, styled

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
        what = f"{count_words(row.parameters)} parameters, {size_words(row.size)}"
        tools = "no tools" if row.reduced else "with tools"
        return f"{mark('ok')} {row.name:<16} {what}, {tools}  {styled(row.path, 'dim')}"
    line = f"  {row.name:<16} {size_words(row.size)}, {row.licence}. {row.note}"
    return f"{line} {styled(f'`hermes model install {row.name}`', 'dim')}"


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
        described(home, name)
    except HermesError:
        return False
    return True


def describe_file(home: Home, name: str) -> Output:
    known = described(home, name)
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
    lines = [f"{styled(f'{fact:<14}', 'dim')} {value}" for fact, value in facts.items()]
    return Output(facts, [*lines, known.line])


@click.command(help="Download a local model (see `hermes model list embedded`).")
@click.argument("name")
@click.pass_context
def install(ctx: click.Context, name: str) -> None:
    meter = Meter()
    try:
        path, was_there = run(install_model(home_of(ctx), name, env=environment(), progress=meter))
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


class Meter:
    """Download progress on stderr: a bar on a terminal, else a line for every 10 %."""

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
