"""`hermes plugins` and `hermes hooks`: third-party code and programs that run on events."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hermes.app.app import App
from hermes.config.edit import set_from_text
from hermes.core.errors import UsageError
from hermes.hooks.admin import (
    HookTrial,
    find_fault,
    hook_rows,
    hooks_for_event,
    hooks_without_consent,
    record_consent,
    revoke,
    try_hook,
)
from hermes.plugins.admin import KINDS, PluginAdmin, PluginDetails, PluginRow, findings_of
from hermes.surfaces.cli.command_context import apply_style, mark
from hermes.surfaces.cli.hook_consent import may_run
from hermes.surfaces.cli.output import Output, json_output, table, text_output, with_app

if TYPE_CHECKING:
    from hermes.plugins.install import CodeFinding, FetchedPlugin
    from hermes.plugins.scaffold import ScaffoldKind

T = TypeVar("T")
MOST_SHOWN = 12
INSIDE = "It runs inside Hermes, with access to all that Hermes can read, change and send."
NONE = "There is no plugin yet; `hermes plugins new NAME` creates one."

name_argument = click.argument("name")


@click.group(
    help="Install and manage plugins. Without a command: choose.", invoke_without_command=True
)
@click.pass_context
def command(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is not None:
        return
    if sys.stdin.isatty() and sys.stdout.isatty():
        choose(ctx)
    else:
        ctx.invoke(list_)


def _with_admin(ctx: click.Context, work: Callable[[PluginAdmin], Coroutine[Any, Any, T]]) -> T:
    return with_app(ctx, lambda app: work(PluginAdmin(app.run, app.plugins.plugins)))


async def _rows(admin: PluginAdmin) -> list[PluginRow]:
    return admin.rows()


def choose(ctx: click.Context) -> None:
    """Enter switches the selected plugin on or off."""
    # The picker loads a large library.
    from hermes.surfaces.cli.picker import Picker
    from hermes.surfaces.cli.picker import PickerRow as Line

    chosen = ""
    while True:
        rows = _with_admin(ctx, _rows)
        if not rows:
            print(NONE)
            return
        lines = [
            Line(text=f"{'✓' if row.enabled else ' '} {row.key}", value=row.key, note=row.state)
            for row in rows
        ]
        picked = asyncio.run(Picker("Plugins (Enter switches)", lines, chosen=chosen).run())
        if picked is None:
            return
        chosen = picked
        is_on = next(row.enabled for row in rows if row.key == picked)
        ctx.invoke(disable if is_on else enable, name=picked)


@command.command("list", help="List all plugins and their state.")
@json_output(_with_admin)
async def list_(admin: PluginAdmin) -> Output:
    rows = admin.rows()
    if not rows:
        return Output(rows, NONE)
    cells = [("Plugin", "Source", "Kind", "Version", "State", "Runs", "Tools", "Hooks", "")]
    for row in rows:
        note = f"overrides {row.overrides}" if row.overrides else ""
        words = "; ".join(each for each in (note, row.fault) if each)
        runs = "inside" if row.isolation == "in_process" else "apart"
        counts = (str(row.tools), str(row.hooks))
        cells.append((row.key, row.source, row.kind, row.version, row.state, runs, *counts, words))
    return Output(rows, table(cells, (24, 8, 10, 8, 19, 6, 5, 5)))


@command.command(help="Show one plugin: what it declares, its permissions, and a scan.")
@name_argument
@json_output(_with_admin)
async def info(admin: PluginAdmin, name: str) -> Output:
    about = admin.describe(name)
    return Output(about, _info_lines(about))


def _info_lines(about: PluginDetails) -> Iterator[str]:
    row = about.row
    yield f"{row.key} {row.version}: {about.description or 'no description'}"
    state = f"{row.state} ({row.fault})" if row.fault else row.state
    for what, words in (
        ("state", state),
        ("from", about.installed_from or row.source),
        ("place", about.place),
        ("author", about.author),
        ("home", about.homepage),
        ("licence", about.license),
        ("needs", ", ".join(about.dependencies)),
        ("hash", about.hash[:16] + (" (approved)" if about.hash == about.agreed else "")),
    ):
        if words:
            yield f"  {what:<8} {words}"
    yield from _permission_lines(about)
    yield from _finding_lines(about.findings)


def _permission_lines(about: PluginDetails) -> Iterator[str]:
    for what, names in about.provides.items():
        if names:
            yield f"  provides {what}: {', '.join(names)}"
    if about.uses_tools:
        yield f"  uses the tools: {', '.join(about.uses_tools)}"
    for name in about.variables:
        yield f"  gets the variable {name}{' (not set)' if name in about.unset else ''}"
    for permission in about.wants:
        granted = bool(about.grants.get(permission))
        sign = mark("ok") if granted else mark("warn")
        hint = "" if granted else f"; --grant {permission} allows it"
        yield f"  {sign} wants {permission}{hint}"


def _finding_lines(findings: tuple[CodeFinding, ...]) -> Iterator[str]:
    if not findings:
        yield "  the scan found nothing unusual"
    for each in findings[:MOST_SHOWN]:
        where = f"{each.file}:{each.line}" if each.line else each.file
        level = apply_style(each.level, "error") if each.level == "high" else each.level
        yield f"  {level:<6} {where} {each.words}"
    if len(findings) > MOST_SHOWN:
        yield f"  … and {len(findings) - MOST_SHOWN} more; --json shows all"


@command.command(help="Install a plugin from a folder, a git URL or OWNER/REPO[/FOLDER].")
@click.argument("source")
@click.option("--ref", default="", help="Pin this commit (no updates).", metavar="SHA")
@click.option("--force", is_flag=True, help="Replace an existing plugin.")
@click.option("--enable/--no-enable", "on", default=None, help="Switch it on, or not, unasked.")
@click.pass_context
def install(ctx: click.Context, source: str, ref: str, force: bool, on: bool | None) -> None:
    async def work(admin: PluginAdmin) -> FetchedPlugin:
        fetched = await admin.fetch(source, ref)
        admin.install(fetched, force=force)
        return fetched

    fetched = _with_admin(ctx, work)
    manifest = fetched.manifest
    print(f"{mark('ok')} {fetched.key} {manifest.version} is installed; none of its code has run.")
    for line in _finding_lines(findings_of(fetched)):
        print(line)
    if manifest.dependencies:
        print(f"  it needs: pip install {' '.join(manifest.dependencies)}")
    if sys.stdin.isatty():
        _ask_variables(ctx, fetched)
    if on is None and sys.stdin.isatty():
        on = click.confirm(f"Switch {fetched.key} on?", default=False)
    if on:
        ctx.invoke(enable, name=fetched.key)
    else:
        print(f"`hermes plugins enable {fetched.key}` switches it on.")


def _ask_variables(ctx: click.Context, fetched: FetchedPlugin) -> None:
    async def work(app: App) -> None:
        for each in fetched.manifest.requires_env:
            if app.run.config.secrets.get(each.name):
                continue
            words = f"{each.name} ({each.description or each.url or 'needed by the plugin'})"
            value = click.prompt(words, default="", hide_input=each.secret, show_default=False)
            if value:
                set_from_text(app.run.home, each.name, value)

    with_app(ctx, work)


@command.command(help="Approve a plugin as it is now, and load it in new sessions.")
@name_argument
@click.option("--isolation", type=click.Choice(["process", "in_process"]), default=None)
@click.option("--allow-tool-override", is_flag=True, help="Its tools may replace others.")
@click.option("--grant", "grants", multiple=True, help="network, llm, processes, path=…, env=….")
@click.option("--yes", is_flag=True, help="Do not ask.")
@text_output()
def enable(
    ctx: click.Context,
    name: str,
    isolation: str | None = None,
    allow_tool_override: bool = False,
    grants: tuple[str, ...] = (),
    yes: bool = False,
) -> Iterator[str]:
    if isolation == "in_process" and not yes:
        if not sys.stdin.isatty():
            raise UsageError(f"{INSIDE} Add --yes if you trust it.")
        click.confirm(f"{INSIDE} Go on?", abort=True)

    async def work(admin: PluginAdmin) -> PluginDetails:
        return admin.enable(
            name,
            isolation=isolation or "",
            allow_tool_override=allow_tool_override,
            grants=grants,
        )

    async def again(admin: PluginAdmin) -> PluginDetails:
        return admin.describe(name)

    yield f"{mark('ok')} {_with_admin(ctx, work).row.key} is on in new sessions."
    about = _with_admin(ctx, again)
    yield from _permission_lines(about)
    yield from _finding_lines(about.findings)
    if about.row.fault:
        yield f"{mark('warn')} {about.row.fault}"


@command.command(help="Stop loading a plugin.")
@name_argument
@text_output(_with_admin)
async def disable(admin: PluginAdmin, name: str) -> str:
    return f"{mark('ok')} {admin.disable(name)} is off in new sessions."


@command.command(help="Update installed plugins; a changed plugin must be approved again.")
@click.argument("name", required=False)
@text_output(_with_admin)
async def update(admin: PluginAdmin, name: str | None) -> list[str]:
    lines = []
    for each in [name] if name else admin.list_updatable():
        key, changed = await admin.update(each)
        if not changed:
            lines.append(f"{mark('ok')} {key} is unchanged.")
            continue
        lines.append(f"{mark('ok')} {key} has changed: {', '.join(changed)}.")
        lines.append(f"  `hermes plugins enable {key}` shows the changes and switches it on again.")
    return lines


@command.command(help="Delete the files of a plugin; its data in plugin-data stays.")
@name_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
@text_output()
def remove(ctx: click.Context, name: str, yes: bool) -> str:
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("Add --yes to remove it without a question.")
        click.confirm(f"Remove {name}?", abort=True)

    async def work(admin: PluginAdmin) -> str:
        return admin.remove(name)

    return f"{mark('ok')} {_with_admin(ctx, work)} is removed."


@command.command(help="Start every enabled plugin and check that it answers.")
@json_output(_with_admin)
async def doctor(admin: PluginAdmin) -> Output:
    checks = await admin.doctor()
    lines = [f"{mark('ok' if each.ok else 'warn')} {each.key}: {each.words}" for each in checks]
    return Output(checks, lines or "No plugin is on.", code=not all(each.ok for each in checks))


@command.command(help="Create a plugin of your own, with a test.")
@name_argument
@click.option("--kind", type=click.Choice(KINDS), default="tool", show_default=True)
@text_output(_with_admin)
async def new(admin: PluginAdmin, name: str, kind: ScaffoldKind) -> list[str]:
    files = [f"{mark('ok')} {file}" for file in admin.new(name, kind)]
    return [*files, f"`hermes plugins enable {name}` switches it on."]


NO_HOOKS = "No hooks are configured; see docs/hooks.md."
LONGEST = 400


@click.group(help="Programs that run on events, as configured by `hooks` in config.yaml.")
def hooks_command() -> None:
    pass


@hooks_command.command("list", help="List the configured hooks, and whether they may run.")
@json_output(with_app)
async def list_hooks(app: App) -> Output:
    _accept(app)
    found = hook_rows(app.run)
    if not found:
        return Output(found, NO_HOOKS)
    rows = [(each.event, each.state, each.matcher or "*", each.command) for each in found]
    return Output(found, table([("Hook", "State", "Tools", "Command"), *rows], (26, 11, 20)))


@hooks_command.command(
    "test", help="Run the programs of a hook with sample data and show their answers."
)
@click.argument("event")
@click.option("--for-tool", "tool", metavar="NAME", default="", help="As if for this tool.")
@json_output(with_app)
async def test_hook(app: App, event: str, tool: str) -> Output:
    hooks = hooks_for_event(app.run, event, tool)
    _accept(app)
    open_ = [hook for hook in hooks_without_consent(app.run) if hook in hooks]
    if open_ and not sys.stdin.isatty():
        raise UsageError(f"{open_[0].command} is not allowed yet; add --accept-hooks.")
    for hook in open_:
        if may_run(hook.event, hook.command):
            record_consent(app.run, hook)
    refused = hooks_without_consent(app.run)
    found = [await try_hook(app.run, hook, tool) for hook in hooks if hook not in refused]
    lines = (line for each in found for line in _trial_lines(each))
    return Output(found, lines, code=any(each.code is None for each in found))


@hooks_command.command("revoke", help="Stop running a command until it is allowed again.")
@click.argument("text", metavar="COMMAND")
@text_output(with_app)
async def revoke_(app: App, text: str) -> str:
    return f"Revoked for {revoke(app.run, text)} hook(s)."


@hooks_command.command(
    "doctor", help="Report what prevents hooks from running; exit code 1 if anything does."
)
@json_output(with_app)
async def check_hooks(app: App) -> Output:
    found = [(hook, find_fault(hook)) for hook in hook_rows(app.run)]
    data = [{"event": h.event, "command": h.command, "trouble": words} for h, words in found]
    lines = []
    for hook, words in found:
        lines.append(f"{'✗' if words else '✓'} {hook.event}: {hook.command}")
        lines += [f"    {words}"] if words else []
    return Output(data, lines or NO_HOOKS, code=any(words for _, words in found))


def _accept(app: App) -> None:
    """With `--accept-hooks`, every hook is allowed."""
    if app.run.settings.hooks_auto_accept:
        for hook in hooks_without_consent(app.run):
            record_consent(app.run, hook)


def _trial_lines(trial: HookTrial) -> Iterator[str]:
    code = "-" if trial.code is None else str(trial.code)
    yield f"{trial.command}  (exit {code}, {trial.seconds * 1000:.0f} ms)"
    yield f"  means: {trial.answer}"
    for name, text in (("stdout", trial.output), ("stderr", trial.errors)):
        if text.strip():
            yield f"  {name}: {text.strip()[:LONGEST]}"
