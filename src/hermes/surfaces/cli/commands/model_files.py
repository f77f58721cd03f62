"""Local model files: list, describe, download and remove them."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from hermes.config.home import Home
from hermes.config.load import Config
from hermes.config.secrets import process_environment
from hermes.core.errors import HermesError
from hermes.models.weights import (
    ModelRow,
    describe_model,
    format_count,
    format_size,
    install_model,
    model_rows,
    remove_model,
    runtime_hint,
)
from hermes.surfaces.cli.interruptible import run
from hermes.surfaces.cli.output import Output, fields, text_output, warn
from hermes.surfaces.cli.place import home_of
from hermes.surfaces.cli.style import apply_style, mark

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
        what = f"{format_count(row.parameters)} parameters, {format_size(row.size)}"
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
        describe_model(home, name)
    except HermesError:
        return False
    return True


def describe_file(home: Home, name: str) -> Output:
    known = describe_model(home, name)
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
