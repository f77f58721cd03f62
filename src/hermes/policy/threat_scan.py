"""What must not lead to lasting knowledge by itself: strangers' words, and orders in disguise."""

from __future__ import annotations


def untrusted_in(origins: frozenset[str]) -> tuple[str, ...]:
    from hermes.policy.sources import is_trusted

    return tuple(sorted(origin for origin in origins if not is_trusted(origin)))


def scan_for_threats(text: str) -> str:
    """The first pattern of an order to the model, or of a secret, in a text; "" for none."""
    # Knowing all patterns takes long to load, and most runs change nothing.
    from hermes.policy.scan.scanner import TextScanner

    scanned = TextScanner().scan(text, "memory")
    if scanned.verdict != "dangerous":
        return ""
    return next(each.id for each in scanned.findings if each.severity == "critical")
