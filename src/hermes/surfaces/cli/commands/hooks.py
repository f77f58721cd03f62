"""`hermes hooks`: programs of yours that are told what happens, and may have a say in it."""

from __future__ import annotations

import sys

import click

from hermes.app.build import App
from hermes.core.errors import UsageError
from hermes.hooks.admin import Listed, Tried, listed, revoke, tried, tryable, unhealthy
from hermes.hooks.shell_hooks import allow, undecided
from hermes.surfaces.cli.hook_consent import may_run
from hermes.surfaces.cli.output import as_json_option, columns, print_json, print_table, with_app

NONE = "No hooks are set; docs/hooks.md tells how to."
LONGEST = 400


@click.group(help="Programs that run when something happens, as `hooks` in config.yaml says.")
def command() -> None:
    pass


@command.command("list", help="The hooks of the settings, and whether they may run.")
@as_json_option
@click.pass_context
def list_(ctx: click.Context, as_json: bool) -> None:
    async def work(app: App) -> list[Listed]:
        _accept(app)
        return listed(app.run)

    found = with_app(ctx, work)
    if as_json:
        print_json(columns(found))
    elif not found:
        print(NONE)
    else:
        rows = [(each.event, each.state, each.matcher or "*", each.command) for each in found]
        print_table([("Hook", "State", "Tools", "Command"), *rows], (26, 11, 20))


@command.command(help="Run the programs of a hook with made-up facts, and show what they answer.")
@click.argument("event")
@click.option("--for-tool", "tool", metavar="NAME", default="", help="As if for this tool.")
@as_json_option
@click.pass_context
def test(ctx: click.Context, event: str, tool: str, as_json: bool) -> None:
    async def work(app: App) -> list[Tried]:
        hooks = tryable(app.run, event, tool)
        _accept(app)
        open_ = [hook for hook in undecided(app.run) if hook in hooks]
        if open_ and not sys.stdin.isatty():
            raise UsageError(f"{open_[0].command} is not allowed yet; add --accept-hooks.")
        for hook in open_:
            if may_run(hook.event, hook.command):
                allow(app.run, hook)
        refused = undecided(app.run)
        return [await tried(app.run, hook, tool) for hook in hooks if hook not in refused]

    found = with_app(ctx, work)
    if as_json:
        print_json(columns(found))
    else:
        for each in found:
            _print(each)
    if any(each.code is None for each in found):
        raise click.exceptions.Exit(1)


@command.command("revoke", help="Do not run a command any more until it is allowed again.")
@click.argument("text", metavar="COMMAND")
@click.pass_context
def revoke_(ctx: click.Context, text: str) -> None:
    async def work(app: App) -> int:
        return revoke(app.run, text)

    print(f"Taken back for {with_app(ctx, work)} hook(s).")


@command.command(help="Say what keeps hooks from running; exit code 1 if anything does.")
@as_json_option
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    async def work(app: App) -> list[Listed]:
        return listed(app.run)

    found = [(hook, unhealthy(hook)) for hook in with_app(ctx, work)]
    if as_json:
        lines = [{"event": h.event, "command": h.command, "trouble": words} for h, words in found]
        print_json(lines)
    else:
        for hook, words in found:
            print(f"{'✗' if words else '✓'} {hook.event}: {hook.command}")
            if words:
                print(f"    {words}")
        if not found:
            print(NONE)
    if any(words for _, words in found):
        raise click.exceptions.Exit(1)


def _accept(app: App) -> None:
    """`--accept-hooks` stands for a yes to all of them."""
    if app.settings.hooks_auto_accept:
        for hook in undecided(app.run):
            allow(app.run, hook)


def _print(tried_: Tried) -> None:
    code = "-" if tried_.code is None else str(tried_.code)
    print(f"{tried_.command}  (exit {code}, {tried_.seconds * 1000:.0f} ms)")
    print(f"  means: {tried_.answer}")
    for name, text in (("stdout", tried_.output), ("stderr", tried_.errors)):
        if text.strip():
            print(f"  {name}: {text.strip()[:LONGEST]}")
