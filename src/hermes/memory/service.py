"""Memory joined to an app: whose it is, what a session sees of it, and where its changes come
from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from hermes.codec.values import Value
from hermes.core.effects import Remember
from hermes.core.errors import JournalError, NotFound
from hermes.core.events import (
    ApprovalAnswered,
    ApprovalAsked,
    MessageReceived,
    Record,
    SessionOpened,
    Steered,
    TurnStarted,
)
from hermes.core.gate import DENY
from hermes.core.recorder import Recorder
from hermes.core.session_request import SessionRequest
from hermes.memory.entries import (
    OWNER,
    TARGETS,
    ChangeSource,
    MemoryChange,
    MemoryEntry,
    MemoryLimits,
    MemorySnapshot,
    Operation,
    Target,
    usage_text,
)
from hermes.memory.memories import Memories
from hermes.policy.threat_scan import scan_for_threats, untrusted_in
from hermes.version import __version__

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.core.session import Session
    from hermes.journal.journal import SqliteJournal
    from hermes.memory.provider import MemoryProvider
    from hermes.memory.tools import CallFacts, MemoryToolService
    from hermes.memory.user_model import UserModels
    from hermes.models.models import Models

APPROVAL = "memory.write_approval is on"
OUTDATED = "Something was forgotten since this session was opened; begin a new one."
# Sessions that work for another one are given what they need in words.
WITHOUT_MEMORY = ("subagent", "batch")
# Before names of others, so that none of them is ever taken for the owner.
PEOPLE = "person:"
# Nobody has said yes in these names.
NOBODY = ("time", "stop", "restart")


def scope_of(session: SessionRequest | SessionOpened) -> str:
    """Whose memory a session has; "" for none. The role of a member or a guest alone is not enough
    to tell what one of them said from what another did, so without a name they have none. With
    the rights of the owner and the name of somebody else, it is the memory of the latter."""
    if session.person:
        return f"{PEOPLE}{session.person}"
    return OWNER if session.principal in ("owner", "system") else ""


class MemoryUsage(Value):
    is_on: bool
    entries: int
    usage: str


class MemoryStatus(Value):
    """`hidden` entries look like orders and are not shown to models."""

    parts: dict[Target, MemoryUsage]
    pending: int
    hidden: int
    write_approval: bool
    provider: str


class EntryHistory(Value):
    """An entry, if it still stands, with all its changes, oldest first, and the words that led to
    each, "" where nobody has said any."""

    entry: MemoryEntry | None
    changes: tuple[MemoryChange, ...]
    said: tuple[str, ...]


class MemoryService:
    """The memories of a home. Nothing is opened before it is needed. `providers` are the memory
    providers that plugins bring, by name; `load_plugins` makes sure that they are there."""

    def __init__(
        self,
        run: RunContext,
        journal: SqliteJournal,
        models: Models,
        *,
        find_session: Callable[[str], Session],
        providers: Mapping[str, Callable[[], MemoryProvider]],
        load_plugins: Callable[[], Awaitable[None]],
    ) -> None:
        self.run = run
        self.journal = journal
        self.models = models
        self.find_session = find_session
        self.providers = providers
        self.load_plugins = load_plugins
        self._settings = run.settings.memory
        self._open: dict[str, Memories] = {}

    @property
    def targets(self) -> tuple[Target, ...]:
        """What is switched on."""
        wanted: dict[Target, bool] = {
            "memory": self._settings.memory_enabled,
            "user": self._settings.user_profile_enabled,
        }
        return tuple(target for target, is_on in wanted.items() if is_on)

    def of(self, scope: str = OWNER) -> Memories:
        if scope not in self._open:
            limits = MemoryLimits(
                memory=self._settings.memory_char_limit, user=self._settings.user_char_limit
            )
            self._open[scope] = Memories(
                self.run.home.memories,
                world=self.run.world,
                scan=scan_for_threats,
                scope=scope,
                limits=limits,
                version=__version__,
            )
        return self._open[scope]

    @cached_property
    def user_model(self) -> UserModels:
        """What else models the user."""
        from hermes.memory.user_model import UserModels

        return UserModels(self)

    def notify_change(
        self, session_id: str, target: Target, wishes: Sequence[Operation], source: ChangeSource
    ) -> None:
        """What else models the user hears of every change."""
        if self._settings.provider:
            self.user_model.notify_change(session_id, target, wishes, source)

    async def detach(self, session_id: str) -> None:
        if "user_model" in self.__dict__:
            await self.user_model.detach(session_id)

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()

    async def snapshot(self, opening: SessionRequest) -> MemorySnapshot:
        """What a session that opens now is told, for as long as it lives."""
        if not opening.rules:
            return MemorySnapshot()
        return await self.snapshot_for(opening)

    async def snapshot_for(self, session: SessionRequest | SessionOpened) -> MemorySnapshot:
        scope = self.scope(session)
        return await self.of(scope).snapshot(self.targets) if scope else MemorySnapshot()

    def scope(self, session: SessionRequest | SessionOpened) -> str:
        """Whose memory a session works with as things are; "" for none."""
        is_without = session.source in WITHOUT_MEMORY or not self.targets
        return "" if is_without else scope_of(session)

    def by_hand(self, surface: str, session_id: str = "") -> ChangeSource:
        """The source of what a person does with a command."""
        return ChangeSource(kind="person", person=OWNER, surface=surface, session_id=session_id)

    def set_approval(self, wanted: bool) -> str:
        """Have everything wait for a person from the next session on, or not."""
        from hermes.config.edit import set_from_text

        set_from_text(self.run.home, "memory.write_approval", "true" if wanted else "false")
        if wanted:
            return "From the next session on, everything waits for your word."
        return "From the next session on, only what is suspicious waits for your word."

    async def status(self) -> MemoryStatus:
        memories = self.of()
        entries = await memories.entries()
        parts = {
            target: MemoryUsage(
                is_on=target in self.targets,
                entries=sum(entry.target == target for entry in entries),
                usage=usage_text(
                    [entry.text for entry in entries if entry.target == target],
                    memories.limits.of(target),
                ),
            )
            for target in TARGETS
        }
        return MemoryStatus(
            parts=parts,
            pending=len(await memories.pending()),
            hidden=sum(bool(entry.finding) for entry in entries),
            write_approval=self._settings.write_approval,
            provider=self._settings.provider,
        )

    async def why(self, named: str) -> EntryHistory:
        """How an entry came to say what it says; NotFound."""
        memories = self.of()
        life = await memories.history_of(await memories.resolve_entry(named))
        standing = {entry.id: entry for entry in await memories.entries()}
        said = [await self._original_text(change.source) for change in life]
        return EntryHistory(entry=standing.get(life[0].entry), changes=life, said=tuple(said))

    async def _original_text(self, source: ChangeSource) -> str:
        """The words that led to a change, as the journal still has them."""
        if not source.session_id or not source.n:
            return ""
        try:
            records = await self.journal.read(source.session_id, after=source.n - 1)
        except NotFound:
            return ""
        found = next((each.event for each in records if each.n == source.n), None)
        return found.message.text if isinstance(found, MessageReceived) else ""

    async def forget_outside(self, remove_phrases: Callable[[str], str]) -> list[str]:
        """Take words out of what else models the user; where they may be left."""
        # A plugin may be what models them.
        await self.load_plugins()
        return await self.user_model.forget(remove_phrases)

    def guard(self, recorder: Recorder, taken: MemorySnapshot) -> None:
        """A session that nobody has spoken in yet must not bring back what was forgotten since."""

        def check() -> None:
            if self.of().is_outdated(taken):
                raise JournalError(OUTDATED)

        recorder.before_opening = check

    def tool_service(self, session_id: str, opened: SessionOpened) -> MemoryToolService:
        """What the memory tool of a session works with."""
        from hermes.memory.tools import MemoryToolService

        scope = self.scope(opened)
        if not scope:
            return MemoryToolService()

        async def witness(call_id: str) -> CallFacts:
            return await self.describe_call(session_id, opened, call_id)

        heard = partial(self.notify_change, session_id)
        return MemoryToolService(self.of(scope), witness, targets=self.targets, heard=heard)

    async def describe_call(
        self, session_id: str, opened: SessionOpened, call_id: str, *, own: str = ""
    ) -> CallFacts:
        """What the journal tells of a call that is under way. What came about in sight of
        untrusted words waits for a person, unless one was asked. Words from `own` are no news to
        whoever is told."""
        from hermes.memory.tools import CallFacts

        transcript = self.find_session(session_id).transcript
        turn_id = transcript.turn_id
        records = await self.journal.read(session_id)
        untrusted = untrusted_in(transcript.origins() - {own})
        approved_by = find_approver(records, turn_id, call_id)
        source = ChangeSource(
            kind="session",
            session_id=session_id,
            turn_id=turn_id,
            n=message_number(records, turn_id),
            call_id=call_id,
            person=opened.person or opened.principal,
            surface=opened.source,
            origins=untrusted,
            approved_by=approved_by,
        )
        held = ""
        if not approved_by and untrusted:
            held = f"text from {', '.join(untrusted)} is in view"
        elif not approved_by and self._settings.write_approval:
            held = APPROVAL
        return CallFacts(source=source, key=f"{session_id} {turn_id} {call_id}", held=held)


def message_number(records: Sequence[Record], turn_id: str) -> int:
    """The record of the words that the turn answers: the last that it has taken up so far."""
    taken = [
        n
        for record in records
        if record.turn_id == turn_id and isinstance(record.event, TurnStarted | Steered)
        for n in record.event.takes
    ]
    return taken[-1] if taken else 0


def find_approver(records: Sequence[Record], turn_id: str, call_id: str) -> str:
    """Who was asked whether this call may be remembered and said yes, "" for nobody."""
    asked = {
        record.event.id
        for record in records
        if record.turn_id == turn_id
        and isinstance(record.event, ApprovalAsked)
        and record.event.call_id == call_id
        and isinstance(record.event.effect, Remember)
    }
    answers = [
        record.event
        for record in records
        if isinstance(record.event, ApprovalAnswered) and record.event.id in asked
    ]
    if not answers or any(each.choice == DENY or each.by in NOBODY for each in answers):
        return ""
    return answers[-1].by
