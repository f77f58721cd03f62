"""Standing rules: what the owner has written down once, for effects, people and surfaces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
    SignalProcess,
    UseSecret,
    UseTool,
    WritePath,
)
from hermes.core.errors import ConfigError

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
    "secret",
    "server",
    "draw",
    "tool",
    "any",
]
KINDS: dict[type[Effect], Kind] = {
    RunCommand: "command",
    ReadPath: "read",
    WritePath: "write",
    DeletePath: "delete",
    FetchUrl: "fetch",
    SignalProcess: "signal",
    ReadHistory: "history",
    Remember: "remember",
    ChangeSkill: "skill",
    UseSecret: "secret",
    CallServer: "server",
    Draw: "draw",
    UseTool: "tool",
}


class Rule(Value, forbid_unknown_fields=True):
    """One rule. `match` is a pattern with `*`, `?` and `[…]` over a whole command, path or URL.
    `who` and `where` narrow it to people and surfaces; empty means all, but a rule that allows
    is for the owner unless it names others."""

    decision: Literal["allow", "ask", "deny"]
    match: str
    effect: Kind = "command"
    who: tuple[Principal, ...] = ()
    where: tuple[str, ...] = ()
    reason: str = ""


class _File(Value, forbid_unknown_fields=True):
    rule: tuple[Rule, ...] = ()


def load_rules(path: Path) -> tuple[Rule, ...]:
    """The rules of a TOML file with `[[rule]]` tables; none when there is no file. ConfigError
    when it cannot be read: rules that cannot be understood must not be passed over."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"Cannot read the rules in {path}: {error}.") from error
    # Few homes have such a file, so the others do not pay for reading it.
    import tomllib

    try:
        return convert(_File, tomllib.loads(text)).rule
    except (tomllib.TOMLDecodeError, DecodeError) as error:
        raise ConfigError(f"The rules in {path} cannot be used: {error}.") from error


class Standing:
    """The rules that hold for one session."""

    def __init__(self, rules: Iterable[Rule], surface: str) -> None:
        self._rules = tuple(rule for rule in rules if not rule.where or surface in rule.where)

    def denying(self, effect: Effect, who: Principal, texts: Iterable[str]) -> Rule | None:
        """A rule that refuses one of the texts; for a command, any command inside counts."""
        return next(self._matching("deny", effect, who, texts), None)

    def asking(self, effect: Effect, who: Principal, texts: Iterable[str]) -> Rule | None:
        return next(self._matching("ask", effect, who, texts), None)

    def allowing(self, effect: Effect, who: Principal, texts: Iterable[str]) -> Rule | None:
        """A rule for each of the texts; the last one. None when a text has no rule."""
        found: Rule | None = None
        for text in texts:
            found = next(self._matching("allow", effect, who, (text,)), None)
            if found is None:
                return None
        return found

    def _matching(
        self, decision: str, effect: Effect, who: Principal, texts: Iterable[str]
    ) -> Iterator[Rule]:
        if not self._rules:
            return
        kind, given = KINDS[type(effect)], tuple(texts)
        kinds = {kind, "any"}
        if isinstance(effect, Draw):
            # A rule about servers holds for those that draw, under the name of their kind.
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
