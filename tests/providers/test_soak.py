"""Long sessions with faults at random: no request is invalid, no call runs that was not whole."""

from __future__ import annotations

import random

import pytest

from hermes.core.errors import ProviderError
from hermes.core.messages import Message, user_says
from hermes.core.world import World
from hermes.net.http import HttpClient
from hermes.providers.pipeline import build_pipeline
from hermes.providers.profile import ModelProfile, WireName
from hermes.testing.faults import cut, dripped, fails_midway, flawed, garbled, paced
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import (
    Step,
    calls,
    calls_cut_short,
    calls_many,
    calls_raw,
    drops,
    fails,
    says,
    says_nothing,
    thinks,
)
from tests.providers.asking import HI, WIRES, NapClock, answered, ask, endpoint, then

PLACE = "a place with a long name"


def whole(chance: random.Random) -> Step:
    return chance.choice(
        [
            says("Some words that say something."),
            calls("look", at=PLACE),
            calls_many(("look", {"at": PLACE}), ("look", {"at": PLACE}), text="I look."),
            thinks("Hm, well.", then=says("So.")),
            thinks("Hm, well.", then=calls("look", at=PLACE)),
        ]
    )


def bad(chance: random.Random) -> Step:
    step = paced(whole(chance), chunk=chance.randint(1, 9))
    at = chance.randint(0, 14)
    return chance.choice(
        [
            cut(step, after_chunks=at),
            cut(step, after_bytes=chance.randint(0, 1500)),
            cut(step, after_bytes=chance.randint(0, 1500), reset=True),
            fails_midway(step, after_chunks=at),
            garbled(step, after_chunks=at),
            dripped(step, size=chance.randint(1, 50)),
            flawed(step, chance.choice(["crlf", "keep_alive", "missing_ids", "same_index"])),
            fails(chance.choice([429, 500, 502, 503, 529])),
            calls_cut_short("look", '{"at": "a pla'),
            calls_raw("look", "at = here"),
            says_nothing(),
            thinks("only this"),
            drops(),
        ]
    )


async def soak(wire: WireName, http: HttpClient, *, turns: int, seed: int) -> None:
    chance = random.Random(seed)

    def answer(_request: Request) -> Step:
        return bad(chance) if chance.random() < 0.5 else whole(chance)

    profile = ModelProfile(replay="reasoning_content" if wire == "chat" else "sealed")
    async with ScriptedServer(answer) as server:
        world = World(clock=NapClock(), chance=chance)
        at = endpoint(wire, server.url, profile)
        provider = build_pipeline(at, http=http, world=world)
        prompt = HI
        for _ in range(turns):
            added: tuple[Message, ...] = (user_says("and?"),)
            try:
                heard = await ask(provider, prompt)
            except ProviderError as error:
                assert error.retryable
            else:
                message = heard.whole.message
                assert heard.shown == message.text
                assert all(c.broken or c.arguments == {"at": PLACE} for c in message.calls)
                added = answered(heard.whole) if message.calls else (message, *added)
            prompt = then(prompt, *added)
        assert server.violations == []


@pytest.mark.parametrize("wire", WIRES)
async def test_a_session_survives_random_faults(wire: WireName, http: HttpClient) -> None:
    await soak(wire, http, turns=40, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("wire", WIRES)
async def test_many_long_sessions_survive_random_faults(
    wire: WireName, seed: int, http: HttpClient
) -> None:
    await soak(wire, http, turns=200, seed=seed)
