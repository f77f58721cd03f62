"""A disk that fills up during a prompt: the editor gets an error, and the session goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from acp import RequestError

from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step, says
from tests.durability.mounts import mounted
from tests.durability.test_full_disk import fill
from tests.surfaces.acp.editor import editor

LONG = "word " * 100_000


async def test_a_prompt_on_a_full_disk_fails_and_the_next_one_is_answered(tmp_path: Path) -> None:
    def rule(request: Request) -> Step:
        if request.last_text == "fill" and not (disk / "filled").exists():
            (disk / "filled").touch()
            fill(disk)
            return says(LONG)
        return says(f"You said: {request.last_text}")

    with mounted(tmp_path / "mount", "size=6m") as disk:
        async with (
            ScriptedServer(rule) as server,
            editor(disk / "home", server.url) as client,
            asyncio.timeout(60),
        ):
            opened = await client.agent.new_session(str(tmp_path), mcp_servers=[])
            with pytest.raises(RequestError, match="free some space"):
                await client.say(opened.session_id, "fill")
            (disk / "filler").unlink()
            client.updates.clear()
            done = await client.say(opened.session_id, "two")
            assert done.stop_reason == "end_turn"
            # The interrupted turn is finished first; the prompt ends with its own answer.
            assert client.text.endswith("You said: two")
