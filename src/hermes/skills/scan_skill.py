"""Adapts the policy scanner to skills."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.policy.scan.scanner import TextScanner
from hermes.skills.hub.lock import ScanResult, SkillFinding


def scan_skill(text: str, files: Mapping[str, str]) -> ScanResult:
    found = TextScanner().scan_skill(text, files)
    findings = tuple(
        SkillFinding(
            id=each.id, severity=each.severity, line=each.line, file=each.file, text=each.text
        )
        for each in found.findings
    )
    return ScanResult(verdict=found.verdict, findings=findings)
