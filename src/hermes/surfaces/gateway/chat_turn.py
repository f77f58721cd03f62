"""One turn of a conversation: starts the run of a message, posts its answer, and stops it when
nothing happens any more."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hermes.codec.values import replace
from hermes.core.effects import Decision, Deny, Principal
from hermes.core.errors import PlatformError
from hermes.core.events import ApprovalAnswered, QuestionAnswered
from hermes.core.messages import Image
from hermes.hosting.request import BusyMode, TurnRequest
from hermes.hosting.run import Run
from hermes.surfaces.gateway.context_prompt import context_prompt, message_prefix, quote_text
from hermes.surfaces.gateway.media import MediaRules, describe_files, move_file
from hermes.surfaces.gateway.pending import ChatDeps, Pending
from hermes.surfaces.gateway.platform import Inbound, InboundFile, Post
from hermes.surfaces.gateway.post_attempt import LivePlatform
from hermes.surfaces.gateway.progress import TurnProgress
from hermes.surfaces.gateway.questions import ChatQuestions
from hermes.surfaces.gateway.reply_posts import (
    Answered,
    Question,
    ReplyResult,
    ReplyTarget,
    TurnPoster,
)
from hermes.surfaces.gateway.routes import ChatRoute
from hermes.surfaces.gateway.session_keys import is_shared, person_id

SHUTDOWN = "shutdown"
CONTINUE_TEXT = (
    "The gateway was restarted while you worked on the last message. Continue where you stopped; "
    "check what is done already."
)


class ChatTurn:
    """A running turn, and the messages that joined it."""

    def __init__(
        self, deps: ChatDeps, pending: Pending, route: ChatRoute, run: Run, questions: ChatQuestions
    ) -> None:
        self.pending = pending
        self.run = run
        self.since = deps.app.context.world.clock.now()
        self.joined: list[tuple[Pending, Run]] = []
        self._deps = deps
        self._route = route
        self._questions = questions
        self.progress = self._new_progress()

    async def follow(self) -> ReplyResult:
        """Post what the turn says until it has ended."""
        watchdog = asyncio.ensure_future(self._stop_when_inactive())
        try:
            return await TurnPoster(self.run, self._target(), self.progress).follow()
        finally:
            watchdog.cancel()
            await asyncio.gather(watchdog, return_exceptions=True)

    @property
    def shutdown_note(self) -> str:
        """What the ledger stores so that the next process continues."""
        count = int(self.pending.note.partition(":")[2] or 0) + 1
        return f"{SHUTDOWN}:{count}"

    @property
    def _live(self) -> LivePlatform:
        return self._deps.live(self.pending.event.address.platform)

    def _new_progress(self) -> TurnProgress:
        deps, event = self._deps, self.pending.event
        level = self._route.info.tool_progress or self._live.options.display.tool_progress
        return TurnProgress(
            deps.outbox,
            self._live,
            event.address,
            deps.app.context.world,
            level=level,
            edit_seconds=deps.options.streaming.edit_seconds,
            log_file=deps.app.context.home.root / "logs" / "tool_calls.log",
        )

    def _target(self) -> ReplyTarget:
        deps, event = self._deps, self.pending.event
        return ReplyTarget(
            outbox=deps.outbox,
            live=self._live,
            to=event.address,
            message_id=event.message_id,
            world=deps.app.context.world,
            streaming=deps.options.streaming,
            media=self._media_rules,
            check_claims=deps.receipts.check if deps.options.receipts else lambda _text, _turn: "",
            on_question=self._on_question,
            is_human=not self.pending.is_internal,
            is_recovered=self.pending.is_recovered,
            shows_reasoning=self._shows_reasoning,
        )

    def _shows_reasoning(self) -> bool:
        """As the platform is set, unless the person chose otherwise in this session."""
        controls = self._deps.app.controls.get(self.run.session_id)
        general = self._deps.app.context.settings.display.show_reasoning
        if controls is not None and controls.display.show_reasoning != general:
            return controls.display.show_reasoning
        return self._live.options.display.show_reasoning

    async def _on_question(self, event: Question | Answered) -> None:
        if isinstance(event, ApprovalAnswered | QuestionAnswered):
            await self._questions.close(event, self._live)
        elif event.id in self.run.pending:
            await self._questions.ask(event, self.run, self._live, self.pending.event)

    def _media_rules(self) -> MediaRules:
        app, home = self._deps.app, self._deps.app.context.home
        controls = app.controls.get(self.run.session_id)

        def may_attach(path: str) -> Decision:
            if controls is None:
                return Deny(reason="The session is closed.", category="outside")
            return controls.policy.files.attach(path)

        roots = (*self._deps.options.media_roots, str(home.root / "cron" / "output"))
        max_bytes = self._live.manifest.abilities.max_upload_bytes
        folder = MessageBuilder(self._route.key, self._deps).own_folder(self.pending)
        return MediaRules(may_attach, roots, max_bytes, only=folder)

    async def _stop_when_inactive(self) -> None:
        limit, clock = self._deps.options.inactivity_seconds, self._deps.app.context.world.clock
        while limit:
            idle = clock.monotonic() - self.progress.last_activity
            if idle < limit or self.progress.is_waiting:
                await clock.sleep(max(1.0, limit - idle))
                continue
            text = (
                f"I stopped after {limit / 60:.0f} minutes without any progress, while "
                f"{self.progress.doing}. Send a message to go on."
            )
            await self._deps.outbox.post_unrecorded(self.pending.event.address, Post(text=text))
            await self._deps.executor.stop(self.run)
            return


class MessageBuilder:
    """Turns messages of a conversation into requests for turns."""

    def __init__(self, key: str, deps: ChatDeps) -> None:
        self._key = key
        self._deps = deps

    def request(
        self,
        pending: Pending,
        route: ChatRoute,
        *,
        text: str,
        images: tuple[Image, ...] = (),
        mode: BusyMode = "queue",
        origin: str = "",
    ) -> TurnRequest:
        event, deps = pending.event, self._deps
        live = deps.live(event.address.platform)
        override = live.options.override(event.address.chat_id, event.parent_chat_id)
        principal, person = self.principal(pending)
        return TurnRequest(
            session_id=pending.session_id or route.session_id,
            text=text,
            images=images,
            source=f"gateway:{event.address.platform}",
            origin=origin or _origin(pending, live),
            instructions=self._instructions(event, live),
            model=route.info.model or override.model,
            provider=route.info.provider or override.provider,
            create="if_missing",
            attended=True,
            exclusive=False,
            is_retry=pending.is_recovered or pending.is_internal,
            acts_for=principal,
            person=person,
            platform=event.address.platform,
            folder=str(self.own_folder(pending) or ""),
            toolsets=live.options.toolsets,
            busy_mode=mode,
        )

    def resume_request(self, pending: Pending, route: ChatRoute) -> tuple[str, TurnRequest]:
        """The id and request of the turn that continues after a shutdown."""
        number = pending.note.partition(":")[2]
        request = self.request(pending, route, text=CONTINUE_TEXT, origin="hermes")
        return f"{pending.run_id}:resume{number}", request

    def principal(self, pending: Pending) -> tuple[Principal, str]:
        """On whose behalf the session acts. A session that several people share belongs to none of
        them, so that it uses nobody's memory."""
        event, principal = pending.event, pending.access.principal
        if is_shared(event, self._key):
            return "member", f"{event.address.platform}:chat:{event.address.chat_id}"
        if principal == "owner":
            return "owner", ""
        return principal, f"{event.address.platform}:{person_id(event)}"

    def own_folder(self, pending: Pending) -> Path | None:
        """The folder of people other than the owner: they see no file of anybody else."""
        principal, person = self.principal(pending)
        home = self._deps.app.context.home
        return None if principal == "owner" else home.person_folder(person)

    async def content(self, pending: Pending) -> tuple[str, tuple[Image, ...]]:
        """The text of a message for the model, and its images."""
        event, folder = pending.event, self.own_folder(pending)
        files = [await self._download(event, file) for file in event.files]
        if folder is not None:
            files = [move_file(file, folder) for file in files]
        lines, images = await describe_files(self._deps.app.context.home, files)
        prefix = message_prefix(event, is_shared=is_shared(event, self._key))
        text = f"{quote_text(event)}{prefix}{event.text}"
        if event.skills:
            names = ", ".join(event.skills)
            text = f"[Skills for this chat: {names}. Load them with skill_view first.]\n{text}"
        return "\n".join((text, *lines)).strip() or "[An empty message]", images

    async def _download(self, event: Inbound, file: InboundFile) -> InboundFile:
        if file.path or file.problem:
            return file
        try:
            return await self._deps.live(event.address.platform).adapter.download(file)
        except PlatformError as error:
            return replace(file, problem=str(error))

    def _instructions(self, event: Inbound, live: LivePlatform) -> str:
        hidden = self._deps.options.redact_pii
        homes = (
            name if hidden else f"{name}:{each.options.home_channel.chat_id}"
            for name, each in self._deps.outbox.platforms.items()
            if each.options.home_channel is not None
        )
        shared = is_shared(event, self._key)
        return context_prompt(event, live, homes, is_shared=shared, redact_pii=hidden)


def _origin(pending: Pending, live: LivePlatform) -> str:
    """Who wrote the text. A signature proves which service sent an event, and not who wrote what is
    in it: a webhook passes on the words of strangers."""
    if pending.is_internal:
        return "gateway"
    name = pending.event.address.platform
    return f"message:{name}" if live.manifest.abilities.is_trusted_transport else "user"
