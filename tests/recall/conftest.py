"""A journal with sessions of several people, and what one session sees of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.codec.json import encode
from hermes.core.effects import Principal
from hermes.core.events import MessageReceived, ReplyAdded, SessionOpened, ToolFinished
from hermes.core.messages import (
    AssistantMessage,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    user_says,
)
from hermes.core.world import World
from hermes.journal.import_ import import_lines
from hermes.journal.index.search import SearchIndex
from hermes.journal.index.source import JournalFile
from hermes.journal.journal import SqliteJournal
from hermes.policy.sources import untrusted_origins
from hermes.recall.archive import PastSessions


class Home:
    """Writes sessions, and opens the archive of any of them."""

    def __init__(self, folder: Path) -> None:
        self.journal = SqliteJournal(folder / "hermes.db", World())
        self.index = SearchIndex(folder / "index.db", JournalFile(folder / "hermes.db"))

    async def session(
        self, id: str, *said: str, source: str = "cli", principal: Principal = "owner"
    ) -> None:
        """One line after the other, by the user and the assistant in turn."""
        opened = SessionOpened(
            source=source, cwd="/", model="m", provider="p", system="", principal=principal
        )
        events: list[MessageReceived | ReplyAdded] = []
        for place, text in enumerate(said):
            if place % 2:
                message = AssistantMessage(parts=(Text(text=text),))
                events.append(ReplyAdded(message=message, usage=Usage(), model="m", provider="p"))
            else:
                events.append(MessageReceived(message=user_says(text), past=True))
        lease, _ = await self.journal.create(id, [opened, *events])
        await self.journal.release(lease)

    async def read_a_page(self, id: str, page: str, origin: str, answer: str) -> None:
        """A session in which a tool brought words of somebody else."""
        opened = SessionOpened(source="cli", cwd="/", model="m", provider="p", system="")
        call = ToolCall(id="c1", name="fetch", arguments={})
        result = ToolResult(call_id="c1", name="fetch", parts=(Text(text=page),), origin=origin)
        said = (
            MessageReceived(message=user_says("Look at the heron page"), past=True),
            self._reply(call),
            ToolFinished(result=result),
            self._reply(Text(text=answer)),
        )
        lease, _ = await self.journal.create(id, [opened, *said])
        await self.journal.release(lease)

    def _reply(self, part: Text | ToolCall) -> ReplyAdded:
        message = AssistantMessage(parts=(part,))
        return ReplyAdded(message=message, usage=Usage(), model="m", provider="p")

    async def imported(self, *lines: tuple[str, float, str]) -> None:
        rows = [
            encode({"session": session, "at": at, "role": "user", "text": text}) + b"\n"
            for session, at, text in lines
        ]
        await import_lines(self.journal, rows)

    def archive(self, session_id: str = "here", principal: Principal = "owner") -> PastSessions:
        return PastSessions(
            self.journal,
            self.index,
            session_id=session_id,
            principal=principal,
            untrusted_origins=untrusted_origins,
        )


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    home = Home(tmp_path)
    yield home
    await home.journal.close()
