"""Reads robots.txt files and decides whether a page may be fetched."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from hermes.codec.values import Value

AGENT = "hermes-agent"
# Longer files are cut, as RFC 9309 allows.
MOST_CHARS = 500_000
MOST_RULES = 5_000


class RobotsRule(Value):
    """A path pattern; the longest one that matches decides."""

    pattern: str
    is_allowed: bool

    def matches(self, path: str) -> bool:
        if "*" not in self.pattern and not self.pattern.endswith("$"):
            return path.startswith(self.pattern)
        anchored = self.pattern.endswith("$")
        parts = self.pattern.removesuffix("$").split("*")
        return _matches_parts(path, parts, anchored=anchored)


class RobotsRules(Value):
    """The rules for Hermes in one file."""

    rules: tuple[RobotsRule, ...] = ()

    def allows(self, url: str) -> bool:
        """Of the patterns that match, the longest decides; `Allow` wins a tie."""
        parts = urlsplit(url)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        found = [rule for rule in self.rules if rule.matches(path)]
        if not found:
            return True
        longest = max(len(rule.pattern) for rule in found)
        return any(rule.is_allowed for rule in found if len(rule.pattern) == longest)


def parse_robots(text: str) -> RobotsRules:
    """Return the rules of the groups that name Hermes, else those for all agents."""
    groups: dict[str, list[RobotsRule]] = {}
    agents: list[str] = []
    in_rules = False
    for line in text[:MOST_CHARS].splitlines():
        field, _, value = line.partition("#")[0].partition(":")
        field, value = field.strip().lower(), value.strip()
        if field == "user-agent":
            agents = [*agents, value.lower()] if not in_rules else [value.lower()]
            in_rules = False
        elif field in ("allow", "disallow"):
            in_rules = True
            for agent in agents if value else ():
                rules = groups.setdefault(agent, [])
                if len(rules) < MOST_RULES:
                    rules.append(RobotsRule(pattern=value, is_allowed=field == "allow"))
            for agent in agents:
                groups.setdefault(agent, [])
    named = [agent for agent in groups if agent != "*" and re.match(re.escape(agent), AGENT)]
    chosen = max(named, key=len) if named else "*"
    return RobotsRules(rules=tuple(groups.get(chosen, ())))


def _matches_parts(path: str, parts: list[str], *, anchored: bool) -> bool:
    """Whether the path begins with the first part and contains the others in order. With
    `anchored`, the last part must end it."""
    if not path.startswith(parts[0]):
        return False
    at = len(parts[0])
    last = len(parts) - 1
    for number, part in enumerate(parts[1:], 1):
        if number == last and anchored:
            return len(path) - len(part) >= at and path.endswith(part)
        found = path.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return not anchored or at == len(path)
