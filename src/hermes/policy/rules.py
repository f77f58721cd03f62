"""Decides every effect: allow, ask or deny."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Required, TypedDict, Unpack

from hermes.codec.values import Value, replace
from hermes.core.effects import (
    Allow,
    Ask,
    CallServer,
    Decision,
    DeletePath,
    Deny,
    Draw,
    Effect,
    Principal,
    ReadPath,
    RunCommand,
    Scope,
    SignalProcess,
    WritePath,
    subject,
)
from hermes.core.messages import WORKSPACE
from hermes.core.ports import ConversationText, ShellSetup
from hermes.policy.findings import ALL_SCOPES, Verdict
from hermes.policy.owner_rules import (
    Allowlist,
    FolderGrants,
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

log = logging.getLogger(__name__)

MOST_NAMED = 3
FAULT = "The policy failed to judge this, so it is denied. The log has the details."
# What the person's own words allow without another question.
REQUESTABLE = frozenset(("remote_state",))


ISOLATED = "It happens in a container without network and without folders of this machine."


class Blocked(Value):
    """Blocked websites: names or patterns, and files that list them."""

    domains: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class PolicySettings(Value):
    """The settings of the policy for one session."""

    # "smart" lets a model approve simple effects; "off" allows what would be asked.
    mode: Literal["manual", "smart", "off"] = "manual"
    deny: tuple[str, ...] = ()  # patterns of commands that never run
    allowed: tuple[str, ...] = ()  # the exact effects that need no question
    rules: tuple[Rule, ...] = ()  # the owner's rules
    surface: str = ""  # where the session runs: "cli", "api" and so on
    private: bool = False  # whether fetches may go to this machine and private networks
    blocked: Blocked = Blocked()
    hosts: tuple[str, ...] = ()  # hosts to which untrusted text may cause data to be sent
    trusted: tuple[str, ...] = ()  # if there are such folders, files elsewhere are untrusted text
    # When the session began, in seconds since 1970: files written later are read before they run.
    since: float | None = None
    safe_roots: tuple[str, ...] = ()  # if there are such folders, nothing is written elsewhere


class Surroundings(TypedDict, total=False):
    """Where a session works."""

    root: Required[str]  # the folder of the session
    home: Required[str]  # the home folder of the user
    state: Required[str]  # the home of Hermes
    resolver: HostResolver | None
    now: Callable[[], float]
    remote: bool  # whether it is another machine; its paths are not looked up on this one
    # Whether a path is an unchanged file of the distribution, which may run.
    shipped: Callable[[str], bool]
    shell: Callable[[], ShellSetup]  # what earlier commands have defined in the shell
    tainted_files: TaintedFiles | None  # files that were written while untrusted text was in view
    texts: FileTexts | None  # the contents of tainted files on another machine
    # Whether commands run without a network, write only in the workspace and can be undone: unknown
    # programs may run then.
    confined: Callable[[], bool]
    # Folders besides the root with data of the session itself.
    own_folders: tuple[str, ...]
    # Whether commands and files are those of a container that has no network and no folder of this
    # machine: what happens there needs no question.
    isolated: bool


class SessionPolicy:
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
        self.untrusted_sources: frozenset[str] = frozenset()
        # Called when another source of untrusted text comes into view.
        self.on_untrusted: list[Callable[[], None]] = []
        self._allowed_here: set[str] = set()
        self._folders = FolderGrants(surroundings["home"])

    def decide(
        self,
        effect: Effect,
        principal: Principal,
        origins: frozenset[str],
        seen: ConversationText | None = None,
    ) -> Decision:
        """Decide an effect. What cannot be judged because of a fault is denied."""
        try:
            return self._decide(effect, principal, origins, seen)
        except Exception:
            log.exception("The policy failed to judge an effect.")
            return Deny(reason=FAULT, category="unclear")

    def _decide(
        self,
        effect: Effect,
        principal: Principal,
        origins: frozenset[str],
        seen: ConversationText | None,
    ) -> Decision:
        verdict = self._judge.judge(effect, seen)
        self._add_untrusted(self._judge.untrusted_origins(origins))
        if isinstance(verdict.decision, Deny):
            return verdict.decision
        if refused := self._deny_by_rule(effect, principal, verdict):
            return refused
        if principal not in ("owner", "system"):
            return self._for_others(effect, principal, verdict)
        decision = self._add_questions(effect, principal, origins, verdict)
        if isinstance(decision, Ask):
            if not self._judge.untrusted_origins(origins):
                decision = self._folders.offer(effect, decision)
            if why := self._why_answered(effect, principal, verdict, decision, origins):
                return Allow(reason=why, lifted=True)
            if verdict.single and decision.scopes == ALL_SCOPES and self.mode == "smart":
                return replace(decision, simple=True)
        if isinstance(decision, Allow) and decision.offline:
            own_rule = self._owner_rules.find_allow(effect, principal, verdict.texts[1:])
            approved = own_rule is not None or subject(effect) in self._allowed
            return replace(decision, offline=not approved and self.mode != "off")
        return decision

    def origin(self, effect: Effect) -> str:
        origin = self._judge.origin(effect)
        if origin:
            self._add_untrusted(self._judge.untrusted_origins((origin,)))
        return origin

    def _add_untrusted(self, sources: Iterable[str]) -> None:
        if new := frozenset(sources) - self.untrusted_sources:
            self.untrusted_sources |= new
            for listener in tuple(self.on_untrusted):
                listener()

    def remember(self, effect: Effect, scope: Scope) -> None:
        if scope == "once":
            return
        if scope == "folder":
            self._folders.add(effect)
            return
        self._allowed.add(subject(effect))
        self._allowed_here.add(subject(effect))
        if scope != "always":
            return
        if tainted_files := self._judge.judge(effect, None).tainted_files:
            # Their current content is trusted from now on; the same command with other content is
            # asked about again.
            self._judge.clear(tainted_files)
        else:
            self._keep(seal(subject(effect), self._mask))

    def verdict(self, effect: RunCommand) -> Verdict:
        """Return all findings about a command."""
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
        self, effect: Effect, principal: Principal, verdict: EffectVerdict
    ) -> Deny | None:
        if isinstance(effect, RunCommand | SignalProcess):
            texts = verdict.texts or (kind_and_target(effect)[1],)
            for pattern in self._settings.deny:
                if any(fnmatchcase(text, pattern) for text in texts):
                    return Deny(reason=f"Your settings deny {pattern!r}.", category="settings")
        rule = self._owner_rules.find("deny", effect, principal, verdict.texts)
        if rule is None:
            return None
        return Deny(reason=rule.reason or f"A rule denies {rule.match!r}.", category="settings")

    def _for_others(self, effect: Effect, principal: Principal, verdict: EffectVerdict) -> Decision:
        """Decide for members and guests: they may read their own files; all else needs a rule that
        names them. A command could read any file."""
        harmless = isinstance(verdict.decision, Allow) and verdict.decision.harmless
        is_theirs = not isinstance(effect, ReadPath) or self._is_in_own_folder(effect.path)
        if harmless and is_theirs and not isinstance(effect, CallServer | Draw | RunCommand):
            return verdict.decision
        if rule := self._owner_rules.find_allow(effect, principal, verdict.texts[1:]):
            return Allow(reason=f"A rule allows {rule.match!r} to a {principal}.")
        return Deny(reason="Only the owner may do this.", category="principal")

    def _is_in_own_folder(self, path: str) -> bool:
        folders = (self._surroundings["root"], *self._surroundings.get("own_folders", ()))
        if not self._surroundings.get("remote"):
            path = os.path.realpath(os.path.join(folders[0], path))  # noqa: PTH118
            folders = tuple(os.path.realpath(folder) for folder in folders)
        return any(f"{path}/".startswith(folder.rstrip("/") + "/") for folder in folders)

    def _add_questions(
        self, effect: Effect, principal: Principal, origins: frozenset[str], verdict: EffectVerdict
    ) -> Decision:
        """Apply the owner's `ask` rules and the rules for untrusted text. Every question names the
        sources of untrusted text in view, because they may be behind the request."""
        decision = verdict.decision
        others = self._judge.untrusted_origins(origins)
        sources = _describe_taint(verdict)
        if others:
            sources = (
                f" Text from {', '.join(others)} is in view, which may have caused this.{sources}"
            )
        if isinstance(decision, Ask):
            scopes = decision.scopes
            if others and not verdict.tainted_files:
                # Untrusted text rules out `always`, unless the answer is bound to file contents.
                scopes = tuple(scope for scope in scopes if scope != "always")
            return replace(decision, reason=f"{decision.reason}{sources}", scopes=scopes)
        if rule := self._owner_rules.find("ask", effect, principal, verdict.texts):
            reason = rule.reason or f"A rule requires approval for {rule.match!r}."
            return Ask(reason=reason, category="settings")
        if verdict.outward and sources:
            scopes = ALL_SCOPES if verdict.tainted_files else ("once",)
            reason = f"{verdict.outward}{sources}"
            return Ask(reason=reason, category=verdict.outward_category, scopes=scopes)
        if verdict.steered and (local := self._judge.local_origins(origins)):
            reason = f"{verdict.steered}{_describe_files(local)}"
            scopes = ("once", "session")
            return Ask(reason=reason, category=verdict.outward_category, scopes=scopes)
        return decision

    def _why_answered(
        self,
        effect: Effect,
        principal: Principal,
        verdict: EffectVerdict,
        ask: Ask,
        origins: frozenset[str],
    ) -> str:
        """Return why a question need not be asked, or "". The stored allowlist does not cover
        commands that involve tainted files."""
        allowed = self._allowed_here if verdict.tainted_files else self._allowed
        if subject(effect) in allowed:
            return "Allowed beforehand."
        if "folder" in ask.scopes and effect in self._folders:
            return "Allowed in this folder beforehand."
        if ask.category != "settings" and (
            rule := self._owner_rules.find_allow(effect, principal, verdict.open_)
        ):
            return f"A rule allows {rule.match!r}."
        # A question of the policy hides one of the owner.
        own = self._owner_rules.find("ask", effect, principal, verdict.texts)
        if own is None and self._is_isolated(effect):
            return ISOLATED
        if own is None and self._is_requested(verdict, ask, origins):
            return "You asked for it."
        return "Questions are off." if self.mode == "off" else ""

    def _is_requested(self, verdict: EffectVerdict, ask: Ask, origins: frozenset[str]) -> bool:
        """Whether the person's own words answer the question. They do not if untrusted text could
        have decided what is sent."""
        if not verdict.requested or ask.category not in REQUESTABLE or verdict.tainted_files:
            return False
        return not self._judge.untrusted_origins(origins)

    def _is_isolated(self, effect: Effect) -> bool:
        inside = isinstance(effect, RunCommand | ReadPath | WritePath | DeletePath | SignalProcess)
        return inside and self._surroundings.get("isolated", False)


def _describe_files(origins: tuple[str, ...]) -> str:
    """Return the sentence of a question that names the files and programs whose text is in view."""
    names = [name for each in origins for name in each.removeprefix(WORKSPACE).split(", ")]
    shown = ", ".join(name.removeprefix(WORKSPACE) for name in names[:MOST_NAMED])
    more = len(names) - MOST_NAMED
    shown += f" and {more} more" if more > 0 else ""
    return f" You did not ask for this; text from {shown} is in view, which may have caused it."


def _describe_taint(verdict: EffectVerdict) -> str:
    """Return the sentence of a question that names the tainted files, or ""."""
    if not verdict.tainted_files:
        return ""
    shown = ", ".join(path.rpartition("/")[2] for path in verdict.tainted_files[:MOST_NAMED])
    more = len(verdict.tainted_files) - MOST_NAMED
    shown += f" and {more} more" if more > 0 else ""
    were = "were" if len(verdict.tainted_files) > 1 else "was"
    return f" {shown} {were} written while text from {', '.join(verdict.sources)} was in view."
