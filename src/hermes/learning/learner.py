"""Learns from sessions: proposes, rehearses, promotes and reverts skill changes."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from hermes.core.errors import HermesError, NotFound, UsageError
from hermes.core.events import Record, SessionOpened
from hermes.core.recorder import Subscription
from hermes.core.session import Session
from hermes.core.transcript import fold
from hermes.learning.ledger import TurnReview
from hermes.learning.rehearsal import SkillRehearsal
from hermes.learning.rehearsals import Rehearsals, ledger_of
from hermes.learning.review import SkillReview
from hermes.learning.session_watch import (
    ReviewTrigger,
    SkillRun,
    SkillUseTracker,
    TriggerWatch,
    find_regression,
)
from hermes.memory.review import PastSession, ReviewedSession
from hermes.models.model_ref import IN_PROCESS
from hermes.policy.threat_scan import untrusted_in
from hermes.skills.history import Cause, Version
from hermes.skills.library import SkillLibrary
from hermes.skills.service import VERSION_DIGITS

if TYPE_CHECKING:
    from hermes.learning.rehearsals import LearningDeps

REVERTED = "Reverted the skill {} to version {}: {}."
ARCHIVED = "Archived the new skill {0}: {1}. `hermes curator restore {0}` restores it."
SUGGEST_REVERT = "The skill {0} performs worse: {1}. `hermes skills revert {0}` reverts the change."


def revert_regression(deps: LearningDeps, skills: SkillLibrary, run: SkillRun) -> str:
    """Record the run and revert its skill version if that performs worse. Return a notice for the
    user, or "". Only unpinned skills of the agent are changed; reverts are final."""
    ledger, store = ledger_of(deps.run.home), skills.store
    ledger.record_run(run)
    try:
        active = store.active(run.skill)
        if active is None or active.hash[:VERSION_DIGITS] != run.version:
            return ""
        is_own = store.provenance(store.find(run.skill)) == "agent"
        is_pinned = skills.usages.of(run.skill).pinned
        if active.action.startswith("revert") or is_pinned or not is_own:
            return ""
        before = active.base[:VERSION_DIGITS]
        reason = find_regression(ledger.runs(run.skill), run.version, before)
        return _revert(deps, skills, active, reason) if reason else ""
    except HermesError:
        # The skill was changed or removed concurrently.
        return ""


def _revert(deps: LearningDeps, skills: SkillLibrary, active: Version, reason: str) -> str:
    name, cause = active.name, Cause(who="review", model=active.cause.model, words=reason)
    if deps.run.settings.skills.write_approval:
        return SUGGEST_REVERT.format(name, reason)
    known = [one for one in skills.store.history(name) if one.hash == active.base]
    if known:
        skills.store.revert(name, known[-1].id, cause)
        skills.usages.record_patch(name)
        return REVERTED.format(name, known[-1].id, reason)
    if active.base:
        return ""
    skills.curator().archive(name)
    return ARCHIVED.format(name, reason)


# The time limit of a review; the process of an older unfinished review has died.
SECONDS = 300.0
STALE_SECONDS = 2 * SECONDS
WAITS = "A change to the skill {} awaits approval: `/skills diff {}` shows it."
# Unattended sessions are not reviewed.
EXCLUDED_SOURCES = ("subagent", "cron", "batch", "tool")


class Learner:
    """Learns from one interactive session, in the background and after its turns."""

    def __init__(self, deps: LearningDeps, session: Session, opened: SessionOpened) -> None:
        self._deps = deps
        self._session = session
        self._opened = opened
        self._ledger = ledger_of(deps.run.home)
        self._library = deps.skills(opened.cwd)
        self._uses = SkillUseTracker(session.id)

    async def follow(self, events: Subscription) -> None:
        try:
            watch, last, due = await self._catch_up()
            # Other processes may have left reviews undone, of this session and of others.
            before = self._deps.run.world.clock.now() - STALE_SECONDS
            for review in await asyncio.to_thread(self._ledger.unfinished_reviews, before):
                if review.session != self._session.id:
                    await self._review_past(review)
            if due is not None:
                await self._review(self._session, self._opened, *due)
            await settle_proposals(self._deps, self._library, self._session)
            async for record in events:
                if not record.n or record.n <= last:
                    continue
                await self._check_regressions(self._uses.note(record))
                if (trigger := watch.note(record.event)) is not None:
                    await self._review(self._session, self._opened, record.turn_id, trigger)
        finally:
            events.close()

    async def _catch_up(self) -> tuple[TriggerWatch, int, tuple[str, ReviewTrigger] | None]:
        """Read the session so far. Return the watch, the last record, and the last turn that
        deserves a review."""
        watch, last = _new_watch(self._deps), 0
        due: tuple[str, ReviewTrigger] | None = None
        runs: tuple[SkillRun, ...] = ()
        for record in await self._records(self._session.id):
            last = record.n
            runs = self._uses.note(record) or runs
            trigger = watch.note(record.event)
            if trigger is not None:
                due = (record.turn_id, trigger)
        # Recording the same turn twice is harmless.
        await self._check_regressions(runs)
        return watch, last, due

    async def _records(self, session_id: str) -> tuple[Record, ...]:
        """Return the records so far; none for a session that is empty or deleted."""
        try:
            return await self._deps.journal.read(session_id)
        except NotFound:
            return ()

    async def _review_past(self, review: TurnReview) -> None:
        records = await self._records(review.session)
        ends = [index for index, record in enumerate(records) if record.turn_id == review.turn]
        upto = records[: ends[-1] + 1] if ends else ()
        transcript = fold(upto)
        watch, trigger = _new_watch(self._deps), None
        for record in upto:
            found = watch.note(record.event)
            if found is not None and record.turn_id == review.turn:
                trigger = found
        if transcript.opened is None or trigger is None:
            return await self._done(review.session, review.turn)
        past = PastSession(review.session, transcript, self._session.meter, self._session.tell)
        return await self._review(past, transcript.opened, review.turn, trigger)

    async def _review(
        self, reviewed: ReviewedSession, opened: SessionOpened, turn_id: str, trigger: ReviewTrigger
    ) -> None:
        """Review a turn once. Sessions with untrusted text are not reviewed."""
        transcript = reviewed.transcript
        if transcript.provider in IN_PROCESS or opened.source in EXCLUDED_SOURCES:
            return
        if untrusted_in(transcript.origins()):
            return
        now = self._deps.run.world.clock.now()
        if not await asyncio.to_thread(self._ledger.claim, reviewed.id, turn_id, now):
            return
        self._deps.run.world.kill_point("learning.claimed")
        if not await asyncio.to_thread(self._has_proposed, reviewed.id, turn_id):
            try:
                async with asyncio.timeout(SECONDS):
                    await SkillReview(self._deps, reviewed, opened, turn_id).run(trigger)
            except (HermesError, TimeoutError):
                # The user did not request the review, so a failure is not reported.
                pass
            self._deps.run.world.kill_point("learning.proposed")
        await settle_proposals(self._deps, self._library, self._session)
        await self._done(reviewed.id, turn_id)

    async def _check_regressions(self, runs: tuple[SkillRun, ...]) -> None:
        """Revert skill versions that perform worse than their predecessors."""
        for run in runs:
            if notice := await asyncio.to_thread(revert_regression, self._deps, self._library, run):
                self._session.tell(notice)

    def _has_proposed(self, session_id: str, turn_id: str) -> bool:
        """Return whether an interrupted review of this turn has already proposed a change."""
        store = self._library.store
        return any(
            version.cause.session == session_id and version.cause.call.startswith(f"{turn_id} ")
            for name in store.names_with_history()
            for version in store.history(name)
            if version.cause.who == "review"
        )

    async def _done(self, session_id: str, turn_id: str) -> None:
        now = self._deps.run.world.clock.now()
        await asyncio.to_thread(self._ledger.mark_done, session_id, turn_id, now)
        self._deps.run.world.kill_point("learning.done")


async def settle_proposals(deps: LearningDeps, skills: SkillLibrary, session: Session) -> None:
    """Rehearse and decide all pending proposals of reviews."""
    if deps.run.settings.skills.write_approval:
        return
    for version in await asyncio.to_thread(skills.store.proposals):
        by_review = version.cause.who == "review"
        if by_review and (notice := await _settle(deps, skills, session, version)):
            session.tell(notice)


async def _settle(
    deps: LearningDeps, skills: SkillLibrary, session: Session, version: Version
) -> str:
    """Rehearse a proposed version unless that was done before, decide about it, and return a notice
    for the user."""
    rehearsal = ledger_of(deps.run.home).rehearsal(version.id)
    is_new = rehearsal is None
    if rehearsal is None:
        rehearsals = Rehearsals(deps, skills, session.meter)
        rehearsal = await rehearsals.rehearse(version, most=deps.run.settings.skills.rehearse)
        deps.run.world.kill_point("learning.rehearsed")
    if notice := await asyncio.to_thread(decide, deps, skills, version, rehearsal):
        return notice if deps.run.settings.display.memory_notifications != "off" else ""
    return WAITS.format(version.name, version.id) if is_new else ""


def decide(
    deps: LearningDeps, skills: SkillLibrary, version: Version, rehearsal: SkillRehearsal
) -> str:
    """Promote or refuse a version according to its rehearsal. Return a notice for the user, or ""
    if the version stays pending or was decided elsewhere."""
    verdict = rehearsal.verdict
    try:
        if verdict == "refuse":
            skills.store.refuse(version, rehearsal.summary)
            return f"A change to the skill {version.name} was refused: {rehearsal.summary}."
        # With a new skill the model makes new calls, so a rehearsal can only show that it does no
        # harm.
        allowed, is_new = deps.run.settings.skills.unrehearsed, version.action == "create"
        if (
            verdict == "promote"
            or (verdict == "keep" and is_new and allowed != "none")
            or (verdict == "unrehearsed" and allowed in ("all", "new" if is_new else "all"))
        ):
            skills.approve(version, rehearsal.summary)
            if not is_new:
                return f"Skill {version.name} improved ({rehearsal.summary})."
            gone = skills.curator().archive_surplus() if deps.run.settings.curator.enabled else ()
            note = f" Archived to make space: {', '.join(gone)}." if gone else ""
            return f"Skill {version.name} learned ({rehearsal.summary}).{note}"
    except UsageError as error:
        with suppress(UsageError):
            skills.store.refuse(version, str(error))
    return ""


def _new_watch(deps: LearningDeps) -> TriggerWatch:
    skills = deps.run.settings.skills
    return TriggerWatch(
        task_calls=skills.review_calls, session_calls=skills.creation_nudge_interval
    )
