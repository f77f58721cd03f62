"""Judges a URL and pins the address to connect to; each redirect is judged like a new URL."""

from __future__ import annotations

from typing import Protocol

from hermes.codec.values import Value
from hermes.core.effects import Allow, Decision, Deny
from hermes.policy.urls.addresses import Kind, kind_of
from hermes.policy.urls.blocklist import Blocklist
from hermes.policy.urls.hosts import RefusedUrl
from hermes.policy.urls.names import kind_of_name
from hermes.policy.urls.parsing import Target, join, parse_url
from hermes.policy.urls.resolver import Resolver

MOST_REDIRECTS = 5
# The kinds of refusal, each with what a person is told about it.
CATEGORIES = {
    "ambiguous_url": "The URL can be read in more than one way.",
    "scheme": "Only http and https are fetched.",
    "port": "The port belongs to another protocol.",
    "private_address": "It leads to this machine or a private network.",
    "metadata": "It leads to a cloud's metadata service. Never allowed.",
    "reserved_address": "It leads to an address that is no public place.",
    "dns": "The name has no address.",
    "blocklist": "The website is on your blocklist.",
    "redirects": "There are too many redirects.",
}


class Blocks(Protocol):
    def matching(self, host: str) -> str: ...


class Passage(Value):
    """The decision about a URL. When it is allowed, the connection goes to `connect`, a numeric
    address, with the name of `target.host` for TLS and the Host header, and to nowhere else."""

    decision: Decision
    target: Target | None = None
    connect: str = ""
    redirects: int = 0

    @property
    def allowed(self) -> bool:
        return isinstance(self.decision, Allow)


class Urls:
    """`allow_private` opens this machine and private networks, but never metadata services."""

    def __init__(
        self,
        resolver: Resolver,
        *,
        allow_private: bool = False,
        blocks: Blocks | None = None,
        most_redirects: int = MOST_REDIRECTS,
    ) -> None:
        self._resolver = resolver
        self._allow_private = allow_private
        self._blocks = blocks or Blocklist()
        self._most_redirects = most_redirects

    def glance(self, text: str) -> Decision:
        """What the text alone tells; a name that is allowed here is still to be resolved."""
        try:
            self._check_text(text)
        except RefusedUrl as refused:
            return _deny(refused)
        return Allow(harmless=True)

    async def judge(self, text: str) -> Passage:
        """Resolves the name once. The addresses of that one answer are all judged."""
        try:
            target = self._check_text(text)
            addresses = (
                (target.host.address,) if target.host.address else await self._look_up(target)
            )
        except RefusedUrl as refused:
            return Passage(decision=_deny(refused))
        allowed = Allow(harmless=True, reason=f"{target.host.name} is {self._words(addresses)}.")
        return Passage(decision=allowed, target=target, connect=addresses[0])

    async def redirect(self, passage: Passage, location: str) -> Passage:
        """The passage to where an answer's `Location` leads."""
        if passage.target is None:
            return passage
        count = passage.redirects + 1
        if count > self._most_redirects:
            reason = f"It was redirected more than {self._most_redirects} times."
            return Passage(decision=Deny(reason=reason, category="redirects"), redirects=count)
        found = await self.judge(join(passage.target, location))
        return Passage(
            decision=found.decision, target=found.target, connect=found.connect, redirects=count
        )

    def _check_text(self, text: str) -> Target:
        target = parse_url(text)
        host = target.host
        kind = kind_of(host.address) if host.address else kind_of_name(host.name)
        if kind is not None:
            self._check(kind, host.name)
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
            kind = kind_of(address)
            if kind is None:
                raise RefusedUrl(f"{name} has the answer {address!r}, which is none.", "dns")
            self._check(kind, f"{name} ({address})")
        return addresses

    def _check(self, kind: Kind, shown: str) -> None:
        match kind.reach:
            case "global":
                return
            case "private" if self._allow_private:
                return
            case "private":
                hint = "security.allow_private_urls opens it"
                raise RefusedUrl(f"{shown} is {kind.words}; {hint}.", "private_address")
            case "metadata":
                raise RefusedUrl(f"{shown} is {kind.words}, which is never opened.", "metadata")
            case "never":
                raise RefusedUrl(f"{shown} is {kind.words}, no public place.", "reserved_address")

    def _words(self, addresses: tuple[str, ...]) -> str:
        kind = kind_of(addresses[0])
        return kind.words if kind else "known"


def _deny(refused: RefusedUrl) -> Deny:
    return Deny(
        reason=str(refused), category=refused.category, hardline=refused.category == "metadata"
    )
