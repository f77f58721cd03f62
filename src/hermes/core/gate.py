"""The gate decides whether each effect of a tool is allowed, and asks a person when needed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import assert_never

from hermes.codec.values import replace
from hermes.core.concurrency import wait_for_first
from hermes.core.effects import Allow, Ask, Decision, Deny, Effect, Principal, RunCommand, Scope
from hermes.core.errors import EffectDenied
from hermes.core.events import (
    ApprovalAnswered,
    ApprovalAsked,
    EffectDecided,
    JudgedEffect,
    QuestionAnswered,
    QuestionAsked,
)
from hermes.core.messages import WORKSPACE, InView, split_origins
from hermes.core.ports import Policy
from hermes.core.recorder import Recorder
from hermes.core.world import World

log = logging.getLogger(__name__)

DENY = "deny"
# The longest reason that is passed on to the model.
MOST_CHARS = 1_000
# The most files that the origin of a result names.
MOST_SOURCES = 3


class Questions:
    """The questions of one session. When it is unattended, every approval is denied at once."""

    def __init__(
        self, recorder: Recorder, world: World, *, attended: bool, approval_seconds: float
    ) -> None:
        self.attended = attended
        self._recorder = recorder
        self._world = world
        self._approval_seconds = approval_seconds
        self._open: dict[str, asyncio.Future[tuple[str, str, str]]] = {}

    def answer(self, question_id: str, text: str, by: str, reason: str = "") -> bool:
        """Answer an open question. Return False when no such question is open."""
        future = self._open.get(question_id)
        if future is None or future.done():
            return False
        future.set_result((text, by, reason))
        return True

    async def ask_approval(
        self,
        call_id: str,
        effect: Effect,
        asked: Ask,
        stop: asyncio.Event,
        lasting: tuple[str, ...] = (),
    ) -> tuple[str, str, str]:
        """Ask a person to approve the effect. Return the choice ("deny" or a scope), who made it,
        and the reason if there is one."""
        question = ApprovalAsked(
            id=self._world.new_id("ask"),
            call_id=call_id,
            effect=effect,
            reason=asked.reason,
            category=asked.category,
            scopes=asked.scopes,
            expires_seconds=self._approval_seconds,
            lasting=lasting,
        )
        await self._publish(question)
        choice, by, reason = await self._wait(question.id, question.expires_seconds, stop)
        if choice not in asked.scopes:
            choice = DENY
        reason = reason[:MOST_CHARS]
        await self._recorder.commit(
            ApprovalAnswered(id=question.id, choice=choice, by=by, reason=reason)
        )
        return choice, by, reason

    async def ask(
        self,
        call_id: str,
        text: str,
        choices: tuple[str, ...],
        seconds: float,
        stop: asyncio.Event,
        *,
        secret: bool = False,
    ) -> str | None:
        """Ask a person a question. Return the answer, or None when the session is unattended or
        time is up. Of a `secret` answer, the journal only stores whether there was one."""
        if not self.attended:
            return None
        question = QuestionAsked(
            id=self._world.new_id("ask"),
            call_id=call_id,
            question=text,
            choices=choices,
            expires_seconds=seconds,
            secret=secret,
        )
        await self._publish(question)
        try:
            answer, by, _ = await self._wait(question.id, seconds, stop)
        except asyncio.CancelledError:
            self._recorder.note(QuestionAnswered(id=question.id, text="", by="stop"))
            raise
        stored_text = "***" if secret and answer else answer
        await self._recorder.commit(QuestionAnswered(id=question.id, text=stored_text, by=by))
        return answer or None

    async def _publish(self, question: ApprovalAsked | QuestionAsked) -> None:
        # Opened before the commit shows the question: an answer may come at once.
        self._open[question.id] = asyncio.get_running_loop().create_future()
        try:
            await self._recorder.commit(question)
        except BaseException:
            del self._open[question.id]
            raise

    async def _wait(
        self, question_id: str, seconds: float, stop: asyncio.Event
    ) -> tuple[str, str, str]:
        future = self._open[question_id]
        late = asyncio.ensure_future(self._world.clock.sleep(seconds))
        stopping = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait((future, late, stopping), return_when=asyncio.FIRST_COMPLETED)
            if future.done():
                return future.result()
            return "", "stop" if stopping.done() else "time", ""
        finally:
            late.cancel()
            stopping.cancel()
            del self._open[question_id]


def expire_question(asked: ApprovalAsked | QuestionAsked) -> ApprovalAnswered | QuestionAnswered:
    """Return the answer to a question that was open when its process ended."""
    if isinstance(asked, ApprovalAsked):
        return ApprovalAnswered(id=asked.id, choice=DENY, by="restart")
    return QuestionAnswered(id=asked.id, text="", by="restart")


ANYWHERE = ("/",)
SCOPES: dict[str, Scope] = {"session": "session", "folder": "folder", "always": "always"}
# How long a person waits for steps that only help to decide.
APPROVAL_MODEL_SECONDS = 30.0
PREFLIGHT_SECONDS = 5.0
JUDGED_SAFE = Allow(reason="The approval model judged it safe.")

# A model that may approve a simple command on behalf of the person.
Approver = Callable[[RunCommand, Ask], Awaitable[bool]]
# Names what an effect makes irreversible.
Preflight = Callable[[Effect], Awaitable[tuple[str, ...]]]


class Gate:
    """The gate of one session: the policy decides, and a person decides what it leaves open."""

    def __init__(
        self,
        policy: Policy,
        questions: Questions,
        principal: Principal,
        recorder: Recorder,
        *,
        approver: Approver | None = None,
        preflight: Preflight | None = None,
    ) -> None:
        self._policy = policy
        self._questions = questions
        self._principal: Principal = principal
        self._recorder = recorder
        self._approver = approver
        self._preflight = preflight
        self._seen = InView(lambda: recorder.transcript.in_view())
        # Input that was sent to processes since the last line end: the policy judges whole lines.
        self.partial_lines: dict[str, str] = {}
        # Processes that were told to change their folder, so that their cwd is unknown.
        self.unknown_cwd: set[str] = set()
        # Tools that changed something without declaring it: their calls run alone from then on.
        self.changing_tools: set[str] = set()

    def judge(self, effect: Effect, also: frozenset[str] = frozenset()) -> Decision:
        """Return the policy's decision, without asking anyone. `also` are sources of text in view
        in addition to those of the conversation."""
        origins = self._recorder.transcript.origins()
        if also:
            origins |= also
        return self._policy.decide(effect, self._principal, origins, self._seen)

    def origin(self, effect: Effect) -> str:
        return self._policy.origin(effect)

    async def record(
        self, call_id: str, judged: JudgedEffect, by: str = "policy", *, declared: bool = False
    ) -> None:
        """Note the decision; commit it before an effect that changes something. The start of a call
        commits the decisions about its `declared` effects."""
        self._recorder.note(EffectDecided(call_id=call_id, judged=judged, by=by))
        if declared:
            return
        if isinstance(judged.decision, Allow) and not judged.decision.harmless:
            await self._recorder.commit()

    async def admit(self, call_id: str, judged: JudgedEffect, stop: asyncio.Event) -> bool:
        """Wait until the effect may happen and return whether a person approved it. If it may not,
        raise EffectDenied with a text for the model."""
        match judged.decision:
            case Allow(lifted=lifted):
                return lifted
            case Deny() as no:
                raise EffectDenied(
                    f"Not allowed: {no.reason} Do not retry or rephrase it; "
                    "find another way or tell the person."
                )
            case Ask() as asked:
                return await self._ask(call_id, judged.effect, asked, stop)
            case _:
                assert_never(judged.decision)

    async def _ask(self, call_id: str, effect: Effect, asked: Ask, stop: asyncio.Event) -> bool:
        """Ask the approval model or a person; raise EffectDenied if they do not approve. Return
        whether it was a person who approved."""
        if await self._is_judged_safe(effect, asked, stop):
            judged = JudgedEffect(effect=effect, decision=JUDGED_SAFE)
            await self.record(call_id, judged, by="judge")
            return False
        if not self._questions.attended:
            raise EffectDenied(
                f"Not allowed without approval, and nobody is here to give it: {asked.reason} "
                "Do not retry or rephrase it; say what would have to be approved.",
                by="unattended",
            )
        lasting = await self._find_irreversible(effect)
        choice, by, reason = await self._questions.ask_approval(
            call_id, effect, asked, stop, lasting
        )
        if choice == DENY:
            why = "no answer came in time" if by == "time" else "the person said no"
            why += f": {reason}" if reason else ""
            raise EffectDenied(
                f"Not allowed: {why} ({asked.reason}) Do not retry or rephrase it.",
                by="timeout" if by == "time" else "person",
            )
        if choice in SCOPES:
            self._policy.remember(effect, SCOPES[choice])
        return True

    async def _is_judged_safe(self, effect: Effect, asked: Ask, stop: asyncio.Event) -> bool:
        """Ask the approval model. Anything but a clear yes in time leaves the question to the
        person."""
        if self._approver is None or not asked.simple or not isinstance(effect, RunCommand):
            return False
        work = asyncio.ensure_future(self._approver(effect, asked))
        try:
            await wait_for_first(work, timeout=APPROVAL_MODEL_SECONDS, stop=stop)
            return work.done() and work.result() is True
        except Exception:
            log.exception("the approval model failed")
            return False
        finally:
            work.cancel()

    async def _find_irreversible(self, effect: Effect) -> tuple[str, ...]:
        if self._preflight is None:
            return ()
        try:
            async with asyncio.timeout(PREFLIGHT_SECONDS):
                return await self._preflight(effect)
        except Exception:
            log.exception("the check for irreversible effects failed")
            return ()


def is_harmless(judged: JudgedEffect) -> bool:
    return isinstance(judged.decision, Allow) and judged.decision.harmless


class CallGate:
    """The gate for one call. It does not ask again about an effect that was allowed once. `judged`
    are the decisions in the call's ToolIntended. `also` are sources that the call's arguments may
    come from. `before_change` lets a call wait for others before it changes something; it gets the
    effect and what the call was allowed before."""

    def __init__(
        self,
        gate: Gate,
        call_id: str,
        stop: asyncio.Event,
        judged: tuple[JudgedEffect, ...] = (),
        also: frozenset[str] = frozenset(),
    ) -> None:
        self.before_change: Callable[[Effect, list[Effect]], Awaitable[None]] | None = None
        self.partial_lines = gate.partial_lines
        self.unknown_cwd = gate.unknown_cwd
        self._gate = gate
        self._call_id = call_id
        self._stop = stop
        self._on_record = judged
        self._granted: list[Effect] = []
        self._approved: list[Effect] = []
        self._offline: list[Effect] = []
        self._metadata_only: list[Effect] = []
        self._sources: dict[str, None] = {}
        self._inner: dict[str, None] = {}
        self._also = also

    @property
    def sources(self) -> frozenset[str]:
        """All sources of text that the call may work with."""
        return self._also | frozenset(self._sources)

    @property
    def inner_sources(self) -> tuple[str, ...]:
        """The sources of the results of inner calls."""
        return tuple(self._inner)

    @property
    def origin(self) -> str:
        """The sources of the text that the call has read; "" if it has read none. If some are
        untrusted, they hide the files of the workspace."""
        local = [each for each in self._sources if each.startswith(WORKSPACE)]
        untrusted = [each for each in self._sources if each not in local]
        return ", ".join(untrusted or local[:MOST_SOURCES])

    async def require(
        self, effect: Effect, *, metadata_only: bool = False, declared: bool = False
    ) -> None:
        """Wait until the effect may happen, and ask a person if necessary; raise EffectDenied if it
        may not. Effects that read `metadata_only` reveal almost nothing; when allowed, they are not
        recorded. A call named its `declared` effects before it read anything, so what one of them
        brings cannot have caused another."""
        if effect in self._granted and (metadata_only or effect not in self._metadata_only):
            return
        judge = self._judge_declared if declared else self._judge
        judged = JudgedEffect(effect=effect, decision=judge(effect))
        if self.before_change is not None and not is_harmless(judged):
            await self.before_change(effect, self._granted)
            # The calls that ended meanwhile may have brought untrusted text.
            judged = JudgedEffect(effect=effect, decision=judge(effect))
        decision = judged.decision
        if metadata_only and isinstance(decision, Allow) and decision.harmless:
            self._metadata_only.append(effect)
        elif judged not in self._on_record:
            await self._gate.record(self._call_id, judged, declared=declared)
        if await self._gate.admit(self._call_id, judged, self._stop):
            self._approved.append(effect)
        elif isinstance(decision, Allow) and decision.offline:
            self._offline.append(effect)
        self._granted.append(effect)
        if not metadata_only:
            self._metadata_only = [each for each in self._metadata_only if each != effect]
            self.add_origin(effect)

    async def confirm(self, effect: Effect, why: str) -> None:
        """Ask a person regardless of the policy. Raise EffectDenied if the person declines."""
        asked = Ask(reason=why, category="hook", scopes=("once",))
        judged = JudgedEffect(effect=effect, decision=asked)
        await self._gate.admit(self._call_id, judged, self._stop)

    async def authorize_command(self, effect: RunCommand) -> RunCommand:
        """Require the effect and return the command to run. A command that a person approved is not
        confined, and one that runs new code has no network."""
        await self.require(effect)
        if effect in self._approved:
            return replace(effect, grants=ANYWHERE)
        return replace(effect, offline=True) if effect in self._offline else effect

    def permits(self, effect: Effect) -> bool:
        """Whether the policy allows the effect without a question. Asks nobody."""
        return effect in self._granted or isinstance(self._judge(effect), Allow)

    def check(self, effect: Effect) -> None:
        """Raise EffectDenied if an effect that follows from an allowed one is denied."""
        if isinstance(no := self._judge(effect), Deny):
            raise EffectDenied(f"Not allowed: {no.reason}")

    def add_origin(self, effect: Effect) -> None:
        """From now on, count the source of this effect's content as in view."""
        if source := self._gate.origin(effect):
            self.add_source(source)

    def add_source(self, origin: str) -> None:
        """From now on, count text of this origin as in view."""
        self._sources |= dict.fromkeys(sorted(split_origins((origin,))))

    def add_inner_source(self, origin: str) -> None:
        """Count the result of an inner call as in view, and as part of this call's result."""
        self.add_source(origin)
        self._inner |= dict.fromkeys(sorted(split_origins((origin,))))

    def _judge(self, effect: Effect) -> Decision:
        return self._gate.judge(effect, self.sources)

    def _judge_declared(self, effect: Effect) -> Decision:
        return self._gate.judge(effect, self._also)
