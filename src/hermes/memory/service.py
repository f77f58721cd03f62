"""The memory of a home: scopes, snapshots for sessions, and the sources of changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from itertools import compress
from typing import TYPE_CHECKING

from hermes.codec.values import Value, replace
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
from hermes.policy.threat_scan import local_in, scan_for_threats, untrusted_in
from hermes.version import __version__

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext
    from hermes.core.session import Session
    from hermes.journal.journal import SqliteJournal
    from hermes.memory.provider import MemoryProvider
    from hermes.memory.tools import CallFacts, DescribeCall, MemoryToolService
    from hermes.memory.user_model import UserModels
    from hermes.models.models import Models

APPROVAL = "memory.write_approval is on"
OUTDATED = "Memory was erased after this session was opened; start a new session."
# Child sessions get what they need in their task.
WITHOUT_MEMORY = ("subagent", "batch")
# Prefix of other people's scopes, so that no name equals the owner's scope.
PERSON_PREFIX = "person:"
# Values of `by` for answers that no person gave.
NOT_A_PERSON = ("time", "stop", "restart")


def scope_of(session: SessionRequest | SessionOpened) -> str:
    """Return the memory scope of a session, "" for none. Members and guests need a name, since
    their role alone does not identify them. A named person's scope takes precedence over the
    owner's, even with the owner's rights."""
    if session.person:
        return f"{PERSON_PREFIX}{session.person}"
    return OWNER if session.principal in ("owner", "system") else ""


class MemoryUsage(Value):
    is_on: bool
    entries: int
    usage: str


class MemoryStatus(Value):
    """The state of one person's memory."""

    parts: dict[Target, MemoryUsage]
    pending: int
    # Entries that look like instructions and are not shown to models.
    hidden: int
    write_approval: bool
    provider: str


class EntryHistory(Value):
    """An entry, if it still exists, with all its changes, oldest first."""

    entry: MemoryEntry | None
    changes: tuple[MemoryChange, ...]
    # The message that led to each change, or "".
    said: tuple[str, ...]


