"""A real gateway process that is killed again and again, with real platforms at the other end:
every message is answered, and no answer comes twice."""

from __future__ import annotations

import asyncio
import os
import random
import re
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from hermes.app.app import App
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.events import MessageReceived
from hermes.core.world import World
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls_many, says
from tests.surfaces.gateway import mail_servers, matrix_server
from tests.surfaces.gateway.counterparts import (
    Counterpart,
    mail_threads,
    matrix_rooms,
)
from tests.surfaces.gateway.test_kills import POINTS

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

ROOT = Path(__file__).parents[3]
HERMES = str(Path(sys.executable).with_name("hermes"))
CHATS = 2
SEEDS = int(os.environ.get("HERMES_TEST_KILL_SEEDS", "20"))
# A run that was killed in the middle of anything, not at a named point.
ANYWHERE = "anywhere"
ALIVE_SECONDS = 60.0
SETTINGS = (
    "auxiliary: {title_generation: {provider: none}}\n"
    "display: {busy_input_mode: queue, busy_ack_enabled: false}\n"
)
MESSAGE = re.compile(r"msg-\d+")


def rule(request: Request) -> Step:
    """Answers name the messages that they answer; some need a tool first."""
    user = next(m for m in reversed(request.body["messages"]) if m["role"] == "user")
    text = user["content"] if isinstance(user["content"], str) else request.last_text
    named = MESSAGE.findall(text)
    if "look" in text and not request.results:
        return calls_many(("search_files", {"pattern": "*.nothing"}))
    return says(f"Answer to {' '.join(named)}.")


