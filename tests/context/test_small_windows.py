"""Work that is much longer than the window still gets done."""

from __future__ import annotations

from pathlib import Path

from hermes.testing.request import Request
from hermes.testing.steps import Step, calls, says
from tests.context.ground import Rule, compactions, say, stage

REQUEST = "Read the twenty parts in order and then say which is the last one. Never skip a part."


def reading(count: int) -> tuple[list[str], Rule]:
    """A model that reads one part after the other, and knows only how many it has read."""
    read: list[str] = []

    def rule(request: Request) -> Step:
        if len(read) == count:
            return says(f"The last one is part{count - 1}.txt.")
        read.append(f"part{len(read)}.txt")
        return calls("read_file", path=read[-1])

    return read, rule


async def test_twenty_files_are_read_in_a_window_of_8k(tmp_path: Path) -> None:
    read, rule = reading(20)
    async with stage(tmp_path, rule, window=8_192) as ground:
        for number in range(20):
            ground.file(f"part{number}.txt", lines=80)
        async with ground.session() as (app, session):
            ended = await say(session, REQUEST)
            made = compactions(await app.journal.read(session.id))
        assert (ended.reason, ended.error) == ("done", "")
        assert len(read) == 20
        assert len(made) >= 3
        for request in ground.chats:
            assert any(REQUEST in said.text for said in request.messages)
        last = ground.chats[-1].messages
        assert any("part19.txt row 80" in said.text for said in last)
        assert ground.server.violations == []