class MemoryService:
    """The memories of a home, opened on first use. `providers` are the memory providers of plugins
    by name; `load_plugins` loads them."""

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
        """The enabled targets."""
        is_on = (self._settings.memory_enabled, self._settings.user_profile_enabled)
        return tuple(compress(TARGETS, is_on))

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
        """The configured memory provider."""
        from hermes.memory.user_model import UserModels

        return UserModels(self)

    def notify_change(
        self, session_id: str, target: Target, operations: Sequence[Operation]
    ) -> None:
        """Report a change to the configured memory provider."""
        if self._settings.provider:
            self.user_model.notify_change(session_id, target, operations)

    async def detach(self, session_id: str) -> None:
        if "user_model" in self.__dict__:
            await self.user_model.detach(session_id)

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()

    async def snapshot(self, request: SessionRequest) -> MemorySnapshot:
        """Return the memory text of a new session, fixed for its lifetime."""
        if not request.context_files:
            return MemorySnapshot()
        return await self.snapshot_for(request)

    async def snapshot_for(self, session: SessionRequest | SessionOpened) -> MemorySnapshot:
        scope = self.scope(session)
        return await self.of(scope).snapshot(self.targets) if scope else MemorySnapshot()

    def scope(self, session: SessionRequest | SessionOpened) -> str:
        """Return the memory scope of a session under the current settings; "" for none."""
        is_without = session.source in WITHOUT_MEMORY or not self.targets
        return "" if is_without else scope_of(session)

    def by_hand(self, surface: str, session_id: str = "") -> ChangeSource:
        """Return the source of a change that a person makes with a command."""
        return ChangeSource(kind="person", person=OWNER, surface=surface, session_id=session_id)

    def set_approval(self, enabled: bool) -> str:
        """Set whether all changes need approval, from the next session on."""
        from hermes.config.edit import set_from_text

        set_from_text(self.run.home, "memory.write_approval", "true" if enabled else "false")
        if enabled:
            return "From the next session on, all changes need your approval."
        return "From the next session on, only suspicious changes need your approval."

    async def status(self) -> MemoryStatus:
        memories = self.of()
        entries = await memories.entries()
        parts: dict[Target, MemoryUsage] = {}
        for target in TARGETS:
            texts = [entry.text for entry in entries if entry.target == target]
            usage = usage_text(texts, memories.limits.of(target))
            is_on = target in self.targets
            parts[target] = MemoryUsage(is_on=is_on, entries=len(texts), usage=usage)
        return MemoryStatus(
            parts=parts,
            pending=len(await memories.pending()),
            hidden=sum(bool(entry.finding) for entry in entries),
            write_approval=self._settings.write_approval,
            provider=self._settings.provider,
        )

    async def why(self, reference: str) -> EntryHistory:
        """Return the history of an entry. Raises NotFound."""
        memories = self.of()
        changes = await memories.history_of(await memories.resolve_entry(reference))
        current = {entry.id: entry for entry in await memories.entries()}
        messages: list[str] = []
        for source in (change.source for change in changes):
            event = None
            if source.session_id and source.n:
                # The journal may no longer have the session.
                with suppress(NotFound):
                    records = await self.journal.read(source.session_id, after=source.n - 1)
                    event = next((each.event for each in records if each.n == source.n), None)
            messages.append(event.message.text if isinstance(event, MessageReceived) else "")
        return EntryHistory(
            entry=current.get(changes[0].entry), changes=changes, said=tuple(messages)
        )

    async def forget_outside(self, remove_phrases: Callable[[str], str]) -> list[str]:
        """Remove phrases from the memory provider; return where they may remain."""
        # The provider may come from a plugin.
        await self.load_plugins()
        return await self.user_model.forget(remove_phrases)

    def guard(self, recorder: Recorder, snapshot: MemorySnapshot) -> None:
        """Prevent a session without messages from storing memory that was erased meanwhile."""

        def check() -> None:
            if self.of().is_outdated(snapshot):
                raise JournalError(OUTDATED)

        recorder.before_opening = check

    def tool_service(self, session_id: str, opened: SessionOpened) -> MemoryToolService:
        """Return the service of a session's memory tool."""
        return self._tool_service(
            session_id, opened, partial(self.describe_call, session_id, opened)
        )

    async def review_service(
        self, session_id: str, opened: SessionOpened, turn_id: str
    ) -> MemoryToolService:
        """Return the service of the memory tool in a review of this turn, whose message is the
        source of the changes."""
        n = message_number(await self.journal.read(session_id), turn_id)

        async def describe_call(call_id: str) -> CallFacts:
            source = ChangeSource(
                kind="review", session_id=session_id, turn_id=turn_id, n=n, call_id=call_id
            )
            return self._call_facts(source, opened)

        return self._tool_service(session_id, opened, describe_call)

    def _tool_service(
        self, session_id: str, opened: SessionOpened, describe_call: DescribeCall
    ) -> MemoryToolService:
        from hermes.memory.tools import MemoryToolService

        if not (scope := self.scope(opened)):
            return MemoryToolService()
        on_change = partial(self.notify_change, session_id)
        return MemoryToolService(
            self.of(scope), describe_call, targets=self.targets, on_change=on_change
        )

    async def describe_call(
        self, session_id: str, opened: SessionOpened, call_id: str, *, own: str = ""
    ) -> CallFacts:
        """Return the facts of a running call from the journal. A change made while untrusted text
        is in view needs approval. The origin `own` does not count as untrusted."""
        transcript = self.find_session(session_id).transcript
        turn_id = transcript.turn_id
        records = await self.journal.read(session_id)
        approver = find_approver(records, turn_id, call_id)
        in_view = transcript.origins() - {own}
        source = ChangeSource(
            kind="session",
            session_id=session_id,
            turn_id=turn_id,
            n=message_number(records, turn_id),
            call_id=call_id,
            # Without an approval, the text is the person's own as far as files are concerned.
            origins=untrusted_in(in_view) or (local_in(in_view) if approver else ()),
            approved_by=approver,
        )
        return self._call_facts(source, opened)

    def _call_facts(self, source: ChangeSource, opened: SessionOpened) -> CallFacts:
        from hermes.memory.tools import CallFacts

        held = ""
        if not source.approved_by and source.origins:
            held = f"text from {', '.join(source.origins)} is in view"
        elif not source.approved_by and self._settings.write_approval:
            held = APPROVAL
        key = f"{source.session_id} {source.turn_id} {source.call_id}"
        person = opened.person or opened.principal
        return CallFacts(
            source=replace(source, person=person, surface=opened.source), key=key, held=held
        )


def message_number(records: Sequence[Record], turn_id: str) -> int:
    """Return the record of the last message that the turn has taken up, or 0."""
    taken = [
        n
        for record in records
        if record.turn_id == turn_id and isinstance(record.event, TurnStarted | Steered)
        for n in record.event.takes
    ]
    return taken[-1] if taken else 0


def find_approver(records: Sequence[Record], turn_id: str, call_id: str) -> str:
    """Return who approved this memory call, or ""."""
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
    if not answers or any(each.choice == DENY or each.by in NOT_A_PERSON for each in answers):
        return ""
    return answers[-1].by
