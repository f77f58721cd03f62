"""The policy: one function decides every effect: allow, ask or deny."""

from __future__ import annotations

import logging
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal, assert_never

from hermes.codec.values import Value
from hermes.core.effects import (
    Allow,
    Ask,
    CallServer,
    ChangeSkill,
    Decision,
    DeletePath,
    Deny,
    Effect,
    FetchUrl,
    Principal,
    ReadHistory,
    ReadPath,
    Remember,
    RunCommand,
    Scope,
    SignalProcess,
    UseSecret,
    WritePath,
    subject,
)
from hermes.policy.findings import ONLY_ONCE, OUTWARD, Finding, Level, Verdict
from hermes.policy.paths import Paths
from hermes.policy.standing import Rule, Standing

if TYPE_CHECKING:
    from hermes.policy.commands import Commands

log = logging.getLogger(__name__)

# Says whether a single command that would be asked about may run. It can only lower a question.
Judge = Callable[[RunCommand, Ask], bool]
TRUSTED = frozenset(("user", "workspace", "hermes"))
ALL_SCOPES = ("once", "session", "always")


class PolicySettings(Value):
    """`deny` are patterns of commands that are never run; `allowed` are effects, word by word as
    the person saw them, that need no question any more; `rules` are the owner's standing rules.
    `surface` is where the session is held: "cli", "gateway", "api" and so on."""

    mode: Literal["manual", "smart", "off"] = "manual"
    deny: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    surface: str = ""


class Judged(Value):
    """A decision with what stands behind it. `open_` are the commands that a rule would have to
    allow; `outward` is the first finding that untrusted text must not cause by itself."""

    decision: Decision
    texts: tuple[str, ...] = ()
    open_: tuple[str, ...] = ()
    single: bool = False
    outward: str = ""


