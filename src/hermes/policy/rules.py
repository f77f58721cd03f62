"""The policy: one function decides every effect: allow, ask or deny."""

from __future__ import annotations

import time
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal

from hermes.codec.values import Value, replace
from hermes.core.effects import (
    Allow,
    Ask,
    CallServer,
    Decision,
    Deny,
    Draw,
    Effect,
    Principal,
    RunCommand,
    Scope,
    SignalProcess,
    subject,
)
from hermes.core.ports import ConversationText, ShellSetup
from hermes.policy.findings import ALL_SCOPES, Verdict
from hermes.policy.owner_rules import (
    Allowlist,
    Mask,
    OwnerRules,
    Rule,
    mask_secrets,
    rule_target,
    seal,
)

if TYPE_CHECKING:
    from hermes.policy.effect_judge import EffectJudge, EffectVerdict
    from hermes.policy.places.files import Files
    from hermes.policy.session_files import FileTexts, TaintedFiles
    from hermes.policy.urls.judging import Urls
    from hermes.policy.urls.resolver import Resolver

MOST_NAMED = 3


class Blocked(Value):
    """Websites that are not visited: names or patterns, and files with a list of them."""

    domains: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class PolicySettings(Value):
    """`deny` are patterns of commands that are never run; `allowed` are effects, word by word as
    the person saw them, that need no question any more; `rules` are the owner's standing rules.
    `surface` is where the session is held: "cli", "gateway", "api" and so on. `private` opens this
    machine and its networks to fetches. `hosts` may be sent what strangers' text asks for;
    `trusted` folders, if there are any, are the only ones whose files are not strangers' text.
    `since` is when the session began, in seconds since 1970: what was written after it is looked
    into before it is run. `safe_roots`, if there are any, are the only folders in which anything
    may be written."""

    mode: Literal["manual", "smart", "off"] = "manual"
    deny: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    surface: str = ""
    private: bool = False
    blocked: Blocked = Blocked()
    hosts: tuple[str, ...] = ()
    trusted: tuple[str, ...] = ()
    since: float | None = None
    safe_roots: tuple[str, ...] = ()


