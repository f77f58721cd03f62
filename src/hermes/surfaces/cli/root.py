"""The `hermes` command line: global options, and subcommands that are loaded when called."""

from __future__ import annotations

import difflib
import sys
from typing import Any

import click

from hermes.config.environment import process_environment
from hermes.core.errors import UsageError
from hermes.surfaces.cli.command_context import config_of, load_command, with_app
from hermes.surfaces.cli.options import OPTIONS, check_conflicts
from hermes.surfaces.cli.output import click_option
from hermes.version import __version__

# Where each command is defined, in `commands` or elsewhere, and its short help.
COMMANDS = {
    "acp": ("hermes.surfaces.acp.command:command", "Serve an editor by the Agent Client Protocol."),
    "auth": ("auth:command", "Manage API keys and logins of providers."),
    "backup": ("maintenance:backup_command", "Back up this home to one file."),
    "bundles": ("skills:bundles_command", "Group skills under one name."),
    "chat": ("chat:command", "Chat in the terminal (the default)."),
    "checkpoints": ("undo:checkpoints_command", "Manage the file copies that undo needs."),
    "claw": ("migration:claw_command", "Migrate from OpenClaw."),
    "completion": ("completion:command", "Print a completion script for bash, zsh or fish."),
    "config": ("config:command", "Show, explain and change settings."),
    "cost": ("reports:cost_command", "Show the cost of model calls."),
    "cron": ("cron:command", "Schedule tasks and run the scheduler."),
    "curator": ("curator:command", "Archive agent-written skills that are not used."),
    "doctor": ("status:doctor_command", "Check this installation and explain how to fix it."),
    "dump": ("status:dump_command", "Print a summary for support requests."),
    "extras": ("extras:command", "List, add and remove optional parts."),
    "fallback": ("fallback:command", "Choose the models to use when the first one fails."),
    "gateway": (
        "hermes.surfaces.gateway.command:command",
        "Connect messaging platforms.",
    ),
    "honcho": ("memory:honcho_command", "Manage what a Honcho server learns about you."),
    "hooks": ("extensions:hooks_command", "List and test the programs that run on events."),
    "import": ("migration:import_command", "Restore a backup, or migrate from Hermes Agent."),
    "insights": ("reports:insights_command", "Show recent use: tokens, cost, tools, hours."),
    "login": ("auth:login_command", "Log in to a provider."),
    "logout": ("auth:logout_command", "Log out of a provider."),
    "logs": ("logs:command", "Show the log files."),
    "mcp": ("mcp:command", "Use MCP servers, and run Hermes as one."),
    "memory": ("memory:command", "Show, change and erase what Hermes remembers."),
    "moa": ("moa:command", "Manage the presets of the mixture of agents."),
    "model": ("model:command", "List, choose and install models."),
    "pairing": (
        "hermes.surfaces.gateway.pairing_command:command",
        "Approve people who write to the bot.",
    ),
    "plan": ("plan:plan_command", "Write a plan for a request and run it."),
    "plugins": ("extensions:command", "List, install, enable and remove plugins."),
    "policy": ("policy:command", "Explain what is allowed, asked and denied."),
    "profile": ("profile:command", "Manage profiles: separate settings, keys and history."),
    "prompt-size": (
        "reports:prompt_size_command",
        "Estimate the tokens of the system prompt and tools.",
    ),
    "replay": ("trace:replay_command", "Replay a recorded session offline."),
    "send": ("hermes.surfaces.gateway.send_command:command", "Send a message to a chat."),
    "serve": ("hermes.surfaces.api.command:command", "Serve the OpenAI-compatible HTTP API."),
    "sessions": ("sessions:command", "List, search, export, fork and prune past sessions."),
    "setup": ("setup:command", "Set up Hermes step by step."),
    "skills": ("skills:command", "List, install, edit and revert skills."),
    "status": ("status:status_command", "Show model, keys and settings on one page."),
    "tools": ("tools:command", "Choose the toolsets of new sessions."),
    "trace": ("trace:trace_command", "Show the events of a session."),
    "undo": ("undo:undo_command", "Undo file changes of the agent."),
    "uninstall": ("maintenance:uninstall_command", "Remove Hermes, and optionally its home."),
    "update": ("maintenance:update_command", "Update Hermes to the newest version."),
    "version": ("status:version_command", "Print the version."),
    "webhook": (
        "hermes.surfaces.gateway.platforms.webhook.command:command",
        "Start turns by requests of other services.",
    ),
}


class RootGroup(click.Group):
    """The commands of the table and those of plugins. A typo gets a suggestion."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS:
            return load_command(COMMANDS[cmd_name][0])
        return _plugin_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        unknown = args and args[0] not in COMMANDS and not args[0].startswith("-")
        if unknown and self.get_command(ctx, args[0]) is None:
            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean `{near[0]}`?" if near else " `hermes --help` lists them."
            raise UsageError(f"There is no command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # Listing the commands must not load them.
        with formatter.section("Commands"):
            formatter.write_dl([(name, help) for name, (_, help) in sorted(COMMANDS.items())])


def _plugin_command(ctx: click.Context, name: str) -> click.Command | None:
    """The command that an enabled plugin declares. Finding it runs no code of a plugin."""
    config = config_of(ctx, quiet=True)
    if not config.settings.plugins.enabled:
        return None
    # Loaded only for names that are not in the table.
    from hermes.app.app import App
    from hermes.commands.formatting import sanitize
    from hermes.core.world import World

    # This opens nothing, so there is nothing to close.
    if not App(config, env=process_environment(), world=World()).plugins.has_cli_command(name):
        return None

    @click.pass_context
    def run(inner: click.Context, /, words: tuple[str, ...]) -> int:
        code, output = with_app(inner, lambda app: app.plugins.run_cli_command(name, list(words)))
        sys.stdout.write(sanitize(output))
        return code

    return click.Command(
        name,
        callback=run,
        params=[click.Argument(["words"], nargs=-1, type=click.UNPROCESSED)],
        context_settings={"ignore_unknown_options": True, "help_option_names": []},
        help="Run a command of a plugin.",
    )


@click.pass_context
def _call(ctx: click.Context, /, **options: Any) -> int:
    ctx.obj = options
    check_conflicts(options, ctx.invoked_subcommand or "")
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
        help="Run Hermes, a personal AI agent. Without a command, start a chat.",
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
        message = error.format_message()
        if isinstance(error, click.UsageError) and "Did you mean" not in message:
            message += f" See `{error.ctx.command_path if error.ctx else 'hermes'} --help`."
        raise UsageError(message) from error
    return result if isinstance(result, int) else 0
