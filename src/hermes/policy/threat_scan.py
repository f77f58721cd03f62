"""Checks that guard persistent knowledge: untrusted origins, and instructions hidden in text."""

from __future__ import annotations


def untrusted_in(origins: frozenset[str]) -> tuple[str, ...]:
    from hermes.policy.sources import untrusted_origins

    return untrusted_origins(origins)


def local_in(origins: frozenset[str]) -> tuple[str, ...]:
    """Return those of the origins that are files and programs."""
    from hermes.policy.sources import local_origins

    return local_origins(origins)


def scan_for_threats(text: str) -> str:
    """Return the first critical finding in a text, an instruction to the model or a secret; "" if
    there is none."""
    # The patterns are slow to load, and most runs do not need them.
    from hermes.policy.scan.scanner import TextScanner

    scanned = TextScanner().scan(text, "memory")
    if scanned.verdict != "dangerous":
        return ""
    return next(each.id for each in scanned.findings if each.severity == "critical")