class Rules:
    """The rules of one session. `keep` stores what a person allowed for ever; `mask` takes the
    secrets out of it before. Of a workspace that is `far` nothing is looked up on this machine.
    `shipped` tells whether a file came with the program and is as it came: it may be run.
    `suspects` knows the files that were written in sight of strangers, `texts` what they hold where
    they do not lie on this machine. `confined` tells whether commands run without a network, write
    only in the workspace and can be undone: unknown programs may run then."""

    def __init__(
        self,
        settings: PolicySettings,
        *,
        root: str,
        home: str,
        state: str,
        keep: Callable[[str], None],
        resolver: Resolver | None = None,
        now: Callable[[], float] = time.monotonic,
        far: bool = False,
        shipped: Callable[[str], bool] = lambda _: False,
        mask: Mask = mask_secrets,
        shell: Callable[[], ShellSetup] = ShellSetup,
        suspects: TaintedFiles | None = None,
        texts: FileTexts | None = None,
        confined: Callable[[], bool] = lambda: False,
    ) -> None:
        # A person may choose another one while the session goes on.
        self.mode = settings.mode
        self._settings = settings
        self._far = far
        self._folders = (root, home, state)
        self._owner_rules = OwnerRules(settings.rules, settings.surface)
        self._allowed = Allowlist(settings.allowed, mask)
        self._mask = mask
        self._shipped = shipped
        self._shell = shell
        self._confined = confined
        self._keep = keep
        self._resolver = resolver
        self._now = now
        self._suspects = suspects
        self._texts = texts
        # Sources of strangers' text that effects were judged with, or that they brought.
        self.in_sight: frozenset[str] = frozenset()
        self._allowed_here: set[str] = set()
        self._effects: EffectJudge | None = None

    def decide(
        self,
        effect: Effect,
        principal: Principal,
        origins: frozenset[str],
        seen: ConversationText | None = None,
    ) -> Decision:
        case = self._judge.judge(effect, seen)
        self.in_sight |= set(self._judge.strangers(origins))
        if isinstance(case.decision, Deny):
            return case.decision
        if refused := self._refused(effect, principal, case):
            return refused
        if principal not in ("owner", "system"):
            return self._for_others(effect, principal, case)
        decision = self._raised(effect, principal, origins, case)
        if isinstance(decision, Ask):
            if why := self._lifted(effect, principal, case, decision):
                return Allow(reason=why, lifted=True)
            if case.single and decision.scopes == ALL_SCOPES and self.mode == "smart":
                return replace(decision, simple=True)
        return decision

    def origin(self, effect: Effect) -> str:
        origin = self._judge.origin(effect)
        if origin:
            self.in_sight |= set(self._judge.strangers((origin,)))
        return origin

    def remember(self, effect: Effect, scope: Scope) -> None:
        if scope == "once":
            return
        self._allowed.add(subject(effect))
        self._allowed_here.add(subject(effect))
        if scope == "always" and not self._cleared(effect):
            self._keep(seal(subject(effect), self._mask))

    def _cleared(self, effect: Effect) -> bool:
        """Whether the yes was about files that strangers may have had written. They are the
        person's from now on, as they are now; the same words with other files are asked about."""
        suspects = self._judge.judge(effect, None).suspects
        if suspects:
            self._judge.clear(suspects)
        return bool(suspects)

    def verdict(self, effect: RunCommand) -> Verdict:
        """Everything that was found about a command."""
        return self._judge.verdict(effect)

    @property
    def files(self) -> Files:
        """What is known of files, for whoever judges them as more than read and written."""
        return self._judge.files

    @property
    def urls(self) -> Urls:
        """Passages to addresses, for whoever connects."""
        return self._judge.urls

    @property
    def _judge(self) -> EffectJudge:
        if self._effects is None:
            # A session that uses no tool needs nothing of what is known about the world.
            from hermes.policy.effect_judge import EffectJudge

            root, home, state = self._folders
            self._effects = EffectJudge(
                self._settings,
                root=root,
                home=home,
                state=state,
                resolver=self._resolver,
                now=self._now,
                far=self._far,
                shipped=self._shipped,
                shell=self._shell,
                suspects=self._suspects,
                texts=self._texts,
                confined=self._confined,
            )
        return self._effects

    def _refused(self, effect: Effect, principal: Principal, case: EffectVerdict) -> Deny | None:
        texts = case.texts or (rule_target(effect),)
        if isinstance(effect, RunCommand | SignalProcess):
            for pattern in self._settings.deny:
                if any(fnmatchcase(text, pattern) for text in texts):
                    return Deny(reason=f"Your settings deny {pattern!r}.", category="settings")
        rule = self._owner_rules.find_deny(effect, principal, texts)
        if rule is None:
            return None
        return Deny(reason=rule.reason or f"A rule denies {rule.match!r}.", category="settings")

    def _for_others(self, effect: Effect, principal: Principal, case: EffectVerdict) -> Decision:
        """Members and guests may look; more only where a rule names them."""
        harmless = isinstance(case.decision, Allow) and case.decision.harmless
        if harmless and not isinstance(effect, CallServer | Draw):
            return case.decision
        texts = case.texts[1:] or (rule_target(effect),)
        if rule := self._owner_rules.find_allow(effect, principal, texts):
            return Allow(reason=f"A rule allows {rule.match!r} to a {principal}.")
        return Deny(reason="Only the owner may do this.", category="principal")

    def _raised(
        self, effect: Effect, principal: Principal, origins: frozenset[str], case: EffectVerdict
    ) -> Decision:
        """What is asked about for the owner's or safety's sake. Every question in a conversation
        with strangers' text names them: they may be who wants it."""
        decision = case.decision
        others = self._judge.strangers(origins)
        sources = _in_view(others) + _behind(case)
        if isinstance(decision, Ask):
            return replace(
                decision,
                reason=f"{decision.reason}{sources}",
                scopes=_without_always(decision.scopes, others, case),
            )
        if rule := self._owner_rules.find_ask(
            effect, principal, case.texts or (rule_target(effect),)
        ):
            reason = rule.reason or f"A rule wants to be asked about {rule.match!r}."
            return Ask(reason=reason, category="settings")
        if case.outward and sources:
            scopes = ALL_SCOPES if case.suspects else ("once",)
            reason = f"{case.outward}{sources}"
            return Ask(reason=reason, category=case.outward_category, scopes=scopes)
        return decision

    def _lifted(self, effect: Effect, principal: Principal, case: EffectVerdict, ask: Ask) -> str:
        """Why a question need not be asked, or nothing. What was allowed for ever was allowed as
        it was then, before strangers' files had a part in it."""
        allowed = self._allowed_here if case.suspects else self._allowed
        if subject(effect) in allowed:
            return "Allowed beforehand."
        open_ = case.open_ or (rule_target(effect),)
        if ask.category != "settings" and (
            rule := self._owner_rules.find_allow(effect, principal, open_)
        ):
            return f"A rule allows {rule.match!r}."
        return "Questions are off." if self.mode == "off" else ""


def _in_view(others: tuple[str, ...]) -> str:
    if not others:
        return ""
    return f" Text from {', '.join(others)} is in view, which may be what wants this."


def _behind(case: EffectVerdict) -> str:
    """Which files strangers may have had written, for whoever is asked."""
    if not case.suspects:
        return ""
    shown = ", ".join(path.rpartition("/")[2] for path in case.suspects[:MOST_NAMED])
    more = len(case.suspects) - MOST_NAMED
    shown += f" and {more} more" if more > 0 else ""
    were = "were" if len(case.suspects) > 1 else "was"
    return f" {shown} {were} written while text from {', '.join(case.sources)} was in view."


def _without_always(
    scopes: tuple[str, ...], others: tuple[str, ...], case: EffectVerdict
) -> tuple[str, ...]:
    """With strangers in view nothing is allowed for ever, unless bound to files as they are."""
    if not others or case.suspects:
        return scopes
    return tuple(scope for scope in scopes if scope != "always")
