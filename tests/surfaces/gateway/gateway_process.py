"""A gateway in a process of its own, for tests that kill it. Its platform is a folder: `in.jsonl`
holds events, `acked` how many of them were acknowledged, `out.jsonl` what people see.

Run as a module with the folder and the resolution of the platform. It ends when everything is
answered."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from hermes.app.start import start
from hermes.codec.json import decode
from hermes.codec.values import replace
from hermes.core.errors import PlatformUnreachable
from hermes.core.world import World
from hermes.journal.deliveries import DeliveryLedger
from hermes.surfaces.gateway.chat_service import ChatService
from hermes.surfaces.gateway.options import DisplayOptions, GatewayOptions, StreamingOptions
from hermes.surfaces.gateway.platform import Address, Inbound, Post
from tests.surfaces.gateway.fake import NARROW, QUIET, AllowList, FakePlatform, live

SETTINGS = {"model.default": "test", "model.provider": "custom"}
STREAM = StreamingOptions(edit_seconds=0.01, buffer_chars=1)


class FolderPlatform(FakePlatform):
    """Every post and edit is a line that survives the process."""

    def __init__(self, world: World, folder: Path, resolution: str, offline: int) -> None:
        super().__init__(world, replace(NARROW, resolution=resolution))
        self._out = folder / "out.jsonl"
        self._offline = offline
        lines = self._out.read_text("utf-8").splitlines() if self._out.exists() else []
        for line in map(json.loads, lines):
            self.keys.setdefault(line["key"], line["id"])
        self._next = len(lines)

    async def post(self, to: Address, post: Post, key: str) -> str:
        if self._offline:
            self._offline -= 1
            raise PlatformUnreachable("offline", retry_after=0.01)
        if self.abilities.resolution == "key" and key in self.keys:
            return self.keys[key]
        self._next += 1
        message_id = f"m{self._next}"
        self.keys[key] = message_id
        self._append({"id": message_id, "key": key, "chat": to.chat_id, "text": post.text})
        return message_id

    async def edit(self, to: Address, message_id: str, post: Post) -> None:
        self._append({"id": message_id, "key": "", "chat": to.chat_id, "text": post.text})

    async def delete(self, to: Address, message_id: str) -> None:
        self._append({"id": message_id, "key": "", "chat": to.chat_id, "text": None})

    def _append(self, line: dict[str, str | None]) -> None:
        handle = os.open(self._out, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(handle, json.dumps(line).encode() + b"\n")
        os.close(handle)


async def serve(
    folder: Path, resolution: str, *, is_streaming: bool, offline: int, approvals: str
) -> None:
    async with start({}, settings={**SETTINGS, "approvals.mode": approvals}) as app:
        platform = FolderPlatform(app.context.world, folder, resolution, offline)
        options = GatewayOptions(busy_mode="queue", burst_seconds=0.0, streaming=STREAM)
        options = replace(options, queue_merge_seconds=0.0, busy_ack=False)
        service = ChatService(app, DeliveryLedger(app.journal), AllowList(), options)
        display = DisplayOptions(tool_progress="off") if is_streaming else QUIET
        service.attach(live(platform, display))
        await service.start()
        await deliver_all(service, folder)
        await service.wait_until_idle()
        if approvals == "manual":
            # Until it is killed.
            await asyncio.Event().wait()
        await service.close()


async def deliver_all(service: ChatService, folder: Path) -> None:
    """Deliver what is not acknowledged, as a platform does after a connection broke."""
    acked = folder / "acked"
    done = int(acked.read_text()) if acked.exists() else 0
    for n, line in enumerate((folder / "in.jsonl").read_bytes().splitlines()):
        if n >= done:
            await service.receive(decode(Inbound, line))
            acked.write_text(str(n + 1))


def main() -> None:
    folder, resolution, streaming, offline, approvals = sys.argv[1:6]
    work = serve(
        Path(folder),
        resolution,
        is_streaming=streaming == "stream",
        offline=int(offline),
        approvals=approvals,
    )
    asyncio.run(work)


if __name__ == "__main__":
    main()
