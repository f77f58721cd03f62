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
from hermes.learning.regression import SkillRun, SkillUseTracker, find_regression
from hermes.learning.rehearsal import SkillRehearsal, Verdict
from hermes.learning.rehearsals import Rehearsals, ledger_of
from hermes.learning.review import PastSession, SkillReview
from hermes.learning.triggers import ReviewTrigger, TriggerWatch
from hermes.memory.review import ReviewedSession
from hermes.models.model_ref import IN_PROCESS
from hermes.policy.threat_scan import untrusted_in
from hermes.skills.history import Cause, Version
from hermes.skills.library import SkillLibrary
from hermes.skills.service import VERSION_DIGITS

if TYPE_CHECKING:
    from hermes.learning.deps import LearningDeps

BACK = "The skill {} is back at its version {}: {}."
PUT_AWAY = "The new skill {0} is in the archive: {1}. `hermes curator restore {0}` brings it back."
ASKED = "The skill {0} does not do well: {1}. `hermes skills revert {0}` takes the change back."


def revert_regression(deps: LearningDeps, skills: SkillLibrary, run: SkillRun) -> str:
    """Take this run down, and act on what all of them say: words for the person, "" for none. Only
    what the agent made is touched, nothing that is pinned, and what came back stays."""
    ledger = ledger_of(deps.run.home)
    ledger.record_run(run)
    try:
        present = skills.shelf.active(run.skill)
        if present is None or not _is_ours(skills, present, run):
            return ""
        words = find_regression(ledger.runs(run.skill), run.version, present.base[:VERSION_DIGITS])
        return _act(deps, skills, present, words) if words else ""
    except HermesError:
        # Somebody has changed or removed it meanwhile.
        return ""


def _is_ours(skills: SkillLibrary, present: Version, run: SkillRun) -> bool:
    if present.hash[:VERSION_DIGITS] != run.version or present.action.startswith("revert"):
        return False
    entry = skills.shelf.find(run.skill)
    is_pinned = skills.usages.of(run.skill).pinned
    return skills.shelf.provenance(entry) == "agent" and not is_pinned


def _act(deps: LearningDeps, skills: SkillLibrary, present: Version, words: str) -> str:
    name, cause = present.name, Cause(who="review", model=present.cause.model, words=words)
    if deps.run.settings.skills.write_approval:
        return ASKED.format(name, words)
    known = [one for one in skills.shelf.history(name) if one.hash == present.base]
    if known:
        skills.shelf.revert(name, known[-1].id, cause)
        skills.usages.record_patch(name)
        return BACK.format(name, known[-1].id, words)
    if present.base:
        return ""
    skills.curator().archive(name)
    return PUT_AWAY.format(name, words)


# Whoever looks back has this long; a look that is older has lost its process.
SECONDS = 300.0
STALE_SECONDS = 2 * SECONDS
WAITS = "A change of the skill {} waits: `/skills diff {}` shows it."
# Sessions that nobody sits in teach nobody.
WITHOUT = ("subagent", "cron", "batch", "tool")


class Learner:
    """For one session in which somebody stays. It never holds up an answer: everything here runs
    beside the session, after its turns."""

    def __init__(self, deps: LearningDeps, session: Session, opened: SessionOpened) -> None:
        self._deps = deps
        self._session = session
        self._opened = opened
        self._ledger = ledger_of(deps.run.home)
        self._skilled = deps.skills(opened.cwd)
        self._uses = SkillUseTracker(session.id)

    async def follow(self, events: Subscription) -> None:
        try:
            watch, last, due = await self._is_caught_up()
            await self._take_up(due)
            async for record in events:
                if not record.n or record.n <= last:
                    continue
                await self._watch_over(self._uses.note(record))
                if (occasion := watch.note(record.event)) is not None:
                    await self._look(self._session, self._opened, record.turn_id, occasion)
        finally:
            events.close()

    async def _is_caught_up(self) -> tuple[TriggerWatch, int, tuple[str, ReviewTrigger] | None]:
        """What is known of the session so far, and its last turn if that was worth a look."""
        watch, last = _new_watch(self._deps), 0
        due: tuple[str, ReviewTrigger] | None = None
        runs: tuple[SkillRun, ...] = ()
        for record in await self._records(self._session.id):
            last = record.n
            runs = self._uses.note(record) or runs
            occasion = watch.note(record.event)
            if occasion is not None:
                due = (record.turn_id, occasion)
        # To say the same of a turn twice changes nothing.
        await self._watch_over(runs)
        return watch, last, due

    async def _records(self, session_id: str) -> tuple[Record, ...]:
        """None for a session in which nothing was said yet, or that is gone."""
        try:
            return await self._deps.journal.read(session_id)
        except NotFound:
            return ()

    async def _take_up(self, due: tuple[str, ReviewTrigger] | None) -> None:
        """What another process has left undone: this session's last look, and those of others."""
        before = self._deps.run.world.clock.now() - STALE_SECONDS
        for look in await asyncio.to_thread(self._ledger.unfinished_reviews, before):
            if look.session != self._session.id:
                await self._review_past(look)
        if due is not None:
            await self._look(self._session, self._opened, *due)
        await settle_proposals(self._deps, self._skilled, self._session)

    async def _review_past(self, look: TurnReview) -> None:
        upto = _turn_of(await self._records(look.session), look.turn)
        transcript = fold(upto)
        occasion = _trigger(self._deps, upto, look.turn)
        if transcript.opened is None or occasion is None:
            return await self._done(look.session, look.turn)
        past = PastSession(look.session, transcript, self._session.meter, self._session.tell)
        return await self._look(past, transcript.opened, look.turn, occasion)

    async def _look(
        self, looked: ReviewedSession, opened: SessionOpened, turn_id: str, occasion: ReviewTrigger
    ) -> None:
        """Once for each turn. Words of strangers are no teachers."""
        transcript = looked.transcript
        if transcript.provider in IN_PROCESS or opened.source in WITHOUT:
            return
        if untrusted_in(transcript.origins()):
            return
        now = self._deps.run.world.clock.now()
        if not await asyncio.to_thread(self._ledger.claim, looked.id, turn_id, now):
            return
        self._deps.run.world.kill_point("learning.claimed")
        if not await asyncio.to_thread(self._has_proposed, looked.id, turn_id):
            try:
                async with asyncio.timeout(SECONDS):
                    await SkillReview(self._deps, looked, opened, turn_id).run(
                        occasion.why, occasion.calls
                    )
            except (HermesError, TimeoutError):
                # Nobody asked for it, so nobody is told that it did not work.
                pass
            self._deps.run.world.kill_point("learning.proposed")
        await settle_proposals(self._deps, self._skilled, self._session)
        await self._done(looked.id, turn_id)

    async def _watch_over(self, runs: tuple[SkillRun, ...]) -> None:
        """A version that does badly in use gives way to the one before it."""
        for run in runs:
            words = await asyncio.to_thread(revert_regression, self._deps, self._skilled, run)
            if words:
                self._session.tell(words)

    def _has_proposed(self, session_id: str, turn_id: str) -> bool:
        """A look that died after its proposal is not begun again."""
        shelf = self._skilled.shelf
        return any(
            version.cause.session == session_id and version.cause.call.startswith(f"{turn_id} ")
            for name in shelf.names_with_history()
            for version in shelf.history(name)
            if version.cause.who == "review"
        )

    async def _done(self, session_id: str, turn_id: str) -> None:
        now = self._deps.run.world.clock.now()
        await asyncio.to_thread(self._ledger.mark_done, session_id, turn_id, now)
        self._deps.run.world.kill_point("learning.done")


