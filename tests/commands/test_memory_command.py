"""`/memory` in a session."""

from __future__ import annotations

from hermes.commands.registry import ShowText
from tests.commands.conftest import Talk


async def typed(talk: Talk, line: str) -> str:
    outcome = await talk.registry.run(line, talk)
    assert isinstance(outcome, ShowText)
    return outcome.text


async def test_what_is_remembered_is_listed_explained_and_taken_back(talk: Talk) -> None:
    assert await typed(talk, "/memory") == "Memory is empty."
    await talk.say("remember that the server is called atlas")
    assert "m1     memory  the server is called atlas" in await typed(talk, "/memory list")
    assert f"from session {talk.session.id}:2" in await typed(talk, "/memory why m1")
    assert "Undone: c1" in await typed(talk, "/memory undo")
    assert await typed(talk, "/memory") == "Memory is empty."


async def test_what_waits_is_decided_here(talk: Talk) -> None:
    assert await typed(talk, "/memory pending") == "No changes are pending."
    said = await typed(talk, "/memory approval on")
    assert said == "From the next session on, all changes need your approval."
    assert "Nothing is remembered yet." in await typed(talk, "/memory approve c1")


async def test_a_session_does_not_forget_itself(talk: Talk) -> None:
    assert "quit and run" in await typed(talk, "/memory forget m1")
    assert (await typed(talk, "/memory dance")).startswith("Use /memory")
