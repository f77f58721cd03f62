"""What the owner has decided beforehand: the allowlist, and rules for effects and people."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from hermes.codec.json import DecodeError, convert
from hermes.codec.values import Value
from hermes.core.effects import (
    CallServer,
    ChangeSkill,
    DeletePath,
    Draw,
    Effect,
    FetchUrl,
    Principal,
    ReadHistory,
    ReadPath,
    Remember,
    RunCommand,
    Schedule,
    SignalProcess,
    UseSecret,
    UseTool,
    WritePath,
)
from hermes.core.errors import ConfigError
from hermes.policy.patterns import regex

Mask = Callable[[str], str]
SEALED = regex(r"sealed:(?P<seal>[0-9a-f]{64}) (?P<shown>.*)", re.DOTALL)


def mask_secrets(text: str) -> str:
    """Return the text without anything that looks like a secret."""
    from hermes.policy.redact.redactor import Redactor

    return Redactor().redact(text).text


def seal(text: str, mask: Mask) -> str:
    """Return the text itself if it holds no secret; otherwise its masked form and a hash that
    recognises the same text again."""
    shown = mask(text)
    return text if shown == text else f"sealed:{_seal(text, shown)} {shown}"


class Allowlist:
    """Effects that the owner has allowed always."""

    def __init__(self, texts: Iterable[str], mask: Mask = mask_secrets) -> None:
        self._mask = mask
        self._plain: set[str] = set()
        self._seals: dict[str, set[str]] = {}
        for text in texts:
            if found := SEALED.fullmatch(text):
                self._seals.setdefault(found["shown"], set()).add(found["seal"])
            else:
                self._plain.add(text)

    def add(self, text: str) -> None:
        self._plain.add(text)

    def __contains__(self, text: str) -> bool:
        if text in self._plain:
            return True
        if not self._seals:
            return False
        # Hashing is slow, so only texts with the same masked form are hashed.
        shown = self._mask(text)
        return shown in self._seals and _seal(text, shown) in self._seals[shown]


def _seal(text: str, shown: str) -> str:
    """Return a hash that is slow on purpose: a reader of the settings must not find a short
    password by trying."""
    import hashlib

    salt = hashlib.sha256(shown.encode()).digest()
    return hashlib.scrypt(text.encode(), salt=salt, n=2**13, r=8, p=1, dklen=32).hex()


Kind = Literal[
    "command",
    "read",
    "write",
    "delete",
    "fetch",
    "signal",
    "history",
    "remember",
    "skill",
    "schedule",
    "secret",
    "server",
    "draw",
    "tool",
    "any",
]


def kind_and_target(effect: Effect) -> tuple[Kind, str]:
    """Return the kind of an effect in rules, and the text that they match."""
    match effect:
        case RunCommand(script=script):
            return "command", script
        case ReadPath(path=path):
            return "read", path
        case WritePath(path=path):
            return "write", path
        case DeletePath(path=path):
            return "delete", path
        case FetchUrl(url=url):
            return "fetch", url
        case SignalProcess(process_id=process_id):
            return "signal", process_id
        case ReadHistory(query=query):
            return "history", query
        case Remember(text=text):
            return "remember", text
        case ChangeSkill(name=name):
            return "skill", name
        case Schedule(text=text):
            return "schedule", text
        case UseSecret(name=name):
            return "secret", name
        case UseTool(name=name):
            return "tool", name
        case CallServer(server=server, tool=tool):
            return "server", f"{server}/{tool}"
        case Draw(provider=provider, host=host):
            return "draw", f"{provider}/{host}"


class Rule(Value, forbid_unknown_fields=True):
    """One rule of the owner."""

    decision: Literal["allow", "ask", "deny"]
    match: str  # a pattern with `*`, `?` and `[…]` over a whole command, path or URL
    effect: Kind = "command"
    # Whose effects; empty means all, but for a rule that allows only the owner.
    who: tuple[Principal, ...] = ()
    where: tuple[str, ...] = ()  # on which surfaces; empty means all
    reason: str = ""


class _File(Value, forbid_unknown_fields=True):
    rule: tuple[Rule, ...] = ()


def load_rules(path: Path) -> tuple[Rule, ...]:
    """Load the rules of a TOML file with `[[rule]]` tables; none when there is no file. Raise
    ConfigError when it cannot be read: rules must not be skipped silently."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"Cannot read the rules in {path}: {error}.") from error
    # Few homes have such a file.
    import tomllib

    try:
        return convert(_File, tomllib.loads(text)).rule
    except (tomllib.TOMLDecodeError, DecodeError) as error:
        raise ConfigError(f"The rules in {path} cannot be used: {error}.") from error


class OwnerRules:
    """The owner's rules that apply to one session."""

    def __init__(self, rules: Iterable[Rule], surface: str) -> None:
        self._rules = tuple(rule for rule in rules if not rule.where or surface in rule.where)

    def find(
        self, decision: Literal["deny", "ask"], effect: Effect, who: Principal, texts: Iterable[str]
    ) -> Rule | None:
        """Return the first rule with this decision that matches one of the texts: the commands in a
        script, or the target of the effect if there are none."""
        return next(self._matching(decision, effect, who, texts), None)

    def find_allow(self, effect: Effect, who: Principal, texts: Iterable[str]) -> Rule | None:
        """Return an allow rule if every text has one; None otherwise."""
        found: Rule | None = None
        for text in tuple(texts) or (kind_and_target(effect)[1],):
            found = next(self._matching("allow", effect, who, (text,)), None)
            if found is None:
                return None
        return found

    def _matching(
        self, decision: str, effect: Effect, who: Principal, texts: Iterable[str]
    ) -> Iterator[Rule]:
        if not self._rules:
            return
        kind, target = kind_and_target(effect)
        kinds, given = {kind, "any"}, tuple(texts) or (target,)
        if isinstance(effect, Draw):
            # A rule about servers also applies to image providers, as `image_gen/NAME`.
            kinds.add("server")
            given = (*given, *(f"image_gen/{text}" for text in given))
        for rule in self._rules:
            people = rule.who or (("owner", "system") if decision == "allow" else ())
            if (
                rule.decision == decision
                and rule.effect in kinds
                and (not people or who in people)
                and any(fnmatchcase(text, rule.match) for text in given)
            ):
                yield rule
