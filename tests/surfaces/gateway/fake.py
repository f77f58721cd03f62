"""A platform in memory that records what it is asked and fails on demand, and everything that a
conversation needs around it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

from hermes.app.app import App
from hermes.codec.json import encode
from hermes.codec.values import Value, replace
from hermes.core.errors import PlatformError
from hermes.core.events import Record
from hermes.core.world import World
from hermes.journal.deliveries import DeliveryLedger
from hermes.surfaces.gateway.access import Access
from hermes.surfaces.gateway.chat_service import ChatService, LivePlatform
from hermes.surfaces.gateway.options import DisplayOptions, GatewayOptions, PlatformChatOptions
from hermes.surfaces.gateway.platform import (
    Abilities,
    Address,
    ChatType,
    Deliver,
    Inbound,
    InboundFile,
    Manifest,
    PlatformStatus,
    Post,
    Sender,
)
from hermes.testing.clock import VirtualClock
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Rule, Step, says
from tests.durability.stage import Stage

NAME = "fake"
OWNER = "u1"
ABILITIES = Abilities(max_chars=4000, edits=True, deletes=True, choices="buttons", resolution="key")
NARROW = replace(ABILITIES, max_chars=200)
QUIET = DisplayOptions(streaming=False, tool_progress="off", long_running_notices=False)
# The model is asked for answers only.
SETTINGS = "auxiliary: {title_generation: {provider: none}}\n"
# No waiting for further parts of a message.
PROMPT = GatewayOptions(burst_seconds=0.0)


class ChatClock(VirtualClock):
    """Virtual time that passes quickly."""

    def __init__(self) -> None:
        super().__init__(settle_seconds=0.03)


class Call(Value):
    """One request to the platform."""

    kind: Literal["post", "edit", "delete", "typing", "react", "answer", "find"]
    at: float
    to: Address
    text: str = ""
    message_id: str = ""
    key: str = ""
    post: Post | None = None


class Failing(Value):
    """An error of the next request of a kind, before or after it takes effect."""

    error: type[PlatformError]
    on: str = "post"
    is_sent: bool = False
    retry_after: float | None = None


class FakePlatform:
    def __init__(self, world: World, abilities: Abilities) -> None:
        self.world = world
        self.abilities = abilities
        self.calls: list[Call] = []
        # What people see, by message id, in order.
        self.messages: dict[str, tuple[Address, Post]] = {}
        self.keys: dict[str, str] = {}
        self.failing: deque[Failing] = deque()
        self.is_offline = False
        self.offline_error: type[PlatformError] | None = None
        self.files: dict[str, InboundFile] = {}

    @property
    def texts(self) -> list[str]:
        return [post.text for _, post in self.messages.values()]

    def seen(self, kind: str) -> list[Call]:
        return [call for call in self.calls if call.kind == kind]

    def _call(self, kind: Any, to: Address, **facts: Any) -> None:
        self.calls.append(Call(kind=kind, at=self.world.clock.now(), to=to, **facts))

    def _fail(self, kind: str, *, is_sent: bool) -> None:
        if self.offline_error is not None and not is_sent:
            raise self.offline_error("offline")
        for each in self.failing:
            if each.on == kind and each.is_sent == is_sent:
                self.failing.remove(each)
                raise each.error("refused by the test", retry_after=each.retry_after)

    async def run(self, deliver: Deliver, status: PlatformStatus) -> None:
        status.connected("fake")
        await asyncio.Event().wait()

    async def post(self, to: Address, post: Post, key: str) -> str:
        self._call("post", to, text=post.text, key=key, post=post)
        self._fail("post", is_sent=False)
        if self.abilities.resolution == "key" and key in self.keys:
            return self.keys[key]
        message_id = f"m{len(self.messages) + 1}"
        self.messages[message_id], self.keys[key] = (to, post), message_id
        self._fail("post", is_sent=True)
        return message_id

    async def edit(self, to: Address, message_id: str, post: Post) -> None:
        self._call("edit", to, text=post.text, message_id=message_id, post=post)
        self._fail("edit", is_sent=False)
        self.messages[message_id] = (to, post)
        self._fail("edit", is_sent=True)

    async def delete(self, to: Address, message_id: str) -> None:
        self._call("delete", to, message_id=message_id)
        self._fail("delete", is_sent=False)
        self.messages.pop(message_id, None)

    async def find_post(self, to: Address, post: Post, key: str, since: float) -> str:
        self._call("find", to, key=key)
        self._fail("find", is_sent=False)
        return self.keys.get(key, "")

    async def download(self, file: InboundFile) -> InboundFile:
        found = self.files.get(file.name)
        return found or replace(file, problem="The file is gone.")

    async def show_typing(self, to: Address) -> None:
        self._call("typing", to)

    async def react(self, to: Address, message_id: str, emoji: str) -> None:
        self._fail("react", is_sent=False)
        self._call("react", to, message_id=message_id, text=emoji)

    async def answer_choice(self, event: Inbound, text: str) -> None:
        self._call("answer", event.address, text=text, key=event.key)

    async def check(self) -> str:
        return "fake"


class AllowList:
    """People by id; the owner and admins by their first letters."""

    def __init__(self, *names: str) -> None:
        self.names = set(names or (OWNER, "u2", "u3"))
        self.refused_commands: set[str] = set()
        self.pairing = ""

    def decide(self, event: Inbound) -> Access:
        if event.sender.id not in self.names:
            is_dm = event.chat_type == "dm" and self.pairing
            return Access(kind="pair" if is_dm else "ignore", reason="unknown")
        is_owner = event.sender.id == OWNER
        return Access(
            kind="allowed", principal="owner" if is_owner else "member", is_admin=is_owner
        )

    def may_run(self, access: Access, command: str, chat_type: ChatType) -> bool:
        return access.is_admin or command not in self.refused_commands

    async def pairing_text(self, event: Inbound) -> str:
        return self.pairing


class Gateway:
    """A running service with its fake platform."""

    def __init__(self, app: App, service: ChatService, fake: FakePlatform, stage: Stage) -> None:
        self.app = app
        self.service = service
        self.fake = fake
        self.stage = stage
        self.access: AllowList
        self.ledger: DeliveryLedger
        self._count = 0

    def event(self, text: str, *, key: str = "", **facts: Any) -> Inbound:
        self._count += 1
        sender = facts.pop("sender", OWNER)
        chat, thread = facts.pop("chat", "c1"), facts.pop("thread", "")
        name = facts.pop("name", "")
        return Inbound(
            key=key or f"k{self._count}",
            address=Address(platform=NAME, chat_id=chat, thread_id=thread),
            chat_type=facts.pop("chat_type", "dm"),
            sender=Sender(id=sender, name=name),
            at=self.app.context.world.clock.now(),
            message_id=facts.pop("message_id", f"in{self._count}"),
            text=text,
            **facts,
        )

    @property
    def clock(self) -> ChatClock:
        clock = self.app.context.world.clock
        assert isinstance(clock, ChatClock)
        return clock

    async def deliver(self, text: str, **facts: Any) -> Inbound:
        event = self.event(text, **facts)
        await self.service.receive(event)
        return event

    async def say(self, text: str, **facts: Any) -> list[str]:
        """The new texts after this message is answered."""
        before = len(self.fake.messages)
        await self.deliver(text, **facts)
        await self.idle()
        return self.fake.texts[before:]

    async def idle(self) -> None:
        async with asyncio.timeout(60):
            await self.service.wait_until_idle()

    async def session_ids(self) -> list[str]:
        return [info.id for info in await self.app.archive.recent()]

    async def records(self, session_id: str = "") -> tuple[Record, ...]:
        session_id = session_id or (await self.session_ids())[0]
        return await self.app.archive.records(session_id)


def virtual() -> World:
    return World(clock=ChatClock())


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def echo(request: Request) -> Step:
    return says(f"You said: {request.last_text}")


def live(fake: FakePlatform, display: DisplayOptions = QUIET, **options: Any) -> LivePlatform:
    manifest = Manifest(name=NAME, title="Fake", adapter="x:y", abilities=fake.abilities, fields=())
    return LivePlatform(manifest, fake, PlatformChatOptions(display=display, **options))


@asynccontextmanager
async def running(
    stage: Stage,
    *,
    fake: FakePlatform | None = None,
    abilities: Abilities = ABILITIES,
    options: GatewayOptions = PROMPT,
    access: AllowList | None = None,
    display: DisplayOptions = QUIET,
    world: World | None = None,
    asks: bool = False,
    start: bool = True,
    **platform_options: Any,
) -> AsyncIterator[Gateway]:
    """A service on the home of the stage."""
    async with stage.app(world=world, asks=asks) as app:
        fake = fake or FakePlatform(app.context.world, abilities)
        fake.world = app.context.world
        access, ledger = access or AllowList(), DeliveryLedger(app.journal)
        service = ChatService(app, ledger, access, options)
        service.attach(live(fake, display, **platform_options))
        found = Gateway(app, service, fake, stage)
        found.access, found.ledger = access, ledger
        if start:
            await service.start()
        try:
            yield found
        finally:
            await service.close()


async def killed_gateway(stage: Stage, text: str, *, shows: int) -> FakePlatform:
    """What a platform holds of a gateway that was killed after it had posted so many messages in
    answer to this text."""
    address = Address(platform=NAME, chat_id="c1")
    event = Inbound(
        key="k1", address=address, chat_type="dm", sender=Sender(id=OWNER), at=1.0, text=text
    )
    (stage.work / "in.jsonl").write_bytes(encode(event))
    out = stage.work / "out.jsonl"
    module = ("-m", "tests.surfaces.gateway.gateway_process", str(stage.work))
    process = await stage.command(sys.executable, *module, "key", "whole", "0", "manual")
    try:
        await until(lambda: out.exists() and len(out.read_bytes().splitlines()) >= shows)
        # The post is confirmed in the ledger right after it appears.
        await asyncio.sleep(0.5)
    finally:
        process.kill()
        await process.wait()
    fake = FakePlatform(World(), ABILITIES)
    for line in map(json.loads, out.read_text("utf-8").splitlines()):
        fake.messages[line["id"]] = (address, Post(text=line["text"]))
        fake.keys[line["key"]] = line["id"]
    return fake


@asynccontextmanager
async def gateway(
    folder: Path, rule: Rule[Request] = echo, *, settings: str = "", **options: Any
) -> AsyncIterator[Gateway]:
    async with ScriptedServer(rule) as server:
        stage = Stage(folder / "stage", server, settings=SETTINGS + settings)
        async with running(stage, **options) as found:
            yield found
        assert server.violations == []
