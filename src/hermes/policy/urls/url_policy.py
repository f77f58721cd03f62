"""Decides which URLs may be fetched and pins the address to connect to."""

from __future__ import annotations

import asyncio
import logging
import math
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from hermes.codec.values import Value
from hermes.core.effects import Allow, Decision, Deny
from hermes.policy.urls.addresses import AddressKind, address_kind, name_kind
from hermes.policy.urls.parsing import RefusedUrl, Target, join, parse_host, parse_url

if TYPE_CHECKING:
    from hermes.policy.rules import Blocked

log = logging.getLogger(__name__)

FRESH_SECONDS = 30.0


class Blocklist:
    """The websites that the settings block. A rule is a domain, including its subdomains, or a
    pattern with `*`. Schemes and paths in a rule are ignored; `#` begins a comment. Files with more
    rules are read again now and then."""

    def __init__(
        self,
        rules: Iterable[str] = (),
        files: Iterable[Path] = (),
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._given = tuple(rules)
        self._files = tuple(files)
        self._now = now
        self._read_at = -math.inf
        self._domains: frozenset[str] = frozenset()
        self._patterns: tuple[str, ...] = ()

    def matching(self, host: str) -> str:
        """Return the rule that blocks this host, or ""."""
        if self._read_at == -math.inf or (
            self._files and self._now() - self._read_at >= FRESH_SECONDS
        ):
            self._read()
        name = host.lower().removesuffix(".")
        labels = name.split(".")
        for start in range(len(labels)):
            if (tail := ".".join(labels[start:])) in self._domains:
                return tail
        return next((rule for rule in self._patterns if fnmatchcase(name, rule)), "")

    def _read(self) -> None:
        self._read_at = self._now()
        lines = list(self._given)
        for path in self._files:
            try:
                lines += path.read_text(encoding="utf-8", errors="replace").splitlines()
            except OSError as error:
                log.warning("a blocklist cannot be read", extra={"path": str(path), "why": error})
        rules = [rule for line in lines if (rule := _clean(line))]
        self._domains = frozenset(rule for rule in rules if "*" not in rule)
        self._patterns = tuple(rule for rule in rules if "*" in rule)


def _clean(rule: str) -> str:
    rule = rule.partition("#")[0].strip().lower()
    _, _, rule = rule.rpartition("://")
    rule = rule.partition("/")[0].partition("?")[0].rpartition("@")[2]
    if rule.count(":") == 1:
        rule = rule.partition(":")[0]
    return rule.removeprefix("www.").strip(".")


LONGEST_SECONDS = 5.0
_LONGEST_CHAIN = 8


class HostResolver(Protocol):
    async def resolve(self, name: str) -> Sequence[str]:
        """Return all addresses of a host, in the order to try them. Raises OSError."""
        ...


class SystemResolver:
    def __init__(self, seconds: float = LONGEST_SECONDS) -> None:
        self._seconds = seconds

    async def resolve(self, name: str) -> Sequence[str]:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self._seconds):
            found = await loop.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


class StaticResolver:
    """Resolves hosts from a table. A list of lists gives one list per look-up; the last one
    repeats."""

    def __init__(self, answers: Mapping[str, object]) -> None:
        self._answers = {_name(host): _rounds(addresses) for host, addresses in answers.items()}
        self._asked: dict[str, int] = {}

    async def resolve(self, name: str) -> Sequence[str]:
        return self._resolve(name, _LONGEST_CHAIN)

    def _resolve(self, name: str, left: int) -> tuple[str, ...]:
        rounds = self._answers.get(name, [])
        if not rounds or not left:
            raise OSError(f"no answer for {name}")
        turn = self._asked.get(name, 0)
        self._asked[name] = turn + 1
        found: list[str] = []
        for answer in rounds[min(turn, len(rounds) - 1)]:
            alias = _name(answer)
            found += self._resolve(alias, left - 1) if alias in self._answers else (answer,)
        return tuple(found)


def _rounds(addresses: object) -> list[list[str]]:
    if isinstance(addresses, str):
        return [[addresses]]
    if not isinstance(addresses, list):
        return []
    if any(isinstance(each, list) for each in addresses):
        return [_texts(each if isinstance(each, list) else [each]) for each in addresses]
    return [_texts(addresses)]


def _texts(addresses: list[object]) -> list[str]:
    return [each for each in addresses if isinstance(each, str)]


def _name(text: str) -> str:
    try:
        return parse_host(text.strip()).name
    except RefusedUrl:
        return text.strip().lower().removesuffix(".")


