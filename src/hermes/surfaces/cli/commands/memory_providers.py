"""`hermes memory setup`, `status`, `off` and `hermes honcho`: user-model providers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hermes.codec.values import JsonObject, JsonValue
from hermes.config.edit import set_from_text
from hermes.core.errors import UsageError
from hermes.surfaces.cli.command_context import home_of, with_app
from hermes.surfaces.cli.output import CommandGroup, Output

if TYPE_CHECKING:
    from hermes.memory.honcho.settings import HonchoSettings
    from hermes.memory.service import MemoryService
    from hermes.memory.user_model import UserModels

PROVIDERS = ("local", "honcho")
STRATEGIES = ("per-directory", "per-repo", "per-session", "global")
MODES = ("hybrid", "context", "tools")
NEXT = "New sessions use it."
NOT_ON = "It is off; `hermes honcho enable` turns it on."

with_memory = with_app.part(lambda app: app.memory)
with_user_models = with_memory.part(lambda memory: memory.user_model)
provider_commands = CommandGroup()
command = CommandGroup(help="The user model on a Honcho server.")


@provider_commands.text(
    "Choose a user-model provider beside the files; `local` needs no setup.", name="setup"
)
@click.argument("provider", type=click.Choice(PROVIDERS))
def memory_setup(ctx: click.Context, provider: str) -> Iterator[str]:
    set_from_text(home_of(ctx), "memory.provider", provider)
    yield f"New sessions use {provider}."
    if provider == "honcho":
        yield "Set its key with `hermes config set HONCHO_API_KEY …`, or set HONCHO_BASE_URL."


@provider_commands.text("Use only the files MEMORY.md and USER.md.", name="off")
def memory_off(ctx: click.Context) -> str:
    set_from_text(home_of(ctx), "memory.provider", "")
    return "New sessions use the two files only."


@provider_commands.json(
    "Show how full memory is, what is pending and which provider is used.",
    with_memory,
    name="status",
)
async def memory_status(memory: MemoryService) -> Output:
    found = await memory.status()
    lines = [
        f"{target:8} {part.entries} entries, {part.usage}{'' if part.is_on else '  (off)'}"
        for target, part in found.parts.items()
    ]
    waiting = "all changes" if found.write_approval else "suspicious changes"
    lines += [
        f"pending  {found.pending}; not shown to models: {found.hidden}",
        f"approval {waiting} need approval",
        f"provider {found.provider or 'none'}",
    ]
    return Output(found, lines)


@command.json("Show whether it is on, its server and its settings.", with_memory)
def status(memory: MemoryService) -> Output:
    is_on = memory.run.settings.memory.provider == "honcho"
    settings = memory.user_model.honcho_settings()
    facts: JsonObject = {
        "enabled": is_on,
        "url": settings.url,
        "key": bool(settings.api_key),
        "workspace": settings.workspace,
        "peers": [settings.peer_name, settings.ai_peer],
        "strategy": settings.session_strategy,
        "session": settings.session_name("(its id)", str(Path.cwd())),
        "mode": settings.recall_mode,
        "context_tokens": settings.context_tokens,
        "dialectic_max_chars": settings.dialectic_max_chars,
        "write_frequency": settings.write_frequency,
    }
    lines = [f"{name.replace('_', ' '):20} {_words(value)}" for name, value in facts.items()]
    return Output(facts, lines if is_on else [*lines, NOT_ON])


@command.text("Turn it on for new sessions.")
def enable(ctx: click.Context) -> str:
    set_from_text(home_of(ctx), "memory.provider", "honcho")
    return NEXT


@command.text("Turn it off; the data on the server stays.")
def disable(ctx: click.Context) -> str:
    set_from_text(home_of(ctx), "memory.provider", "")
    return "New sessions do not use it."


@command.text(
    "What shares a conversation there: a folder, a repository, a session or all.", with_user_models
)
@click.argument("wanted", type=click.Choice(STRATEGIES), required=False)
def strategy(models: UserModels, wanted: str | None) -> str:
    return str(_set(models, sessionStrategy=wanted).session_strategy)


@command.text("How the model gets the facts: in the context, by tools, or both.", with_user_models)
@click.argument("wanted", type=click.Choice(MODES), required=False)
def mode(models: UserModels, wanted: str | None) -> str:
    return str(_set(models, recallMode=wanted).recall_mode)


@command.text("Show or set the names of the two peers.", with_user_models)
@click.option("--user", metavar="NAME", help="You.")
@click.option("--ai", metavar="NAME", help="The assistant.")
def peer(models: UserModels, user: str | None, ai: str | None) -> str:
    settings = _set(models, peerName=user or None, aiPeer=ai or None)
    return f"user {settings.peer_name}\nai   {settings.ai_peer}"


@command.text("Show or set the limits for what is added to a message.", with_user_models)
@click.option("--context", type=click.IntRange(min=0), help="Tokens of facts; 0 for no limit.")
@click.option("--dialectic", type=click.IntRange(min=1), help="Characters of reasoning.")
def tokens(models: UserModels, context: int | None, dialectic: int | None) -> str:
    settings = _set(models, dialecticMaxChars=dialectic)
    if context is not None:
        settings = models.set_honcho(contextTokens=context or None)
    limit = "all" if settings.context_tokens is None else f"{settings.context_tokens} tokens"
    return f"context   {limit}\ndialectic {settings.dialectic_max_chars} characters"


@command.json("Facts about the assistant on the server; FILE replaces them, one per line.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False), required=False)
def identity(ctx: click.Context, file: str | None) -> Output:
    lines = None
    if file:
        text = Path(file).read_text("utf-8", "replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if not lines:
            raise UsageError(f"{file} has no lines; write one fact in each.")
    known = with_user_models(ctx, lambda models: models.honcho_identity(lines))
    return Output(list(known), [f"- {line}" for line in known] or "Nothing yet.")


@command.json("List the folders that have a session name.", with_user_models)
def sessions(models: UserModels) -> Output:
    named = _set(models).sessions
    lines = [f"{name:24} {folder}" for folder, name in sorted(named.items())]
    return Output(named, lines or "None; `hermes honcho map NAME` names this folder.")


@command.text("Set the session name of this folder; without NAME, show it.", with_user_models)
def map_(models: UserModels, name: str | None = None) -> str:
    here, settings = str(Path.cwd()), _set(models)
    if name:
        settings = _set(models, sessions={**settings.sessions, here: name})
    return settings.session_name("(its id)", here)


def _set(models: UserModels, **changes: JsonValue) -> HonchoSettings:
    """The settings, with those changes that are not None."""
    wanted = {name: value for name, value in changes.items() if value is not None}
    return models.set_honcho(**wanted) if wanted else models.honcho_settings()


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(value)
    return "all" if value is None else str(value)
