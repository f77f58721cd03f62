"""`hermes send`: delivers one message to a chat, without a model and without a running gateway."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from hermes.app.app import App
from hermes.app.start import start
from hermes.codec.values import Value
from hermes.core.errors import PlatformError, UsageError
from hermes.surfaces.gateway.command_line import config_of, json_option, print_result
from hermes.surfaces.gateway.conversations import Conversations
from hermes.surfaces.gateway.directory import ChannelDirectory
from hermes.surfaces.gateway.manifests import (
    ConfiguredPlatform,
    build_adapter,
    enabled_platforms,
    platform_context,
)
from hermes.surfaces.gateway.pairing import PairingStore
from hermes.surfaces.gateway.targets import parse_target

STDIN = "-"


class TargetRow(Value):
    """A chat that can be named as a target."""

    target: str
    name: str
    type: str


class SendResult(Value):
    target: str
    state: str
    message_ids: tuple[str, ...] = ()
    note: str = ""


@click.command(help="Send a message to a chat, without a model. Without a message, read stdin.")
@click.argument("message", required=False)
@click.option(
    "-t",
    "--to",
    "target",
    help="Target: a platform (its home channel), platform:chat, platform:chat:thread, "
    "platform:#name or platform:@person.",
)
@click.option("-f", "--file", "source", help="Read the message from this file, or - for stdin.")
@click.option("-s", "--subject", default="", help="Put this line above the message.")
@click.option(
    "-l", "--list", "listing", is_flag=False, flag_value="", help="List targets (with this text)."
)
@click.option("-q", "--quiet", is_flag=True, help="Print only errors.")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    message: str | None,
    target: str | None,
    source: str | None,
    subject: str,
    listing: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    config_of(ctx)
    options = ctx.find_root().obj or {}
    if listing is not None:
        rows = asyncio.run(_targets(options, listing))
        lines = [f"{row.target:<40} {row.type:<8} {row.name}".rstrip() for row in rows]
        empty = ["No target is known; run `hermes gateway setup`."]
        print_result(rows, lines or empty, as_json=as_json)
        return
    text = _text(message, source)
    if not text.strip():
        raise UsageError("There is nothing to send; give a message, --file or stdin.")
    text = f"**{subject}**\n\n{text}" if subject else text
    result = asyncio.run(_send(options, target or "", text))
    is_sent = result.state == "confirmed"
    if as_json or not (quiet and is_sent):
        print_result(result, _line(result), as_json=as_json)
    ctx.exit(0 if is_sent else 1)


def _line(result: SendResult) -> str:
    match result.state:
        case "confirmed":
            return f"Sent to {result.target}."
        case "waiting":
            return f"Not sent yet ({result.note}); the next run of the gateway sends it."
        case "uncertain":
            return f"Nobody knows whether {result.target} has it ({result.note})."
        case _:
            return f"Not sent to {result.target} ({result.note})."


def _text(message: str | None, source: str | None) -> str:
    if message is not None and source is not None:
        raise UsageError("Give a message or --file, not both.")
    if message is not None and message != STDIN:
        return message
    if source is not None and source != STDIN:
        try:
            return Path(source).read_text(encoding="utf-8")
        except (OSError, UnicodeError) as error:
            raise UsageError(f"{source} cannot be read ({error}).") from error
    if sys.stdin.isatty():
        raise UsageError("There is nothing to send; give a message, --file or stdin.")
    return sys.stdin.read()


async def _targets(options: Mapping[str, Any], text: str) -> list[TargetRow]:
    async with start(options) as app:
        directory = ChannelDirectory(app.context.home)
        rows = []
        for name, platform in _platforms(app).items():
            home = platform.options
            if home.home_chat_id:
                rows.append(TargetRow(target=name, name=home.home_name, type="home"))
            for entry in directory.entries.get(name, ()):
                parts = filter(None, (name, entry.id, entry.thread_id))
                rows.append(TargetRow(target=":".join(parts), name=entry.name, type=entry.type))
    wanted = text.casefold()
    return [row for row in rows if wanted in f"{row.target} {row.name}".casefold()]


async def _send(options: Mapping[str, Any], target: str, text: str) -> SendResult:
    async with start(options) as app:
        platforms = _platforms(app)
        to = parse_target(
            target or _default_target(platforms),
            {name: each.options for name, each in platforms.items()},
            ChannelDirectory(app.context.home),
        )
        shown = ":".join(filter(None, (to.platform, to.chat_id, to.thread_id)))
        platform = platforms[to.platform]
        pairing = PairingStore(app.context.home, app.context.world.clock)
        chat = Conversations(app, [platform], pairing)
        try:
            chat.attach(platform, build_adapter(platform, platform_context(app, platform)))
            key = app.context.world.new_id("send", 24)
            report = await chat.send(to, text, key=key)
        except PlatformError as error:
            return SendResult(target=shown, state="failed", note=str(error))
        finally:
            await chat.drain(0)
        return SendResult(
            target=shown, state=report.state, message_ids=report.message_ids, note=report.note
        )


def _platforms(app: App) -> dict[str, ConfiguredPlatform]:
    found = enabled_platforms(app.context.config, app.context.env)
    return {each.manifest.name: each for each in found}


def _default_target(platforms: Mapping[str, ConfiguredPlatform]) -> str:
    """The only platform that has a home channel."""
    homes = [name for name, each in platforms.items() if each.options.home_chat_id]
    if len(homes) == 1:
        return homes[0]
    known = f" Home channels: {', '.join(homes)}." if homes else ""
    raise UsageError(f"Name a target with --to, such as telegram:123.{known}")
