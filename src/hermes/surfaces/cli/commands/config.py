"""`hermes config`: show, explain and change settings."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

import click

from hermes.codec.json import encode, plain
from hermes.codec.values import JsonValue
from hermes.config.check import check_files
from hermes.config.diagnostics import Diagnostic
from hermes.config.edit import migrate_file, set_from_text, unset
from hermes.config.environment import display_value, mask
from hermes.config.home import replace_file
from hermes.config.load import Explanation
from hermes.config.migrations import Removed, newest_version
from hermes.config.schema import describe_type, format_key, parse_key
from hermes.core.errors import ConfigError
from hermes.surfaces.cli.command_context import apply_style, config_of, home_of, mark, warn
from hermes.surfaces.cli.output import CommandGroup, Output

NEW_FILE = b"# Settings of Hermes. `hermes config show` lists them with their values.\n"

command = CommandGroup(
    help="Show, explain and change settings. Without a command, show them all.", default="show"
)


@command.json("Show every setting, its value and its source.")
def show(ctx: click.Context) -> Output:
    config = config_of(ctx)
    settings = [config.explain(key) for key in config.known_keys()]
    data = {
        each.key: {"value": _masked_value(each), "source": str(each.source)} for each in settings
    }

    def lines() -> Iterator[str]:
        _warn(finding for finding in config.diagnostics if finding.level != "error")
        section = None
        for each in settings:
            parent = format_key(each.setting.path[:-1]) or "(top level)"
            if parent != section:
                yield ("" if section is None else "\n") + apply_style(parent, "bold")
                section = parent
            line = f"  {each.setting.path[-1]:<30} {_text(_masked_value(each)):<24} {each.source}"
            yield apply_style(line, "dim") if each.source.kind == "default" else line

    return Output(data, lines())


@command.json("Show the value of a setting, a section, or a secret (masked).")
@click.option("--source", "with_source", is_flag=True, help="Also show where the value comes from.")
def get(ctx: click.Context, key: str, with_source: bool) -> Output:
    config, start = config_of(ctx), parse_key(key)
    below = [
        known
        for known in config.known_keys()
        if parse_key(known)[: len(start)] == start and parse_key(known) != start
    ]
    rows: list[tuple[str, JsonValue, object]]
    if value := config.secrets.get(key):
        rows, below = [(key, mask(value), config.secrets.source(key))], []
    else:
        found = [(known, config.explain(known)) for known in below or [key]]
        rows = [(known, _masked_value(each), each.source) for known, each in found]
    lines = [
        (f"{name} = " if below else "")
        + _text(value)
        + (apply_style(f"  ({source})", "dim") if with_source else "")
        for name, value, source in rows
    ]
    data = [{"key": name, "value": value, "source": str(source)} for name, value, source in rows]
    return Output(data, lines, json_lines=True)


@command.json(
    "Explain a setting: its meaning, where its value comes from, and what it overrides. `model` "
    "explains which model answers."
)
def explain(ctx: click.Context, key: str) -> Output:
    config = config_of(ctx)
    if key == "model":
        # The model follows from more than one setting.
        from hermes.surfaces.cli.commands.model_lookup import explain_model

        return explain_model(ctx)
    found = config.explain(key)
    secret, kind = found.setting.secret, describe_type(found.setting.kind)
    hidden = [
        (str(held.source), display_value(held.value, secret=secret)) for held in found.shadows
    ]
    data = {
        "key": found.key,
        "value": _masked_value(found),
        "source": str(found.source),
        "shadows": [{"source": source, "value": value} for source, value in hidden],
        "kind": kind,
        "meaning": found.setting.meaning,
    }
    lines = [
        f"{apply_style(found.key, 'bold')} = {_text(_masked_value(found))}",
        f"  {found.setting.meaning} Must be {kind}.",
        f"  from      {found.source}",
        *(
            apply_style(f"  overrides {_text(value)}  ({source})", "dim")
            for source, value in hidden
        ),
    ]
    return Output(data, lines)


@command.text("Change a setting in config.yaml, or a secret (NAME_IN_CAPITALS) in .env.")
@click.option("--force", is_flag=True, help="Write even an unknown key.")
def set_(ctx: click.Context, key: str, value: str, force: bool) -> None:
    edited = set_from_text(home_of(ctx), key, value, force=force)
    print(f"{edited.key} = {edited.shown}  ({edited.place})")
    # Warn when something overrides the new value.
    _warn(finding for finding in config_of(ctx).diagnostics if finding.key == edited.key)


@command.text("Remove a setting from config.yaml, or a secret from .env.")
def unset_(ctx: click.Context, key: str) -> str:
    edited = unset(home_of(ctx), key)
    return f"{edited.key} is no longer set in {edited.place}."


@command.text("Print the path of config.yaml.")
def path(ctx: click.Context) -> str:
    return str(home_of(ctx).config)


@command.text("Print the path of .env.")
def env_path(ctx: click.Context) -> str:
    return str(home_of(ctx).env_file)


@command.text("Open config.yaml in your editor ($VISUAL or $EDITOR).")
def edit(ctx: click.Context) -> None:
    home = home_of(ctx)
    if not sys.stdin.isatty():
        raise ConfigError(f"Editing needs a terminal; change {home.config} in an editor.")
    if not home.config.exists():
        replace_file(home, home.config, NEW_FILE)
    click.edit(filename=str(home.config))
    _warn(config_of(ctx, quiet=True).diagnostics)


@command.json("Check config.yaml and .env, and report problems.")
def check(ctx: click.Context) -> Output:
    findings = check_files(config_of(ctx, quiet=True))

    def lines() -> Iterator[str]:
        for finding in findings:
            yield f"{mark(finding.level)} {finding.text}"
            if finding.fix:
                yield apply_style(f"  → {finding.fix}", "dim")

    failed = any(finding.level == "error" for finding in findings)
    return Output([plain(finding) for finding in findings], lines(), code=failed)


@command.text("Migrate config.yaml to the newest version, and keep a copy of the old file.")
def migrate(ctx: click.Context) -> list[str]:
    changes = migrate_file(home_of(ctx))
    lines = [
        f"{format_key(key)} "
        + ("removed" if isinstance(value, Removed) else f"= {_text(display_value(value))}")
        for key, value in changes.items()
    ]
    return lines or [f"config.yaml is up to date (version {newest_version()})."]


def _masked_value(explanation: Explanation) -> JsonValue:
    return display_value(explanation.value, secret=explanation.setting.secret)


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) and value else encode(value).decode()


def _warn(findings: Iterable[Diagnostic]) -> None:
    for finding in findings:
        warn(finding.text, finding.level)
