"""What background processes report reaches the chat that started them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hermes.codec.values import replace
from hermes.testing.request import Request
from hermes.testing.steps import Rule, Step, calls, says
from tests.surfaces.gateway.fake import PROMPT, gateway, until


def rule_for(folder: Path) -> Rule[Request]:
    def rule(request: Request) -> Step:
        if request.last_text == "start it":
            command = f"until test -e {folder}/go; do sleep 0.02; done; echo finished"
            return calls("terminal", command=command, background=True, notify_on_complete=True)
        if request.results:
            return says("It is running.")
        return says("The process is done." if "finished" in request.last_text else "What?")

    return rule


async def test_the_end_of_a_process_is_told_in_the_chat(tmp_path: Path) -> None:
    options = replace(PROMPT, idle_seconds=0.5)
    async with gateway(tmp_path, rule_for(tmp_path), options=options) as own:
        go = tmp_path / "go"
        assert await own.say("start it") == ["It is running."]
        # Longer than an idle session stays open.
        await asyncio.sleep(1.5)
        go.touch()
        await until(lambda: len(own.fake.texts) == 2)
        assert own.fake.texts[1] == "The process is done."
        await own.idle()
        assert await own.ledger.open_messages() == ()
