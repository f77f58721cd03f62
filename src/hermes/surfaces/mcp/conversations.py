"""Lets another agent read, search and follow the conversations of a home, and take part in them."""

from __future__ import annotations

import time
from typing import Annotated, Literal

from pydantic import Field

from hermes.app.app import App
from hermes.codec.json import plain
from hermes.codec.values import JsonObject
from hermes.core.commands import Answer
from hermes.core.effects import subject
from hermes.core.errors import NotFound, UsageError
from hermes.core.events import (
    ApprovalAnswered,
    ApprovalAsked,
    MessageReceived,
    QuestionAnswered,
    QuestionAsked,
    ReplyAdded,
    TurnEnded,
)
from hermes.core.messages import Image
from hermes.hosting.admission import Admission
from hermes.hosting.request import TurnRequest
from hermes.hosting.run_executor import RunExecutor
from hermes.hosting.session_pool import SessionPool
from hermes.journal.listing import SessionFilter, SessionInfo
from hermes.journal.reading import FeedItem, events_after, events_since, newest_cursor

SOURCE = "mcp"
NEW = "new"
SHOWN_CHARS = 2_000
POLL_SECONDS = 0.2
APPROVAL_SECONDS = 86_400.0
KINDS = (
    "message_received",
    "reply_added",
    "approval_asked",
    "approval_answered",
    "question_asked",
    "question_answered",
    "turn_ended",
)
DECISIONS = {"allow-once": "once", "allow-always": "always", "deny": "deny"}
READING_TOOLS = (
    "conversations_list",
    "conversation_get",
    "messages_read",
    "messages_search",
    "attachments_fetch",
    "channels_list",
    "events_poll",
    "events_wait",
    "permissions_list_open",
)
ACTING_TOOLS = ("messages_send", "permissions_respond")

Platform = Annotated[str, Field(description="Only conversations of this surface, e.g. cli")]
Key = Annotated[str, Field(description="Id, beginning of an id, or title of a conversation")]
Cursor = Annotated[int, Field(ge=0, description="next_cursor of an earlier answer")]


