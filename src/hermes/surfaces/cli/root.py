"""The `hermes` command line: global options, and subcommands that are loaded when called."""

from __future__ import annotations

import difflib
import importlib
import sys
from typing import Any

import click

from hermes.core.errors import UsageError
from hermes.surfaces.cli.options import OPTIONS, check
from hermes.surfaces.cli.output import click_option
from hermes.version import __version__

# Short help of each command, in the list of `hermes --help`.
COMMANDS = {
    "acp": "Serve an editor (Agent Client Protocol).",
    "auth": "API keys and logins of providers.",
    "backup": "Write this home to one file.",
    "bundles": "Group skills under one name.",
    "chat": "Chat in the terminal (the default).",
    "checkpoints": "Manage what is stored for undo.",
    "claw": "Migrate from OpenClaw.",
    "completion": "Print a completion script for bash, zsh or fish.",
    "config": "Show, explain and change settings.",
    "cost": "Cost of model calls, by model, day or cause.",
    "curator": "Archive and restore unused agent-written skills.",
    "doctor": "Check this installation and say how to fix it.",
    "dump": "Print a summary for support requests.",
    "fallback": "Models to use when the chosen one fails.",
    "honcho": "The user model on a Honcho server.",
    "hooks": "Programs that run on events.",
    "import": "Restore a backup, or migrate from Hermes Agent.",
    "insights": "Recent activity: tokens, cost, tools, skills, hours.",
    "login": "Log in to a provider.",
    "logout": "Log out of a provider.",
    "logs": "Read the log files.",
    "mcp": "Use MCP servers, and run Hermes as one.",
    "memory": "Show, change and erase what is remembered.",
    "model": "List and choose models; install local ones.",
    "plugins": "List, install, enable and remove plugins.",
    "policy": "What is allowed without a question, and why.",
    "profile": "Separate settings, keys and history.",
    "prompt-size": "Token count of the fixed part of a request.",
    "replay": "Replay a recorded session offline.",
    "serve": "Serve the HTTP API (OpenAI-compatible).",
    "sessions": "List, search, export, fork and prune past sessions.",
    "setup": "Set up Hermes step by step.",
    "skills": "List, install, edit and revert skills.",
    "status": "Model, keys and settings on one page.",
    "tools": "Choose the toolsets of sessions.",
    "trace": "Show the events of a session.",
    "undo": "Undo file changes of the agent.",
    "uninstall": "Remove Hermes, and optionally its home.",
    "update": "Update Hermes to the newest version.",
    "version": "Print the version.",
}
# Where each command is defined.
LOCATIONS = {
    "acp": "hermes.surfaces.acp.command:command",
    "auth": "hermes.surfaces.cli.commands.auth:command",
    "backup": "hermes.surfaces.cli.commands.maintenance:backup_command",
    "bundles": "hermes.surfaces.cli.commands.skills:bundles_command",
    "chat": "hermes.surfaces.cli.commands.chat:command",
    "checkpoints": "hermes.surfaces.cli.commands.undo:checkpoints_command",
    "claw": "hermes.surfaces.cli.commands.migration:claw_command",
    "completion": "hermes.surfaces.cli.commands.completion:command",
    "config": "hermes.surfaces.cli.commands.config:command",
    "cost": "hermes.surfaces.cli.commands.reports:cost_command",
    "curator": "hermes.surfaces.cli.commands.curator:command",
    "doctor": "hermes.surfaces.cli.commands.status:doctor_command",
    "dump": "hermes.surfaces.cli.commands.status:dump_command",
    "fallback": "hermes.surfaces.cli.commands.models:command",
    "honcho": "hermes.surfaces.cli.commands.memory_providers:command",
    "hooks": "hermes.surfaces.cli.commands.extensions:hooks_command",
    "import": "hermes.surfaces.cli.commands.migration:import_command",
    "insights": "hermes.surfaces.cli.commands.reports:insights_command",
    "login": "hermes.surfaces.cli.commands.auth:login_command",
    "logout": "hermes.surfaces.cli.commands.auth:logout_command",
    "logs": "hermes.surfaces.cli.commands.logs:command",
    "mcp": "hermes.surfaces.cli.commands.mcp:command",
    "memory": "hermes.surfaces.cli.commands.memory:command",
    "model": "hermes.surfaces.cli.commands.model:command",
    "plugins": "hermes.surfaces.cli.commands.extensions:command",
    "policy": "hermes.surfaces.cli.commands.policy:command",
    "profile": "hermes.surfaces.cli.commands.profile:command",
    "prompt-size": "hermes.surfaces.cli.commands.reports:prompt_size_command",
    "replay": "hermes.surfaces.cli.commands.trace:replay_command",
    "serve": "hermes.surfaces.api.command:command",
    "sessions": "hermes.surfaces.cli.commands.sessions:command",
    "setup": "hermes.surfaces.cli.commands.setup:command",
    "skills": "hermes.surfaces.cli.commands.skills:command",
    "status": "hermes.surfaces.cli.commands.status:status_command",
    "tools": "hermes.surfaces.cli.commands.tools:command",
    "trace": "hermes.surfaces.cli.commands.trace:trace_command",
    "undo": "hermes.surfaces.cli.commands.undo:undo_command",
    "uninstall": "hermes.surfaces.cli.commands.maintenance:uninstall_command",
    "update": "hermes.surfaces.cli.commands.maintenance:update_command",
    "version": "hermes.surfaces.cli.commands.status:version_command",
}


