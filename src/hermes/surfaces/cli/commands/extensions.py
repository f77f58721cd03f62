"""`hermes plugins` and `hermes hooks`: third-party code and programs that run on events."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from hermes.commands.formatting import plural
from hermes.config.edit import set_from_text
from hermes.config.run_context import RunContext
from hermes.core.errors import UsageError
from hermes.homes.installation import installer
from hermes.hooks.admin import (
    find_fault,
    hook_rows,
    hooks_for_event,
    hooks_without_consent,
    record_consent,
    revoke,
    try_hook,
)
from hermes.plugins.admin import KINDS, PluginAdmin, PluginDetails, ScaffoldKind
from hermes.plugins.install import scan_code
from hermes.surfaces.cli.command_context import (
    PickerRow,
    apply_style,
    config_of,
    is_terminal,
    mark,
    with_app,
)
from hermes.surfaces.cli.hook_consent import may_run
from hermes.surfaces.cli.output import CommandGroup, Output, confirm, pick, table, yes_option

if TYPE_CHECKING:
    from hermes.plugins.install import CodeFinding, FetchedPlugin

MOST_SHOWN = 12
INSIDE = "It runs inside Hermes, with access to all that Hermes can read, change and send."
NONE = "There is no plugin yet; `hermes plugins new NAME` creates one."

with_admin = with_app.part(lambda app: PluginAdmin(app.context, app.plugins.plugins))


@click.group(
    cls=CommandGroup,
    help="List, install, enable and remove plugins. Without a command, choose in the terminal.",
    invoke_without_command=True,
)
@click.pass_context
def command(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is not None:
        return
    if not is_terminal():
        ctx.invoke(list_)
        return
    chosen: str | None = ""
    while chosen is not None:
        rows = with_admin(ctx, lambda admin: admin.rows())
        if not rows:
            print(NONE)
            return
        lines = [
            PickerRow(
                text=f"{'✓' if row.enabled else ' '} {row.key}", value=row.key, note=row.state
            )
            for row in rows
        ]
        chosen = pick("Plugins (Enter enables or disables)", lines, chosen=chosen)
        for row in rows:
            if row.key == chosen:
                ctx.invoke(disable if row.enabled else enable, name=chosen)


@command.json("List all plugins and their state.", with_admin)
def list_(admin: PluginAdmin) -> Output:
    rows = admin.rows()
    if not rows:
        return Output(rows, NONE)
    cells = [("Plugin", "Source", "Kind", "Version", "State", "Runs", "Tools", "Hooks", "")]
    for row in rows:
        note = f"overrides {row.overrides}" if row.overrides else ""
        remarks = "; ".join(each for each in (note, row.fault) if each)
        runs = "inside" if row.isolation == "in_process" else "sandbox"
        counts = (str(row.tools), str(row.hooks))
        cells.append(
            (row.key, row.source, row.kind, row.version, row.state, runs, *counts, remarks)
        )
    return Output(rows, table(cells, (24, 8, 10, 8, 19, 7, 5, 5)))


@command.json(
    "Show a plugin: its declarations, its permissions and a scan of its code.", with_admin
)
def info(admin: PluginAdmin, name: str) -> Output:
    about = admin.describe(name)
    row = about.row
    facts = {
        "state": f"{row.state} ({row.fault})" if row.fault else row.state,
        "from": about.installed_from or row.source,
        "place": about.place,
        "author": about.author,
        "home": about.homepage,
        "licence": about.license,
        "needs": ", ".join(about.dependencies),
        "hash": about.hash[:16] + (" (approved)" if about.hash == about.agreed else ""),
    }
    lines = (
        f"{row.key} {row.version}: {about.description or 'no description'}",
        *(f"  {name:<8} {fact}" for name, fact in facts.items() if fact),
        *_permission_lines(about),
        *_finding_lines(about.findings),
    )
    return Output(about, lines)


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
        yield "  the scan found nothing suspicious"
    for each in findings[:MOST_SHOWN]:
        where = f"{each.file}:{each.line}" if each.line else each.file
        level = apply_style(each.level, "error") if each.level == "high" else each.level
        yield f"  {level:<6} {where} {each.words}"
    if len(findings) > MOST_SHOWN:
        yield f"  … and {len(findings) - MOST_SHOWN} more; --json shows all"


@command.text("Install a plugin from a folder, a git URL or OWNER/REPO[/FOLDER].")
@click.option("--ref", default="", help="Install this commit and never update it.", metavar="SHA")
@click.option("--force", is_flag=True, help="Replace an existing plugin.")
@click.option("--enable/--no-enable", "on", default=None, help="Enable the plugin or leave it off.")
def install(ctx: click.Context, source: str, ref: str, force: bool, on: bool | None) -> None:
    async def fetch(admin: PluginAdmin) -> FetchedPlugin:
        fetched = await admin.fetch(source, ref)
        admin.install(fetched, force=force)
        return fetched

    fetched = with_admin(ctx, fetch)
    manifest = fetched.manifest
    print(f"{mark('ok')} {fetched.key} {manifest.version} is installed; its code has not run yet.")
    for line in _finding_lines(scan_code(fetched.contents)):
        print(line)
    if manifest.dependencies:
        print(f"  it needs: {shlex.join(installer('install', *manifest.dependencies))}")
    if sys.stdin.isatty():
        config = config_of(ctx)
        for each in manifest.requires_env:
            if not config.secrets.get(each.name):
                label = f"{each.name} ({each.description or each.url or 'needed by the plugin'})"
                value = click.prompt(label, default="", hide_input=each.secret, show_default=False)
                if value:
                    set_from_text(config.home, each.name, value)
        if on is None:
            on = click.confirm(f"Enable {fetched.key}?", default=False)
    if on:
        ctx.invoke(enable, name=fetched.key)
    else:
        print(f"`hermes plugins enable {fetched.key}` enables it.")


@command.text("Approve the current code of a plugin, and load it in new sessions.")
@click.option(
    "--isolation", type=click.Choice(["process", "in_process"]), help="Set where plugin code runs."
)
@click.option("--allow-tool-override", is_flag=True, help="Let plugin tools replace built-in ones.")
@click.option(
    "--grant", "grants", multiple=True, help="Grant network, llm, processes, path=… or env=…."
)
@yes_option
def enable(
    ctx: click.Context,
    name: str,
    isolation: str | None = None,
    allow_tool_override: bool = False,
    grants: tuple[str, ...] = (),
    yes: bool = False,
) -> Iterator[str]:
    if isolation == "in_process":
        confirm(f"{INSIDE} Continue?", yes=yes)
    enabled = with_admin(
        ctx,
        lambda admin: admin.enable(
            name, isolation=isolation or "", allow_tool_override=allow_tool_override, grants=grants
        ),
    )
    yield f"{mark('ok')} {enabled.row.key} is on in new sessions."
    about = with_admin(ctx, lambda admin: admin.describe(name))
    yield from _permission_lines(about)
    yield from _finding_lines(about.findings)
    if about.row.fault:
        yield f"{mark('warn')} {about.row.fault}"


@command.text("Stop loading a plugin.", with_admin)
def disable(admin: PluginAdmin, name: str) -> str:
    return f"{mark('ok')} {admin.disable(name)} is off in new sessions."


@command.text("Update one plugin, or all; a changed plugin must be approved again.", with_admin)
async def update(admin: PluginAdmin, name: str | None = None) -> list[str]:
    lines = []
    for each in [name] if name else admin.list_updatable():
        key, changed = await admin.update(each)
        if not changed:
            lines.append(f"{mark('ok')} {key} is unchanged.")
            continue
        lines.append(f"{mark('ok')} {key} has changed: {', '.join(changed)}.")
        lines.append(f"  `hermes plugins enable {key}` shows the new code and enables it again.")
    return lines


@command.text("Remove a plugin; its data in plugin-data stays.")
@yes_option
def remove(ctx: click.Context, name: str, yes: bool) -> str:
    confirm(f"Remove {name}?", yes=yes, otherwise="Nothing was removed.")
    return f"{mark('ok')} {with_admin(ctx, lambda admin: admin.remove(name))} is removed."


@command.json("Check that every enabled plugin starts and answers.", with_admin)
async def doctor(admin: PluginAdmin) -> Output:
    checks = await admin.doctor()
    lines = [f"{mark('ok' if each.ok else 'warn')} {each.key}: {each.words}" for each in checks]
    return Output(
        checks, lines or "No plugin is enabled.", code=not all(each.ok for each in checks)
    )


@command.text("Create a plugin of your own, with a test.", with_admin)
@click.option(
    "--kind", type=click.Choice(KINDS), default="tool", show_default=True, help="Set the kind."
)
def new(admin: PluginAdmin, name: str, kind: ScaffoldKind) -> list[str]:
    files = [f"{mark('ok')} {file}" for file in admin.new(name, kind)]
    return [*files, f"`hermes plugins enable {name}` enables it."]


NO_HOOKS = "No hooks are configured; see docs/hooks.md."
LONGEST = 400

hooks_command = CommandGroup(
    help="List and test the programs that run on events (`hooks` in config.yaml)."
)
with_run = with_app.part(lambda app: app.context)


@hooks_command.json("List the configured hooks, and whether they may run.", with_run, name="list")
def list_hooks(run: RunContext) -> Output:
    _accept(run)
    found = hook_rows(run)
    if not found:
        return Output(found, NO_HOOKS)
    rows = [(each.event, each.state, each.matcher or "*", each.command) for each in found]
    return Output(found, table([("Hook", "State", "Tools", "Command"), *rows], (26, 11, 20)))


@hooks_command.json(
    "Run the programs of a hook with sample data and show their answers.", with_run, name="test"
)
@click.option("--for-tool", "tool", metavar="NAME", default="", help="Test a call of this tool.")
async def test_hook(run: RunContext, event: str, tool: str) -> Output:
    hooks = hooks_for_event(run, event, tool)
    _accept(run)
    open_ = [hook for hook in hooks_without_consent(run) if hook in hooks]
    if open_ and not sys.stdin.isatty():
        raise UsageError(
            f"{open_[0].command} is not allowed yet; put --accept-hooks before `hooks`."
        )
    for hook in open_:
        if may_run(hook.event, hook.command):
            record_consent(run, hook)
    refused = hooks_without_consent(run)
    trials = [await try_hook(run, hook, tool) for hook in hooks if hook not in refused]

    def lines() -> Iterator[str]:
        for trial in trials:
            code = "-" if trial.code is None else str(trial.code)
            yield f"{trial.command}  (exit {code}, {trial.seconds * 1000:.0f} ms)"
            yield f"  result: {trial.answer}"
            for name, text in (("stdout", trial.output), ("stderr", trial.errors)):
                if text.strip():
                    yield f"  {name}: {text.strip()[:LONGEST]}"

    return Output(trials, lines(), code=any(each.code is None for each in trials))


@hooks_command.text("Withdraw the permission to run a program.", with_run)
@click.argument("text", metavar="COMMAND")
def revoke_(run: RunContext, text: str) -> str:
    return f"Revoked for {plural(revoke(run, text), 'hook')}."


@hooks_command.json(
    "Report what prevents hooks from running; exit with 1 if anything does.",
    with_run,
    name="doctor",
)
def check_hooks(run: RunContext) -> Output:
    found = [(hook, find_fault(hook)) for hook in hook_rows(run)]
    data = [{"event": h.event, "command": h.command, "trouble": problem} for h, problem in found]
    lines = []
    for hook, problem in found:
        lines.append(f"{'✗' if problem else '✓'} {hook.event}: {hook.command}")
        lines += [f"    {problem}"] if problem else []
    return Output(data, lines or NO_HOOKS, code=any(problem for _, problem in found))


def _accept(run: RunContext) -> None:
    """Allow every hook if `--accept-hooks` is set."""
    if run.settings.hooks_auto_accept:
        for hook in hooks_without_consent(run):
            record_consent(run, hook)
