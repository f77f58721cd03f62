"""How tests ask the policy: an imaginary person in an imaginary project."""

from __future__ import annotations

from collections.abc import Callable

from hermes.core.effects import Decision, Effect, Principal, RunCommand
from hermes.policy.rules import PolicySettings, SessionPolicy

ROOT = "/srv/people/project"
HOME = "/home/person"
USER = frozenset({"user"})


def rules(
    settings: PolicySettings | None = None,
    *,
    root: str = ROOT,
    home: str = HOME,
    confined: Callable[[], bool] = lambda: False,
    isolated: bool = False,
) -> SessionPolicy:
    return SessionPolicy(
        settings or PolicySettings(),
        root=root,
        home=home,
        state=f"{home}/.hermes",
        keep=lambda _: None,
        confined=confined,
        remote=isolated,
        isolated=isolated,
    )


def command(script: str, cwd: str = ROOT) -> RunCommand:
    return RunCommand(script=script, cwd=cwd)


def decide(
    effect: Effect | str, by: SessionPolicy | None = None, principal: Principal = "owner"
) -> Decision:
    asked = command(effect) if isinstance(effect, str) else effect
    return (by or rules()).decide(asked, principal, USER)
