"""The webhook platform, called over HTTP as services do."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hermes.core.errors import ConfigError, PlatformUnreachable, PostRejected
from hermes.core.world import World
from hermes.net.http import HttpClient, Timeouts
from hermes.surfaces.gateway.platform import Inbound, PlatformContext, Post
from hermes.surfaces.gateway.platforms.contract_checks import Connection, connect
from hermes.surfaces.gateway.platforms.webhook.adapter import Webhook
from hermes.surfaces.gateway.platforms.webhook.routes import passes, render
from hermes.testing.clock import VirtualClock, seeded_world

SECRET = "a-long-secret"
PROMPT = "{n} {script_output}"
ADD_ONE = "import json; print(json.dumps({'n': json.loads(input())['n'] + 1}))"


class Ports:
    """Records what a webhook asks of the gateway."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, str]] = []
        self.fails = False

    async def send(self, target: str, text: str, *, key: str) -> None:
        if self.fails:
            raise PlatformUnreachable("away")
        self.sent.append((target, text, key))

    async def run_job(self, job: str, context: str, *, key: str) -> None:
        self.sent.append((f"job {job}", context, key))


class Site:
    """A running webhook platform, and a client that signs."""

    def __init__(self, adapter: Webhook, connection: Connection, clock: Any) -> None:
        self.adapter, self.connection, self.clock = adapter, connection, clock

    async def call(
        self, route: str, payload: object, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Post with a GitHub signature, unless there are other headers."""
        body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        if headers is None:
            headers = signed(body)
        url = f"http://127.0.0.1:{self.adapter.port}/webhooks/{route}"
        client = HttpClient()
        async with client.post(url, body=body, headers=headers, timeouts=Timeouts()) as response:
            content = await response.read()
        await client.aclose()
        return response.status, json.loads(content)

    @property
    def events(self) -> list[Inbound]:
        return self.connection.events


def signed(body: bytes, **more: str) -> dict[str, str]:
    signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    named = {name.replace("_", "-"): value for name, value in more.items()}
    return {"x-hub-signature-256": f"sha256={signature}", **named}


def build(
    folder: Path,
    routes: dict[str, Any],
    ports: Ports | None = None,
    world: World | None = None,
    **settings: str,
) -> Webhook:
    home = folder / "platforms" / "webhook"
    home.mkdir(parents=True, exist_ok=True)
    return Webhook(
        PlatformContext(
            settings={"WEBHOOK_SECRET": SECRET, "WEBHOOK_PORT": "0", **settings},
            extra={"routes": routes},
            folder=home,
            media=folder,
            max_media_bytes=1,
            http=HttpClient(),
            world=world or World(),
            ports=ports or Ports(),
        )
    )


@asynccontextmanager
async def serve(
    folder: Path, routes: dict[str, Any], ports: Ports | None = None, clock: Any = None
) -> AsyncIterator[Site]:
    world = seeded_world(1, clock) if clock else World()
    adapter = build(folder, routes, ports, world)
    async with connect(adapter) as connection:
        await connection.wait_for()
        yield Site(adapter, connection, world.clock)


async def test_a_delivery_becomes_a_message_with_its_own_chat(tmp_path: Path) -> None:
    async with serve(tmp_path, {"ci": {"prompt": "Build {run.id} of {repo.name}: {nope}"}}) as site:
        payload = {"run": {"id": 7}, "repo": {"name": "hermes"}}
        body = json.dumps(payload).encode()
        status, answer = await site.call("ci", body, signed(body, x_github_delivery="d-1"))
        assert (status, answer) == (202, {"status": "accepted", "delivery_id": "d-1"})
        again = await site.call("ci", body, signed(body, x_github_delivery="d-1"))
        assert again == (200, {"status": "duplicate", "delivery_id": "d-1"})
    (event,) = site.events
    assert (event.key, event.text) == ("ci:d-1", "Build 7 of hermes: {nope}")
    assert (event.address.chat_id, event.chat_type) == ("webhook:ci:d-1", "dm")


def standard(body: bytes, now: float) -> dict[str, str]:
    text = f"m1.{int(now)}.".encode() + body
    signature = base64.b64encode(hmac.digest(SECRET.encode(), text, hashlib.sha256)).decode()
    return {
        "webhook-id": "m1",
        "webhook-timestamp": str(int(now)),
        "webhook-signature": f"v1,AAAA v1,{signature}",
    }


def generic(body: bytes, now: float) -> dict[str, str]:
    text = f"{int(now)}.".encode() + body
    signature = hmac.new(SECRET.encode(), text, hashlib.sha256).hexdigest()
    return {"x-webhook-timestamp": str(int(now)), "x-webhook-signature-v2": signature}


def legacy(body: bytes, _: float) -> dict[str, str]:
    return {"x-webhook-signature": hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()}


@pytest.mark.parametrize(
    "sign",
    [
        lambda body, _: signed(body),
        standard,
        lambda body, now: {k.replace("webhook", "svix"): v for k, v in standard(body, now).items()},
        generic,
        legacy,
        lambda *_: {"x-gitlab-token": SECRET},
        lambda *_: {"authorization": f"Bearer {SECRET}"},
    ],
    ids=["github", "standard", "svix", "v2", "legacy", "gitlab", "bearer"],
)
async def test_each_scheme_accepts_the_right_secret_only(tmp_path: Path, sign: Any) -> None:
    routes = {"right": {"secret": ["old", SECRET]}, "wrong": {"secret": "other"}}
    async with serve(tmp_path, routes) as site:
        now, body = site.clock.now(), b'{"a": 1}'
        headers = sign(body, now)
        assert (await site.call("wrong", body, headers))[0] == 401
        if not {"x-gitlab-token", "authorization"} & set(headers):
            assert (await site.call("right", b'{"a": 2}', headers))[0] == 401
        if any("timestamp" in name for name in headers):
            assert (await site.call("right", body, sign(body, now - 301)))[0] == 401
        assert (await site.call("right", body, {}))[0] == 401
        assert site.events == []
        assert (await site.call("right", body, headers))[0] == 202


async def test_a_repeated_v2_request_is_a_duplicate(tmp_path: Path) -> None:
    async with serve(tmp_path, {"r": {}}) as site:
        headers = generic(b"{}", site.clock.now())
        assert (await site.call("r", b"{}", headers))[0] == 202
        assert (await site.call("r", b"{}", headers))[1]["status"] == "duplicate"


async def test_requests_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    async with serve(tmp_path, {"r": {"rate_limit": 2}}) as site:
        assert (await site.call("none", {}))[0] == 404
        assert (await site.call("r", b"not json"))[0] == 400
        assert (await site.call("r", b"x" * 1_048_577))[0] == 413
        assert (await site.call("r", {}))[0] == 202
        assert (await site.call("r", {}))[0] == 429


async def test_a_delivery_that_was_not_stored_is_answered_with_an_error(tmp_path: Path) -> None:
    async with serve(tmp_path, {"r": {}}) as site:
        site.connection.refuses = True
        body = b"{}"
        headers = signed(body, x_github_delivery="1")
        assert (await site.call("r", body, headers))[0] == 500
        site.connection.refuses = False
        assert (await site.call("r", body, headers))[0] == 202


async def test_events_and_filters_choose_deliveries(tmp_path: Path) -> None:
    filters = [{"field": "action", "in": ["opened", "closed"]}, {"field": "event", "equals": "pr"}]
    async with serve(tmp_path, {"r": {"events": ["pr"], "filters": filters}}) as site:

        async def call(event: str, payload: dict[str, Any]) -> str:
            body = json.dumps(payload).encode()
            answer = await site.call("r", body, signed(body, x_github_event=event))
            return str(answer[1]["status"])

        assert await call("push", {"action": "opened"}) == "ignored"
        assert await call("pr", {"action": "edited"}) == "ignored"
        assert await call("pr", {"action": "opened"}) == "accepted"


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"field": "a.b", "exists": True}, True),
        ({"field": "a.c", "exists": True}, False),
        ({"field": "a.c", "exists": False}, True),
        ({"field": "a.c", "missing": True}, True),
        ({"field": "a.b", "equals": "x1"}, True),
        ({"field": "a.b", "not_equals": "x1"}, False),
        ({"field": "list.1", "equals": 2}, True),
        ({"field": "list", "contains": 2}, True),
        ({"field": "a.b", "contains": "x"}, True),
        ({"field": "a.b", "op": "regex", "value": r"^x\d$"}, True),
        ({"field": "headers.X-Team", "equals": "red"}, True),
        ({"field": "a.b", "in_file": "names.txt"}, True),
        ({"all": [{"field": "a"}, {"field": "z"}]}, False),
        ({"any": [{"field": "a"}, {"field": "z"}]}, True),
        ({"not": {"field": "z"}}, True),
    ],
)
def test_a_filter_compares_a_field(tmp_path: Path, rule: Any, expected: bool) -> None:
    (tmp_path / "names.txt").write_text("x0\nx1\n")
    payload = {"a": {"b": "x1"}, "list": [1, 2]}
    data = {"payload": payload, "event": "e", "headers": {"x-team": "red"}}
    assert passes(rule, data, tmp_path) is expected


def test_a_template_shortens_what_is_long() -> None:
    data: dict[str, Any] = {"payload": {"o": {"k": "v" * 5_000}}, "event": "e", "headers": {}}
    assert len(render("{o}", data)) == 2000
    assert len(render("", data)) == 4000
    assert render("{event} {o.x} {}", data) == "e {o.x} {}"


@pytest.mark.parametrize(
    ("script", "text"),
    [
        (ADD_ONE, "2 {script_output}"),
        ("print('words')", "1 words"),
        ("print('[SILENT]')", None),
        ("pass", None),
        ("raise SystemExit(3)", None),
    ],
)  # fmt: skip
async def test_a_script_changes_or_drops_a_delivery(
    tmp_path: Path, script: str, text: str | None
) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "s.py").write_text(script)
    async with serve(tmp_path, {"r": {"script": "s.py", "prompt": PROMPT}}) as site:
        status, _ = await site.call("r", {"n": 1})
    assert [event.text for event in site.events] == ([text] if text else [])
    assert status == (202 if text else 200)


async def test_a_script_outside_of_its_folder_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text("print('ran')")
    (tmp_path / "scripts").mkdir()
    async with serve(tmp_path, {"r": {"script": "../evil.py"}}) as site:
        assert (await site.call("r", {}))[0] == 500
        assert site.events == []


async def test_a_message_can_be_delivered_without_a_model(tmp_path: Path) -> None:
    ports = Ports()
    route = {"deliver_only": True, "deliver": "telegram", "chat_id": 11, "prompt": "disk {pct}%"}
    async with serve(tmp_path, {"r": route}, ports) as site:
        body = b'{"pct": 97}'
        headers = signed(body, idempotency_key="k")
        ports.fails = True
        assert (await site.call("r", body, headers))[0] == 502
        ports.fails = False
        assert (await site.call("r", body, headers))[1]["status"] == "delivered"
    assert ports.sent == [("telegram:11", "disk 97%", "webhook:r:k")]
    assert site.events == []


async def test_a_job_can_be_run(tmp_path: Path) -> None:
    ports = Ports()
    async with serve(tmp_path, {"r": {"cron_job": "digest", "prompt": "{x}"}}, ports) as site:
        assert (await site.call("r", {"x": "now"}))[0] == 202
    assert [each[:2] for each in ports.sent] == [("job digest", "now")]


async def test_the_answer_goes_where_the_route_says_also_after_a_restart(tmp_path: Path) -> None:
    ports, routes = Ports(), {"r": {"deliver": "telegram", "chat_id": "11", "thread_id": "7"}}
    async with serve(tmp_path, routes, ports) as site:
        await site.call("r", {})
        to = site.events[0].address
    adapter = build(tmp_path, routes, ports)
    assert await adapter.post(to, Post(text="answer"), "s:t:1") == "s:t:1"
    assert ports.sent == [("telegram:11:7", "answer", "s:t:1")]
    with pytest.raises(PostRejected):
        await adapter.post(to.__class__(platform="webhook", chat_id="webhook:x:y"), Post(), "k")


async def test_a_comment_on_github_is_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, gh = tmp_path / "comments", tmp_path / "bin" / "gh"
    gh.parent.mkdir()
    gh.write_text(
        f'#!/bin/sh\necho "$@" >>{tmp_path}/calls\n'
        f'case "$*" in *--paginate*) cat {store} 2>/dev/null;; *) cat >>{store};; esac\nexit 0\n'
    )
    gh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{gh.parent}:/usr/bin:/bin")
    extra = {"repo": "{repo}", "pr_number": "{n}"}
    async with serve(
        tmp_path, {"r": {"deliver": "github_comment", "deliver_extra": extra}}
    ) as site:
        await site.call("r", {"repo": "me/x", "n": 5})
        for _ in range(2):
            await site.adapter.post(site.events[0].address, Post(text="Looks good."), "k1")
    assert store.read_text().count("Looks good.") == 1
    assert "repos/me/x/issues/5/comments" in (tmp_path / "calls").read_text()


async def test_deliveries_about_one_thing_are_merged_and_survive_a_restart(tmp_path: Path) -> None:
    clock = VirtualClock(settle_seconds=0.05)
    routes = {"r": {"prompt": "{id}={n}", "coalesce": {"key": "{id}", "window_seconds": 30}}}
    async with serve(tmp_path, routes, clock=clock) as site:
        for n in range(3):
            assert (await site.call("r", {"id": "a", "n": n}))[1]["status"] == "coalesced"
            await clock.advance(20)
        assert site.events == []
    async with serve(tmp_path, routes, clock=clock) as site:
        assert (await site.call("r", {"id": "b", "n": 9}))[0] == 202
        await clock.advance(11)
        assert [event.text for event in site.events] == ["a=2"]
        await clock.advance(30)
        assert [event.text for event in site.events] == ["a=2", "b=9"]
    assert list((tmp_path / "platforms" / "webhook" / "waiting").iterdir()) == []


async def test_a_stream_of_deliveries_does_not_wait_for_ever(tmp_path: Path) -> None:
    clock = VirtualClock(settle_seconds=0.05)
    merge = {"key": "x", "window_seconds": 30, "max_wait_seconds": 50}
    async with serve(tmp_path, {"r": {"coalesce": merge}}, clock=clock) as site:
        for _ in range(3):
            await site.call("r", {})
            await clock.advance(25)
        assert len(site.events) == 1


async def test_a_subscription_works_without_a_restart(tmp_path: Path) -> None:
    async with serve(tmp_path, {}) as site:
        assert (await site.call("new", {}))[0] == 404
        (tmp_path / "webhook_subscriptions.json").write_text('{"new": {"prompt": "hi"}}')
        assert (await site.call("new", {}))[0] == 202
        open_route = '{"new": {"secret": "INSECURE_NO_AUTH"}}'
        (tmp_path / "webhook_subscriptions.json").write_text(open_route)
        assert (await site.call("new", {}, {}))[0] == 202


def test_a_route_that_anybody_could_call_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no secret"):
        build(tmp_path, {"r": {}}, WEBHOOK_SECRET="")
    with pytest.raises(ConfigError, match="no authentication"):
        build(tmp_path, {"r": {"secret": "INSECURE_NO_AUTH"}}, WEBHOOK_HOST="0.0.0.0")
    with pytest.raises(ConfigError, match="must name a target"):
        build(tmp_path, {"r": {"deliver_only": True}})


async def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    async with serve(tmp_path, {}) as site:
        other = build(tmp_path, {}, WEBHOOK_PORT=str(site.adapter.port))
        async with connect(other) as connection:
            with pytest.raises(PlatformUnreachable, match="cannot be used"):
                await connection.wait_for()
