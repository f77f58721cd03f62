"""The conversations of a gateway: takes events of platforms, answers them, and sends messages of
other parts of Hermes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress

from hermes.app.app import App
from hermes.codec.json import decode, encode, plain
from hermes.codec.values import Value, replace
from hermes.core.errors import PlatformError
from hermes.core.ports import Meter, Provider
from hermes.core.session_deps import SessionDeps, TurnLimits
from hermes.hosting.admission import Admission
from hermes.hosting.run_executor import RunExecutor
from hermes.hosting.session_pool import SessionPool
from hermes.journal.deliveries import DeliveryLedger, ReceivedMessage
from hermes.surfaces.gateway.access import Authorization
from hermes.surfaces.gateway.chat import Chat, RunningChat
from hermes.surfaces.gateway.chat_commands import ChatCommands
from hermes.surfaces.gateway.context_notes import MIRRORED
from hermes.surfaces.gateway.options import GatewayOptions
from hermes.surfaces.gateway.outbox import Outbox
from hermes.surfaces.gateway.pending import ChatDeps, GatewayControl, Pending
from hermes.surfaces.gateway.platform import Address, Inbound, OutboundFile, Post
from hermes.surfaces.gateway.post_attempt import LivePlatform
from hermes.surfaces.gateway.questions import EXPIRED
from hermes.surfaces.gateway.receipts import Receipts
from hermes.surfaces.gateway.reset import has_resets, next_reset, reset_reason
from hermes.surfaces.gateway.routes import ChatRoute, Routes
from hermes.surfaces.gateway.session_keys import session_key

__all__ = ["ChatService", "LivePlatform", "RunningChat", "SendReport"]

log = logging.getLogger(__name__)

POSTPONED_TEXT = (
    "I crashed several times in a row, perhaps because of your last message. I continue with it "
    "after my next restart; new messages are answered now."
)
# How long a new conversation may wait for its first look at its policy.
RESET_SCAN_SECONDS = 600.0
DRAINING_TEXT = "I am restarting and will answer as soon as I am back."
# Conversations that wait for capacity wait as long as they must.
WAIT_SECONDS = 86_400.0
MAX_WAITING = 10_000


class SendReport(Value):
    """What became of a message: `confirmed` when every part arrived, `waiting` while a part will
    still be sent."""

    state: str
    message_ids: tuple[str, ...] = ()
    note: str = ""


class ChatService:
    """All conversations of one gateway process."""

    def __init__(
        self,
        app: App,
        ledger: DeliveryLedger,
        authorization: Authorization,
        options: GatewayOptions | None = None,
    ) -> None:
        options = options or GatewayOptions()
        self._app = app
        self._ledger = ledger
        self._authorization = authorization
        self._options = options
        self._outbox = Outbox(ledger, app.context.world)
        self._pool = SessionPool(app, idle_seconds=options.idle_seconds, with_tasks=True)
        self._admission = Admission(
            max_active=options.max_concurrent_sessions,
            max_queued=MAX_WAITING,
            wait_seconds=WAIT_SECONDS,
        )
        self._executor = RunExecutor(
            app, self._pool, self._admission, platform="gateway", adapt=self._adapt
        )
        self._routes = Routes(ledger, self._executor.new_session_id)
        self._deps = ChatDeps(
            app=app,
            ledger=ledger,
            outbox=self._outbox,
            routes=self._routes,
            executor=self._executor,
            admission=self._admission,
            authorization=authorization,
            options=options,
            receipts=Receipts(),
        )
        self._commands = ChatCommands()
        self._chats: dict[str, Chat] = {}
        self._is_draining = False
        self._next_reset = 0.0

    def attach(self, platform: LivePlatform) -> None:
        """Make a platform usable, or tell that it is reachable again."""
        prefixes = platform.manifest.abilities.command_prefixes
        self._commands.prefixes[platform.manifest.name] = prefixes
        self._outbox.attach(platform)

    async def start(self) -> None:
        """Continue with the messages and posts that the last process left."""
        messages = await self._ledger.open_messages()
        replied = [row.session_id for row in messages if row.state == "accepted"]
        await self._outbox.recover(replied)
        for row in messages:
            await self._restore(row)

    async def receive(self, event: Inbound) -> None:
        """Store an event and answer it in the background; durable when this returns."""
        admitted = await self._ask_hooks(event)
        if admitted is None:
            return
        event = admitted
        access = self._authorization.decide(event)
        if event.choice and access.kind != "allowed":
            await self._answer_press(event, "You may not answer this.")
            return
        if access.kind == "ignore":
            return
        if access.kind == "pair":
            if text := await self._authorization.pairing_text(event):
                await self._outbox.post_unrecorded(event.address, Post(text=text))
            return
        key = self._session_key(event)
        if not key:
            log.warning("an event with an invalid id was dropped", extra={"key": event.key})
            return
        self._outbox.contact(event.address)
        platform, body = event.address.platform, encode(event).decode()
        if not await self._ledger.receive(platform, event.key, key, body):
            return
        self._app.context.world.kill_point("gateway.received")
        if self._is_draining:
            await self._outbox.post_unrecorded(event.address, Post(text=DRAINING_TEXT))
            return
        now = self._app.context.world.clock.now()
        pending = Pending(event=event, access=access, received_at=now)
        await self._take(key, pending)

    async def _ask_hooks(self, event: Inbound) -> Inbound | None:
        """The event as hooks want it; None for one that they drop."""
        hooks = self._app.hooks
        if not hooks.any:
            return event
        facts = {"event": plain(event), "source": plain(event.address)}
        for answer in await hooks.registry.fire("pre_gateway_dispatch", **facts):
            if not isinstance(answer, dict):
                continue
            if answer.get("action") == "skip":
                log.info("a hook dropped a message", extra={"why": str(answer.get("reason", ""))})
                return None
            if answer.get("action") == "rewrite":
                event = replace(event, text=str(answer.get("text", "")))
        return event

    async def _take(self, key: str, pending: Pending) -> None:
        """Pass a stored event on: to the question that it answers, or to its conversation."""
        event = pending.event
        if event.reaction and (choice := await self._find_reaction(event)):
            pending = replace(pending, event=replace(event, choice=choice))
        if pending.event.choice:
            self._chat(key).spawn(self._press(pending))
        else:
            self._chat(key).add(pending)

    async def _find_reaction(self, event: Inbound) -> str:
        for chat in tuple(self._chats.values()):
            where = (event.address, event.message_id)
            if choice := await chat.questions.find_reaction(*where, event.reaction):
                return choice
        return ""

    async def send(
        self,
        to: Address,
        text: str,
        *,
        key: str,
        files: Sequence[OutboundFile] = (),
        session_id: str = "",
        mirror: bool = False,
    ) -> SendReport:
        """Send Markdown of any length and files. A call with a known key sends only what is
        missing. What cannot be sent now is sent later. With `mirror`, the session of the chat gets
        the text too."""
        live = self._outbox.platforms.get(to.platform)
        if live is None:
            return SendReport(state="abandoned", note=f"{to.platform} is not configured.")
        done = await self._outbox.send_text(key, live, to, text, files, session_id=session_id)
        if mirror and any(each.state in ("confirmed", "waiting") for each in done):
            await self._mirror(to, text, key)
        worst = next((each for each in done if each.state != "confirmed"), None)
        return SendReport(
            state=worst.state if worst else "confirmed",
            message_ids=tuple(each.message_id for each in done if each.message_id),
            note=worst.note if worst else "",
        )

    async def _mirror(self, to: Address, text: str, key: str) -> None:
        """Tell the session that the chat is in now; a chat without one needs no context."""
        routes = await self._routes.all()
        route = next((each for each in routes if each.info.address == to), None)
        pending = None if route is None else self._last_pending(route)
        if route is not None and pending is not None:
            event = replace(pending.event, key=f"{MIRRORED}{key}", text=text, is_addressed=False)
            await self._chat(route.key).add_internal(replace(pending, event=event))

    def _last_pending(self, route: ChatRoute) -> Pending | None:
        """A stand-in for the next message of a conversation; None when its last sender may no
        longer write."""
        info = route.info
        if info.sender is None or info.address.platform not in self._outbox.platforms:
            return None
        now = self._app.context.world.clock.now()
        event = Inbound(
            key="",
            address=info.address,
            chat_type=info.chat_type,
            sender=info.sender,
            at=now,
            chat_name=info.name,
        )
        access = self._authorization.decide(event)
        is_allowed = access.kind == "allowed"
        return Pending(event=event, access=access, received_at=now) if is_allowed else None

    async def reset_due(self) -> None:
        """Begin new sessions where the policy names the time; call it every minute."""
        now, options = self._app.context.world.clock.now(), self._options.reset
        if not has_resets(options) or now < self._next_reset:
            return
        upcoming = [now + RESET_SCAN_SECONDS]
        for route in await self._routes.all():
            policy = options.policy(route.info.address.platform, route.info.chat_type)
            used_at = route.info.updated_at
            if route.info.reset_reason:
                continue
            pending = self._last_pending(route)
            if not reset_reason(policy, used_at, now):
                upcoming.append(next_reset(policy, used_at, now))
            elif pending is not None:
                chat = self._chat(route.key)
                chat.run_when_idle(chat.resets.renew_if_due(route, pending, used_at))
        self._next_reset = min(upcoming)

    async def postpone(self) -> None:
        """Leave old work for the next start, and tell the chats that wait for it."""
        told: set[str] = set()
        for row in await self._ledger.open_messages():
            event = decode(Inbound, row.body)
            live = self._outbox.platforms.get(row.platform)
            if row.session_key in told or live is None or event.choice:
                continue
            told.add(row.session_key)
            key = f"postponed:{row.platform}:{row.key}:{row.changed_at}"
            await self._outbox.send_text(key, live, event.address, POSTPONED_TEXT)

    async def drain(self, seconds: float) -> None:
        """Stop: running turns may end within `seconds`; others continue in the next process."""
        self._is_draining = True
        waits = [asyncio.ensure_future(chat.wait()) for chat in self._busy_chats()]
        if waits and seconds > 0:
            await asyncio.wait(waits, timeout=seconds)
        for chat in self._busy_chats():
            await chat.suspend()
        if waits:
            await asyncio.wait(waits, timeout=10)
        await self.close()

    async def close(self) -> None:
        for chat in tuple(self._chats.values()):
            await chat.close()
        await self._outbox.close()
        await self._executor.close()
        await self._pool.close()

    async def wait_until_idle(self) -> None:
        """Wait until every stored message is answered."""
        while busy := self._busy_chats():
            await asyncio.gather(*(chat.wait() for chat in busy))

    @property
    def control(self) -> GatewayControl | None:
        """What chats may ask of the process."""
        return self._commands.control

    @control.setter
    def control(self, control: GatewayControl) -> None:
        self._commands.control = control

    def set_account(self, platform: str, account: str) -> None:
        """The name of our bot, for commands that are addressed to one of several."""
        self._commands.accounts[platform] = account.removeprefix("@")

    def menu(self, most: int) -> tuple[tuple[str, str], ...]:
        """Commands for the menu of a platform."""
        return self._commands.menu(most)

    async def sweep(self) -> None:
        """Forget unused conversations and old rows; call it from time to time."""
        await self._routes.prune(self._options.route_days)
        for key, chat in tuple(self._chats.items()):
            if chat.is_idle and not chat.background.running:
                del self._chats[key]

    def running(self) -> tuple[RunningChat, ...]:
        found = (chat.running for chat in self._chats.values())
        return tuple(each for each in found if each is not None)

    def _busy_chats(self) -> tuple[Chat, ...]:
        return tuple(chat for chat in self._chats.values() if not chat.is_idle)

    async def _restore(self, row: ReceivedMessage) -> None:
        event = decode(Inbound, row.body)
        access = self._authorization.decide(event)
        if access.kind != "allowed":
            await self._ledger.finish(row.platform, row.key, "the sender is no longer allowed")
            return
        session_id = row.session_id if row.state == "accepted" else ""
        pending = Pending(
            event=event,
            access=access,
            received_at=row.at,
            session_id=session_id,
            note=row.note,
            is_recovered=True,
        )
        if event.choice:
            # Its question is asked again, with new buttons.
            await self._ledger.finish(row.platform, row.key, "the question expired")
            return
        self._chat(row.session_key).add(pending)

    def _chat(self, key: str) -> Chat:
        chat = self._chats.get(key)
        if chat is None:
            chat = self._chats[key] = Chat(key, self._deps, self._commands)
        return chat

    def _session_key(self, event: Inbound) -> str:
        return session_key(
            event,
            profile=self._options.profile,
            per_user_in_groups=self._options.per_user_in_groups,
            per_user_in_threads=self._options.per_user_in_threads,
        )

    async def _press(self, pending: Pending) -> None:
        """Answer a question with a pressed button, in whatever chat it was asked."""
        event, access = pending.event, pending.access
        ask_id, _, choice = event.choice.rpartition(":")
        chat = next((each for each in self._chats.values() if each.questions.find(ask_id)), None)
        opened = chat.questions.find(ask_id) if chat else None
        if chat is None or opened is None:
            text = EXPIRED
        elif not self._authorization.may_run(access, "approve", event.chat_type):
            text = "You may not answer this."
        elif self._options.requester_only and event.sender.id != opened.requester:
            text = "Only the person who asked for it may answer."
        else:
            text = await chat.questions.press(opened, choice, event.sender.id)
        await self._answer_press(event, text)
        await self._ledger.finish(event.address.platform, event.key, text)

    async def _answer_press(self, event: Inbound, text: str) -> None:
        live = self._outbox.platforms.get(event.address.platform)
        if live is not None:
            with suppress(PlatformError):
                await live.adapter.answer_choice(event, text)

    def _adapt(self, _session_id: str, deps: SessionDeps) -> None:
        """People in a chat need longer to answer than at a terminal."""
        deps.approval_seconds = self._options.approval_seconds
        connect, seconds = deps.connect, self._options.question_seconds

        def connect_patiently(
            model: str, provider: str, meter: Meter
        ) -> tuple[Provider, TurnLimits]:
            connected, limits = connect(model, provider, meter)
            settings = replace(limits.settings, clarify_timeout=seconds)
            return connected, replace(limits, settings=settings)

        deps.connect = connect_patiently
