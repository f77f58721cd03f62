"""What was shown beside a message is not said back to the person, however it is streamed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.app.app import App
from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.commands import Say
from hermes.core.prompt import TextDelta
from hermes.core.session_request import SessionRequest
from hermes.core.world import World
from hermes.memory.provider import CLOSE, OPEN, EchoFilter, MemoryProvider, remove_echo
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import says


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Hello.", "Hello."),
        (f"{OPEN}\nAnn gardens.\n{CLOSE}Hello.", "Hello."),
        (f"a{OPEN}b{CLOSE}c{OPEN}d{CLOSE}e", "ace"),
        (f"a{CLOSE}b", "ab"),
        (f"a{OPEN}never closed", "anever closed"),
        ("a < b and <memory", "a < b and <memory"),
    ],
)
def test_blocks_and_marks_are_left_out(said: str, shown: str) -> None:
    assert remove_echo(said) == shown


pieces = st.lists(st.sampled_from([OPEN, CLOSE, "<", "<memory-", "words ", "</", ">"]), max_size=12)


@given(pieces, st.lists(st.integers(1, 9), min_size=1, max_size=20))
def test_it_does_not_matter_how_a_text_is_cut(parts: list[str], sizes: list[int]) -> None:
    text, echo, shown, at = "".join(parts), EchoFilter(), "", 0
    for turn in range(len(text)):
        size = sizes[turn % len(sizes)]
        shown += echo.feed(text[at : at + size])
        at += size
    shown += echo.finish()
    assert shown == remove_echo(text)


class Knowing(MemoryProvider):
    name = "knowing"

    async def prefetch(self, query: str) -> str:
        return "Ann gardens."


async def test_a_model_that_repeats_what_it_was_shown_is_not_heard(tmp_path: Path) -> None:
    words = f"{OPEN}\nRecalled: Ann gardens.\n{CLOSE}\nHello Ann."
    async with ScriptedServer([says(words)]) as server:
        env = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "k"}
        flags = {"model.default": "m", "memory.provider": "knowing"}
        async with App(
            load(Home(tmp_path / "home"), env=env, flags=flags), env=env, world=World()
        ) as app:
            app.plugins.memory_providers["knowing"] = Knowing
            opening = SessionRequest(source="cli", attended=False, cwd=str(tmp_path))
            session = await app.open(opening)
            events = session.subscribe()
            await session.send(Say(text="Who am I?"))
            shown = ""
            async with asyncio.timeout(60):
                async for record in events:
                    if isinstance(record.event, TextDelta):
                        shown += record.event.text
                    if type(record.event).__name__ == "TurnEnded":
                        break
            await session.wait_until_idle()
            kept = session.transcript.messages[-1].text  # type: ignore[union-attr]
        assert "Ann gardens." in server.requests[0].messages[-1].text
    assert (shown.strip(), kept.strip()) == ("Hello Ann.", "Hello Ann.")
