"""Writes the pages that describe the program from the program itself, or checks them.

python scripts/generate_reference.py            write them
python scripts/generate_reference.py --check    exit 1 when one is out of date
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import click

from hermes.codec.json import encode
from hermes.codec.values import JsonObject
from hermes.commands.catalogue import COMMANDS
from hermes.commands.registry import SlashCommand
from hermes.config.migrations import newest_version
from hermes.config.schema import (
    ANY_NAME,
    Setting,
    all_settings,
    describe_type,
    fields_of,
    find_setting,
    is_section,
    mapping_section,
    parse_key,
)
from hermes.config.settings import OVERRIDES, Override, Settings
from hermes.core.prompt import ToolSpec
from hermes.plans.report import report_schema
from hermes.providers.model_catalogue import Vendor, shipped_catalogue
from hermes.providers.offline.table import documentation
from hermes.surfaces.cli.chat.banner import SKIN_COMMANDS
from hermes.surfaces.cli.root import root
from hermes.tools.catalogue import built_in_entries
from hermes.tools.toolbox import EVERYTHING, resolve_toolsets, toolsets_by_name

FOLDER = Path(__file__).parent.parent / "docs" / "reference"
NOTICE = "<!-- Written by scripts/generate_reference.py; change the program, not this page. -->"

CONFIG_INTRODUCTION = f"""\
# Settings

{NOTICE}

Settings live in `config.yaml` in the home folder (`$HERMES_HOME`, else `~/.hermes`), secrets in
`.env` beside it. `hermes config set KEY VALUE` changes one and keeps your comments;
`hermes config explain KEY` shows the source of a value and the values that it overrides.

If several places set a value, the first one in this list wins:

1. a command-line option;
2. a choice made in the running session;
3. the variable in the last column, in the process environment;
4. the same variable in `.env`;
5. `config.yaml`;
6. a variable marked *weak*, in the process environment, then in `.env`;
7. the default.

For secrets, `.env` wins over the process environment. `${{NAME}}` in a value of `config.yaml` is
replaced by that variable or secret. Hermes warns about an unknown key or a value of the wrong type,
ignores it, and continues. `hermes config migrate` updates `_config_version` (now
{newest_version()}).
"""


def config_page() -> str:
    groups: dict[str, list[Setting]] = {}
    for setting in all_settings(Settings):
        groups.setdefault(".".join(setting.path[:-1]), []).append(setting)
    parts = [CONFIG_INTRODUCTION]
    meanings = dict(section_meanings(Settings))
    for name, settings in groups.items():
        parts.append(f"## {f'`{name}`' if name else 'Top level'}\n")
        if meanings.get(name):
            parts.append(f"{meanings[name]}\n")
        parts.append(table(settings))
    return "\n".join(parts)


def section_meanings(section: type, before: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """What the docstrings of the sections say, by the key of the section."""
    for name, setting in fields_of(section).items():
        path = (*before, name)
        kind = setting.kind
        if held := mapping_section(kind):
            path, kind = (*path, ANY_NAME), held
        if is_section(kind):
            yield ".".join(path), inspect.cleandoc(kind.__doc__ or "").replace("\n", " ")
            yield from section_meanings(kind, path)


def table(settings: list[Setting]) -> str:
    rows = ["| Key | Kind | Default | Meaning | Variable |", "| --- | --- | --- | --- | --- |"]
    rows += [
        f"| `{setting.path[-1]}` | {describe_type(setting.kind)} | {default_words(setting)} "
        f"| {setting.meaning} | {variables(setting.key)} |"
        for setting in settings
    ]
    return "\n".join(rows) + "\n"


def default_words(setting: Setting) -> str:
    return f"`{encode(setting.default).decode()}`"


def variables(key: str) -> str:
    return ", ".join(
        f"`{o.variable}`"
        + (" (weak)" if o.weak else "")
        + (f" (1 means `{o.when_true}`)" if o.when_true else "")
        for o in OVERRIDES
        if o.key == key
    )


COMMANDS_INTRODUCTION = f"""\
# Commands

{NOTICE}

Global options come before the command: `hermes -p work sessions list`. Results go to stdout,
everything else to stderr. `hermes version` is the same as `hermes --version`.

Exit codes: 0 success, 1 failure (including a check that finds a problem), 2 invalid usage,
130 interrupted. If the reader closes the pipe, the command ends without an error.
"""


def commands_page() -> str:
    return "\n".join((COMMANDS_INTRODUCTION, *command_parts(root, None, "hermes")))


def command_parts(command: click.Command, parent: click.Context | None, name: str) -> Iterator[str]:
    """A command and all below it."""
    ctx = click.Context(command, info_name=name, parent=parent, **command.context_settings)
    usage = " ".join((ctx.command_path, *command.collect_usage_pieces(ctx)))
    yield f"## `{ctx.command_path}`\n\n{command.help or ''}\n\n```text\n{usage}\n```\n"
    records = (
        param.get_help_record(ctx) for param in command.params if isinstance(param, click.Option)
    )
    if options := [record for record in records if record]:
        yield rows(("Option", "Meaning"), ((code(names), words) for names, words in options))
    if isinstance(command, click.Group):
        for below in command.list_commands(ctx):
            found = command.get_command(ctx, below)
            assert found is not None
            yield from command_parts(found, ctx, below)


SLASH_INTRODUCTION = f"""\
# Slash commands

