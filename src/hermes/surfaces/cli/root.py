"""The `hermes` command line: global options, subcommands that load when they are called."""

from __future__ import annotations

import difflib
import importlib
import sys
from typing import Any

import click

from hermes.core.errors import UsageError
from hermes.surfaces.cli.click_options import click_option
from hermes.surfaces.cli.options import OPTIONS, check
from hermes.version import __version__

# name: (module, what it does in a few words). The module has `command`; those of other surfaces
# are written in full.
COMMANDS: dict[str, tuple[str, str]] = {
    "acp": ("hermes.surfaces.acp.command", "Serve an editor (Agent Client Protocol)."),
    "auth": ("auth", "Keys and logins of providers."),
    "backup": ("backup", "Put this home into one file."),
    "bundles": ("bundles", "Several skills under one name."),
    "chat": ("chat", "Talk in the terminal (also without a subcommand)."),
    "checkpoints": ("checkpoints", "What is kept for undo."),
    "claw": ("claw", "Move in from OpenClaw."),
    "completion": ("completion", "Completion for bash, zsh or fish."),
    "config": ("config", "Show, explain and change settings."),
    "cost": ("cost", "What model calls have cost, by model, day or cause."),
    "curator": ("curator", "Unused skills of the agent's own: archive and restore."),
    "doctor": ("doctor", "Check this installation and say how to mend it."),
    "dump": ("dump", "A summary to paste where you ask for help."),
    "fallback": ("fallback", "Models that go on when the chosen one cannot."),
    "honcho": ("honcho", "The model of the user on a Honcho server."),
    "hooks": ("hooks", "Programs of yours that run when something happens."),
    "import": ("import_", "Restore a backup, or move in from Hermes Agent."),
    "insights": ("insights", "What was done lately: tokens, cost, tools, skills, hours."),
    "login": ("login", "Log in at a provider."),
    "logout": ("logout", "Log out of a provider."),
    "logs": ("logs", "Read the log files."),
    "mcp": ("mcp", "Foreign servers (MCP), and Hermes as one."),
    "memory": ("memory", "What is remembered, why, and how to forget it."),
    "model": ("model", "See and choose what answers; install local models."),
    "plugins": ("plugins", "Code of others: see, install, agree, switch off."),
    "policy": ("policy", "What may be done without a question, and why."),
    "profile": ("profile", "Several homes in one, each on its own."),
    "prompt-size": ("prompt_size", "How many tokens the fixed part of a request takes."),
    "replay": ("replay", "Play a recorded session again, offline."),
    "serve": ("hermes.surfaces.api.command", "Serve the HTTP API (OpenAI-compatible)."),
    "sessions": ("sessions", "List, search, export, fork and prune past sessions."),
    "setup": ("setup", "Choose what matters, step by step."),
    "skills": ("skills", "See, install, write and take back skills."),
    "status": ("status", "What answers and what is set, on one page."),
    "tools": ("tools", "Which toolsets sessions are offered."),
    "trace": ("trace", "What happened in a session, step by step."),
    "undo": ("undo", "Take back what was done to files."),
    "uninstall": ("uninstall", "Remove Hermes, and its home if you say so."),
    "update": ("update", "Bring Hermes to its newest version."),
    "version": ("version", "Which version this is."),
}


class Root(click.Group):
    """Subcommands by name from the table above; a near miss is told, not guessed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return _of_plugin(ctx, cmd_name)
        place = COMMANDS[cmd_name][0]
        own = place if "." in place else f"hermes.surfaces.cli.commands.{place}"
        module = importlib.import_module(own)
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        unknown = args and args[0] not in COMMANDS and not args[0].startswith("-")
        if unknown and _of_plugin(ctx, args[0]) is None:
            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean `{near[0]}`?" if near else " `hermes --help` lists them."
            raise UsageError(f"There is no command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # Telling what there is must not load it all.
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in sorted(COMMANDS.items())])


def _of_plugin(ctx: click.Context, name: str) -> click.Command | None:
    # Only a name that nobody here knows leads there.
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
    from hermes.surfaces.cli.commands.chat import run_chat

    return run_chat(options)


root = click.version_option(
    __version__,
    "-V",
    "--version",
    prog_name="hermes",
    message=f"%(prog)s %(version)s (Python {'.'.join(map(str, sys.version_info[:3]))})",
)(
    Root(
        "hermes",
        callback=_call,
        params=[click_option(option) for option in OPTIONS],
        invoke_without_command=True,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        help="Hermes: an agent that works, remembers and survives. Without a command: chat.",
    )
)


def invoke(arguments: list[str]) -> int:
    """The exit code of a command; UsageError when it was not written as it should be."""
    try:
        # Not `main`: it ends the process when the output is closed.
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
    """What is wrong, and where to read more unless the error says what to write instead."""
    words = error.format_message()
    if not isinstance(error, click.UsageError) or "Did you mean" in words:
        return words
    command = error.ctx.command_path if error.ctx else "hermes"
    return f"{words} See `{command} --help`."
