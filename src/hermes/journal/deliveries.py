"""The delivery ledger of the gateway: messages that came in, posts that go out, and which session
belongs to which chat. A row is durable before the platform hears of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeVar

from hermes.codec.values import Value
from hermes.journal.journal import SqliteJournal
from hermes.journal.transaction import Transaction

V = TypeVar("V", bound=Value)

# How long finished rows are kept, against late redelivery.
KEEP_SECONDS = 30 * 86_400.0

ReceivedState = Literal["new", "accepted", "finished"]
"""`new`: stored and acknowledged. `accepted`: the message is in its session or its command ran.
`finished`: answered, refused or withdrawn."""

PostState = Literal["intended", "attempting", "confirmed", "editing", "uncertain", "abandoned"]
"""`intended`: certainly not sent. `attempting`: a request is under way, and a crash makes its
outcome unknown. `editing`: sent, and about to get a new text. `uncertain`: the outcome cannot be
found out. `abandoned`: given up, with a note."""


class ReceivedMessage(Value):
    """A message from a platform. `body` is the encoded event; it is emptied when finished."""

    id: int
    platform: str
    # The platform's own id of the message, unique for the account.
    key: str
    # The conversation that it belongs to.
    session_key: str
    body: str
    at: float
    state: ReceivedState
    session_id: str
    changed_at: float
    note: str


class PostRow(Value):
    """A message to a platform. `key` is known before it is sent and serves as idempotency key."""

    id: int
    key: str
    platform: str
    # The encoded chat and thread.
    address: str
    # The encoded post; emptied when it is confirmed or abandoned.
    body: str
    state: PostState
    # The platform's id of the message, once known.
    message_id: str
    session_id: str
    attempts: int
    at: float
    changed_at: float
    note: str


class StoredRoute(Value):
    """The session of a chat. `body` is what the gateway stores about it."""

    key: str
    session_id: str
    body: str
    used_at: float


class DeliveryLedger:
    """The tables `received`, `posts` and `routes`. Every change is durable when it returns."""

    def __init__(self, journal: SqliteJournal) -> None:
        self._journal = journal
        self._clock = journal.world.clock

    async def receive(self, platform: str, key: str, session_key: str, body: str) -> bool:
        """Store a message. False when the platform has delivered it before."""
        now = self._clock.now()
        row = (platform, key, session_key, body, now, now)

        def work(tx: Transaction) -> bool:
            done = tx.db.execute(
                "INSERT INTO received(platform, key, session_key, body, at, state, changed_at)"
                " VALUES (?, ?, ?, ?, ?, 'new', ?) ON CONFLICT DO NOTHING",
                row,
            )
            return done.rowcount > 0

        return await self._journal.writing(work, is_small=True)

    async def accept(self, platform: str, key: str, session_id: str, note: str = "") -> None:
        """The message is in the journal of this session, or its command was executed there."""
        change = "state = 'accepted', session_id = ?, note = ?"
        await self._set_received(platform, key, change, session_id, note)

    async def merge(self, platform: str, key: str, body: str, others: Sequence[str]) -> None:
        """Combine messages that belong together: the first gets this body, and nothing is owed for
        the others alone."""
        now = self._clock.now()
        note = f"merged into {key}"
        finished = [(note, now, platform, other) for other in others]

        def work(tx: Transaction) -> None:
            tx.db.execute(
                "UPDATE received SET body = ?, changed_at = ? WHERE platform = ? AND key = ?",
                (body, now, platform, key),
            )
            tx.db.executemany(
                "UPDATE received SET state = 'finished', body = '', note = ?, changed_at = ?"
                " WHERE platform = ? AND key = ?",
                finished,
            )

        await self._journal.writing(work, is_small=True)

    async def finish(self, platform: str, key: str, note: str = "") -> None:
        """Nothing is owed for this message any more."""
        await self._set_received(platform, key, "state = 'finished', body = '', note = ?", note)

    async def open_messages(self, platform: str = "") -> tuple[ReceivedMessage, ...]:
        """The messages that are not finished, oldest first; of all platforms with ""."""
        where, values = ("AND platform = ?", (platform,)) if platform else ("", ())
        query = f"SELECT * FROM received WHERE state <> 'finished' {where} ORDER BY id"
        return await self._journal.reading(
            lambda db: tuple(_value(ReceivedMessage, row) for row in db.execute(query, values))
        )

    async def intend(
        self,
        key: str,
        platform: str,
        address: str,
        body: str,
        *,
        session_id: str = "",
        attempt: bool = False,
    ) -> PostRow:
        """Store a post before it is sent; with `attempt` it is sent right after. A post with a
        known key is returned as it is."""
        now, state = self._clock.now(), "attempting" if attempt else "intended"
        row = (key, platform, address, body, state, session_id, int(attempt), now, now)

        def work(tx: Transaction) -> PostRow:
            tx.db.execute(
                "INSERT INTO posts(key, platform, address, body, state, session_id, attempts, at,"
                " changed_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                row,
            )
            found = tx.db.execute("SELECT * FROM posts WHERE key = ?", (key,)).fetchone()
            return _value(PostRow, found)

        return await self._journal.writing(work, is_small=True)

    async def attempt(self, key: str) -> None:
        """A request for this post is about to be made."""
        await self._set_post(key, "state = 'attempting', attempts = attempts + 1")

    async def postpone(self, key: str, note: str) -> None:
        """The attempt certainly failed; the post still has to be sent."""
        await self._set_post(key, "state = 'intended', note = ?", note)

    async def confirm(self, key: str, message_id: str) -> None:
        """The platform has the post with its present text."""
        await self._set_post(key, "state = 'confirmed', body = '', message_id = ?", message_id)

    async def keep_editing(self, key: str, message_id: str, body: str) -> None:
        """The platform has the post with this text, and its final text follows by an edit."""
        change = "state = 'editing', message_id = ?, body = ?"
        await self._set_post(key, change, message_id, body)

    async def revise(self, key: str, body: str) -> None:
        """A confirmed post gets this text by an edit. Editing again does no harm."""
        await self._set_post(key, "state = 'editing', body = ?", body)

    async def doubt(self, key: str, note: str) -> None:
        """Nobody knows whether the post was sent, and the platform cannot tell."""
        await self._set_post(key, "state = 'uncertain', note = ?", note)

    async def abandon(self, key: str, note: str) -> None:
        await self._set_post(key, "state = 'abandoned', body = '', note = ?", note)

    async def post(self, key: str) -> PostRow | None:
        query = "SELECT * FROM posts WHERE key = ?"
        row = await self._journal.reading(lambda db: db.execute(query, (key,)).fetchone())
        return None if row is None else _value(PostRow, row)

    async def open_posts(self, platform: str = "") -> tuple[PostRow, ...]:
        """The posts that are not confirmed or abandoned, oldest first."""
        where, values = ("AND platform = ?", (platform,)) if platform else ("", ())
        query = (
            f"SELECT * FROM posts WHERE state NOT IN ('confirmed', 'abandoned') {where} ORDER BY id"
        )
        return await self._journal.reading(
            lambda db: tuple(_value(PostRow, row) for row in db.execute(query, values))
        )

    async def route(self, key: str) -> StoredRoute | None:
        query = "SELECT * FROM routes WHERE key = ?"
        row = await self._journal.reading(lambda db: db.execute(query, (key,)).fetchone())
        return None if row is None else _value(StoredRoute, row)

    async def routes(self) -> tuple[StoredRoute, ...]:
        """All routes, the most recently used first."""
        query = "SELECT * FROM routes ORDER BY used_at DESC"
        return await self._journal.reading(
            lambda db: tuple(_value(StoredRoute, row) for row in db.execute(query))
        )

    async def set_route(self, key: str, session_id: str, body: str) -> None:
        row = (key, session_id, body, self._clock.now())
        await self._write("INSERT OR REPLACE INTO routes VALUES (?, ?, ?, ?)", row)

    async def remove_route(self, key: str) -> None:
        await self._write("DELETE FROM routes WHERE key = ?", (key,))

    async def prune(self, *, routes_older_than: float = 0.0) -> None:
        """Delete finished rows that are too old to come again, and unused routes."""
        now = self._clock.now()
        old = now - KEEP_SECONDS
        statements: list[tuple[str, tuple[object, ...]]] = [
            ("DELETE FROM received WHERE state = 'finished' AND changed_at < ?", (old,)),
            (
                "DELETE FROM posts WHERE state IN ('confirmed', 'abandoned') AND changed_at < ?",
                (old,),
            ),
        ]
        if routes_older_than:
            statements.append(("DELETE FROM routes WHERE used_at < ?", (now - routes_older_than,)))

        def work(tx: Transaction) -> None:
            for statement, values in statements:
                tx.db.execute(statement, values)

        await self._journal.writing(work)

    async def _set_received(self, platform: str, key: str, change: str, *values: object) -> None:
        query = f"UPDATE received SET {change}, changed_at = ? WHERE platform = ? AND key = ?"
        await self._write(query, (*values, self._clock.now(), platform, key))

    async def _set_post(self, key: str, change: str, *values: object) -> None:
        query = f"UPDATE posts SET {change}, changed_at = ? WHERE key = ?"
        await self._write(query, (*values, self._clock.now(), key))

    async def _write(self, statement: str, values: Sequence[object]) -> None:
        def work(tx: Transaction) -> None:
            tx.db.execute(statement, tuple(values))

        await self._journal.writing(work, is_small=True)


def _value(kind: type[V], row: Sequence[Any]) -> V:
    """A row as a value, whose fields are the columns in order."""
    return kind(**dict(zip(kind.__struct_fields__, row, strict=True)))
