"""Findings about an effect: level, category and reason, and the decision they lead to."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from hermes.codec.values import Value, replace
from hermes.core.effects import Allow, Ask, Decision, Deny


class Level(IntEnum):
    """How bad a finding is."""

    HARMLESS = 0
    WORK = 1
    ASKED = 2
    DENIED = 3  # refused in every mode
    NEVER = 4  # certain destruction


ALL_SCOPES: tuple[str, ...] = ("once", "session", "always")
ONCE: tuple[str, ...] = ("once",)
# Approved once only: the text says little about what will run next time.
ONLY_ONCE = frozenset(("obfuscated", "unclear", "remote_code", "credentials", "exfiltration"))
# Approved at most for the session.
NOT_ALWAYS = frozenset(("outside",))
# What untrusted text must not cause without approval.
OUTWARD = frozenset(
    ("network", "network_out", "persistence", "privilege", "exfiltration", "agent_context")
)
# Common in scripts: they say that something is not known, not what it is.
VAGUE = frozenset(("unclear", "unknown_program", "shell_escape", "obfuscated"))


READS_ONLY = "It only reads."


class Finding(Value):
    """One reason to allow, ask about or deny an effect."""

    level: Level
    category: str
    reason: str
    command: str = ""  # the simple command it is about, as it would really be run


class Verdict(Value):
    """All findings about a script."""

    findings: tuple[Finding, ...] = ()
    commands: tuple[str, ...] = ()  # the simple commands in order, as they would run
    # Findings about obfuscated code in new files; they count when untrusted text is in view.
    hidden: tuple[Finding, ...] = ()
    # The absolute paths that are written, changed or deleted, as far as the text names them: for a
    # pattern its folder, for a program such as `make` nothing.
    touched: tuple[str, ...] = ()
    tainted_files: tuple[str, ...] = ()  # those that the script uses or runs
    sources: tuple[str, ...] = ()  # where the untrusted text behind them came from
    uses_new_files: bool = False  # whether it uses or runs new or tainted files

    @property
    def reads_only(self) -> bool:
        """Whether nothing is changed: no named file, and nothing by a program that may change
        anything."""
        return not self.touched and all(
            each.level is Level.HARMLESS or (each.level is Level.WORK and each.reason == READS_ONLY)
            for each in self.findings
        )

    @property
    def level(self) -> Level:
        return max((each.level for each in self.findings), default=Level.HARMLESS)

    @property
    def worst(self) -> Finding:
        """The finding to report first."""
        return combine(self.findings)


def combine(findings: Iterable[Finding]) -> Finding:
    """Return the finding to report for all of these: the worst and most specific one."""
    found = tuple(findings)
    level = max((each.level for each in found), default=Level.HARMLESS)
    top = [each for each in found if each.level == level]
    kinds = {each.category for each in top}
    if level is Level.ASKED and "credentials" in kinds and "network_out" in kinds:
        reasons = {each.category: each.reason for each in reversed(top)}
        return replace(
            top[0],
            category="exfiltration",
            reason=f"{reasons['credentials']} {reasons['network_out']}",
        )
    # A specific finding says more than "unclear", and a change more than reading.
    vague = ("unclear", "unknown_program", "shell_escape")
    clear = [each for each in top if each.category not in vague and each.reason != READS_ONLY]
    if not top:
        return Finding(level=Level.HARMLESS, category="", reason=READS_ONLY)
    # Where a file lies says less than what is done to it.
    specific = [each for each in clear if each.category != "outside"]
    return (specific or clear or top)[0]


def decision_of(worst: Finding) -> Decision:
    """Return the decision that the worst finding leads to."""
    match worst.level:
        case Level.NEVER:
            reason = f"This is never allowed: {worst.reason}."
            return Deny(reason=reason, category=worst.category, hardline=True)
        case Level.DENIED:
            return Deny(reason=worst.reason, category=worst.category)
        case Level.ASKED:
            scopes = ("once", "session") if worst.category in NOT_ALWAYS else ALL_SCOPES
            scopes = ONCE if worst.category in ONLY_ONCE else scopes
            return Ask(reason=worst.reason, category=worst.category, scopes=scopes)
    return Allow(harmless=worst.level is Level.HARMLESS, reason=worst.reason)