{NOTICE}

Type a slash command instead of a message. Case does not matter, `_` equals `-`, and a unique
prefix of a name is enough. The column "Where" says whether a command exists in the terminal (cli),
in editors, or in both.
"""


ALL_COMMANDS = (*COMMANDS, *SKIN_COMMANDS)


def slash_commands_page() -> str:
    return "\n".join(
        (
            SLASH_INTRODUCTION,
            rows(("Command", "Also", "Where", "Meaning"), map(slash_row, ALL_COMMANDS)),
        )
    )


def slash_row(command: SlashCommand) -> tuple[str, ...]:
    return (
        code(f"/{command.name} {command.arguments}".rstrip()),
        ", ".join(code(f"/{alias}") for alias in command.aliases),
        ", ".join(command.surfaces),
        command.help,
    )


EVERY_TOOL = " and ".join(f"`{name}`" for name in EVERYTHING)
TOOLS_INTRODUCTION = f"""\
# Tools

{NOTICE}

What a model may call. Which tools a session has is decided when it opens, by `toolsets` and
`agent.disabled_toolsets` in the settings or by `-t A,B`; {EVERY_TOOL} mean all of them.
Every effect of a tool passes the policy first, whoever calls it.

## Toolsets
"""


def tools_page() -> str:
    toolsets = ((code(name), code(*resolve_toolsets((name,)))) for name in toolsets_by_name())
    specs = sorted((entry.spec for entry in built_in_entries()), key=lambda spec: spec.name)
    return "\n".join(
        (TOOLS_INTRODUCTION, rows(("Toolset", "Tools"), toolsets), *map(tool_part, specs))
    )


def tool_part(spec: ToolSpec) -> str:
    needed = spec.parameters["required"]
    names = [name for name in toolsets_by_name() if spec.name in resolve_toolsets((name,))]
    parameters = (
        (code(name), "yes" if name in needed else "", kind_words(schema), meaning_words(schema))
        for name, schema in spec.parameters["properties"].items()
    )
    return (
        f"## `{spec.name}`\n\n{' '.join(spec.description.split())}\n\nIn {code(*names)}.\n\n"
        + rows(("Parameter", "Needed", "Kind", "Meaning"), parameters)
    )


def kind_words(schema: JsonObject) -> str:
    if "enum" in schema:
        return f"one of {code(*schema['enum'])}"
    if schema["type"] == "array":
        return f"list of {schema['items']['type']}"
    return str(schema["type"])


def meaning_words(schema: JsonObject) -> str:
    default = f"default {code(str(schema['default']))}" if "default" in schema else ""
    return "; ".join(words for words in (schema.get("description", ""), default) if words)


ENVIRONMENT_INTRODUCTION = f"""\
# Environment variables

{NOTICE}

