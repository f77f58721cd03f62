"""`hermes config`: show, explain and change settings."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import click

from hermes.codec.json import encode, plain
from hermes.codec.values import JsonObject, JsonValue
from hermes.config.check import check_files
from hermes.config.edit import Edited, migrate_file, set_from_text, unset
from hermes.config.files import replace_file
from hermes.config.findings import Finding
from hermes.config.load import Config, Explanation
from hermes.config.migrate import Removed, newest_version
from hermes.config.schema import describe, format_key, parse_key
from hermes.config.secrets import masked, shown
from hermes.core.errors import ConfigError
from hermes.surfaces.cli.place import config_of, home_of
from hermes.surfaces.cli.style import mark, styled

NEW_FILE = b"# Settings of Hermes. `hermes config show` lists them with their values.\n"

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(
    help="Show, explain and change settings. Without a command: show.", invoke_without_command=True
)
@click.pass_context
def command(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        ctx.invoke(show, as_json=False)


@command.command(help="Every setting, its value and where the value comes from.")
@as_json_option
@click.pass_context
def show(ctx: click.Context, as_json: bool) -> None:
    config = config_of(ctx)
    explanations = [config.explain(key) for key in config.known_keys()]
    if as_json:
        _print_json({e.key: {"value": _shown(e), "source": str(e.source)} for e in explanations})
        return
    _warn(finding for finding in config.findings if finding.level != "error")
    section = None
    for explanation in explanations:
        parent = format_key(explanation.setting.path[:-1]) or "(top level)"
        if parent != section:
            print(("" if section is None else "\n") + styled(parent, "bold"))
            section = parent
        _print_line(explanation)


def _print_line(explanation: Explanation) -> None:
    name = explanation.setting.path[-1]
    line = f"  {name:<30} {_text(_shown(explanation)):<24} {explanation.source}"
    print(styled(line, "dim") if explanation.source.kind == "default" else line)


@command.command(help="The value of one setting, a section, or a secret (masked).")
@click.argument("key")
@click.option("--source", "with_source", is_flag=True, help="Also say where it comes from.")
@as_json_option
@click.pass_context
def get(ctx: click.Context, key: str, with_source: bool, as_json: bool) -> None:
    config = config_of(ctx)
    if value := config.secrets.get(key):
        _print_value(key, masked(value), config.secrets.source(key), with_source, as_json)
        return
    below = [known for known in config.known_keys() if _is_below(known, key)]
    for known in below:
        explanation = config.explain(known)
        if not as_json:
            print(f"{known} = ", end="")
        _print_value(known, _shown(explanation), explanation.source, with_source, as_json)
    if not below:
        explanation = config.explain(key)
        _print_value(key, _shown(explanation), explanation.source, with_source, as_json)


def _is_below(known: str, key: str) -> bool:
    path, start = parse_key(known), parse_key(key)
    return len(path) > len(start) and path[: len(start)] == start


def _print_value(
    key: str, value: JsonValue, source: object, with_source: bool, as_json: bool
) -> None:
    if as_json:
        _print_json({"key": key, "value": value, "source": str(source)})
    else:
        print(_text(value) + (styled(f"  ({source})", "dim") if with_source else ""))


@command.command(
    help="Where the value of a setting comes from, and what that hides; `model`: who answers."
)
@click.argument("key")
@as_json_option
@click.pass_context
def explain(ctx: click.Context, key: str, as_json: bool) -> None:
    config = config_of(ctx)
    if key == "model":
        # Which model answers follows from more than one setting.
        from hermes.surfaces.cli.explained import explain_model

        explain_model(ctx, as_json=as_json)
        return
    found = config.explain(key)
    hidden = [(str(held.source), _hidden(found, held.value)) for held in found.shadows]
    if as_json:
        _print_json(
            {
                "key": found.key,
                "value": _shown(found),
                "source": str(found.source),
                "shadows": [{"source": source, "value": value} for source, value in hidden],
                "kind": describe(found.setting.kind),
                "meaning": found.setting.meaning,
            }
        )
        return
    print(f"{styled(found.key, 'bold')} = {_text(_shown(found))}")
    print(f"  {found.setting.meaning} Must be {describe(found.setting.kind)}.")
    print(f"  from     {found.source}")
    for source, value in hidden:
        print(styled(f"  hides    {_text(value)}  ({source})", "dim"))


@command.command("set", help="Change a setting; a name in capitals is a secret and goes to .env.")
@click.argument("key")
@click.argument("value")
@click.option("--force", is_flag=True, help="Write a key even if it is not known.")
@click.pass_context
def set_(ctx: click.Context, key: str, value: str, force: bool) -> None:
    edited = set_from_text(home_of(ctx), key, value, force=force)
    print(f"{edited.key} = {edited.shown}  ({edited.place})")
    _warn_if_hidden(config_of(ctx), edited)


@command.command("unset", help="Take a setting out of config.yaml, or a secret out of .env.")
@click.argument("key")
@click.pass_context
def unset_(ctx: click.Context, key: str) -> None:
    edited = unset(home_of(ctx), key)
    print(f"{edited.key} is no longer set in {edited.place}.")


def _warn_if_hidden(config: Config, edited: Edited) -> None:
    """What was just written should count; say so when it does not."""
    _warn(finding for finding in config.findings if finding.key == edited.key)


@command.command(help="Where config.yaml is.")
@click.pass_context
def path(ctx: click.Context) -> None:
    print(home_of(ctx).config)


@command.command("env-path", help="Where .env is.")
@click.pass_context
def env_path(ctx: click.Context) -> None:
    print(home_of(ctx).env_file)


@command.command(help="Open config.yaml in your editor ($VISUAL or $EDITOR).")
@click.pass_context
def edit(ctx: click.Context) -> None:
    home = home_of(ctx)
    if not sys.stdin.isatty():
        raise ConfigError(f"There is no terminal to edit in; change {home.config} yourself.")
    if not home.config.exists():
        replace_file(home, home.config, NEW_FILE)
    click.edit(filename=str(home.config))
    _warn(config_of(ctx, tell=False).findings)


@command.command(help="Say what is wrong with config.yaml and .env.")
@as_json_option
@click.pass_context
def check(ctx: click.Context, as_json: bool) -> int:
    findings = check_files(config_of(ctx, tell=False))
    if as_json:
        _print_json([plain(finding) for finding in findings])
    else:
        for finding in findings:
            print(f"{mark(finding.level)} {finding.text}")
            if finding.fix:
                print(styled(f"  → {finding.fix}", "dim"))
    return 1 if any(finding.level == "error" for finding in findings) else 0


@command.command(help="Bring config.yaml to the newest version; a copy of the old one is kept.")
@click.pass_context
def migrate(ctx: click.Context) -> None:
    changes = migrate_file(home_of(ctx))
    for changed, value in changes.items():
        becomes = "removed" if isinstance(value, Removed) else f"= {_text(shown(value))}"
        print(f"{format_key(changed)} {becomes}")
    if not changes:
        print(f"config.yaml is up to date (version {newest_version()}).")


def _shown(explanation: Explanation) -> JsonValue:
    return _hidden(explanation, explanation.value)


def _hidden(explanation: Explanation, value: JsonValue) -> JsonValue:
    return shown(value, secret=explanation.setting.secret)


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) and value else encode(value).decode()


def _warn(findings: Iterable[Finding]) -> None:
    for finding in findings:
        word = "error:" if finding.level == "error" else "warning:"
        print(f"{styled(word, finding.level, sys.stderr)} {finding.text}", file=sys.stderr)


def _print_json(value: JsonObject | list[JsonObject]) -> None:
    print(encode(value).decode())
