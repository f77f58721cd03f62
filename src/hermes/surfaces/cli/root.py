"""The `hermes` command line: global options, subcommands that load when they are called."""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from pathlib import Path
from typing import Any

import click

from hermes import __version__
from hermes.core.errors import HermesError, NotFound, UsageError
from hermes.surfaces.cli.style import styled

# name: (module, what it does in a few words). The module has `command`.
COMMANDS: dict[str, tuple[str, str]] = {
    "chat": ("chat", "Talk in the terminal (also without a subcommand)."),
    "config": ("config", "Show, explain and change settings."),
    "cost": ("cost", "What model calls have cost, by model, day or cause."),
    "doctor": ("doctor", "Check this installation and say how to mend it."),
    "logs": ("logs", "Read the log files."),
    "model": ("model", "Install and show models that run on this machine."),
    "prompt-size": ("prompt_size", "How many tokens the fixed part of a request takes."),
    "sessions": ("sessions", "List, search, export, fork and prune past sessions."),
    "trace": ("trace", "What happened in a session, step by step."),
}


class Root(click.Group):
    """Subcommands by name from the table above; a near miss is told, not guessed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"hermes.surfaces.cli.commands.{COMMANDS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean `{near[0]}`?" if near else " `hermes --help` lists them."
            raise UsageError(f"There is no command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # Telling what there is must not load it all.
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in sorted(COMMANDS.items())])


@click.command(
    cls=Root,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help="Hermes: an agent that works, remembers and survives. Without a command: chat.",
)
@click.option("-p", "--profile", metavar="NAME", help="Use this profile.")
@click.option(
    "-z", "--oneshot", "prompt", metavar="PROMPT", help="One turn; prints the answer only."
)
@click.option("--json", "as_json", is_flag=True, help="With -z: the events, one JSON line each.")
@click.option("-m", "--model", metavar="MODEL", help="Model for this run (or a .gguf file).")
@click.option("--provider", metavar="NAME", help="Provider for this run.")
@click.option("-t", "--toolsets", metavar="A,B", help="Toolsets for this run.")
@click.option("-r", "--resume", metavar="ID|TITLE", help="Go on with a session.")
@click.option(
    "-c",
    "--continue",
    "newest",
    is_flag=False,
    flag_value="",
    metavar="[TITLE]",
    help="Go on with the newest session.",
)
@click.option("--max-turns", type=click.IntRange(min=1), help="Most model calls in one turn.")
@click.option("--yolo", is_flag=True, help="Do not ask; what is never allowed stays so.")
@click.option("--ignore-rules", is_flag=True, help="No project files, no SOUL.md.")
@click.option(
    "--usage-file", type=click.Path(path_type=Path), help="With -z: write tokens and cost here."
)
@click.option("-v", "--verbose", is_flag=True, help="Show where an error came from.")
@click.version_option(
    __version__, "-V", "--version", prog_name="hermes", message="%(prog)s %(version)s"
)
@click.pass_context
def root(ctx: click.Context, /, **options: Any) -> int:
    ctx.obj = options
    if ctx.invoked_subcommand is not None:
        return 0
    if options["prompt"] is not None:
        from hermes.surfaces.cli.oneshot import run_oneshot

        return run_oneshot(options)
    from hermes.surfaces.cli.commands.chat import run_chat

    return run_chat(options)


def run(arguments: list[str]) -> int:
    """Exit codes: 0 well, 1 failed, 2 wrong usage, 130 interrupted. A closed pipe ends quietly."""
    verbose = "-v" in arguments or "--verbose" in arguments
    try:
        result = root.main(args=arguments, prog_name="hermes", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except BrokenPipeError:
        # Whoever read our output has left; there is nobody to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (KeyboardInterrupt, click.Abort):
        return 130
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.ClickException as error:
        return _complain(error.format_message(), code=2)
    except UsageError as error:
        return _complain(str(error), code=2)
    except HermesError as error:
        if verbose:
            raise
        near = error.near if isinstance(error, NotFound) else ()
        return _complain(str(error), *near, code=1)


def _complain(message: str, *near: str, code: int) -> int:
    print(f"{styled('error:', 'error', to=sys.stderr)} {message}", file=sys.stderr)
    for name in near[:3]:
        print(f"  {name}", file=sys.stderr)
    return code
