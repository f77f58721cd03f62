"""Websites that the owner does not want to be visited, by name or pattern."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

log = logging.getLogger(__name__)

FRESH_SECONDS = 30.0


class Blocklist:
    """A rule is a domain, which counts for all names below it, or a pattern with `*`. Schemes and
    paths in a rule are left out; `#` begins a comment."""

    def __init__(self, rules: Iterable[str] = ()) -> None:
        cleaned = (_cleaned(rule) for rule in rules)
        self._rules = tuple(dict.fromkeys(rule for rule in cleaned if rule))
        self._domains = frozenset(rule for rule in self._rules if "*" not in rule)
        self._patterns = tuple(rule for rule in self._rules if "*" in rule)

    def matching(self, host: str) -> str:
        """The rule that blocks this host, or nothing."""
        name = host.lower().removesuffix(".")
        labels = name.split(".")
        for start in range(len(labels)):
            if (tail := ".".join(labels[start:])) in self._domains:
                return tail
        return next((rule for rule in self._patterns if fnmatchcase(name, rule)), "")


class SharedBlocklist:
    """The rules of the settings and of files that others keep, read again after a while."""

    def __init__(
        self, domains: Sequence[str], files: Sequence[Path], now: Callable[[], float]
    ) -> None:
        self._domains = tuple(domains)
        self._files = tuple(files)
        self._now = now
        self._read_at: float | None = None
        self._list = Blocklist(domains)

    def matching(self, host: str) -> str:
        now = self._now()
        if self._files and (self._read_at is None or now - self._read_at >= FRESH_SECONDS):
            self._read_at = now
            self._list = Blocklist((*self._domains, *self._lines()))
        return self._list.matching(host)

    def _lines(self) -> list[str]:
        found: list[str] = []
        for path in self._files:
            try:
                found += path.read_text(encoding="utf-8", errors="replace").splitlines()
            except OSError as error:
                log.warning("a blocklist cannot be read", extra={"path": str(path), "why": error})
        return found


def _cleaned(rule: str) -> str:
    rule = rule.partition("#")[0].strip().lower()
    _, _, rule = rule.rpartition("://")
    rule = rule.partition("/")[0].partition("?")[0].rpartition("@")[2]
    if rule.count(":") == 1:
        rule = rule.partition(":")[0]
    return rule.removeprefix("www.").strip(".")
