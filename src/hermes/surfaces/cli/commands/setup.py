"""`hermes setup`: asks for the most important settings, one by one."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

import click

from hermes.config.edit import set_from_text
from hermes.config.environment import display_value, process_environment
from hermes.config.schema import describe_type
from hermes.core.errors import HermesError, UsageError
from hermes.surfaces.cli.command_context import apply_style, config_of, home_of, mark
from hermes.surfaces.cli.commands.model_wizard import WizardOptions, run_wizard
from hermes.surfaces.cli.commands.setup_detection import choose_detected, detection_output
from hermes.surfaces.cli.commands.setup_detection import detect as detect_models_here
from hermes.surfaces.cli.commands.tools import choose
from hermes.surfaces.cli.output import print_output

QUESTIONS = {
    "terminal": ("terminal.backend", "terminal.cwd", "terminal.timeout"),
    "agent": (
        "agent.max_turns",
        "approvals.mode",
        "display.tool_progress",
        "compression.threshold",
        "checkpoints.enabled",
    ),
    "memory": ("memory.memory_enabled", "memory.user_profile_enabled", "memory.provider"),
}
# Backend: further settings that it needs.
FURTHER = {
    "docker": ("terminal.docker_image",),
    "podman": ("terminal.docker_image",),
    "ssh": ("terminal.ssh_host", "terminal.ssh_user"),
    "singularity": ("terminal.singularity_image",),
}
SECTIONS = ("model", "terminal", "agent", "tools", "memory")
WITHOUT_QUESTIONS = """\
Setup needs a terminal. Use these commands instead:
  hermes setup --detect                      find keys, servers and model files
  hermes auth add PROVIDER --api-key KEY     add a key
  hermes model set NAME --provider PROVIDER  choose the model
  hermes config set terminal.backend local   choose where commands run
  hermes tools enable NAME                   choose the tools of sessions
  hermes status                              show the settings"""


@click.command(help="Set up Hermes step by step, or only one section.")
@click.argument("section", required=False, type=click.Choice(SECTIONS))
@click.option("--quick", is_flag=True, help="Ask only for what is missing.")
@click.option("--reset", is_flag=True, help="Start from the defaults; keep a copy of config.yaml.")
@click.option("--reconfigure", is_flag=True, help="Ask all questions again (the default).")
@click.option("--non-interactive", is_flag=True, help="Ask nothing; print equivalent commands.")
@click.option("--detect", is_flag=True, help="List keys, servers and model files; ask nothing.")
@click.option("--json", "as_json", is_flag=True, help="With --detect: print JSON.")
@click.pass_context
def command(
    ctx: click.Context,
    section: str | None,
    quick: bool,
    reset: bool,
    reconfigure: bool,
    non_interactive: bool,
    detect: bool,
    as_json: bool,
) -> None:
    home = home_of(ctx)
    if detect:
        print_output(detection_output(detect_models_here(ctx)), as_json=as_json)
        return
    if as_json:
        raise UsageError("--json needs --detect; `hermes setup --detect --json` asks nothing.")
    if non_interactive or not sys.stdin.isatty():
        print(WITHOUT_QUESTIONS)
        return
    claw = Path(process_environment().get("HOME", "~")).expanduser() / ".openclaw"
    if home.config.exists():
        copy = home.config.with_name(f"config.yaml.bak.{time.strftime('%Y%m%d-%H%M%S')}")
        if reset:
            home.config.rename(copy)
        else:
            shutil.copy2(home.config, copy)
        print(apply_style(f"The previous settings are in {copy}.", "dim"))
    elif claw.is_dir():
        print(f"{claw} exists; `hermes claw migrate` imports its memory and skills.")
    if section:
        sections: tuple[str, ...] = (section,)
    elif quick:
        # Only the model has no good default.
        sections = () if _model(ctx) else ("model",)
    else:
        sections = SECTIONS
    hint = apply_style("  (Enter keeps a value, Ctrl+C quits)", "dim")
    for name in sections:
        print(apply_style(f"\n{name}", "bold") + hint)
        if name == "model":
            if not choose_detected(ctx):
                run_wizard(ctx, WizardOptions())
        elif name == "tools":
            choose(ctx)
        else:
            _ask_section(ctx, name)
    if model := _model(ctx):
        print(f"\n{mark('ok')} The model is {model}. `hermes` starts a chat.")
    else:
        print(f"\n{mark('warn')} No model is chosen; run `hermes model`.")
    print("`hermes status` shows the settings, `hermes doctor` checks them.")


def _model(ctx: click.Context) -> str:
    settings = config_of(ctx).settings
    return settings.model.default or settings.local.model


def _ask_section(ctx: click.Context, section: str) -> None:
    for key in QUESTIONS[section]:
        _ask(ctx, key)
        if key == "terminal.backend":
            for further in FURTHER.get(config_of(ctx).settings.terminal.backend, ()):
                _ask(ctx, further)


def _ask(ctx: click.Context, key: str) -> None:
    """Ask until the answer is valid. It is saved at once, so that Ctrl+C loses nothing."""
    current = config_of(ctx).explain(key)
    now = display_value(current.value, secret=current.setting.secret)
    print(f"  {current.setting.meaning} {apply_style(describe_type(current.setting.kind), 'dim')}")
    while True:
        text = click.prompt(f"  {key}", default=_word(now), show_default=True)
        if text == _word(now):
            return
        try:
            edited = set_from_text(home_of(ctx), key, text)
        except HermesError as error:
            print(f"  {mark('error')} {error}")
            continue
        print(f"  {mark('ok')} {edited.key} = {edited.shown}")
        return


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)
