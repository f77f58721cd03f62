"""`hermes webhook`: subscribes other services to turns of the agent, and tests the routes."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import time

import click

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import Value, replace
from hermes.config.environment import process_environment, read_env_file
from hermes.config.home import Home, config_lock, replace_file, resolve_home
from hermes.config.load import load
from hermes.core.errors import HermesError, NotFound, ProviderError, UsageError
from hermes.net.http import HttpClient, Timeouts
from hermes.surfaces.gateway.platforms.webhook.adapter import PATH, SUBSCRIPTIONS
from hermes.surfaces.gateway.platforms.webhook.routes import (
    WebhookRoute,
    read_route,
    read_subscriptions,
)

SECRET_BYTES = 32

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class SubscriptionRow(Value):
    name: str
    url: str
    deliver: str
    events: tuple[str, ...] = ()
    description: str = ""
    # Shown once, when the subscription is made.
    secret: str = ""


@click.group(help="Start turns by requests of other services.")
def command() -> None:
    pass


@command.command(help="Make a webhook and print its URL and secret.")
@click.argument("name")
@click.option("--prompt", default="", help="The message, with fields such as {issue.title}.")
@click.option("--events", default="", metavar="A,B", help="Accept only these events.")
@click.option("--description", default="", help="What the webhook is for.")
@click.option("--skills", default="", metavar="A,B", help="Load these skills.")
@click.option("--deliver", default="log", help="Where answers go: log, github_comment, a platform.")
@click.option("--deliver-chat-id", default="", help="The chat on that platform.")
@click.option("--secret", default="", help="Use this secret instead of a new one.")
@click.option("--deliver-only", is_flag=True, help="Send the prompt itself, without a model.")
@click.option("--script", default="", help="A program in `scripts` that changes the payload.")
@click.option("--cron-job", default="", help="Run this scheduled job.")
@json_option
@click.pass_context
def subscribe(ctx: click.Context, /, name: str, as_json: bool, **options: str | bool) -> None:
    home = _home(ctx)
    chosen = str(options["secret"]) or secrets.token_urlsafe(SECRET_BYTES)
    raw = {
        **{key: value for key, value in options.items() if value and key != "deliver_chat_id"},
        "events": _names(options["events"]),
        "skills": _names(options["skills"]),
        "secret": chosen,
        "chat_id": options["deliver_chat_id"],
    }
    route = read_route(name, raw)
    with config_lock(home):
        routes = read_subscriptions(home.root / SUBSCRIPTIONS)
        if name in routes:
            raise UsageError(
                f"There is a webhook {name!r}; remove it with `hermes webhook remove {name}`."
            )
        _write(home, {**routes, name: route})
    row = replace(_row(home, name, route), secret=chosen)
    lines = (f"URL     {row.url}", f"Secret  {chosen}", "The secret is not shown again.")
    _print(row, lines, as_json=as_json)


@command.command("list", help="List the webhooks.")
@json_option
@click.pass_context
def list_(ctx: click.Context, /, as_json: bool) -> None:
    home = _home(ctx)
    routes = read_subscriptions(home.root / SUBSCRIPTIONS)
    rows = tuple(_row(home, name, route) for name, route in sorted(routes.items()))
    lines = [f"{row.name:<20} {row.deliver:<16} {row.description}".rstrip() for row in rows]
    empty = ["There is no webhook; `hermes webhook subscribe NAME` makes one."]
    _print(rows, lines or empty, as_json=as_json)


@command.command(help="Remove a webhook.")
@click.argument("name")
@click.pass_context
def remove(ctx: click.Context, /, name: str) -> None:
    home = _home(ctx)
    with config_lock(home):
        routes = read_subscriptions(home.root / SUBSCRIPTIONS)
        _find(routes, name)
        _write(home, {each: route for each, route in routes.items() if each != name})
    click.echo(f"Removed {name}.")


@command.command(help="Send a signed test request to a webhook of the running gateway.")
@click.argument("name")
@click.option("--payload", default='{"event_type": "test"}', help="The body, as JSON.")
@click.pass_context
def test(ctx: click.Context, /, name: str, payload: str) -> None:
    home = _home(ctx)
    route = _find(read_subscriptions(home.root / SUBSCRIPTIONS), name)
    try:
        decode(object, payload)
    except DecodeError as error:
        raise UsageError(f"--payload is not JSON ({error}).") from error
    status, answer = asyncio.run(_request(_url(home, name), route, payload.encode()))
    click.echo(f"{status} {answer}")
    if status >= 300:
        raise HermesError(f"The webhook {name!r} refused the request; see `hermes logs gateway`.")


async def _request(url: str, route: WebhookRoute, body: bytes) -> tuple[int, str]:
    stamp = str(int(time.time()))
    signed = stamp.encode() + b"." + body
    signature = hmac.new(route.secrets("")[0].encode(), signed, hashlib.sha256).hexdigest()
    headers = {
        "content-type": "application/json",
        "x-webhook-timestamp": stamp,
        "x-webhook-signature-v2": signature,
    }
    http = HttpClient()
    try:
        async with http.post(url, body=body, headers=headers, timeouts=Timeouts()) as response:
            return response.status, (await response.read()).decode("utf-8", "replace")
    except ProviderError as error:
        raise HermesError("The gateway does not listen; start it with `hermes gateway`.") from error
    finally:
        await http.aclose()


def _home(ctx: click.Context) -> Home:
    """The home. Errors of its settings are printed; no webhook needs them."""
    options = ctx.find_root().obj or {}
    home = resolve_home(process_environment(), profile=options.get("profile"))
    for finding in load(home, use_file=not options.get("ignore_config")).diagnostics:
        if finding.level == "error":
            click.echo(f"warning: {finding.text}; {finding.fix}.", err=True)
    return home


def _names(value: str | bool) -> list[str]:
    return [part.strip() for part in str(value).split(",") if part.strip()]


def _find(routes: dict[str, WebhookRoute], name: str) -> WebhookRoute:
    if name not in routes:
        raise NotFound(f"There is no webhook {name!r}; `hermes webhook list` shows them.")
    return routes[name]


def _write(home: Home, routes: dict[str, WebhookRoute]) -> None:
    replace_file(home, home.root / SUBSCRIPTIONS, encode(routes))


def _url(home: Home, name: str) -> str:
    values = {**read_env_file(home).variables, **process_environment()}
    host = values.get("WEBHOOK_HOST") or "127.0.0.1"
    return f"http://{host}:{values.get('WEBHOOK_PORT') or '8644'}{PATH}{name}"


def _row(home: Home, name: str, route: WebhookRoute) -> SubscriptionRow:
    return SubscriptionRow(
        name=name,
        url=_url(home, name),
        deliver=route.deliver,
        events=route.events,
        description=route.description,
    )


def _print(data: object, lines: tuple[str, ...] | list[str], *, as_json: bool) -> None:
    if as_json:
        click.echo(encode(data))
        return
    for line in lines:
        click.echo(line)
