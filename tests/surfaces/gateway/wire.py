"""A small chat platform for tests: an adapter, and the server that it talks to with JSON lines."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from hermes.codec.json import convert, plain
from hermes.codec.values import replace
from hermes.core.errors import LoginRejected, PlatformUnreachable
from hermes.surfaces.gateway.platform import (
    Abilities,
    Address,
    Deliver,
    Inbound,
    InboundFile,
    Manifest,
    PlatformContext,
    PlatformStatus,
    Post,
    Sender,
    SettingField,
)


def manifest(name: str) -> Manifest:
    prefix = name.upper()
    return Manifest(
        name=name,
        title=name.title(),
        adapter="tests.surfaces.gateway.wire:WireAdapter",
        abilities=Abilities(max_chars=500, edits=True, resolution="key"),
        fields=(
            SettingField(env=f"{prefix}_TOKEN", label="Token", is_secret=True, help="Ask Wire."),
            SettingField(env=f"{prefix}_PORT", label="Port", help="Where the server listens."),
        ),
        credential=f"{prefix}_TOKEN",
        steps=("Start the server.", "Copy its token."),
    )


WIRE = manifest("wire")
WIRE2 = manifest("wire2")
WIRE3 = manifest("wire3")
PLATFORMS = ",".join(f"tests.surfaces.gateway.wire:{name}" for name in ("WIRE", "WIRE2", "WIRE3"))


class WireAdapter:
    """The adapter. Each post has a connection of its own."""

    def __init__(self, context: PlatformContext) -> None:
        token = next(v for name, v in context.settings.items() if name.endswith("_TOKEN"))
        port = next(v for name, v in context.settings.items() if name.endswith("_PORT"))
        self._token, self._port = token, int(port)

    async def run(self, deliver: Deliver, status: PlatformStatus) -> None:
        reader, writer = await self._login("run")
        try:
            status.connected("@wire")
            while line := await reader.readline():
                event = convert(Inbound, json.loads(line))
                await deliver(event)
                writer.write(json.dumps({"ack": event.key}).encode() + b"\n")
        finally:
            writer.close()
        raise PlatformUnreachable("The server hung up.")

    async def post(self, to: Address, post: Post, key: str) -> str:
        return str(await self._call({"post": plain(post), "to": plain(to), "key": key}))

    async def edit(self, to: Address, message_id: str, post: Post) -> None:
        await self._call({"edit": plain(post), "to": plain(to), "id": message_id})

    async def delete(self, to: Address, message_id: str) -> None:
        await self._call({"delete": message_id})

    async def find_post(self, to: Address, post: Post, key: str, since: float) -> str:
        return ""

    async def download(self, file: InboundFile) -> InboundFile:
        return replace(file, problem="there are no files here")

    async def show_typing(self, to: Address) -> None: ...

    async def react(self, to: Address, message_id: str, emoji: str) -> None: ...

    async def answer_choice(self, event: Inbound, text: str) -> None: ...

    async def check(self) -> str:
        _, writer = await self._login("check")
        writer.close()
        return "@wire"

    async def _login(self, kind: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            writer.write(json.dumps({"token": self._token, "kind": kind}).encode() + b"\n")
            answer = (await reader.readline()).decode().strip()
        except OSError as error:
            raise PlatformUnreachable(f"The server does not listen ({error}).") from error
        if answer != "welcome":
            writer.close()
            if answer == "denied":
                raise LoginRejected("The token is wrong; ask for another one.")
            raise PlatformUnreachable("The server hung up.")
        return reader, writer

    async def _call(self, request: dict[str, Any]) -> object:
        reader, writer = await self._login("call")
        try:
            writer.write(json.dumps(request).encode() + b"\n")
            return json.loads(await reader.readline())["result"]
        finally:
            writer.close()


class WireServer:
    """The platform: sends events to the adapter and keeps the posts. A key that it knows posts
    nothing new."""

    def __init__(self, token: str = "wire-token-0123456789") -> None:
        self.token = token
        self.port = 0
        self.logins: list[str] = []
        # Message id and text, in order of the first post.
        self.posts: dict[str, str] = {}
        self.addresses: list[dict[str, Any]] = []
        self.acknowledged: list[str] = []
        self._keys: dict[str, str] = {}
        self._adapters: list[asyncio.StreamWriter] = []
        self._changed = asyncio.Condition()
        self._waiting: list[dict[str, Any]] = []

    @property
    def env(self) -> dict[str, str]:
        return {"WIRE_TOKEN": self.token, "WIRE_PORT": str(self.port)}

    async def say(self, text: str, *, key: str, user: str = "7", chat: str = "c1") -> None:
        """An event of a direct chat. It stays with the server until it is acknowledged."""
        event = Inbound(
            key=key,
            address=Address(platform="wire", chat_id=chat),
            chat_type="dm",
            sender=Sender(id=user, name="Ann"),
            at=0.0,
            message_id=key,
            text=text,
            chat_name="Ann",
        )
        encoded = plain(event)
        self._waiting.append(encoded)
        for writer in self._adapters:
            writer.write(json.dumps(encoded).encode() + b"\n")

    async def wait_for(self, text: str, *, count: int = 1, seconds: float = 30.0) -> str:
        """The id of the post with this text that is the `count`-th."""

        def found() -> list[str]:
            return [key for key, post in self.posts.items() if text in post]

        async with asyncio.timeout(seconds), self._changed:
            await self._changed.wait_for(lambda: len(found()) >= count)
        return found()[count - 1]

    async def acknowledge(self, key: str) -> None:
        """Wait until the adapter has acknowledged an event."""
        async with asyncio.timeout(30), self._changed:
            await self._changed.wait_for(lambda: key in self.acknowledged)

    async def wait_for_login(self, kind: str = "run", count: int = 1) -> None:
        async with asyncio.timeout(30), self._changed:
            await self._changed.wait_for(lambda: self.logins.count(kind) >= count)

    async def hang_up(self) -> None:
        for writer in self._adapters:
            writer.close()
        self._adapters.clear()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[WireServer]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            await self.hang_up()
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, json.JSONDecodeError):
            hello = json.loads(await reader.readline())
            is_welcome = hello["token"] == self.token
            writer.write(b"welcome\n" if is_welcome else b"denied\n")
            await self._note(lambda: self.logins.append(hello["kind"]))
            if is_welcome and hello["kind"] == "run":
                await self._deliver(reader, writer)
            elif is_welcome and hello["kind"] == "call":
                writer.write(await self._answer(json.loads(await reader.readline())))
        writer.close()

    async def _deliver(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._adapters.append(writer)
        for event in self._waiting:
            writer.write(json.dumps(event).encode() + b"\n")
        while line := await reader.readline():
            key = json.loads(line)["ack"]
            self._waiting = [event for event in self._waiting if event["key"] != key]
            await self._note(lambda key=key: self.acknowledged.append(key))
        with suppress(ValueError):
            self._adapters.remove(writer)

    async def _answer(self, request: dict[str, Any]) -> bytes:
        result = ""
        if "post" in request:
            result = self._keys.setdefault(request["key"], f"m{len(self._keys) + 1}")
            self.addresses.append(request["to"])
            if result not in self.posts:
                text = request["post"].get("text", "")
                await self._note(lambda: self.posts.update({result: text}))
        elif "edit" in request:
            text = request["edit"].get("text", "")
            await self._note(lambda: self.posts.update({request["id"]: text}))
        return json.dumps({"result": result}).encode() + b"\n"

    async def _note(self, change: Any) -> None:
        async with self._changed:
            change()
            self._changed.notify_all()
