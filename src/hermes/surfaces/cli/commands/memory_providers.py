"""`hermes memory setup`, `status`, `off` and `hermes honcho`: user-model providers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hermes.app.app import App
from hermes.codec.values import JsonObject, JsonValue
from hermes.config.edit import set_from_text
from hermes.core.errors import UsageError
from hermes.surfaces.cli.command_context import home_of
from hermes.surfaces.cli.output import Output, json_output, text_output, with_app

if TYPE_CHECKING:
    from hermes.memory.honcho.settings import HonchoSettings

PROVIDERS = ("local", "honcho")


@click.command(
    "setup", help="Choose a user-model provider beside the files; `local` needs no setup."
)
@click.argument("provider", type=click.Choice(PROVIDERS))
@text_output()
def memory_setup(ctx: click.Context, provider: str) -> Iterator[str]:
    set_from_text(home_of(ctx), "memory.provider", provider)
    yield f"New sessions use {provider}."
    if provider == "honcho":
        yield "Set its key with `hermes config set HONCHO_API_KEY …`, or set HONCHO_BASE_URL."


@click.command("off", help="Use only the files MEMORY.md and USER.md.")
@text_output()
def memory_off(ctx: click.Context) -> str:
    set_from_text(home_of(ctx), "memory.provider", "")
    return "New sessions use the two files only."


@click.command(
    "status", help="Show how full memory is, what is pending and which provider is used."
)
@json_output(with_app)
async def memory_status(app: App) -> Output:
    found = await app.memory.status()
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


STRATEGIES = ("per-directory", "per-repo", "per-session", "global")
MODES = ("hybrid", "context", "tools")
NEXT = "New sessions use it."
NOT_ON = "It is off; `hermes honcho enable` turns it on."


@click.group(help="The user model on a Honcho server.")
def command() -> None:
    pass


@command.command(help="Show whether it is on, its server and its settings.")
@json_output(with_app)
async def status(app: App) -> Output:
    is_on = app.run.settings.memory.provider == "honcho"
    settings = app.memory.user_model.honcho_settings()
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


@command.command(help="Turn it on for new sessions.")
@text_output()
def enable(ctx: click.Context) -> str:
    set_from_text(home_of(ctx), "memory.provider", "honcho")
    return NEXT


@command.command(help="Turn it off; the data on the server stays.")
@text_output()
def disable(ctx: click.Context) -> str:
    set_from_text(home_of(ctx), "memory.provider", "")
    return "New sessions do not use it."


@command.command(help="What shares a conversation there: a folder, a repository, a session or all.")
@click.argument("wanted", type=click.Choice(STRATEGIES), required=False)
@text_output(with_app)
async def strategy(app: App, wanted: str | None) -> str:
    return str(_set(app, {"sessionStrategy": wanted} if wanted else {}).session_strategy)


@command.command(help="How the model gets the facts: in the context, by tools, or both.")
@click.argument("wanted", type=click.Choice(MODES), required=False)
@text_output(with_app)
async def mode(app: App, wanted: str | None) -> str:
    return str(_set(app, {"recallMode": wanted} if wanted else {}).recall_mode)


@command.command(help="Show or set the names of the two peers.")
@click.option("--user", metavar="NAME", help="You.")
@click.option("--ai", metavar="NAME", help="The assistant.")
@text_output(with_app)
async def peer(app: App, user: str | None, ai: str | None) -> str:
    given = {"peerName": user, "aiPeer": ai}
    settings = _set(app, {name: value for name, value in given.items() if value})
    return f"user {settings.peer_name}\nai   {settings.ai_peer}"


@command.command(help="Show or set the limits for what is added to a message.")
@click.option("--context", type=click.IntRange(min=0), help="Tokens of facts; 0 for no limit.")
@click.option("--dialectic", type=click.IntRange(min=1), help="Characters of reasoning.")
@text_output(with_app)
async def tokens(app: App, context: int | None, dialectic: int | None) -> str:
    changes: dict[str, JsonValue] = {}
    if context is not None:
        changes["contextTokens"] = context or None
    if dialectic is not None:
        changes["dialecticMaxChars"] = dialectic
    settings = _set(app, changes)
    limit = "all" if settings.context_tokens is None else f"{settings.context_tokens} tokens"
    return f"context   {limit}\ndialectic {settings.dialectic_max_chars} characters"


@command.command(help="Facts about the assistant on the server; FILE replaces them, one per line.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False), required=False)
@json_output()
def identity(ctx: click.Context, file: str | None) -> Output:
    lines = None
    if file:
        text = Path(file).read_text("utf-8", "replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if not lines:
            raise UsageError(f"{file} has no lines; write one fact in each.")
    known = with_app(ctx, lambda app: app.memory.user_model.honcho_identity(lines))
    return Output(list(known), [f"- {line}" for line in known] or "Nothing yet.")


@command.command(help="List the folders that have a session name.")
@json_output(with_app)
async def sessions(app: App) -> Output:
    named = _set(app, {}).sessions
    lines = [f"{name:24} {folder}" for folder, name in sorted(named.items())]
    return Output(named, lines or "None; `hermes honcho map NAME` names this folder.")


@command.command("map", help="Set the session name of this folder; without NAME, show it.")
@click.argument("name", required=False)
@text_output(with_app)
async def map_(app: App, name: str | None) -> str:
    here = str(Path.cwd())
    settings = _set(app, {})
    if name:
        settings = _set(app, {"sessions": {**settings.sessions, here: name}})
    return settings.session_name("(its id)", here)


def _set(app: App, changes: dict[str, JsonValue]) -> HonchoSettings:
    modelling = app.memory.user_model
    return modelling.set_honcho(**changes) if changes else modelling.honcho_settings()


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(value)
    return "all" if value is None else str(value)
