"""After turns in which nothing was remembered, somebody looks back; and before compaction too."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hermes.app.app import App
from hermes.codec.values import JsonObject
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.commands import Say
from hermes.core.session_request import SessionRequest
from hermes.core.world import World
from hermes.memory.tools import REVIEW
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, calls, says
from tests.durability.observing import eventually

FACT = "The user wants answers in French"


def model(request: Request) -> Step:
    if request.messages[0].text != REVIEW:
        return says("Oui.")
    if request.results:
        return says("Saved.")
    return calls("memory", target="user", action="add", content=FACT)


async def talk(
    folder: Path, server: ScriptedServer, *texts: str, origin: str = "user", interval: int = 2
) -> App:
    flags: JsonObject = {
        "model.provider": "custom",
        "model.default": "scripted",
        "model.base_url": f"{server.url}/v1",
        "memory.nudge_interval": interval,
        "auxiliary.title_generation.provider": "none",
    }
    env = {"OPENAI_API_KEY": "k"}
    app = App(load(Home(folder / "home"), flags=flags, env=env), env=env, world=World())
    session = await app.open(SessionRequest(source="cli", attended=True, cwd="/"))
    app.start_session_tasks(session)
    for text in texts:
        await session.send(Say(text=text, origin=origin))
        await session.wait_until_idle()
    return app


async def test_two_turns_without_a_change_lead_to_one_review(tmp_path: Path) -> None:
    async with ScriptedServer(model) as server:
        app = await talk(tmp_path, server, "Bonjour", "Always answer in French")
        notes = tmp_path / "home" / "memories" / "USER.md"
        await eventually(lambda: notes.exists() and FACT in notes.read_text())
        why = await app.memory.why("m1")
        assert why.entry is not None and why.entry.text == FACT
        assert (why.changes[0].source.kind, why.said[0]) == ("review", "Always answer in French")
        review = next(r for r in server.requests if r.messages[0].text == REVIEW)
        assert review.tools == ("memory",)
        assert "User: Always answer in French" in review.messages[1].text
        costs = {line.cause for line in await app.archive.spending()}
        assert "background_review" in costs
        await app.close()


@pytest.mark.parametrize(("turns", "interval"), [(1, 2), (3, 0)])
async def test_no_review_before_it_is_due(tmp_path: Path, turns: int, interval: int) -> None:
    async with ScriptedServer(model) as server:
        app = await talk(tmp_path, server, *["Bonjour"] * turns, interval=interval)
        await asyncio.sleep(0.1)
        await app.close()
        assert all(request.messages[0].text != REVIEW for request in server.requests)


async def test_no_review_where_strangers_were_heard(tmp_path: Path) -> None:
    async with ScriptedServer(model) as server:
        app = await talk(tmp_path, server, "one", "two", "three", origin="mail:eve")
        await asyncio.sleep(0.1)
        await app.close()
        assert all(request.messages[0].text != REVIEW for request in server.requests)
