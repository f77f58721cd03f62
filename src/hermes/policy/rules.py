"""The policy: one function decides every effect: allow, ask or deny."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Literal, assert_never

from hermes.codec.values import Value
from hermes.core.effects import (
    Allow,
    Ask,
    Decision,
    DeletePath,
    Deny,
    Effect,
    FetchUrl,
    Principal,
    ReadPath,
    RunCommand,
    Scope,
    SignalProcess,
    WritePath,
    subject,
)
from hermes.policy.commands import Commands
from hermes.policy.paths import Paths


class PolicySettings(Value):
    """`deny` are patterns of commands that are never run; `allowed` are effects, word by word as
    the person saw them, that need no question any more."""

    mode: Literal["manual", "off"] = "manual"
    deny: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()


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
    ) -> None:
        self._settings = settings
        self._paths = Paths(root, home, state)
        self._commands = Commands(home, self._paths.sensitive)
        self._allowed = set(settings.allowed)
        self._keep = keep

    def decide(self, effect: Effect, principal: Principal, origins: frozenset[str]) -> Decision:
        decision = self._judge(effect)
        if principal not in ("owner", "system") and not _harmless(decision):
            return Deny(reason="Only the owner may do this.", category="principal")
        if isinstance(decision, Ask) and (
            self._settings.mode == "off" or subject(effect) in self._allowed
        ):
            return Allow(reason="Allowed beforehand.")
        return decision

    def remember(self, effect: Effect, scope: Scope) -> None:
        if scope == "once":
            return
        self._allowed.add(subject(effect))
        if scope == "always":
            self._keep(subject(effect))

    def _judge(self, effect: Effect) -> Decision:
        match effect:
            case RunCommand():
                return self._command(effect)
            case ReadPath():
                return self._paths.read(effect.path)
            case WritePath() | DeletePath():
                return self._paths.write(effect.path)
            case SignalProcess():
                return Allow()
            case FetchUrl():
                return Ask(reason=f"It contacts {effect.url}.", category="network")
            case _:
                assert_never(effect)

    def _command(self, effect: RunCommand) -> Decision:
        decision = self._commands.judge(effect)
        if isinstance(decision, Deny):
            return decision
        for pattern in self._settings.deny:
            if fnmatchcase(effect.script, pattern):
                return Deny(reason=f"Your settings deny {pattern!r}.", category="settings")
        return decision


def _harmless(decision: Decision) -> bool:
    return isinstance(decision, Allow) and decision.harmless
