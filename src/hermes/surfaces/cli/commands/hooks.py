"""`hermes hooks`: list, test and revoke the programs that run on events."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from hermes.app.build import App
from hermes.core.errors import UsageError
from hermes.hooks.admin import HookTrial, hook_rows, hooks_for_event, revoke, try_hook, unhealthy
from hermes.hooks.shell_hooks import hooks_without_consent, record_consent
from hermes.surfaces.cli.hook_consent import may_run
from hermes.surfaces.cli.output import Output, json_output, table, text_output, with_app

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
    found = [(hook, unhealthy(hook)) for hook in hook_rows(app.run)]
    data = [{"event": h.event, "command": h.command, "trouble": words} for h, words in found]
    lines = []
    for hook, words in found:
        lines.append(f"{'✗' if words else '✓'} {hook.event}: {hook.command}")
        lines += [f"    {words}"] if words else []
    return Output(data, lines or NO_HOOKS, code=any(words for _, words in found))


def _accept(app: App) -> None:
    """With `--accept-hooks`, every hook is allowed."""
    if app.settings.hooks_auto_accept:
        for hook in hooks_without_consent(app.run):
            record_consent(app.run, hook)


def _trial_lines(trial: HookTrial) -> Iterator[str]:
    code = "-" if trial.code is None else str(trial.code)
    yield f"{trial.command}  (exit {code}, {trial.seconds * 1000:.0f} ms)"
    yield f"  means: {trial.answer}"
    for name, text in (("stdout", trial.output), ("stderr", trial.errors)):
        if text.strip():
            yield f"  {name}: {text.strip()[:LONGEST]}"
