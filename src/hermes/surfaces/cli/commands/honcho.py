"""`hermes honcho`: how the model of the user on a Honcho server is used, and what it knows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hermes.app.build import App
from hermes.codec.values import JsonObject, JsonValue
from hermes.config.edit import set_from_text
from hermes.core.errors import UsageError
from hermes.surfaces.cli.output import as_json_option, print_json, with_app
from hermes.surfaces.cli.place import home_of

if TYPE_CHECKING:
    from hermes.memory.honcho.settings import HonchoSettings

STRATEGIES = ("per-directory", "per-repo", "per-session", "global")
MODES = ("hybrid", "context", "tools")
NEXT = "New sessions use it."
NOT_ON = "It is not used now; `hermes honcho enable` turns it on."


@click.group(help="The model of the user on a Honcho server.")
def command() -> None:
    pass


@command.command(help="Whether it is used, where it is, and how.")
@as_json_option
@click.pass_context
def status(ctx: click.Context, as_json: bool) -> None:
    async def work(app: App) -> tuple[bool, HonchoSettings]:
        is_on = app.settings.memory.provider == "honcho"
        return is_on, app.memory.modelling.honcho_settings()

    is_on, settings = with_app(ctx, work)
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
    if as_json:
        print_json(facts)
        return
    for name, value in facts.items():
        print(f"{name.replace('_', ' '):20} {_words(value)}")
    if not is_on:
        print(NOT_ON)


@command.command(help="Use it in new sessions.")
@click.pass_context
def enable(ctx: click.Context) -> None:
    set_from_text(home_of(ctx), "memory.provider", "honcho")
    print(NEXT)


@command.command(help="Do not use it any more; what the server knows stays there.")
@click.pass_context
def disable(ctx: click.Context) -> None:
    set_from_text(home_of(ctx), "memory.provider", "")
    print("New sessions do without it.")


@command.command(help="What shares a conversation there: a folder, a repository, a session, all.")
@click.argument("wanted", type=click.Choice(STRATEGIES), required=False)
@click.pass_context
def strategy(ctx: click.Context, wanted: str | None) -> None:
    _show_or_set(ctx, "session_strategy", {"sessionStrategy": wanted} if wanted else {})


@command.command(help="How what is known reaches the model: beside messages, by tools, or both.")
@click.argument("wanted", type=click.Choice(MODES), required=False)
@click.pass_context
def mode(ctx: click.Context, wanted: str | None) -> None:
    _show_or_set(ctx, "recall_mode", {"recallMode": wanted} if wanted else {})


@command.command(help="The names of the two who speak.")
@click.option("--user", metavar="NAME", help="You.")
@click.option("--ai", metavar="NAME", help="The assistant.")
@click.pass_context
def peer(ctx: click.Context, user: str | None, ai: str | None) -> None:
    given = {"peerName": user, "aiPeer": ai}
    settings = _changed(ctx, {name: value for name, value in given.items() if value})
    print(f"user {settings.peer_name}\nai   {settings.ai_peer}")


@command.command(help="How much stands beside a message at most.")
@click.option("--context", type=click.IntRange(min=0), help="Tokens of facts; 0 for all there is.")
@click.option("--dialectic", type=click.IntRange(min=1), help="Characters of reasoning.")
@click.pass_context
def tokens(ctx: click.Context, context: int | None, dialectic: int | None) -> None:
    changes: dict[str, JsonValue] = {}
    if context is not None:
        changes["contextTokens"] = context or None
    if dialectic is not None:
        changes["dialecticMaxChars"] = dialectic
    settings = _changed(ctx, changes)
    limit = "all" if settings.context_tokens is None else f"{settings.context_tokens} tokens"
    print(f"context   {limit}\ndialectic {settings.dialectic_max_chars} characters")


@command.command(help="What the server knows of the assistant; a file gives it new lines.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False), required=False)
@as_json_option
@click.pass_context
def identity(ctx: click.Context, file: str | None, as_json: bool) -> None:
    lines = None
    if file:
        text = Path(file).read_text("utf-8", "replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if not lines:
            raise UsageError(f"{file} has no lines; write one fact in each.")
    known = with_app(ctx, lambda app: app.memory.modelling.honcho_identity(lines))
    if as_json:
        print_json(list(known))
        return
    print("\n".join(f"- {line}" for line in known) or "Nothing yet.")


@command.command(help="Folders that have a name of their own there.")
@as_json_option
@click.pass_context
def sessions(ctx: click.Context, as_json: bool) -> None:
    named = _changed(ctx, {}).sessions
    if as_json:
        print_json(named)
        return
    for folder, name in sorted(named.items()):
        print(f"{name:24} {folder}")
    if not named:
        print("None; `hermes honcho map NAME` names this folder.")


@command.command("map", help="Name what is said in this folder; without a name, what it is called.")
@click.argument("name", required=False)
@click.pass_context
def map_(ctx: click.Context, name: str | None) -> None:
    here = str(Path.cwd())
    settings = _changed(ctx, {})
    if name:
        settings = _changed(ctx, {"sessions": {**settings.sessions, here: name}})
    print(settings.session_name("(its id)", here))


def _show_or_set(ctx: click.Context, field: str, changes: dict[str, JsonValue]) -> None:
    print(getattr(_changed(ctx, changes), field))


def _changed(ctx: click.Context, changes: dict[str, JsonValue]) -> HonchoSettings:
    async def work(app: App) -> HonchoSettings:
        modelling = app.memory.modelling
        return modelling.set_honcho(**changes) if changes else modelling.honcho_settings()

    return with_app(ctx, work)


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(value)
    return "all" if value is None else str(value)