class RootGroup(click.Group):
    """Subcommands from the table above; a typo gets a suggestion."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return _find_plugin_command(ctx, cmd_name)
        module, _, name = LOCATIONS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        unknown = args and args[0] not in COMMANDS and not args[0].startswith("-")
        if unknown and _find_plugin_command(ctx, args[0]) is None:
            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean `{near[0]}`?" if near else " `hermes --help` lists them."
            raise UsageError(f"There is no command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # Listing the commands must not load them.
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


def _find_plugin_command(ctx: click.Context, name: str) -> click.Command | None:
    # Loaded only for names that are not in the table.
    from hermes.surfaces.cli.plugin_command import plugin_command

    return plugin_command(ctx, name)


@click.pass_context
def _call(ctx: click.Context, /, **options: Any) -> int:
    ctx.obj = options
    check(options, ctx.invoked_subcommand or "")
    if ctx.invoked_subcommand is not None:
        return 0
    if options["prompt"] is not None:
        from hermes.surfaces.cli.oneshot import run_oneshot

        return run_oneshot(options)
    from hermes.surfaces.cli.chat.startup import run_chat

    return run_chat(options)


root = click.version_option(
    __version__,
    "-V",
    "--version",
    prog_name="hermes",
    message=f"%(prog)s %(version)s (Python {'.'.join(map(str, sys.version_info[:3]))})",
)(
    RootGroup(
        "hermes",
        callback=_call,
        params=[click_option(option) for option in OPTIONS],
        invoke_without_command=True,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        help="Hermes, a personal AI agent. Without a command: chat.",
    )
)


def invoke(arguments: list[str]) -> int:
    """The exit code of a command. Raises UsageError for invalid arguments."""
    try:
        # Not `main`, which ends the process on a closed pipe.
        with root.make_context("hermes", list(arguments)) as ctx:
            result = root.invoke(ctx)
    except click.Abort:
        return 130
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return error.exit_code
    except click.ClickException as error:
        raise UsageError(_advice(error)) from error
    return result if isinstance(result, int) else 0


def _advice(error: click.ClickException) -> str:
    """The message, with a pointer to the help unless it has a suggestion."""
    words = error.format_message()
    if not isinstance(error, click.UsageError) or "Did you mean" in words:
        return words
    command = error.ctx.command_path if error.ctx else "hermes"
    return f"{words} See `{command} --help`."
