"""The webhook adapter: signed requests of other services become messages, and answers go where a
route says."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import defaultdict, deque
from pathlib import Path
from typing import Any

from hermes.codec.atomic_files import replace_file
from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject, Value, replace
from hermes.core.errors import ConfigError, HermesError, PlatformUnreachable, PostRejected
from hermes.surfaces.gateway.http_listener import HttpAnswer, Incoming, is_loopback, listen
from hermes.surfaces.gateway.platform import (
    Address,
    Deliver,
    GatewayPorts,
    Inbound,
    InboundFile,
    PlatformContext,
    PlatformStatus,
    Post,
    Sender,
)
from hermes.surfaces.gateway.platforms.settings import read_number
from hermes.surfaces.gateway.platforms.webhook.routes import (
    RouteTable,
    WebhookRoute,
    passes,
    render,
)
from hermes.surfaces.gateway.platforms.webhook.scripts import (
    comment_on_github,
    script_path,
    transform,
)
from hermes.surfaces.gateway.platforms.webhook.signatures import (
    check_secrets,
    delivery_id,
    is_authentic,
)

log = logging.getLogger(__name__)

SUBSCRIPTIONS = "webhook_subscriptions.json"
MAX_BODY_BYTES = 1_048_576
DUPLICATE_SECONDS = 3_600.0
KEEP_SECONDS = 7 * 86_400.0
PATH = "/webhooks/"


class WebhookDelivery(Value):
    """A request that passed: stored while it waits for others, and until its answer is sent."""

    route: str
    id: str
    prompt: str
    skills: tuple[str, ...] = ()
    deliver: str = "log"
    target: str = ""
    repository: str = ""
    number: str = ""
    first_at: float = 0.0
    due_at: float = 0.0

    @property
    def key(self) -> str:
        return f"{self.route}:{self.id}"


class Webhook:
    """The listener and its routes."""

    def __init__(self, context: PlatformContext) -> None:
        self._context = context
        self._clock = context.world.clock
        home = context.folder.parents[1]
        self._home, self._scripts = home, home / "scripts"
        self._host = context.settings.get("WEBHOOK_HOST") or "127.0.0.1"
        self._port = read_number(context.settings, "WEBHOOK_PORT", 8644)
        self._secret = context.settings.get("WEBHOOK_SECRET", "")
        self._max_body = int(context.extra.get("max_body_bytes", MAX_BODY_BYTES))
        self._routes = RouteTable(context.extra.get("routes") or {}, home / SUBSCRIPTIONS)
        for name, route in self._routes.items():
            check_secrets(name, route.secrets(self._secret), is_loopback=is_loopback(self._host))
        self._seen: dict[str, float] = {}
        self._recent: defaultdict[str, deque[float]] = defaultdict(deque)
        self._waiting: dict[str, WebhookDelivery] = {}
        self._changed = asyncio.Event()
        self.port = 0

    async def check(self) -> str:
        return f"{self._host}:{self._port}"

    async def run(self, deliver: Deliver, status: PlatformStatus) -> None:
        self._load_waiting()

        async def handle(request: Incoming) -> HttpAnswer:
            return await self._handle(request, deliver)

        async with listen(
            self._host, self._port, handle, max_body_bytes=self._max_body
        ) as self.port:
            status.connected(f"{self._host}:{self._port}")
            await self._deliver_waiting(deliver)

    # requests

    async def _handle(self, request: Incoming, deliver: Deliver) -> HttpAnswer:
        if request.method == "GET" and request.path == "/health":
            return HttpAnswer(200, {"status": "ok", "platform": "webhook"})
        name = request.path.removeprefix(PATH)
        route = self._routes.get(name) if request.path.startswith(PATH) else None
        if route is None or request.method != "POST":
            return HttpAnswer(404, {"error": "there is no such webhook"})
        if request.body is None:
            return HttpAnswer(413, {"error": f"more than {self._max_body} bytes"})
        if not self._is_authentic(name, route, request.headers, request.body):
            return HttpAnswer(401, {"error": "the signature is wrong"})
        if self._is_too_often(name, route):
            return HttpAnswer(429, {"error": f"more than {route.rate_limit} requests in a minute"})
        try:
            payload = decode(object, request.body or b"{}")
        except DecodeError:
            return HttpAnswer(400, {"error": "the body is not JSON"})
        try:
            return await self._take(name, route, request, payload, deliver)
        except ConfigError as error:
            log.warning("a webhook is not configured", extra={"route": name, "why": str(error)})
            return HttpAnswer(500, {"error": str(error)})

    async def _take(
        self, name: str, route: WebhookRoute, request: Incoming, payload: object, deliver: Deliver
    ) -> HttpAnswer:
        unique = delivery_id(request.headers) or self._context.world.new_id("d", 16)
        if self._is_known(f"{name}:{unique}"):
            return HttpAnswer(200, {"status": "duplicate", "delivery_id": unique})
        event = _event(request.headers, payload)
        data: JsonObject = {"payload": payload, "event": event, "headers": request.headers}
        if route.events and event not in route.events:
            return _ignored(f"event {event!r}")
        if not all(passes(each, data, self._home) for each in route.filters):
            return _ignored("filter")
        if route.script:
            data["payload"] = await transform(script_path(self._scripts, route.script), payload)
            if data["payload"] is None:
                return _ignored("script")
        delivery = _delivery(name, route, unique, data)
        answer = await self._accept(route, delivery, data, deliver)
        if answer.status < 300:
            self._seen[delivery.key] = self._clock.monotonic()
        return answer

    async def _accept(
        self, route: WebhookRoute, delivery: WebhookDelivery, data: JsonObject, deliver: Deliver
    ) -> HttpAnswer:
        unique = {"delivery_id": delivery.id}
        try:
            if route.deliver_only:
                await self._send(delivery, delivery.prompt, f"webhook:{delivery.key}")
                return HttpAnswer(200, {"status": "delivered", **unique})
            if route.cron_job:
                job = self._ports().run_job(
                    route.cron_job, delivery.prompt, key=f"webhook:{delivery.key}"
                )
                await job
                return HttpAnswer(202, {"status": "accepted", **unique})
        except HermesError as error:
            return HttpAnswer(502, {"error": str(error)})
        if route.coalesce is not None:
            self._coalesce(route, delivery, render(route.coalesce.key, data))
            return HttpAnswer(202, {"status": "coalesced", **unique})
        await self._start(delivery, deliver)
        return HttpAnswer(202, {"status": "accepted", **unique})

    def _is_authentic(
        self, name: str, route: WebhookRoute, headers: dict[str, str], body: bytes
    ) -> bool:
        secrets = route.secrets(self._secret)
        try:
            check_secrets(name, secrets, is_loopback=is_loopback(self._host))
        except ConfigError as error:
            log.warning("a webhook is not protected", extra={"route": name, "why": str(error)})
            return False
        return is_authentic(headers, body, secrets, self._clock.now())

    def _is_too_often(self, name: str, route: WebhookRoute) -> bool:
        recent, now = self._recent[name], self._clock.monotonic()
        while recent and now - recent[0] > 60.0:
            recent.popleft()
        if len(recent) >= route.rate_limit:
            return True
        recent.append(now)
        return False

    def _is_known(self, key: str) -> bool:
        now = self._clock.monotonic()
        for old in [each for each, at in self._seen.items() if now - at > DUPLICATE_SECONDS]:
            del self._seen[old]
        return key in self._seen

    # deliveries

    async def _start(self, delivery: WebhookDelivery, deliver: Deliver) -> None:
        """Store where the answer goes, then hand over the message."""
        _store(self._answer_path(delivery.key), delivery)
        await deliver(
            Inbound(
                key=delivery.key,
                address=Address(platform="webhook", chat_id=f"webhook:{delivery.key}"),
                chat_type="dm",
                sender=Sender(id=f"webhook:{delivery.route}", name=delivery.route),
                at=self._clock.now(),
                text=delivery.prompt,
                chat_name=delivery.route,
                skills=delivery.skills,
            )
        )

    def _coalesce(self, route: WebhookRoute, delivery: WebhookDelivery, about: str) -> None:
        """Let a delivery wait, in place of an earlier one about the same thing."""
        assert route.coalesce is not None
        name = _digest(f"{delivery.route}:{about}")
        now = self._clock.now()
        before = self._waiting.get(name)
        first = before.first_at if before else now
        due = min(now + route.coalesce.window_seconds, first + route.coalesce.max_wait_seconds)
        waiting = replace(delivery, first_at=first, due_at=due)
        _store(self._context.folder / "waiting" / name, waiting)
        self._waiting[name] = waiting
        self._changed.set()

    def _load_waiting(self) -> None:
        folder = self._context.folder / "waiting"
        for path in folder.iterdir() if folder.is_dir() else ():
            if not path.name.startswith("."):
                self._waiting[path.name] = decode(WebhookDelivery, path.read_bytes())
        answers, now = self._context.folder / "answers", self._clock.now()
        for path in answers.iterdir() if answers.is_dir() else ():
            if now - path.stat().st_mtime > KEEP_SECONDS:
                path.unlink(missing_ok=True)

    async def _deliver_waiting(self, deliver: Deliver) -> None:
        """Hand over coalesced deliveries when they are due, for ever."""
        while True:
            self._changed.clear()
            now = self._clock.now()
            for name, delivery in tuple(self._waiting.items()):
                if delivery.due_at <= now:
                    await self._start(delivery, deliver)
                    del self._waiting[name]
                    _remove(self._context.folder / "waiting" / name)
            pause = min((each.due_at - now for each in self._waiting.values()), default=3_600.0)
            sleep = asyncio.ensure_future(self._clock.sleep(max(pause, 0.01)))
            change = asyncio.ensure_future(self._changed.wait())
            try:
                await asyncio.wait((sleep, change), return_when=asyncio.FIRST_COMPLETED)
            finally:
                sleep.cancel()
                change.cancel()

    # answers

    async def post(self, to: Address, post: Post, key: str) -> str:
        path = self._answer_path(to.chat_id.removeprefix("webhook:"))
        try:
            delivery = decode(WebhookDelivery, await asyncio.to_thread(path.read_bytes))
        except (OSError, DecodeError):
            raise PostRejected("Nobody knows where this answer of a webhook goes.") from None
        await self._send(delivery, post.text, key)
        return key

    async def _send(self, delivery: WebhookDelivery, text: str, key: str) -> None:
        if delivery.deliver == "log":
            log.info("webhook answer", extra={"route": delivery.route, "text": text})
        elif delivery.deliver == "github_comment":
            await comment_on_github(delivery.repository, delivery.number, text, key)
        else:
            await self._ports().send(delivery.target, text, key=key)

    def _ports(self) -> GatewayPorts:
        if self._context.ports is None:
            raise PlatformUnreachable("Other platforms can be reached only in a running gateway.")
        return self._context.ports

    def _answer_path(self, key: str) -> Path:
        return self._context.folder / "answers" / _digest(key)

    async def edit(self, to: Address, message_id: str, post: Post) -> None:
        raise PostRejected("An answer of a webhook cannot be edited.")

    async def delete(self, to: Address, message_id: str) -> None:
        raise PostRejected("An answer of a webhook cannot be deleted.")

    async def find_post(self, to: Address, post: Post, key: str, since: float) -> str:
        return ""

    async def download(self, file: InboundFile) -> InboundFile:
        return replace(file, problem="webhooks have no files")

    async def show_typing(self, to: Address) -> None:
        return

    async def react(self, to: Address, message_id: str, emoji: str) -> None:
        return

    async def answer_choice(self, event: Inbound, text: str) -> None:
        return


def _ignored(reason: str) -> HttpAnswer:
    return HttpAnswer(200, {"status": "ignored", "reason": reason})


def _event(headers: dict[str, str], payload: object) -> str:
    named = headers.get("x-github-event") or headers.get("x-gitlab-event")
    if named or not isinstance(payload, dict):
        return named or ""
    return str(payload.get("event_type") or payload.get("type") or "")


def _delivery(name: str, route: WebhookRoute, unique: str, data: JsonObject) -> WebhookDelivery:
    extra: dict[str, Any] = route.deliver_extra
    chat = str(route.chat_id or extra.get("chat_id", ""))
    thread = str(route.thread_id or extra.get("thread_id", ""))
    return WebhookDelivery(
        route=name,
        id=unique,
        prompt=render(route.prompt, data),
        skills=route.skills,
        deliver=route.deliver,
        target=":".join(filter(None, (route.deliver, chat, thread))),
        repository=render(str(extra.get("repo") or "-"), data),
        number=render(str(extra.get("pr_number") or "-"), data),
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _store(path: Path, delivery: WebhookDelivery) -> None:
    replace_file(path, encode(delivery))


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
