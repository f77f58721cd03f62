"""Decides every effect: allow, ask or deny."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Required, TypedDict, Unpack

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
    kind_and_target,
    mask_secrets,
    seal,
)

if TYPE_CHECKING:
    from hermes.policy.effect_judge import EffectJudge, EffectVerdict
    from hermes.policy.places.files import Files
    from hermes.policy.session_files import FileTexts, TaintedFiles
    from hermes.policy.urls.url_policy import HostResolver, UrlPolicy

MOST_NAMED = 3


class Blocked(Value):
    """Blocked websites: names or patterns, and files that list them."""

    domains: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class PolicySettings(Value):
    """`deny` holds patterns of commands that never run; `allowed` the exact effects that need no
    question; `rules` the owner's rules. `surface` is where the session runs: "cli", "api" and so
    on. `private` allows fetches from this machine and private networks. `hosts` may be sent data
    that untrusted text asks for. If there are `trusted` folders, files elsewhere are untrusted
    text. `since` is when the session began, in seconds since 1970: files written later are read
    before they run. If there are `safe_roots`, nothing is written elsewhere."""

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


class Surroundings(TypedDict, total=False):
    """Where a session works. Nothing of a `remote` workspace is looked up on this machine.
    `shipped` is true for unchanged files of the distribution, which may run. `suspects` knows files
    that were written while untrusted text was in view, `texts` their content on another machine.
    `confined` is true when commands run without a network, write only in the workspace and can be
    undone: unknown programs may run then."""

    root: Required[str]
    home: Required[str]
    state: Required[str]
    resolver: HostResolver | None
    now: Callable[[], float]
    remote: bool
    shipped: Callable[[str], bool]
    shell: Callable[[], ShellSetup]
    suspects: TaintedFiles | None
    texts: FileTexts | None
    confined: Callable[[], bool]


class Rules:
    """The policy of one session. `keep` stores what a person allowed always, after `mask` removed
    secrets."""

    def __init__(
        self,
        settings: PolicySettings,
        *,
        keep: Callable[[str], None],
        mask: Mask = mask_secrets,
        **surroundings: Unpack[Surroundings],
    ) -> None:
        # The person may change it during the session.
        self.mode = settings.mode
        self._settings = settings
        self._surroundings = surroundings
        self._owner_rules = OwnerRules(settings.rules, settings.surface)
        self._allowed = Allowlist(settings.allowed, mask)
        self._mask = mask
        self._keep = keep
        # Sources of untrusted text that effects were judged with or brought in.
        self.in_sight: frozenset[str] = frozenset()
        self._allowed_here: set[str] = set()

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
        if refused := self._deny_by_rule(effect, principal, case):
            return refused
        if principal not in ("owner", "system"):
            return self._for_others(effect, principal, case)
        decision = self._add_questions(effect, principal, origins, case)
        if isinstance(decision, Ask):
            if why := self._why_answered(effect, principal, case, decision):
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
        if scope != "always":
            return
        if suspects := self._judge.judge(effect, None).suspects:
            # Their current content is trusted from now on; the same command with other content is
            # asked about again.
            self._judge.clear(suspects)
        else:
            self._keep(seal(subject(effect), self._mask))

    def verdict(self, effect: RunCommand) -> Verdict:
        """All findings about a command."""
        return self._judge.verdict(effect)

    @property
    def files(self) -> Files:
        """The rules for paths, for attachments, references and archives."""
        return self._judge.files

    @property
    def urls(self) -> UrlPolicy:
        """The rules for URLs, for code that connects."""
        return self._judge.urls

    @cached_property
    def _judge(self) -> EffectJudge:
        # A session that uses no tool does not need it.
        from hermes.policy.effect_judge import EffectJudge

        return EffectJudge(self._settings, **self._surroundings)

    def _deny_by_rule(
        self, effect: Effect, principal: Principal, case: EffectVerdict
    ) -> Deny | None:
        if isinstance(effect, RunCommand | SignalProcess):
            texts = case.texts or (kind_and_target(effect)[1],)
            for pattern in self._settings.deny:
                if any(fnmatchcase(text, pattern) for text in texts):
                    return Deny(reason=f"Your settings deny {pattern!r}.", category="settings")
        rule = self._owner_rules.find("deny", effect, principal, case.texts)
        if rule is None:
            return None
        return Deny(reason=rule.reason or f"A rule denies {rule.match!r}.", category="settings")

    def _for_others(self, effect: Effect, principal: Principal, case: EffectVerdict) -> Decision:
        """Members and guests may read; everything else needs a rule that names them."""
        harmless = isinstance(case.decision, Allow) and case.decision.harmless
        if harmless and not isinstance(effect, CallServer | Draw):
            return case.decision
        if rule := self._owner_rules.find_allow(effect, principal, case.texts[1:]):
            return Allow(reason=f"A rule allows {rule.match!r} to a {principal}.")
        return Deny(reason="Only the owner may do this.", category="principal")

    def _add_questions(
        self, effect: Effect, principal: Principal, origins: frozenset[str], case: EffectVerdict
    ) -> Decision:
        """Adds the owner's `ask` rules and untrusted text. Every question names the sources of
        untrusted text in view, because they may be behind the request."""
        decision = case.decision
        others = self._judge.strangers(origins)
        sources = _behind(case)
        if others:
            sources = (
                f" Text from {', '.join(others)} is in view, which may have caused this.{sources}"
            )
        if isinstance(decision, Ask):
            scopes = decision.scopes
            if others and not case.suspects:
                # Untrusted text rules out `always`, unless the answer is bound to file contents.
                scopes = tuple(scope for scope in scopes if scope != "always")
            return replace(decision, reason=f"{decision.reason}{sources}", scopes=scopes)
        if rule := self._owner_rules.find("ask", effect, principal, case.texts):
            reason = rule.reason or f"A rule requires approval for {rule.match!r}."
            return Ask(reason=reason, category="settings")
        if case.outward and sources:
            scopes = ALL_SCOPES if case.suspects else ("once",)
            reason = f"{case.outward}{sources}"
            return Ask(reason=reason, category=case.outward_category, scopes=scopes)
        return decision

    def _why_answered(
        self, effect: Effect, principal: Principal, case: EffectVerdict, ask: Ask
    ) -> str:
        """Why a question need not be asked, or nothing. The stored allowlist does not cover
        commands that involve tainted files."""
        allowed = self._allowed_here if case.suspects else self._allowed
        if subject(effect) in allowed:
            return "Allowed beforehand."
        if ask.category != "settings" and (
            rule := self._owner_rules.find_allow(effect, principal, case.open_)
        ):
            return f"A rule allows {rule.match!r}."
        return "Questions are off." if self.mode == "off" else ""


def _behind(case: EffectVerdict) -> str:
    """Names the tainted files in a question."""
    if not case.suspects:
        return ""
    shown = ", ".join(path.rpartition("/")[2] for path in case.suspects[:MOST_NAMED])
    more = len(case.suspects) - MOST_NAMED
    shown += f" and {more} more" if more > 0 else ""
    were = "were" if len(case.suspects) > 1 else "was"
    return f" {shown} {were} written while text from {', '.join(case.sources)} was in view."
