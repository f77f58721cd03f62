"""The gateway may be killed anywhere: no message is lost, no reply is doubled, and the transcripts
stay valid."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from hermes.codec.json import encode
from hermes.core.events import MessageReceived
from hermes.surfaces.gateway.platform import Address, Inbound, Sender
from hermes.testing.kill import walk
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls_many, says
from tests.durability.stage import Ended, Stage, finished
from tests.surfaces.gateway.fake import SETTINGS

POINTS = (
    "gateway.received",
    "gateway.accepted",
    "gateway.before_post",
    "gateway.after_post",
    "gateway.confirmed",
    "gateway.before_finish",
    "message.received",
    "turn.started",
    "reply.received",
    "tool.started",
    "turn.ending",
    "turn.ended",
)
QUICK_SEEDS, ALL_SEEDS = 2, 20


def rule(request: Request) -> Step:
    """Reads a folder first when it is asked to look, and answers at length when asked for it."""
    text = request.last_text
    if text.startswith("look") and not request.results:
        return calls_many(("search_files", {"pattern": "*.nothing"}), text=f"Looking for {text}.")
    answered = next(m for m in reversed(request.body["messages"]) if m["role"] == "user")
    words = answered["content"] if isinstance(answered["content"], str) else text
    if words.startswith("long"):
        return says("\n".join(f"{words}, line {n} of the answer" for n in range(12)))
    return says(f"Answer to {words}.")


class Scene(NamedTuple):
    """What happens in one case."""

    events: tuple[Inbound, ...]
    resolution: str
    is_streaming: bool
    offline: int

    @property
    def texts(self) -> dict[str, list[str]]:
        """The distinct messages of each chat in order."""
        found: dict[str, dict[str, str]] = {}
        for event in self.events:
            found.setdefault(event.address.chat_id, {}).setdefault(event.key, event.text)
        return {chat: list(texts.values()) for chat, texts in found.items()}


def scene(seed: int) -> Scene:
    """Two or three messages in two chats, some delivered twice or late."""
    chance = random.Random(seed)
    events = []
    for n in range(chance.choice((2, 3))):
        kind = chance.choice(("say", "look", "long"))
        address = Address(platform="fake", chat_id=chance.choice(("a", "b")))
        events.append(
            Inbound(
                key=f"k{n}",
                address=address,
                chat_type="dm",
                sender=Sender(id="u1"),
                at=1.0,
                message_id=f"i{n}",
                text=f"{kind} {n}",
            )
        )
    events += [each for each in events if chance.random() < 0.5]
    if chance.random() < 0.5:
        chance.shuffle(events)
    resolution = chance.choice(("key", "read_back"))
    return Scene(tuple(events), resolution, chance.random() < 0.5, chance.choice((0, 0, 2)))


async def run_gateway(stage: Stage, played: Scene, kill_at: str = "") -> Ended:
    module = ("-m", "tests.surfaces.gateway.gateway_process", str(stage.work), played.resolution)
    stream = "stream" if played.is_streaming else "whole"
    words = (sys.executable, *module, stream, str(played.offline), "off")
    return await finished(await stage.command(*words, kill_at=kill_at), 30)


def shown(stage: Stage) -> dict[str, dict[str, str | None]]:
    """What people see in each chat, by message id in order."""
    chats: dict[str, dict[str, str | None]] = {}
    for line in map(json.loads, (stage.work / "out.jsonl").read_text("utf-8").splitlines()):
        chats.setdefault(line["chat"], {})[line["id"]] = line["text"]
    return chats


def expected(text: str) -> list[str]:
    """The texts that a message must get, without numbers of parts."""
    before = [f"Looking for {text}."] if text.startswith("look") else []
    if text.startswith("long"):
        return [f"{text}, line {n} of the answer" for n in range(12)]
    return [*before, f"Answer to {text}."]


async def play(root: Path, seed: int, point: str) -> bool:
    """Whether the process was killed at all."""
    played = scene(seed)
    async with ScriptedServer(rule) as server:
        stage = Stage(root, server, settings=SETTINGS)
        (stage.work / "in.jsonl").write_bytes(b"\n".join(encode(e) for e in played.events))
        died = await run_gateway(stage, played, point)
        assert died.code in (0, -9), died
        ended = await run_gateway(stage, played)
        assert (ended.code, ended.err) == (0, ""), ended
        assert server.violations == []
        check_replies(stage, played)
        await check_journal(stage, played)
    return died.code == -9


def check_replies(stage: Stage, played: Scene) -> None:
    chats = shown(stage)
    for chat, texts in played.texts.items():
        got = "\n".join(text for text in chats[chat].values() if text is not None)
        lines = [line for line in got.split("\n") if line.strip()]
        plain = [line.rpartition(" (")[0] if line.endswith(")") else line for line in lines]
        wanted = [line for text in texts for line in expected(text)]
        assert plain == wanted


async def check_journal(stage: Stage, played: Scene) -> None:
    keys: list[str] = []
    async with stage.app() as app:
        for info in await app.archive.recent():
            events = [record.event for record in await app.archive.records(info.id)]
            keys += [each.key for each in events if isinstance(each, MessageReceived)]
        assert await app.archive.verify() == ()
    assert sorted(keys) == sorted({f"fake:{event.key}" for event in played.events})


async def play_all(root: Path, cases: list[tuple[int, str]]) -> int:
    """Two at a time; how many of them were killed."""
    room = asyncio.Semaphore(2)

    async def one(seed: int, point: str) -> bool:
        async with room:
            try:
                return await play(root / f"{seed}-{point}", seed, point)
            except BaseException as error:
                error.add_note(f"seed {seed}, killed at {point}")
                raise

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(seed, point)) for seed, point in cases]
    return sum(task.result() for task in tasks)


async def test_a_gateway_killed_at_any_point_answers_everything_once(tmp_path: Path) -> None:
    cases = [(n * 7 + seed, p) for n, p in enumerate(POINTS[:6]) for seed in range(QUICK_SEEDS)]
    assert await play_all(tmp_path, cases) >= len(POINTS[:6])


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
async def test_a_gateway_killed_at_a_point_answers_everything_once(
    tmp_path: Path, point: str
) -> None:
    cases = [(seed, f"{point}:{number}") for seed in range(ALL_SEEDS) for number in (1, 2, 3)]
    assert await play_all(tmp_path, cases) >= 1


async def test_every_kill_point_of_a_message_is_covered(tmp_path: Path) -> None:
    played = scene(1)
    async with ScriptedServer(rule) as server:
        stage = Stage(tmp_path / "stage", server, settings=SETTINGS)
        (stage.work / "in.jsonl").write_bytes(b"\n".join(encode(e) for e in played.events))
        ended = await run_gateway(stage, played, f"?{tmp_path / 'names'}")
        assert ended.code == 0, ended
    points = {point.partition(":")[0] for point in walk(tmp_path / "names")}
    assert {point for point in points if point.startswith("gateway.")} <= set(POINTS)
    assert {point for point in POINTS if point.startswith("gateway.")} <= points