class Rules:
    """The rules of one session. `keep` stores what a person allowed for ever."""

    def __init__(
        self,
        settings: PolicySettings,
        *,
        root: str,
        home: str,
        state: str,
        keep: Callable[[str], None],
        judge: Judge | None = None,
    ) -> None:
        self._settings = settings
        self._paths = Paths(root, home, state)
        self._standing = Standing(settings.rules, settings.surface)
        self._allowed = set(settings.allowed)
        self._keep = keep
        self._judge_of_asks = judge
        self._commands: Commands | None = None

    def decide(self, effect: Effect, principal: Principal, origins: frozenset[str]) -> Decision:
        judged = self._judge(effect)
        decision = judged.decision
        if isinstance(decision, Deny):
            return decision
        if refused := self._refused(effect, principal, judged):
            return refused
        if principal not in ("owner", "system"):
            return self._for_others(effect, principal, judged)
        decision = self._raised(effect, principal, origins, judged)
        if isinstance(decision, Ask) and (why := self._lifted(effect, principal, judged, decision)):
            return Allow(reason=why)
        return decision

    def remember(self, effect: Effect, scope: Scope) -> None:
        if scope == "once":
            return
        self._allowed.add(subject(effect))
        if scope == "always":
            self._keep(subject(effect))

    def verdict(self, effect: RunCommand) -> Verdict:
        """Everything that was found about a command."""
        if self._commands is None:
            # Knowing programs takes long to load, and a session may never run one.
            from hermes.policy.commands import Commands

            self._commands = Commands(self._paths)
        return self._commands.judge(effect)

    def _refused(self, effect: Effect, principal: Principal, judged: Judged) -> Deny | None:
        texts = judged.texts or (_target(effect),)
        if isinstance(effect, RunCommand):
            for pattern in self._settings.deny:
                if any(fnmatchcase(text, pattern) for text in texts):
                    return Deny(reason=f"Your settings deny {pattern!r}.", category="settings")
        rule = self._standing.denying(effect, principal, texts)
        if rule is None:
            return None
        return Deny(reason=rule.reason or f"A rule denies {rule.match!r}.", category="settings")

    def _for_others(self, effect: Effect, principal: Principal, judged: Judged) -> Decision:
        """Members and guests may look; more only where a rule names them."""
        if isinstance(judged.decision, Allow) and judged.decision.harmless:
            return judged.decision
        texts = judged.texts[1:] or (_target(effect),)
        if rule := self._standing.allowing(effect, principal, texts):
            return Allow(reason=f"A rule allows {rule.match!r} to a {principal}.")
        return Deny(reason="Only the owner may do this.", category="principal")

    def _raised(
        self, effect: Effect, principal: Principal, origins: frozenset[str], judged: Judged
    ) -> Decision:
        """What would be allowed, and is asked about for the owner's or safety's sake."""
        decision = judged.decision
        if not isinstance(decision, Allow):
            return decision
        if rule := self._standing.asking(effect, principal, judged.texts or (_target(effect),)):
            reason = rule.reason or f"A rule wants to be asked about {rule.match!r}."
            return Ask(reason=reason, category="settings")
        sources = sorted(each for each in origins if not is_trusted(each))
        if judged.outward and sources:
            reason = f"Text from {', '.join(sources)} is in view. {judged.outward}"
            return Ask(reason=reason, category="network", scopes=("once",))
        return decision

    def _lifted(self, effect: Effect, principal: Principal, judged: Judged, ask: Ask) -> str:
        """Why a question need not be asked, or nothing."""
        if subject(effect) in self._allowed:
            return "Allowed beforehand."
        open_ = judged.open_ or (_target(effect),)
        if ask.category != "settings" and (
            rule := self._standing.allowing(effect, principal, open_)
        ):
            return f"A rule allows {rule.match!r}."
        if self._settings.mode == "off":
            return "Questions are off."
        if self._settings.mode == "smart" and self._judge_approves(effect, judged, ask):
            return "Judged to be safe."
        return ""

    def _judge_approves(self, effect: Effect, judged: Judged, ask: Ask) -> bool:
        judge = self._judge_of_asks
        if judge is None or not isinstance(effect, RunCommand):
            return False
        if not judged.single or ask.scopes != ALL_SCOPES:
            return False
        try:
            return judge(effect, ask) is True
        except Exception:
            log.exception("the judge of commands failed")
            return False

    def _judge(self, effect: Effect) -> Judged:
        match effect:
            case RunCommand():
                return self._command(effect)
            case ReadPath():
                return Judged(decision=self._paths.read(effect.path))
            case WritePath() | DeletePath():
                return Judged(decision=self._paths.write(effect.path))
            case SignalProcess():
                return Judged(decision=Allow())
            case FetchUrl():
                asked = Ask(reason=f"It contacts {effect.url}.", category="network_out")
                return Judged(decision=asked)
            case ReadHistory():
                return Judged(decision=Allow(harmless=True))
            case Remember():
                return Judged(decision=Allow(), outward="It would be remembered.")
            case ChangeSkill():
                return Judged(decision=Allow(), outward="It would change a skill.")
            case CallServer():
                outward = f"It would send something to {effect.server}."
                return Judged(decision=Allow(), outward=outward)
            case UseSecret():
                reason = f"{effect.recipient} would be given the secret {effect.name}."
                return Judged(decision=Ask(reason=reason, category="credentials"))
            case _:
                assert_never(effect)

    def _command(self, effect: RunCommand) -> Judged:
        verdict = self.verdict(effect)
        outward = next((each.reason for each in verdict.findings if each.category in OUTWARD), "")
        asked = [each.command for each in verdict.findings if each.level is Level.ASKED]
        return Judged(
            decision=_decision(verdict.worst),
            texts=(effect.script, *verdict.commands),
            open_=tuple(dict.fromkeys(asked)),
            single=len(verdict.commands) == 1,
            outward=outward,
        )


def _decision(worst: Finding) -> Decision:
    match worst.level:
        case Level.NEVER:
            reason = f"This is never run: {worst.reason}."
            return Deny(reason=reason, category=worst.category, hardline=True)
        case Level.DENIED:
            return Deny(reason=worst.reason, category=worst.category)
        case Level.ASKED:
            scopes = ("once",) if worst.category in ONLY_ONCE else ALL_SCOPES
            return Ask(reason=worst.reason, category=worst.category, scopes=scopes)
    return Allow(harmless=worst.level is Level.HARMLESS, reason=worst.reason)


def _target(effect: Effect) -> str:
    """What a rule's pattern is held against."""
    match effect:
        case RunCommand(script=script):
            return script
        case ReadPath(path=path) | WritePath(path=path) | DeletePath(path=path):
            return path
        case FetchUrl(url=url):
            return url
        case SignalProcess(process_id=process_id):
            return process_id
        case ReadHistory(query=query):
            return query
        case Remember(text=text):
            return text
        case ChangeSkill(name=name) | UseSecret(name=name):
            return name
        case CallServer(server=server, tool=tool):
            return f"{server}/{tool}"


def is_trusted(origin: str) -> bool:
    """Words from there may lead to lasting effects without a question."""
    return origin in TRUSTED or origin.startswith("process:")