class KilledGateway:
    """One home whose gateway is killed many times."""

    def __init__(self, folder: Path, other: Counterpart, model: ScriptedServer) -> None:
        self.home = folder / "home"
        self.home.mkdir(mode=0o700)
        self._other = other
        url = f"{model.url}/v1"
        lines = f'model: {{default: m, provider: custom, base_url: "{url}"}}\n'
        (self.home / "config.yaml").write_text(lines + SETTINGS + other.settings())
        (self.home / "config.yaml").chmod(0o600)
        self.env = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT / "src"),
            "HOME": str(folder),
            "HERMES_HOME": str(self.home),
            "HERMES_TESTING": "1",
            "HERMES_GATEWAY_LOCK_DIR": str(folder / "claims"),
            **other.env(),
        }
        self.said: dict[int, list[str]] = {n: [] for n in range(CHATS)}
        self.kills = 0
        self._count = 0

    async def start(self, kill_at: str = "") -> Process:
        # The guard against crash loops would postpone old work; here crashes are the rule.
        (self.home / "gateway_state.json").unlink(missing_ok=True)
        env = {**self.env, **({"HERMES_KILL_AT": kill_at} if kill_at else {})}
        return await asyncio.create_subprocess_exec(
            HERMES, "gateway", "run", env=env, stdin=DEVNULL, stdout=PIPE, stderr=PIPE
        )

    async def say(self, chance: random.Random) -> None:
        self._count += 1
        chat, text = chance.randrange(CHATS), f"msg-{self._count}"
        self.said[chat].append(text)
        words = f"look at {text}" if chance.random() < 0.3 else text
        await self._other.say(chat, words, twice=chance.random() < 0.3)

    async def answered(self) -> bool:
        for chat, messages in self.said.items():
            if not set(messages) <= set(MESSAGE.findall(" ".join(await self.answers(chat)))):
                return False
        return True

    async def answers(self, chat: int) -> list[str]:
        return [text for text in await self._other.shown(chat) if "Answer to" in text]

    async def run_once(self, point: str, chance: random.Random) -> None:
        """One life of the process, with messages before and during it."""
        files = self._other.position_files(self.home)
        copies = {path: path.read_bytes() for path in files} if chance.random() < 0.3 else {}
        if chance.random() < 0.5:
            await self.say(chance)
        process = await self.start("" if point == ANYWHERE else f"{point}:{chance.randint(1, 2)}")
        try:
            await self.say(chance)
            if chance.random() < 0.25:
                await self._go_offline(chance)
            if point == ANYWHERE:
                await asyncio.sleep(chance.uniform(1.0, 4.0))
            else:
                await self._until_dead_or_done(process)
        finally:
            await self._end(process)
        for path, data in copies.items():
            # What came since then is delivered once more.
            path.write_bytes(data)

    async def _go_offline(self, chance: random.Random) -> None:
        await asyncio.sleep(chance.uniform(0.5, 2.0))
        for link in self._other.links:
            link.cut()
        await asyncio.sleep(0.7)
        for link in self._other.links:
            link.mend()

    async def _until_dead_or_done(self, process: Process) -> None:
        waiting = asyncio.ensure_future(process.wait())
        try:
            async with asyncio.timeout(ALIVE_SECONDS):
                while not waiting.done() and not await self.answered():
                    await asyncio.wait((waiting,), timeout=0.2)
        finally:
            waiting.cancel()

    async def _end(self, process: Process) -> None:
        if process.returncode is None:
            process.kill()
        _, errors = await process.communicate()
        assert process.returncode == -9, errors.decode()
        self.kills += 1

    async def finish(self) -> None:
        """A life without an end: everything is answered in it."""
        process = await self.start()
        try:
            async with asyncio.timeout(180):
                while not await self.answered() and process.returncode is None:  # noqa: ASYNC110
                    await asyncio.sleep(0.3)
            # What comes twice comes now.
            await asyncio.sleep(2.0)
        finally:
            if process.returncode is None:
                process.terminate()
            _, errors = await process.communicate()
        assert process.returncode == 0, errors.decode()

    async def check(self) -> None:
        for chat, messages in self.said.items():
            answers = " ".join(await self.answers(chat))
            assert sorted(MESSAGE.findall(answers)) == sorted(messages), f"chat {chat}"
        await self._check_journal()

    async def _check_journal(self) -> None:
        found: list[str] = []
        async with App(load(Home(self.home), env=self.env), env=self.env, world=World()) as app:
            assert await app.archive.verify() == ()
            for info in await app.archive.recent(limit=1000):
                for record in await app.archive.records(info.id):
                    event = record.event
                    if isinstance(event, MessageReceived) and event.message.origin == "user":
                        found += MESSAGE.findall(event.message.text)
        assert sorted(found) == sorted(text for texts in self.said.values() for text in texts)


@pytest.fixture(scope="module")
def homeserver() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as name, matrix_server.matrix_server(Path(name)) as url:
        yield url


async def play(
    folder: Path, counterpart: AbstractAsyncContextManager[Counterpart], point: str
) -> None:
    chance = random.Random(point)
    async with counterpart as other, ScriptedServer(rule, strict=False) as model:
        gateway = KilledGateway(folder, other, model)
        # The first start answers nothing that is older.
        first = await gateway.start()
        assert first.stdout is not None
        await first.stdout.readline()
        first.terminate()
        await first.communicate()
        for _ in range(SEEDS):
            await gateway.run_once(point, chance)
        await gateway.finish()
        await gateway.check()
        assert gateway.kills == SEEDS


@pytest.mark.skipif(bool(mail_servers.missing()), reason=mail_servers.missing() or "unused")
@pytest.mark.parametrize("point", (*POINTS, ANYWHERE))
async def test_email_loses_and_doubles_nothing(tmp_path: Path, point: str) -> None:
    (tmp_path / "servers").mkdir()
    await play(tmp_path, mail_threads(tmp_path / "servers"), point)


@pytest.mark.skipif(bool(matrix_server.missing()), reason=matrix_server.missing() or "unused")
@pytest.mark.parametrize("point", (*POINTS, ANYWHERE))
async def test_matrix_loses_and_doubles_nothing(
    tmp_path: Path, homeserver: str, point: str
) -> None:
    await play(tmp_path, matrix_rooms(homeserver, tmp_path / "people", CHATS), point)