MOST_REDIRECTS = 5


class UrlDecision(Value):
    """The decision about a URL. If it is allowed, the connection must go to `connect`, a numeric
    address, with `target.host` for TLS and the Host header."""

    decision: Decision
    target: Target | None = None
    connect: str = ""
    redirects: int = 0

    @property
    def allowed(self) -> bool:
        return isinstance(self.decision, Allow)


class UrlPolicy:
    """Decides whether a URL may be fetched. `allow_private` allows this machine and private
    networks, but never metadata services."""

    def __init__(
        self,
        resolver: HostResolver,
        *,
        allow_private: bool = False,
        blocks: Blocklist | None = None,
        most_redirects: int = MOST_REDIRECTS,
    ) -> None:
        self._resolver = resolver
        self._allow_private = allow_private
        self._blocks = blocks or Blocklist()
        self._most_redirects = most_redirects

    def quick_check(self, text: str) -> Decision:
        """Check the text of a URL without resolving its name."""
        try:
            self._check_text(text)
        except RefusedUrl as refused:
            return _deny(refused)
        return Allow(harmless=True)

    async def check(self, text: str) -> UrlDecision:
        """Resolve the name once and check all its addresses."""
        try:
            target = self._check_text(text)
            addresses = (
                (target.host.address,) if target.host.address else await self._look_up(target)
            )
        except RefusedUrl as refused:
            return UrlDecision(decision=_deny(refused))
        kind = address_kind(addresses[0])
        what = kind.description if kind else "known"
        allowed = Allow(harmless=True, reason=f"{target.host.name} is {what}.")
        return UrlDecision(decision=allowed, target=target, connect=addresses[0])

    async def redirect(self, passage: UrlDecision, location: str) -> UrlDecision:
        """Return the decision about the target of a redirect."""
        if passage.target is None:
            return passage
        count = passage.redirects + 1
        if count > self._most_redirects:
            reason = f"It was redirected more than {self._most_redirects} times."
            return UrlDecision(decision=Deny(reason=reason, category="redirects"), redirects=count)
        found = await self.check(join(passage.target, location))
        return UrlDecision(
            decision=found.decision, target=found.target, connect=found.connect, redirects=count
        )

    def _check_text(self, text: str) -> Target:
        target = parse_url(text)
        host = target.host
        kind = address_kind(host.address) if host.address else name_kind(host.name)
        if kind is not None:
            self._check_reach(kind, host.name)
        if rule := self._blocks.matching(host.name):
            raise RefusedUrl(f"{host.name} is blocked by your rule {rule!r}.", "blocklist")
        return target

    async def _look_up(self, target: Target) -> tuple[str, ...]:
        name = target.host.name
        try:
            addresses = tuple(await self._resolver.resolve(name))
        except (OSError, UnicodeError) as error:
            why = "the look-up took too long" if isinstance(error, TimeoutError) else "unknown name"
            raise RefusedUrl(f"{name} could not be resolved ({why}).", "dns") from error
        if not addresses:
            raise RefusedUrl(f"{name} has no address.", "dns")
        for address in addresses:
            kind = address_kind(address)
            if kind is None:
                raise RefusedUrl(f"{name} resolves to {address!r}, which is not an address.", "dns")
            self._check_reach(kind, f"{name} ({address})")
        return addresses

    def _check_reach(self, kind: AddressKind, shown: str) -> None:
        match kind.reach:
            case "global":
                return
            case "private" if self._allow_private:
                return
            case "private":
                hint = "set security.allow_private_urls to true to allow it"
                raise RefusedUrl(f"{shown} is {kind.description}; {hint}.", "private_address")
            case "metadata":
                raise RefusedUrl(
                    f"{shown} is {kind.description}, which is never opened.", "metadata"
                )
            case "never":
                raise RefusedUrl(
                    f"{shown} is {kind.description}, not a public address.", "reserved_address"
                )


def _deny(refused: RefusedUrl) -> Deny:
    return Deny(
        reason=str(refused), category=refused.category, hardline=refused.category == "metadata"
    )


def make_url_policy(
    resolver: HostResolver | None, private: bool, blocked: Blocked, now: Callable[[], float]
) -> UrlPolicy:
    files = [Path(each).expanduser() for each in blocked.files]
    blocks = Blocklist(blocked.domains, files, now)
    return UrlPolicy(resolver or SystemResolver(), allow_private=private, blocks=blocks)
