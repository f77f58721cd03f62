"""One conversation: its inbox, and the task that answers one message after the other."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import NamedTuple

from hermes.app.app import App
from hermes.codec.json import decode
from hermes.codec.values import Value
from hermes.commands.formatting import one_line
from hermes.core.effects import Principal
from hermes.core.errors import AdmissionRefused, HermesError
from hermes.core.events import ApprovalAsked, QuestionAsked
from hermes.hosting.request import TurnRequest
from hermes.hosting.run import Run
from hermes.hosting.run_executor import RunExecutor
from hermes.journal.deliveries import DeliveryLedger
from hermes.surfaces.gateway.access import Access, Authorization
from hermes.surfaces.gateway.options import GatewayOptions
from hermes.surfaces.gateway.outbox import Outbox
from hermes.surfaces.gateway.platform import Inbound, Post
from hermes.surfaces.gateway.reply_posts import ReplyResult, ReplyTarget, TurnPoster
from hermes.surfaces.gateway.routes import Routes
from hermes.surfaces.gateway.session_keys import is_shared, person_id

log = logging.getLogger(__name__)

SHUTDOWN = "shutdown"
CONTINUE_TEXT = (
    "The gateway was restarted while you worked on the last message. Continue where you stopped; "
    "check what is done already."
)
DOUBT_CHARS = 60


class Pending(Value):
    """A message of the inbox, as the ledger has it."""

    event: Inbound
    access: Access
    # The message is in the journal of this session.
    session_id: str = ""
    note: str = ""
    # Left by an earlier process: the message may be in the journal.
    is_recovered: bool = False

    @property
    def run_id(self) -> str:
        return f"{self.event.address.platform}:{self.event.key}"


class ChatDeps(NamedTuple):
    """What all conversations share."""

    app: App
    ledger: DeliveryLedger
    outbox: Outbox
    routes: Routes
    executor: RunExecutor
    authorization: Authorization
    options: GatewayOptions


class RunningChat(Value):
    """A conversation with a running turn, for status displays."""

    session_key: str
    session_id: str
    platform: str
    chat: str
    since: float


class Chat:
    """A conversation. Its task exists only while there is something to do."""

    def __init__(self, key: str, deps: ChatDeps) -> None:
        self.key = key
        self._deps = deps
        self._inbox: deque[Pending] = deque()
        self._task: asyncio.Task[None] | None = None
        self._current: tuple[Pending, Run] | None = None
        self._since = 0.0
        self._is_closing = False

    @property
    def is_idle(self) -> bool:
        return self._task is None or self._task.done()

    @property
    def running(self) -> RunningChat | None:
        if self._current is None:
            return None
        pending, run = self._current
        address = pending.event.address
        return RunningChat(
            session_key=self.key,
            session_id=run.session_id,
            platform=address.platform,
            chat=pending.event.chat_name or address.chat_id,
            since=self._since,
        )

    def add(self, pending: Pending) -> None:
        """Take a message that the ledger has stored."""
        self._inbox.append(pending)
        self.start()

    def start(self) -> None:
        if self.is_idle and not self._is_closing:
            self._task = asyncio.ensure_future(self._work())

    async def wait(self) -> None:
        """Wait until everything is answered."""
        if self._task is not None:
            await asyncio.wait((self._task,))

    async def suspend(self) -> None:
        """Stop for a shutdown: the running turn is interrupted and continues after a restart."""
        self._is_closing = True
        if self._current is None:
            return
        pending, run = self._current
        count = int(pending.note.partition(":")[2] or 0) + 1
        platform = pending.event.address.platform
        note = f"{SHUTDOWN}:{count}"
        await self._deps.ledger.accept(platform, pending.event.key, run.session_id, note)
        await self._deps.executor.stop(run)

    async def close(self) -> None:
        self._is_closing = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _work(self) -> None:
        while self._inbox and not self._is_closing:
            pending = self._inbox.popleft()
            try:
                await self._handle(pending)
            except HermesError as error:
                log.error("a message was not answered", extra={"why": str(error)})
            except Exception:
                log.exception("a message was not answered")

    async def _handle(self, pending: Pending) -> None:
        await self._tell_doubts(pending)
        await self._answer(pending)

    async def _answer(self, pending: Pending) -> None:
        """Run the turn of a message and post what it says."""
        deps, event = self._deps, pending.event
        world, platform = deps.app.context.world, event.address.platform
        route = await deps.routes.open(self.key, event, world.clock.now())
        session_id = pending.session_id or route.session_id
        try:
            run = await self._start_run(pending, session_id)
        except AdmissionRefused as refused:
            if refused.is_draining:
                return
            raise
        if not pending.session_id:
            await deps.ledger.accept(platform, event.key, session_id)
            world.kill_point("gateway.accepted")
        self._current, self._since = (pending, run), world.clock.now()
        try:
            result = await TurnPoster(run, self._target(pending), self._ask).follow()
        finally:
            self._current = None
        if self._is_closing and (result.ended is None or result.ended.reason == "interrupted"):
            return
        await self._close_message(pending, run, result)

    async def _start_run(self, pending: Pending, session_id: str) -> Run:
        event, deps = pending.event, self._deps
        run_id, text = pending.run_id, event.text
        origin = "user"
        if pending.note.startswith(SHUTDOWN):
            number = pending.note.partition(":")[2]
            run_id, text, origin = f"{run_id}:resume{number}", CONTINUE_TEXT, "gateway"
        principal, person = self._principal(pending)
        request = TurnRequest(
            session_id=session_id,
            text=text,
            source=f"gateway:{event.address.platform}",
            origin=origin,
            create="if_missing",
            attended=True,
            exclusive=False,
            is_retry=pending.is_recovered,
            acts_for=principal,
            person=person,
            platform=event.address.platform,
        )
        return await deps.executor.start(run_id, request)

    def _principal(self, pending: Pending) -> tuple[Principal, str]:
        """On whose behalf the session acts. A session that several people share belongs to none of
        them, so that it uses nobody's memory."""
        event, principal = pending.event, pending.access.principal
        if is_shared(event, self.key):
            return "member", f"{event.address.platform}:chat:{event.address.chat_id}"
        if principal == "owner":
            return "owner", ""
        return principal, f"{event.address.platform}:{person_id(event)}"

    async def _close_message(self, pending: Pending, run: Run, result: ReplyResult) -> None:
        deps, event = self._deps, pending.event
        note = result.note
        if result.ended is None:
            note = str(run.failure)
            text = f"I could not answer: {note}"
            await deps.outbox.send(
                f"{pending.run_id}:error", event.address, Post(text=text), session_id=run.session_id
            )
        deps.app.context.world.kill_point("gateway.before_finish")
        await deps.ledger.finish(event.address.platform, event.key, note)
        deps.outbox.resend(run.session_id)

    async def _ask(self, asked: ApprovalAsked | QuestionAsked) -> None:
        raise NotImplementedError

    def _target(self, pending: Pending) -> ReplyTarget:
        event, outbox = pending.event, self._deps.outbox
        live = outbox.platforms[event.address.platform]
        world = self._deps.app.context.world
        return ReplyTarget(outbox, live, event.address, event.message_id, world)

    async def _tell_doubts(self, pending: Pending) -> None:
        """Say which posts may not have arrived."""
        to, outbox = pending.event.address, self._deps.outbox
        for row in outbox.doubts(to):
            text = (
                "My last reply may not have arrived: "
                f"“{doubt_preview(row.body)}”. Ask me to repeat it if it is missing."
            )
            await outbox.send(f"{row.key}:doubt", to, Post(text=text), session_id=row.session_id)
            await outbox.settle_doubt(row)


def doubt_preview(body: str) -> str:
    post = decode(Post, body)
    return one_line(post.text or (post.file.name if post.file else ""), DOUBT_CHARS)
