"""The part of `hermes setup` that finds models: prints them, and saves the chosen one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from hermes.config.environment import process_environment
from hermes.config.extras import add_command
from hermes.models.detection import DetectedModel, Detection, detect_models
from hermes.models.model_files import format_parameters, format_size, runtime_hint
from hermes.models.model_ref import EMBEDDED
from hermes.models.saved_choice import save_choice
from hermes.surfaces.cli.command_context import PickerRow, apply_style, config_of, mark
from hermes.surfaces.cli.commands.model_lookup import with_models
from hermes.surfaces.cli.output import Output, fields, pick

OTHER = "+other"


def detect(ctx: click.Context) -> Detection:
    env = process_environment()
    return with_models(ctx, lambda models: detect_models(models, env, folder=Path.cwd()))


def detection_output(found: Detection) -> Output:
    data = {
        "machine": found.machine,
        "models": [fields(row) for row in found.models],
        "advice": found.advice,
    }
    return Output(data, _lines(found))


def _lines(found: Detection) -> Iterator[str]:
    for row in found.models:
        sign = mark("ok") if row.recommended else "✗" if row.problem else " "
        yield f"{sign} {row.model or row.provider}  {describe_row(row)}"
        if row.command and not row.problem:
            yield apply_style(f"    {row.command}", "dim")
    if not found.models:
        yield "No key, no running server and no model file was found."
        yield "  hermes config set OPENROUTER_API_KEY …    a key, or another provider's"
        yield f"  {add_command('local')}                   then hermes -m FILE.gguf"
    yield found.advice


def describe_row(row: DetectedModel) -> str:
    """Recommendation or problem, size, expected speed and where it was found, as far as known."""
    parts = ["recommended"] if row.recommended else []
    parts += [row.problem] if row.problem else []
    if row.bytes:
        parts.append(format_size(row.bytes))
    if row.tokens_per_second:
        parts.append(f"about {row.tokens_per_second:g} tokens/s here")
    if row.parameters:
        parts.append(f"{format_parameters(row.parameters)} parameters")
    return " · ".join((*parts, row.found))


def choose_detected(ctx: click.Context) -> bool:
    """Offer what was found; whether a model was chosen and saved."""
    found = detect(ctx)
    print(found.advice)
    usable = [row for row in found.models if row.model]
    if not usable:
        return False
    rows = [
        PickerRow(text=row.model, value=str(n), note=describe_row(row), faint=bool(row.problem))
        for n, row in enumerate(usable)
    ]
    picked = pick("Which model?", [*rows, PickerRow(text="Another …", value=OTHER)])
    if picked is None or picked == OTHER:
        return False
    save_detected(ctx, usable[int(picked)])
    return True


def save_detected(ctx: click.Context, row: DetectedModel) -> None:
    save_choice(config_of(ctx), row.model, row.provider, base_url=row.base_url)
    print(f"{mark('ok')} {row.model} ({row.provider}) is the default now.")
    if row.provider == EMBEDDED and (hint := runtime_hint()):
        print(f"{mark('warn')} {hint}")