Variables in the `.env` file of the home work like variables of the process, except those in the
first table and in the last three tables. [Settings](config.md) lists the order of precedence.
"""
PLACE_VARIABLES = (
    ("HERMES_HOME", "The Hermes home; default `~/.hermes`."),
    ("HERMES_PROFILE", "The profile in the home; `-p NAME` overrides it."),
    ("HOME", "Your home folder, `~`."),
    ("HERMES_GATEWAY_LOCK_DIR", "Lock files that stop two homes from using the same token."),
    ("HF_HOME", "`hermes setup`: cache of Hugging Face; default `~/.cache/huggingface`."),
    ("OLLAMA_HOST", "`hermes setup`: address of Ollama, if it is on this machine."),
    ("OLLAMA_MODELS", "`hermes setup`: models of Ollama; default `~/.ollama/models`."),
    (
        "XDG_CACHE_HOME",
        "`hermes setup`: parent of the caches of other programs; default `~/.cache`.",
    ),
    ("NOTIFY_SOCKET", "Set by systemd: where the gateway reports that it is ready."),
    ("WATCHDOG_USEC", "Set by systemd: how often the gateway must report that it is alive."),
    ("XDG_STATE_HOME", "Parent of the default lock folder; default `~/.local/state`."),
)
SERVICE_VARIABLES = (
    ("HONCHO_API_KEY", "The key of the Honcho server that models the user."),
    ("HONCHO_BASE_URL", "The URL of a self-hosted Honcho server."),
    ("GITHUB_APP_ID", "The GitHub App that `hermes skills` uses to log in."),
    ("GITHUB_APP_INSTALLATION_ID", "The installation of that App."),
    ("GITHUB_APP_PRIVATE_KEY_PATH", "The file with its private key."),
    ("API_SERVER_KEY", "Bearer token that clients of `hermes serve` may send."),
    ("HERMES_MCP_TOKEN", "Bearer token for HTTP clients of `hermes mcp serve`; not in `.env`."),
    ("SUDO_PASSWORD", "The password for `sudo`; without it Hermes asks you."),
)
TERMINAL_VARIABLES = (
    ("NO_COLOR", "Any value disables colours."),
    ("TERM", "`dumb` disables colours and cursor movement and gives a plain prompt."),
    ("DISPLAY", "If set, a login may open a browser."),
    ("WAYLAND_DISPLAY", "Like `DISPLAY`."),
    ("SSH_CONNECTION", "Set by a remote login; Hermes then opens no browser."),
    ("SSH_TTY", "Like `SSH_CONNECTION`."),
    ("TMUX", "Set by tmux; Hermes then waits longer before it redraws a resized window."),
    ("XTERM_VERSION", "Set by xterm, which does not reflow lines either."),
    ("HERMES_SESSION_SOURCE", "The source recorded in new sessions; `--source` overrides it."),
    ("HERMES_QUIET", "`1` hides the banner; `chat -q` prints only the answer."),
    ("HERMES_DUMP_REQUESTS", "`1` writes model requests to `logs/requests/`, without secrets."),
    ("VISUAL", "The editor for `hermes config edit`."),
    ("EDITOR", "The editor if `VISUAL` is not set."),
    ("TERMUX_VERSION", "Set by Termux; Hermes then tells the model what differs there."),
    ("PATH", "Where Hermes finds `bash`, `git`, `rg` and the programs of commands."),
)
CHILD_VARIABLES = (
    ("HERMES_SESSION_ID", "The session that runs the command. Only local commands see it."),
    ("HERMES_SESSION_PLATFORM", "The surface of that session: `cli`, `acp` or `api`."),
    ("HERMES_INTERACTIVE", "`1` if a user can answer questions in that session."),
)
TEST_VARIABLES = (
    ("HERMES_TESTING", "`1` enables `HERMES_KILL_AT`."),
    ("HERMES_KILL_AT", "`name[:n]` kills the process at this kill point; see testing.md."),
    ("PYTEST_CURRENT_TEST", "Set by pytest; Hermes then refuses to use a home in `~`."),
)


def environment_page() -> str:
    overrides = ((code(each.variable), code(each.key), setting_words(each)) for each in OVERRIDES)
    vendors = (
        row for vendor in shipped_catalogue().vendors.values() for row in vendor_rows(vendor)
    )
    pairs = ("Variable", "Meaning")
    return "\n".join(
        (
            ENVIRONMENT_INTRODUCTION,
            f"## Where things are\n\n{rows(pairs, coded(PLACE_VARIABLES))}",
            f"## Settings\n\n{rows(('Variable', 'Setting', 'Meaning'), overrides)}",
            f"## Model providers\n\n{rows(('Variable', 'Provider', 'Meaning'), vendors)}",
            f"## Other services\n\n{rows(pairs, coded(SERVICE_VARIABLES))}",
            f"## The terminal\n\n{rows(pairs, coded(TERMINAL_VARIABLES))}",
            f"## Set for commands\n\n{rows(pairs, coded(CHILD_VARIABLES))}",
            f"## Tests\n\n{rows(pairs, coded(TEST_VARIABLES))}",
        )
    )


def coded(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    return ((code(name), words) for name, words in pairs)


def setting_words(override: Override) -> str:
    setting = find_setting(Settings, parse_key(override.key))
    assert setting is not None
    weak = " Yields to `config.yaml`." if override.weak else ""
    switch = f" 1 means `{override.when_true}`." if override.when_true else ""
    return f"{setting.meaning}{switch}{weak}"


def vendor_rows(vendor: Vendor) -> Iterator[tuple[str, ...]]:
    for name in vendor.keys:
        yield code(name), code(vendor.name), f"{vendor.label}: the key."
    if vendor.url_env:
        yield code(vendor.url_env), code(vendor.name), f"{vendor.label}: the address."


def rows(heads: tuple[str, ...], lines: Iterable[Iterable[str]]) -> str:
    """A table; a bar inside a cell would end it."""
    table_lines = [heads, ("---",) * len(heads), *lines]
    cells = ((cell.replace("|", "\\|") for cell in line) for line in table_lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


def code(*texts: str) -> str:
    return ", ".join(f"`{text}`" for text in texts)


# Page: the function that writes it.
def plan_schema() -> str:
    """The JSON Schema of what `hermes plan --json` prints."""
    return json.dumps(report_schema(), indent=1, sort_keys=True) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "plan.schema.json": plan_schema,
    "config.md": config_page,
    "commands.md": commands_page,
    "slash-commands.md": slash_commands_page,
    "tools.md": tools_page,
    "environment.md": environment_page,
    "../offline-assistant.md": documentation,
}


def main(arguments: list[str]) -> int:
    stale = []
    for name, write in PAGES.items():
        path, text = FOLDER / name, write()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path}")
    if stale and "--check" in arguments:
        print(f"out of date: {', '.join(stale)}; run `make generate`")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