class Conversations:
    """The tools of `hermes mcp serve`: signatures and docstrings are what other agents see. A
    session that it opens is closed when its turn has ended, so that the user can continue it
    elsewhere."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._pool = SessionPool(app, with_tasks=True)
        self._run_executor = RunExecutor(app, self._pool, Admission(), platform=SOURCE)

    async def conversations_list(
        self,
        platform: Platform = "",
        limit: Annotated[int, Field(ge=1, le=200)] = 50,
        search: Annotated[
            str, Field(description="Only conversations that contain these words")
        ] = "",
    ) -> JsonObject:
        """List conversations, those last used first."""
        if search:
            hits = await self._app.archive.search(search, limit=limit)
            ids = dict.fromkeys(hit.session_id for hit in hits)
            rows = [await self._app.archive.info(each) for each in ids]
        else:
            filter_ = SessionFilter(source=platform or None)
            rows = list(await self._app.archive.recent(filter_, limit=limit))
        rows = [row for row in rows if not platform or row.source == platform][:limit]
        return {"count": len(rows), "conversations": [_conversation(row) for row in rows]}

    async def beginning_with(self, text: str) -> list[str]:
        """Ids that begin with the text, newest first."""
        rows = await self._app.archive.recent(limit=200)
        return [row.id for row in rows if row.id.startswith(text)][:100]

    async def conversation_get(self, session_key: Key) -> JsonObject:
        """One conversation, with token counts."""
        info = await self._app.archive.info(await self._app.archive.find(session_key))
        tokens = plain(info.usage)
        return {**_conversation(info), "message_count": info.message_count, "tokens": tokens}

    async def messages_read(
        self, session_key: Key, limit: Annotated[int, Field(ge=1, le=200)] = 50
    ) -> JsonObject:
        """The newest messages of a conversation, oldest first."""
        session_id = await self._app.archive.find(session_key)
        messages = await self._app.archive.conversation(session_id)
        visible = [each for each in messages if each.role in ("user", "assistant") and each.text]
        return {
            "messages": [
                {
                    "id": each.n,
                    "role": each.role,
                    "content": each.text[:SHOWN_CHARS],
                    "timestamp": _timestamp(each.at),
                }
                for each in visible[-limit:]
            ]
        }

    async def messages_search(
        self, query: str, limit: Annotated[int, Field(ge=1, le=100)] = 10
    ) -> JsonObject:
        """Find messages in all conversations."""
        hits = await self._app.archive.search(query, limit=limit)
        return {
            "hits": [
                {
                    "session_key": hit.session_id,
                    "message_id": hit.n,
                    "role": hit.role,
                    "snippet": hit.snippet,
                    "timestamp": _timestamp(hit.at),
                }
                for hit in hits
            ]
        }

    async def attachments_fetch(self, session_key: Key, message_id: int) -> JsonObject:
        """The files that came with a message."""
        session_id = await self._app.archive.find(session_key)
        for record in await self._app.archive.records(session_id):
            if record.n == message_id and isinstance(record.event, MessageReceived):
                parts = record.event.message.parts
                images = [part for part in parts if isinstance(part, Image)]
                return {"attachments": [{"type": i.media_type, "path": i.file} for i in images]}
        raise NotFound(f"Conversation {session_id} has no user message {message_id}.")

    async def events_poll(
        self,
        after_cursor: Cursor = 0,
        session_key: Key = "",
        limit: Annotated[int, Field(ge=1, le=1000)] = 20,
    ) -> JsonObject:
        """What happened after a cursor: messages, approvals, questions, ends of turns."""
        session_id = await self._app.archive.find(session_key) if session_key else ""
        newest = await self._app.journal.reading(newest_cursor)
        events = await self._app.journal.reading(
            lambda db: events_after(db, after_cursor, KINDS, session_id=session_id, limit=limit)
        )
        cursor = events[-1].cursor if events else max(after_cursor, newest)
        return {"events": [_event(each) for each in events], "next_cursor": cursor}

    async def events_wait(
        self,
        after_cursor: Cursor = 0,
        session_key: Key = "",
        timeout_ms: Annotated[int, Field(ge=0, le=300_000)] = 30_000,
    ) -> JsonObject:
        """Wait for the next event after a cursor."""
        clock = self._app.context.world.clock
        deadline = clock.monotonic() + timeout_ms / 1000
        seen: int | None = None
        while True:
            changed = self._app.journal.data_version()
            if changed != seen:
                seen = changed
                polled = await self.events_poll(after_cursor, session_key, 1)
                if polled["events"]:
                    return {"event": polled["events"][0], "next_cursor": polled["next_cursor"]}
            if clock.monotonic() >= deadline:
                return {"event": None, "reason": "timeout"}
            await clock.sleep(POLL_SECONDS)

    async def messages_send(
        self,
        target: Annotated[str, Field(description='A conversation, or "new"')],
        message: str,
    ) -> JsonObject:
        """Say something in a conversation; the answer comes as an event."""
        if not message.strip():
            raise UsageError("The message is empty.")
        resume = "" if target == NEW else await self._app.archive.find(target)
        request = TurnRequest(
            session_id=resume or self._run_executor.new_session_id(),
            text=message,
            source=SOURCE,
            origin="message:mcp",
            create="never" if resume else "always",
            attended=True,
            exclusive=False,
        )
        # The turn runs here, or in the process that has the session open.
        run_id = self._run_executor.new_run_id(request.session_id)
        run = await self._run_executor.start(run_id, request)
        delivered = "left for its owner" if run.is_remote else "answered here"
        return {"success": True, "session_key": run.session_id, "delivered": delivered}

    async def channels_list(self, platform: str = "") -> JsonObject:
        """The conversations to which messages_send can send."""
        filter_ = SessionFilter(source=platform or None, ended=False)
        rows = await self._app.archive.recent(filter_, limit=200)
        channels = [
            {"target": row.id, "name": row.title or row.preview[:80], "type": row.source}
            for row in rows
        ]
        new = {"target": NEW, "name": "a new conversation", "type": SOURCE}
        return {"channels": [new, *channels]}

    async def permissions_list_open(self) -> JsonObject:
        """Approvals that conversations wait for now."""
        return {"approvals": [_approval(each) for each in await self._open_approvals()]}

    async def permissions_respond(
        self,
        id: Annotated[str, Field(description="Id of an open approval")],
        decision: Literal["allow-once", "allow-always", "deny"],
    ) -> JsonObject:
        """Answer an approval. Do this only if the person told you the answer."""
        for asked in await self._open_approvals():
            record = asked.record
            if isinstance(record.event, ApprovalAsked) and record.event.id == id:
                choice = DECISIONS[decision]
                if choice not in (*record.event.scopes, "deny"):
                    raise UsageError("This can be allowed only once; choose allow-once or deny.")
                answer = Answer(id=id, text=choice, by=SOURCE)
                await self._app.journal.post(record.session_id, answer, key=f"answer:{id}")
                # The process that has the session open records the answer.
                return {"resolved": await self._wait_for_answer(asked, id)}
        raise NotFound(
            f"There is no open approval {id}; permissions_list_open lists the open ones."
        )

    async def close(self) -> None:
        """Interrupt the turns that run here."""
        await self._run_executor.close()
        await self._pool.close()

    async def _open_approvals(self) -> list[FeedItem]:
        now = self._app.context.world.clock.now()
        records = await self._app.journal.reading(
            lambda db: events_since(
                db, now - APPROVAL_SECONDS, ("approval_asked", "approval_answered", "turn_ended")
            )
        )
        asked: dict[str, FeedItem] = {}
        for each in records:
            record = each.record
            match record.event:
                case ApprovalAsked(id=id, expires_seconds=seconds) if record.at + seconds > now:
                    asked[id] = each
                case ApprovalAnswered(id=id):
                    asked.pop(id, None)
                case TurnEnded():
                    ended = record.session_id
                    asked = {k: v for k, v in asked.items() if v.record.session_id != ended}
                case _:
                    pass
        return list(asked.values())

    async def _wait_for_answer(self, asked: FeedItem, approval_id: str) -> bool:
        """Whether the answer is recorded within a few seconds."""
        clock, session_id = self._app.context.world.clock, asked.record.session_id
        deadline = clock.monotonic() + 5
        while clock.monotonic() < deadline:
            records = await self._app.journal.reading(
                lambda db: events_after(
                    db, asked.cursor, ("approval_answered",), session_id=session_id
                )
            )
            events = (each.record.event for each in records)
            if any(isinstance(e, ApprovalAnswered) and e.id == approval_id for e in events):
                return True
            await clock.sleep(POLL_SECONDS / 2)
        return False


def _timestamp(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def _conversation(info: SessionInfo) -> JsonObject:
    return {
        "session_key": info.id,
        "session_id": info.id,
        "platform": info.source,
        "chat_type": "dm",
        "display_name": info.title or info.preview[:80],
        "chat_name": info.title,
        "user_name": info.principal,
        "updated_at": _timestamp(info.last_at),
    }


def _approval(each: FeedItem) -> JsonObject:
    asked = each.record.event
    assert isinstance(asked, ApprovalAsked)
    return {
        "id": asked.id,
        "session_key": each.record.session_id,
        "command": subject(asked.effect),
        "description": asked.reason,
        "scopes": list(asked.scopes),
        "created_at": _timestamp(each.record.at),
    }


def _event(each: FeedItem) -> JsonObject:
    record = each.record
    common: JsonObject = {
        "cursor": each.cursor,
        "session_key": record.session_id,
        "timestamp": _timestamp(record.at),
    }
    more: JsonObject
    match record.event:
        case MessageReceived(message=message):
            more = {"type": "message", "role": "user", "content": message.text[:SHOWN_CHARS]}
        case ReplyAdded(message=reply):
            more = {"type": "message", "role": "assistant", "content": reply.text[:SHOWN_CHARS]}
        case ApprovalAsked():
            more = {"type": "approval_requested", **_approval(each)}
        case ApprovalAnswered(id=id, choice=choice, by=by):
            more = {"type": "approval_resolved", "id": id, "decision": choice, "by": by}
        case QuestionAsked(id=id, question=question, choices=choices):
            more = {
                "type": "question_asked",
                "id": id,
                "question": question,
                "choices": list(choices),
            }
        case QuestionAnswered(id=id, text=text):
            more = {"type": "question_answered", "id": id, "text": text}
        case TurnEnded(reason=reason, error=error):
            more = {"type": "turn_ended", "reason": reason, "error": error}
        case _:
            more = {"type": "other"}
    return {**common, "message_id": record.n, **more}
