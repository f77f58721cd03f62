"""Decides by trust and scan verdict whether a skill may be installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from hermes.codec.values import Value
from hermes.skills.hub.listing import SourceTrust

Verdict = Literal["safe", "caution", "dangerous"]
SCANNER = "policy.scan-1"

# Magic numbers of binary formats that are not scanned as text.
_BINARY_MAGIC = (
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"GIF8",
    b"RIFF",
    b"%PDF-",
    b"wOF2",
    b"wOFF",
    b"\x00\x01\x00\x00",
)


class SkillFinding(Value):
    id: str
    severity: str
    line: int = 0
    file: str = ""
    text: str = ""


class ScanResult(Value):
    verdict: Verdict
    findings: tuple[SkillFinding, ...] = ()


ScanSkill = Callable[[str, Mapping[str, str]], ScanResult]
"""Scans a skill's text and its files by name."""


class Ruling(Value):
    allowed: bool
    reason: str = ""


def decide_ruling(trust: SourceTrust, verdict: Verdict, *, force: bool = False) -> Ruling:
    """Decides. `force` overrides a caution, never a danger."""
    if verdict == "safe" or trust == "builtin":
        return Ruling(allowed=True)
    if trust == "trusted" and verdict == "caution":
        return Ruling(allowed=True)
    if verdict == "dangerous":
        return Ruling(allowed=False, reason=f"The scan rates it dangerous ({trust} source).")
    if force:
        return Ruling(allowed=True, reason="Installed with --force despite a caution.")
    return Ruling(
        allowed=False,
        reason="The scan advises caution; use --force to install it anyway.",
    )


def scan_files(files: Mapping[str, bytes], scan: ScanSkill) -> ScanResult:
    texts = {
        name: data.decode("utf-8", "replace")
        for name, data in files.items()
        if name != "SKILL.md" and not data.startswith(_BINARY_MAGIC)
    }
    return scan(files["SKILL.md"].decode("utf-8", "replace"), texts)
