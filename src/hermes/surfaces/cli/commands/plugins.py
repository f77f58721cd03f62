"""`hermes plugins`: code of others, what it may do, and whether it is on."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hermes.app.build import App
from hermes.config.edit import set_from_text
from hermes.core.errors import UsageError
from hermes.plugins.admin import KINDS, About, Desk, Row, findings_of
from hermes.plugins.health import Check
from hermes.surfaces.cli.output import as_json_option, columns, print_json, print_table, with_app
from hermes.surfaces.cli.style import mark, styled

if TYPE_CHECKING:
    from hermes.plugins.install import Fetched
    from hermes.plugins.scaffold import Kind
    from hermes.plugins.scan import Finding

T = TypeVar("T")
MOST_SHOWN = 12
INSIDE = "It will run inside Hermes, with all that Hermes can read, change and send."


@click.group(
    help="Plugins: code of others. Without a command: choose.", invoke_without_command=True
)
@click.pass_context
def command(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is not None:
        return
    if sys.stdin.isatty() and sys.stdout.isatty():
        choose(ctx)
    else:
        ctx.invoke(list_, as_json=False)


def _desk(ctx: click.Context, work: Callable[[Desk], Coroutine[Any, Any, T]]) -> T:
    async def whole(app: App) -> T:
        return await work(Desk(app.run, app.plugged.plugins))

    return with_app(ctx, whole)


def _rows(ctx: click.Context) -> list[Row]:
    async def work(desk: Desk) -> list[Row]:
        return desk.rows()

    return _desk(ctx, work)


def choose(ctx: click.Context) -> None:
    """Enter switches the plugin under the cursor, after showing what it is."""
    # It brings the whole library for full-screen programs.
    from hermes.surfaces.cli.picker import Picker
    from hermes.surfaces.cli.picker import Row as Line

    chosen = ""
    while True:
        rows = _rows(ctx)
        if not rows:
            print("There is no plugin yet; `hermes plugins new NAME` begins one.")
            return
        lines = [
            Line(text=f"{'✓' if row.enabled else ' '} {row.key}", value=row.key, note=row.state)
            for row in rows
        ]
        picked = asyncio.run(Picker("Plugins (Enter switches)", lines, chosen=chosen).run())
        if picked is None:
            return
        chosen = picked
        if next(row.enabled for row in rows if row.key == picked):
            ctx.invoke(disable, name=picked)
        else:
            ctx.invoke(enable, name=picked)


@command.command("list", help="All plugins that were found, and what has become of them.")
@as_json_option
@click.pass_context
def list_(ctx: click.Context, as_json: bool) -> None:
    rows = _rows(ctx)
    if as_json:
        print_json(columns(rows))
        return
    if not rows:
        print("There is no plugin yet; `hermes plugins new NAME` begins one.")
        return
    table = [("Plugin", "Source", "Kind", "Version", "State", "Runs", "Tools", "Hooks", "")]
    for row in rows:
        note = f"overrides {row.overrides}" if row.overrides else ""
        words = "; ".join(each for each in (note, row.fault) if each)
        runs = "inside" if row.isolation == "in_process" else "apart"
        counts = (str(row.tools), str(row.hooks))
        table.append((row.key, row.source, row.kind, row.version, row.state, runs, *counts, words))
    print_table(table, (24, 8, 10, 8, 19, 6, 5, 5))


@command.command(help="One plugin in full: what it declares, what it got, what a scan sees.")
@click.argument("name")
@as_json_option
@click.pass_context
def info(ctx: click.Context, name: str, as_json: bool) -> None:
    async def work(desk: Desk) -> About:
        return desk.about(name)

    about = _desk(ctx, work)
    if as_json:
        print_json(columns(about))
        return
    row = about.row
    print(f"{row.key} {row.version}: {about.description or 'says nothing of itself'}")
    state = f"{row.state} ({row.fault})" if row.fault else row.state
    for what, words in (
        ("state", state),
        ("from", about.installed_from or row.source),
        ("place", about.place),
        ("author", about.author),
        ("home", about.homepage),
        ("licence", about.license),
        ("needs", ", ".join(about.dependencies)),
        ("hash", about.hash[:16] + (" (agreed)" if about.hash == about.agreed else "")),
    ):
        if words:
            print(f"  {what:<8} {words}")
    _print_surface(about)
    _print_findings(about.findings)


def _print_surface(about: About) -> None:
    for what, names in about.provides.items():
        if names:
            print(f"  brings {what}: {', '.join(names)}")
    if about.uses_tools:
        print(f"  uses the tools: {', '.join(about.uses_tools)}")
    for name in about.variables:
        print(f"  gets the variable {name}{' (not set)' if name in about.unset else ''}")
    for wish in about.wants:
        got = bool(about.grants.get(wish))
        sign = mark("ok") if got else mark("warn")
        print(f"  {sign} wants {wish}{'' if got else f'; add --grant {wish} to let it'}")


def _print_findings(findings: tuple[Finding, ...]) -> None:
    if not findings:
        print("  the scan saw nothing unusual")
    for each in findings[:MOST_SHOWN]:
        where = f"{each.file}:{each.line}" if each.line else each.file
        level = styled(each.level, "error") if each.level == "high" else each.level
        print(f"  {level:<6} {where} {each.words}")
    if len(findings) > MOST_SHOWN:
        print(f"  … and {len(findings) - MOST_SHOWN} more; --json shows all")


@command.command(help="Fetch a plugin from a folder, a git address or OWNER/REPO[/FOLDER].")
@click.argument("source")
@click.option("--ref", default="", help="This commit, and no updates.", metavar="SHA")
@click.option("--force", is_flag=True, help="Replace what is there.")
@click.option("--enable/--no-enable", "on", default=None, help="Switch it on, without asking.")
@click.pass_context
def install(ctx: click.Context, source: str, ref: str, force: bool, on: bool | None) -> None:
    async def work(desk: Desk) -> Fetched:
        fetched = await desk.fetch(source, ref)
        desk.install(fetched, force=force)
        return fetched

    fetched = _desk(ctx, work)
    manifest = fetched.manifest
    print(f"{mark('ok')} {fetched.key} {manifest.version} is here; nothing of it has run.")
    _print_findings(findings_of(fetched))
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


def _ask_variables(ctx: click.Context, fetched: Fetched) -> None:
    async def work(app: App) -> None:
        for each in fetched.manifest.requires_env:
            if app.config.secrets.get(each.name):
                continue
            words = f"{each.name} ({each.description or each.url or 'wanted by the plugin'})"
            value = click.prompt(words, default="", hide_input=each.secret, show_default=False)
            if value:
                set_from_text(app.home, each.name, value)

    with_app(ctx, work)


@command.command(help="Agree to a plugin as it is now, and load it from the next session on.")
@click.argument("name")
@click.option("--isolation", type=click.Choice(["process", "in_process"]), default=None)
@click.option("--allow-tool-override", is_flag=True, help="Its tools may take names of others.")
@click.option("--grant", "grants", multiple=True, help="network, llm, processes, path=…, env=….")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def enable(
    ctx: click.Context,
    name: str,
    isolation: str | None = None,
    allow_tool_override: bool = False,
    grants: tuple[str, ...] = (),
    yes: bool = False,
) -> None:
    if isolation == "in_process" and not yes:
        if not sys.stdin.isatty():
            raise UsageError(f"{INSIDE} Say --yes if you trust it so far.")
        click.confirm(f"{INSIDE} Go on?", abort=True)

    async def work(desk: Desk) -> About:
        return desk.enable(
            name,
            isolation=isolation or "",
            allow_tool_override=allow_tool_override,
            grants=grants,
        )

    before = _desk(ctx, work)
    print(f"{mark('ok')} {before.row.key} is on, from the next session on.")

    async def again(desk: Desk) -> About:
        return desk.about(name)

    about = _desk(ctx, again)
    _print_surface(about)
    _print_findings(about.findings)
    if about.row.fault:
        print(f"{mark('warn')} {about.row.fault}")


@command.command(help="Load a plugin no longer.")
@click.argument("name")
@click.pass_context
def disable(ctx: click.Context, name: str) -> None:
    async def work(desk: Desk) -> str:
        return desk.disable(name)

    print(f"{mark('ok')} {_desk(ctx, work)} is off, from the next session on.")


@command.command(help="Fetch installed plugins anew; what has changed must be agreed to again.")
@click.argument("name", required=False)
@click.pass_context
def update(ctx: click.Context, name: str | None) -> None:
    async def work(desk: Desk) -> list[tuple[str, tuple[str, ...]]]:
        names = [name] if name else desk.updatable()
        return [await desk.update(each) for each in names]

    for key, changed in _desk(ctx, work):
        if not changed:
            print(f"{mark('ok')} {key} is as it was.")
            continue
        print(f"{mark('ok')} {key} has changed: {', '.join(changed)}.")
        print(f"  `hermes plugins enable {key}` shows what it is now and switches it on again.")


@command.command(help="Remove a plugin's files; what it has kept in plugin-data stays.")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def remove(ctx: click.Context, name: str, yes: bool) -> None:
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("Say --yes to remove it without a question.")
        click.confirm(f"Remove {name}?", abort=True)

    async def work(desk: Desk) -> str:
        return desk.remove(name)

    print(f"{mark('ok')} {_desk(ctx, work)} is removed.")


@command.command(help="Start every plugin that is on and see whether it answers.")
@as_json_option
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> int:
    async def work(desk: Desk) -> list[Check]:
        return await desk.doctor()

    checks = _desk(ctx, work)
    if as_json:
        print_json(columns(checks))
    else:
        for each in checks:
            print(f"{mark('ok') if each.ok else mark('warn')} {each.key}: {each.words}")
        if not checks:
            print("No plugin is on.")
    return 0 if all(each.ok for each in checks) else 1


@command.command(help="Begin a plugin of your own, with a test.")
@click.argument("name")
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    default="tool",
    show_default=True,
)
@click.pass_context
def new(ctx: click.Context, name: str, kind: Kind) -> None:
    async def work(desk: Desk) -> list[str]:
        return [str(file) for file in desk.new(name, kind)]

    for file in _desk(ctx, work):
        print(f"{mark('ok')} {file}")
    print(f"`hermes plugins enable {name}` switches it on.")
