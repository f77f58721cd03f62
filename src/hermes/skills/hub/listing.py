"""What a source says of a skill, and the files that it gives for it."""

from __future__ import annotations

from typing import Literal, Protocol

from hermes.codec.values import Value

Trust = Literal["builtin", "trusted", "community"]

TRUSTED_REPOS = frozenset(("openai/skills", "anthropics/skills", "huggingface/skills"))


class Listing(Value):
    """`identifier` is what `install` takes; `url` is where a person can look at it."""

    source: str
    identifier: str
    name: str
    description: str = ""
    trust: Trust = "community"
    version: str = ""
    url: str = ""
    installs: int = 0


class Package(Value):
    """A skill as it came in; nothing of it has been looked at yet."""

    listing: Listing
    files: dict[str, bytes]
    notes: tuple[str, ...] = ()


class Source(Protocol):
    """One place that skills come from. Every method may raise NotFound and HermesError."""

    @property
    def id(self) -> str: ...

    def claims(self, identifier: str) -> bool:
        """The identifier is meant for this source."""
        ...

    async def search(self, query: str, limit: int) -> tuple[Listing, ...]:
        """Best first; an empty query browses."""
        ...

    async def package(self, identifier: str) -> Package: ...


def repo_trust(repo: str) -> Trust:
    return "trusted" if repo.lower() in TRUSTED_REPOS else "community"


def after_prefix(identifier: str, source: str) -> str:
    """`source:rest` and `source/rest` are the same; "" for any other."""
    for sign in (":", "/"):
        if identifier.startswith(f"{source}{sign}"):
            return identifier[len(source) + 1 :]
    return ""


def matches(query: str, *texts: str) -> int:
    """How many words of the query stand in the texts; 1 for an empty query."""
    words = query.lower().split()
    whole = " ".join(texts).lower()
    return sum(word in whole for word in words) if words else 1
