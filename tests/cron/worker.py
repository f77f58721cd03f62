"""A process with a scheduler whose clock is a file that the test writes."""

from __future__ import annotations

import asyncio
import mmap
import os
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

from hermes.app.app import App
from hermes.codec.values import JsonValue
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.world import SystemClock, World
from hermes.cron.delivery import DeliveryReport, JobOrigin
from hermes.hosting.job_sessions import make_scheduler

LOOK_SECONDS = 0.005
FLAGS: dict[str, JsonValue] = {"model.default": "test", "model.provider": "custom"}


class SharedClock(SystemClock):
    """The time in a file of eight bytes, the same for all processes."""

    def __init__(self, path: Path, start: float | None = None) -> None:
        if start is not None:
            path.write_bytes(struct.pack("d", start))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 8)

    def now(self) -> float:
        (now,) = struct.unpack("d", self._memory[:])
        return float(now)

    def set(self, now: float) -> None:
        self._memory[:] = struct.pack("d", now)

    async def sleep(self, seconds: float) -> None:
        wake_at = self.now() + seconds
        while self.now() < wake_at:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)


class DeliveryFile:
    """Appends a line per delivery, which survives the death of the process."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    async def deliver(
        self,
        target: str,
        text: str,
        *,
        key: str,
        files: Sequence[Path] = (),
        origin: JobOrigin | None = None,
        mirror: bool = False,
    ) -> DeliveryReport:
        os.write(self._descriptor, f"{key}\n".encode())
        return DeliveryReport(state="delivered", detail=target)


async def main(home: str, clock: str, deliveries: str) -> None:
    config = load(Home(Path(home)), flags=FLAGS, env=os.environ)
    world = World(clock=SharedClock(Path(clock)))
    async with App(config, env=os.environ, world=world) as app:
        scheduler, _ = make_scheduler(app, DeliveryFile(Path(deliveries)))
        await scheduler.run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
