"""Info commands: provider, tools, toolsets, config, reload, profile, commands, version, debug."""

from __future__ import annotations

import platform
import sys

from hermes.codec.json import encode, plain
from hermes.commands.formatting import one_line
from hermes.commands.history import BUSY
from hermes.commands.registry import CommandContext, Outcome, Reload, SlashCommand
from hermes.core.errors import UsageError
from hermes.homes.toolsets import switch, toolset_states
from hermes.models.browser import ModelBrowser
from hermes.tools.toolbox import wanted_names
from hermes.version import __version__

PAGE = 20
WORDS = 70


async def provider(here: CommandContext, argument: str) -> str:
    now = here.session.transcript.provider
    rows = ModelBrowser(here.app.models).providers()
    lines = [
        f"{'●' if row.name == now else ' '} {row.name:<16} {row.label}"
        + (f"  ({row.problem})" if row.problem else "")
        for row in rows
        if row.usable or row.name == now
    ]
    missing = [row.name for row in rows if not row.usable]
    if missing:
        lines.append(f"Without a key: {', '.join(missing)}. `hermes model` adds one.")
    return "\n".join(lines)


async def tools(here: CommandContext, argument: str) -> str | None:
    verb, _, name = argument.partition(" ")
    name = name.strip()
    if verb in ("enable", "disable"):
        switch(here.app.context.home, name, on=verb == "enable")
        return f"{name} is {verb}d in new sessions."
    if verb not in ("", "list"):
        return None
    opened = here.session.transcript.opened
    shown = opened.tools if opened else ()
    chosen = here.app.tools.choose(shown, wanted_names(here.app.context.settings))
    lines = [f"  {spec.name:<18} {one_line(spec.description, WORDS)}" for spec in chosen.specs]
    hidden = ", ".join(spec.name for spec in chosen.hidden)
    lines += [f"Loaded on demand: {hidden}"] if hidden else []
    return "\n".join(lines) or "This session has no tools."


async def toolsets(here: CommandContext, argument: str) -> str:
    lines = [
        f"{'●' if row.enabled else '◐' if row.partly else '○'} {row.name:<16} "
        + ", ".join(row.tools)
        for row in toolset_states(here.app.context.settings)
    ]
    return "\n".join((*lines, "/tools enable NAME and /tools disable NAME change new sessions."))


async def config(here: CommandContext, argument: str) -> str:
    if argument:
        found = here.app.context.config.explain(argument)
        value = encode(plain(found.value)).decode()
        secret = found.setting.secret and found.value
        return f"{found.key} = {'(set)' if secret else here.app.context.redactor.text(value)}"
    explained = (
        here.app.context.config.explain(key) for key in here.app.context.config.known_keys()
    )
    lines = [
        f"  {each.key} = {here.app.context.redactor.text(encode(plain(each.value)).decode())}"
        for each in explained
        if each.source.kind != "default" and not each.setting.secret
    ]
    head = f"{here.app.context.home.config} (`hermes config set KEY VALUE` changes it)"
    return "\n".join((head, *lines))


async def reload(here: CommandContext, argument: str) -> Outcome:
    if here.session.busy:
        raise UsageError(BUSY)
    return Reload()


async def profile(here: CommandContext, argument: str) -> str:
    return f"{here.app.context.home.profile} ({here.app.context.home.root})"


async def commands(here: CommandContext, argument: str) -> str:
    lines = here.registry.lines()
    pages = -(-len(lines) // PAGE)
    page = min(int(argument), pages) if argument.isdecimal() and int(argument) else 1
    shown = lines[(page - 1) * PAGE : page * PAGE]
    more = f"Page {page} of {pages}" + f"; /commands {page + 1} shows the next." * (page < pages)
    return "\n".join((*shown, more))


async def version(here: CommandContext, argument: str) -> str:
    return f"Hermes {__version__}, Python {platform.python_version()}"


async def debug(here: CommandContext, argument: str) -> str:
    """Facts for a bug report, without secrets or messages."""
    transcript, settings = here.session.transcript, here.app.context.settings
    facts = {
        "hermes": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} ({platform.machine()})",
        "model": f"{transcript.model} ({transcript.provider})",
        "terminal": settings.terminal.backend,
        "approvals": here.app.controls[here.session.id].mode,
        "messages": len(transcript.messages),
        "compactions": len(transcript.compactions),
        "encoding": sys.stdout.encoding or "",
        "notices": "; ".join(map(one_line, here.app.context.notices)) or "none",
    }
    lines = (f"{name:12} {value}" for name, value in facts.items())
    return "\n".join((*lines, "`hermes doctor` checks more."))


INFO_COMMANDS = (
    SlashCommand("provider", "List the providers that have a key or a login.", provider),
    SlashCommand(
        "tools [list|enable TOOLSET|disable TOOLSET]",
        "List the tools of this session, or change the toolsets of new ones.",
        tools,
        surfaces=("cli",),
    ),
    SlashCommand("toolsets", "List toolsets and their tools.", toolsets, surfaces=("cli",)),
    SlashCommand(
        "config [KEY]",
        "Show one setting, or all that differ from the defaults.",
        config,
        surfaces=("cli",),
    ),
    SlashCommand(
        "reload", "Reload settings, keys, skills and MCP servers.", reload, surfaces=("cli",)
    ),
    SlashCommand("profile", "Show the current profile and its folder.", profile),
    SlashCommand("commands [PAGE]", "List all commands, page by page.", commands),
    SlashCommand("version", "Show the version.", version),
    SlashCommand("debug", "Show information for a bug report.", debug),
)
