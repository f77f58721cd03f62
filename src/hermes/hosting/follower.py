"""Reads a run from any position to its end without gaps or repeats."""

from __future__ import annotations

import re
from hashlib import blake2b

from hermes.codec.values import Value
from hermes.core.events import Record, ReplyAdded
from hermes.core.messages import AssistantMessage
from hermes.hosting.run import PartialReply, Run

POSITION = r"(\d{1,12})(?:\.(?:(\d{1,9})\.)?(\d{1,9})\.([0-9a-f]{8}))?"


EMPTY_HASH = blake2b(digest_size=4).hexdigest()


class StreamPosition(Value):
    """A position in the events of a run, for clients that continue reading there. The numbers of
    later positions are greater, compared from left to right."""

    # The last record that was read.
    n: int = 0
    # How often the reply after that record started over.
    restarts: int = 0
    # The characters that were read of that reply.
    chars: int = 0
    # The hash of those characters: after a crash the model writes the reply again, and the reader
    # continues in it only if it begins with the same text.
    hash: str = ""

    def __str__(self) -> str:
        if not self.chars and not self.restarts:
            return str(self.n)
        return f"{self.n}.{self.restarts}.{self.chars}.{self.hash or EMPTY_HASH}"


def parse_position(text: str) -> StreamPosition | None:
    found = re.fullmatch(POSITION, text.strip(), re.ASCII)
    if found is None:
        return None
    # Positions of earlier versions have no number of restarts.
    n, restarts, chars = (int(found[group] or 0) for group in (1, 2, 3))
    return StreamPosition(n=n, restarts=restarts, chars=chars, hash=found[4] or "")


class TextPiece(Value):
    text: str
    mark: StreamPosition
    is_text: bool = True


class RecordAdded(Value):
    record: Record
    mark: StreamPosition


class ReplyRestarted(Value):
    """The reader must discard this reply; it follows again from its beginning."""

    mark: StreamPosition


RunEvent = TextPiece | RecordAdded | ReplyRestarted


class RunFollower:
    def __init__(self, run: Run, after: StreamPosition | None = None) -> None:
        self._run = run
        self._news = run.subscribe()
        self._index = 0
        mark = after or StreamPosition()
        self._n = mark.n
        self._restarts = mark.restarts
        self._draft: PartialReply | None = None
        self._seen = 0
        self._chars = mark.chars
        self._hash = blake2b(digest_size=4)
        # Only a digest is known until the text arrives again.
        self._promised = mark.hash if mark.chars else ""

    def close(self) -> None:
        self._run.unsubscribe(self._news)

    @property
    def is_done(self) -> bool:
        return self._run.is_over and self._index >= len(self._run.records)

    async def wait(self) -> None:
        """Wait for something to read, or for `wake`."""
        if not self.is_done:
            await self._news.wait()

    def wake(self) -> None:
        self._news.set()

    def read(self) -> list[RunEvent]:
        """All new events, in as few pieces as possible."""
        self._news.clear()
        events: list[RunEvent] = []
        records = self._run.records
        while self._index < len(records):
            record = records[self._index]
            if record.n <= self._n:
                # Read before. A run that is being resumed gets its past after its readers.
                self._index += 1
                continue
            if isinstance(record.event, ReplyAdded):
                self._end_reply(record, record.event.message, events)
            self._index += 1
            self._n = record.n
            events.append(RecordAdded(record=record, mark=self._position()))
        # A run that is over consists of its records alone; nothing follows its end.
        if not self._run.is_over:
            self._read_draft(self._run.draft, events)
        return events

    def _position(self) -> StreamPosition:
        if not self._chars:
            return StreamPosition(n=self._n, restarts=self._restarts)
        hash = self._promised or self._hash.hexdigest()
        return StreamPosition(n=self._n, restarts=self._restarts, chars=self._chars, hash=hash)

    def _end_reply(self, record: Record, reply: AssistantMessage, found: list[RunEvent]) -> None:
        own = self._run.drafts.get(record.n)
        if own is not None and own is self._draft:
            self._read_pieces(own, found)
            if reply.text.startswith(own.text):
                self._send(reply.text[self._chars :], found)
        else:
            self._catch_up(reply.text, found)
        self._draft, self._seen, self._chars, self._promised = None, 0, 0, ""
        self._restarts = 0
        self._hash = blake2b(digest_size=4)

    def _read_draft(self, draft: PartialReply, events: list[RunEvent]) -> None:
        if draft is not self._draft:
            if not draft.pieces:
                return
            if self._chars:
                text = draft.text
                if len(text) < self._chars:
                    return
                self._catch_up(text, events)
                self._seen = len(draft.pieces)
            else:
                self._seen = 0
            self._draft = draft
        self._read_pieces(draft, events)

    def _read_pieces(self, draft: PartialReply, events: list[RunEvent]) -> None:
        news = draft.pieces[self._seen :]
        self._seen = len(draft.pieces)
        at = 0
        while at < len(news):
            is_text, end = news[at][0], at
            while end < len(news) and news[end][0] is is_text:
                end += 1
            joined = "".join(text for _, text in news[at:end])
            if is_text:
                self._send(joined, events)
            elif joined:
                events.append(TextPiece(text=joined, mark=self._position(), is_text=False))
            at = end

    def _catch_up(self, text: str, events: list[RunEvent]) -> None:
        """If an earlier version of this reply was sent and has the same start, continue after the
        sent part."""
        if self._chars:
            sent = blake2b(text[: self._chars].encode("utf-8", "replace"), digest_size=4)
            wanted = self._promised or self._hash.hexdigest()
            is_same = len(text) >= self._chars and sent.hexdigest() == wanted
            if is_same:
                self._hash = sent
            else:
                self._chars = 0
                self._hash = blake2b(digest_size=4)
            self._promised = ""
            if not is_same:
                self._restarts += 1
                events.append(ReplyRestarted(mark=self._position()))
        self._send(text[self._chars :], events)

    def _send(self, text: str, found: list[RunEvent]) -> None:
        if text:
            self._chars += len(text)
            self._hash.update(text.encode("utf-8", "replace"))
            found.append(TextPiece(text=text, mark=self._position()))