async def settle_proposals(deps: LearningDeps, skills: SkillLibrary, session: Session) -> None:
    """Decide about everything that looks back have proposed and nobody has tried yet."""
    if deps.run.settings.skills.write_approval:
        return
    for version in await asyncio.to_thread(skills.shelf.proposals):
        if version.cause.who == "review" and (
            words := await _settle(deps, skills, session, version)
        ):
            session.tell(words)


async def _settle(
    deps: LearningDeps, skills: SkillLibrary, session: Session, version: Version
) -> str:
    """What a person should hear of it. One that was tried is not tried again: it waits for a
    person, or its process died before it could decide."""
    rehearsal = ledger_of(deps.run.home).rehearsal(version.id)
    is_new = rehearsal is None
    if rehearsal is None:
        rehearsals = Rehearsals(deps, skills, session.meter)
        rehearsal = await rehearsals.rehearse(version, most=deps.run.settings.skills.rehearse)
        deps.run.world.kill_point("learning.rehearsed")
    words = await asyncio.to_thread(decide, deps, skills, version, rehearsal)
    if words:
        return words if deps.run.settings.display.memory_notifications != "off" else ""
    return WAITS.format(version.name, version.id) if is_new else ""


def decide(
    deps: LearningDeps, skills: SkillLibrary, version: Version, rehearsal: SkillRehearsal
) -> str:
    """Use it or refuse it, as its rehearsal says, and a sentence for the person; "" when it is
    left to wait, or somebody else has decided."""
    verdict = rehearsal.verdict
    try:
        if verdict == "refuse":
            skills.shelf.refuse(version, rehearsal.words)
            return f"A change of the skill {version.name} was refused: {rehearsal.words}."
        if verdict == "promote" or _is_free(deps, version, verdict):
            skills.approve(version, rehearsal.words)
            if version.action != "create":
                return f"Skill {version.name} improved ({rehearsal.words})."
            gone = skills.curator().archive_surplus() if deps.run.settings.curator.enabled else ()
            room = f" To the archive for it: {', '.join(gone)}." if gone else ""
            return f"Skill {version.name} learned ({rehearsal.words}).{room}"
    except UsageError as error:
        with suppress(UsageError):
            skills.shelf.refuse(version, str(error))
    return ""


def _is_free(deps: LearningDeps, version: Version, verdict: Verdict) -> bool:
    """May come into use without a rehearsal. With a new skill the model goes ways that nobody went
    before, so that no rehearsal can tell more of it than that it does no harm."""
    allowed, is_new = deps.run.settings.skills.unrehearsed, version.action == "create"
    if verdict == "keep":
        return is_new and allowed != "none"
    return verdict == "unrehearsed" and (allowed == "all" or (allowed == "new" and is_new))


def _new_watch(deps: LearningDeps) -> TriggerWatch:
    skills = deps.run.settings.skills
    return TriggerWatch(
        task_calls=skills.review_calls, session_calls=skills.creation_nudge_interval
    )


def _turn_of(records: tuple[Record, ...], turn_id: str) -> tuple[Record, ...]:
    """Everything up to the end of the turn."""
    ends = [place for place, record in enumerate(records) if record.turn_id == turn_id]
    return records[: ends[-1] + 1] if ends else ()


def _trigger(deps: LearningDeps, records: tuple[Record, ...], turn_id: str) -> ReviewTrigger | None:
    watch, found = _new_watch(deps), None
    for record in records:
        occasion = watch.note(record.event)
        if occasion is not None and record.turn_id == turn_id:
            found = occasion
    return found
